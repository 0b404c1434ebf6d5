// SPDX-License-Identifier: GPL-2.0
#include "attach/chain.h"
#include "attach/published.h"
#include "attach/shaping.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/findings.h"
#include "gate/maps.h"
#include "gate/pins.h"
#include "gate/rules.h"
#include "migrate/open.h"
#include "program/writer.h"
#include "report/parts.h"
#include "report/report.h"
#include "sharing/share_state.h"
#include "state/pressure.h"
#include "state/stats.h"

/*
 * The facts about a gate that status prints. All facts are read first, so that they are from about
 * the same time.
 */
struct facts {
	unsigned int rules;
	struct seen seen;
	struct shaping shaping;
	struct holding holding[ATTACHMENTS_MAX]; /* by index in seen.all */
	struct xdp_order order[ATTACHMENTS_MAX]; /* by index in seen.all */
	struct pressure pressure;
	struct passing passing;
	struct budget_use *budgets;
	unsigned int budget_count;
	struct table_fill fill;
	struct occupancy maps[GATE_MAPS];
	/* bytes of used entries; of all entries if the number of used entries is unknown */
	uint64_t memory[GATE_MAPS];
	struct findings findings; /* the FINDINGS_SHOWN most important findings */
};

#define FINDINGS_SHOWN 3

/* Returns whether the gate delays packets on this attachment. */
static bool shapes_on(const struct facts *facts, const struct attachment *a)
{
	return facts->shaping.any && a->hook == HOOK_EGRESS && a->program_id;
}

static int facts_read(const struct gate *gate, struct facts *facts)
{
	int err = rules_count(gate, &facts->rules) ?: attachments_see(gate, &facts->seen)
		  ?: shaping_read(gate, &facts->shaping) ?: pressure_read(gate, &facts->pressure)
		  ?: passing_read(gate, &facts->pressure, &facts->passing)
		  ?: budgets_read(gate, &facts->budgets, &facts->budget_count)
		  ?: table_fill_read(gate, &facts->pressure, &facts->fill)
		  ?: doctor_top(gate->name, FINDINGS_SHOWN, &facts->findings);

	for (unsigned int i = 0; !err && i < facts->seen.count; i++)
		xdp_order_read(gate, &facts->seen.all[i], &facts->order[i]);
	for (unsigned int i = 0; !err && i < facts->seen.count; i++)
		if (shapes_on(facts, &facts->seen.all[i]))
			err = shaping_look(&facts->shaping, &facts->seen.all[i],
					   &facts->holding[i]);
	for (int map = 0; !err && map < GATE_MAPS; map++) {
		struct occupancy *o = &facts->maps[map];

		err = map < MAPS_LISTED ? occupancy_read(gate, map, o)
					: map_max_entries(gate, map, &o->max_entries);
		if (map == MAP_STATES)
			*o = (struct occupancy){o->max_entries, facts->fill.in_use, true};
		if (!err)
			err = gate_map_memory(gate, map, o->counted ? o->entries : o->max_entries,
					      &facts->memory[map]);
	}
	return err;
}

/* --- Attachments ---------------------------------------------------------------------------- */

/*
 * Prints the XDP programs of a device in the order in which they run. JSON has null if Sluice does
 * not share the device.
 */
static void print_order(const struct xdp_order *order)
{
	char text[XDP_ORDER_TEXT];

	if (!order->count) {
		print_null("order");
		return;
	}
	print_text("\n    order: %s", xdp_order_format(order, text));
	print_array("order");
	for (unsigned int i = 0; i < order->count; i++) {
		const struct xdp_order_program *program = &order->program[i];

		print_row(NULL);
		print_number("program_id", NULL, program->id);
		print_string("name", NULL, *program->name ? program->name : NULL);
		print_bool("is_ours", program->is_ours);
		print_known("slot", NULL, program->slot >= 0, program->slot);
		print_end();
	}
	print_end();
}

/* Prints the attachments. JSON has null if they cannot be read and are not published. */
static void print_attachments(const struct gate *gate, const struct facts *facts)
{
	const struct seen *seen = &facts->seen;
	bool is_published = seen->sight == SIGHT_PUBLISHED;
	char path[PUBLISHED_PATH], netns[NETNS_NAME];

	print_known("attachments_published_ms", NULL, is_published, seen->age_ns / NS_PER_MS);
	if (seen->sight == SIGHT_NONE) {
		print_null("attachments");
		return;
	}
	if (seen->count)
		print_text("  %-15s %7s  %-7s  %-7s  %7s  %s\n", "DEVICE", "IFINDEX", "HOOK",
			   "MODE", "PROGRAM", "NETNS");
	else
		print_text("  no device is attached\n");
	print_array("attachments");
	for (unsigned int i = 0; i < seen->count; i++) {
		const struct attachment *a = &seen->all[i];
		const char *name = netns_name(a->netns, netns) ? netns : "(unnamed)";

		print_row(NULL);
		print_attachment(a, NULL);
		print_text("  %-15s %7u  %-7s  %-7s  %7u", name_shown(a->device), a->ifindex,
			   hook_names[a->hook], mode_names[a->mode], a->program_id);
		print_text("  %s", *name ? name_shown(name) : "-");
		if (shapes_on(facts, a))
			print_bool("fq", facts->holding[i].holds);
		else
			print_null("fq");
		if (!a->program_id)
			print_text("  %s gone", a->device_gone ? "device" : "filter");
		else if (shapes_on(facts, a) && !facts->holding[i].holds)
			print_text("  no fq%s%s", facts->holding[i].command ? "\n    " : "",
				   facts->holding[i].command ?: "");
		print_order(&facts->order[i]);
		print_text("\n");
		print_end();
	}
	print_end();
	if (is_published)
		print_text("  the devices were read %" PRIu64 " s ago from %s\n",
			   seen->age_ns / NS_PER_SEC, published_path(gate, path));
}

/* --- New sources ---------------------------------------------------------------------------- */

/* Prints the rate and the total of an event. lead: prefix of the line, before the event's name. */
static void print_pace(const char *key, const char *lead, const char *what, const struct pace *pace)
{
	print_row(key);
	print_text("  %s%-*s", lead, 26 - (int)strlen(lead), what);
	print_number("per_second", " %12" PRIu64, pace->per_second);
	print_number("total", " %20" PRIu64 "\n", pace->total);
	print_end();
}

/*
 * Prints the rate and the total of an event for each of its CAUSES causes. first: array with an
 * element for each cause.
 */
static void print_causes(const char *key, const char *lead, const struct pace *first)
{
	print_object(key);
	for (int cause = 0; cause < CAUSES; cause++)
		print_pace(cause_names[cause], lead, cause_names[cause], &first[cause]);
	print_end();
}

static void print_pressure(const struct gate *gate, const struct facts *facts)
{
	const struct pressure *pressure = &facts->pressure;
	const struct pace *event = pressure->event;

	print_object("pressure");
	print_string("state", "  pressure: %s", pressure->flooded ? "flood" : "quiet");
	if (pressure->flooded)
		print_text(" on %u of %u %s: a new source gets a state after more than 2 "
			   "packets\n",
			   pressure->flooded, gate->machine.cpus,
			   plural(gate->machine.cpus, "CPU", "CPUs"));
	else
		print_text(": a new source gets a state with its first packet\n");
	print_number("cpus_flooded", NULL, pressure->flooded);
	print_number("policies_passed_by", NULL, facts->passing.policies);
	print_text("  %-26s %12s %20s\n", "EVENT", "PER SECOND", "TOTAL");
	print_pace("new_keys", "", "new keys", &event[SL_EVENT_NEW_KEY]);
	print_pace("insertions", "", "insertions", &event[SL_EVENT_INSERTED]);
	print_pace("evicted", "", "evicted", &event[SL_EVENT_EVICTED]);
	print_real("bursts_lost", pressure->bursts_lost);
	print_causes("refused", "refused: ", &event[SL_EVENT_BUSY]);
	print_pace("bucket_insertions", "", "bucket insertions", &event[SL_EVENT_BUCKET_INSERTED]);
	print_causes("buckets_refused", "no bucket: ", &event[SL_EVENT_BUCKET_BUSY]);
	print_end();
}

static void print_budgets(const struct facts *facts)
{
	char rate[UNITS_TEXT], burst[UNITS_TEXT], prefix[PREFIX_TEXT];

	print_array("budgets");
	for (unsigned int i = 0; i < facts->budget_count; i++) {
		const struct budget_use *use = &facts->budgets[i];
		const struct sl_limit_spec *spec = &use->policy->newcomers_spec;

		print_object(NULL);
		print_string("prefix",
			     "  budget of %s:", prefix_format(&use->policy->prefix, prefix));
		print_string("rate", " rate %s", rate_format(spec, rate));
		print_string("burst", " burst %s,", burst_format(spec, burst));
		print_number("left", " %" PRIu64, use->left);
		print_string("unit", " %s left;", unit_name(&use->policy->newcomers));
		print_number("passed", " new sources: %" PRIu64 " packets passed,", use->passed);
		print_number("dropped", " %" PRIu64 " over budget\n", use->dropped);
		print_end();
	}
	print_end();
}

/* --- Sources and maps ----------------------------------------------------------------------- */

static void print_sources(const struct facts *facts)
{
	const struct table_fill *fill = &facts->fill;

	print_object("sources");
	print_number("tracked", "  sources: %" PRIu64 " tracked", fill->in_use);
	print_number("not_full", " (%" PRIu64 " not full,", fill->partial);
	print_number("protected", " %" PRIu64 " protected from eviction);", fill->protected);
	print_number("max", " room for %" PRIu64 ",", fill->sources);
	print_number("bytes_each", " %" PRIu64 " bytes each;", fill->bytes);
	print_number("with_bucket", " %" PRIu64 " have a bucket\n",
		     facts->maps[MAP_BUCKETS4].entries + facts->maps[MAP_BUCKETS6].entries);
	print_known("max_wanted", NULL, fill->sources_short, fill->sources_short);
	print_end();
}

/*
 * Prints the maps in rows. In text, a small map such as an index has no row; the next row includes
 * its memory, so that the sum of the rows is the memory of the gate.
 */
static void print_maps(const struct facts *facts)
{
	char text[MEMORY_TEXT];
	uint64_t all = 0, row = 0;

	print_text("  %-10s  %10s %12s %12s\n", "MAP", "ENTRIES", "MAX", "MEMORY");
	print_array("maps");
	for (int map = 0; map < GATE_MAPS; map++) {
		const struct occupancy *o = &facts->maps[map];

		all += facts->memory[map];
		row += facts->memory[map];
		if (!print_is_json() &&
		    (map >= MAPS_LISTED || map == MAP_SETS || map == MAP_IN_USE))
			continue;
		print_row(NULL);
		print_string("name", "  %-10s", gate_map_names[map]);
		print_known("entries", "  %10" PRIu64, o->counted, o->entries);
		if (!o->counted)
			print_text("  %10s", "many");
		print_number("max_entries", " %12" PRIu64, o->max_entries);
		print_number("memory_bytes", NULL, facts->memory[map]);
		print_text(" %12s\n", memory_format(row, text));
		print_end();
		row = 0;
	}
	print_end();
	print_text("  %-10s  %10s %12s %12s\n", "newcomers", "-", "-", memory_format(row, text));
	print_text("  memory of all its maps: %s\n", memory_format(all, text));
	print_number("memory_bytes", NULL, all);
}

/* --- Processes ------------------------------------------------------------------------------ */

/*
 * Prints the process that keeps the gate. Prints null in JSON for an unknown field. Prints null for
 * all fields if no process keeps the gate.
 */
static void print_kept(const char *gate)
{
	struct lock_holder keeper;
	char text[KEPT_TEXT];

	if (!keeper_find(gate, &keeper, text)) {
		print_null("kept");
		return;
	}
	print_text("  %s\n", text);
	print_object("kept");
	print_known("pid", NULL, keeper.pid, keeper.pid);
	print_string("file", NULL, *keeper.path ? keeper.path : NULL);
	print_end();
}

/* Prints the state that a running `sluice share` process publishes. */
static void print_node(const struct sharing *sharing)
{
	const struct share_state *state = &sharing->state;
	uint64_t others = state->nodes ? state->nodes - 1 : 0;
	char process[SHARER_TEXT], effect[SHARING_TEXT], room[SHARING_ROOM];

	print_object("shared");
	print_string("store", NULL, state->store_is_away ? "away" : "ok");
	print_string("why", NULL, *state->why ? state->why : NULL);
	for (unsigned int i = 0; i < SHARE_NUMBERS; i++)
		print_number(share_numbers[i].name, NULL, share_number(state, i));
	print_string("name", "  shared as '%s'", sharing->name);
	print_string("node", NULL, sharing->node);
	print_text(" by %s with %" PRIu64 " other %s: ", sharer_format(sharing, process), others,
		   plural(others, "node", "nodes"));
	print_string("address", "%s ", sharing->store);
	if (state->store_is_away)
		print_text("does not answer%s%s", *state->why ? ": " : "", sharing_why(sharing));
	else if (!state->rounds)
		print_text("has not answered yet");
	else
		print_text("answers, in %" PRIu64 " ms", state->round_ms);
	print_text("; reports %" PRIu64 " %s", state->reported,
		   plural(state->reported, "source", "sources"));
	if (state->left_out)
		print_text("; left out: %" PRIu64 " now, %" PRIu64 " over all scans",
			   state->left_out_now, state->left_out);
	if (state->left_out_now)
		print_text(": %s", sharing_room(sharing, room));
	if (state->unlike)
		print_text("; %" PRIu64 " %s other limits", state->unlike,
			   plural(state->unlike, "node shares", "nodes share"));
	if (state->same_node)
		print_text("; %" PRIu64 " other %s as node '%s'", state->same_node,
			   plural(state->same_node, "process shares", "processes share"),
			   sharing->node);
	if (state->store_is_away || sharing->divided_by > 1)
		print_text("; %s", sharing_effect(sharing, effect));
	print_text("\n");
	print_end();
}

/*
 * Prints how limits are shared. In JSON, "shared_by" is null if no process shares limits; "shared"
 * is null if the process publishes no state.
 */
static void print_sharing(const struct gate *gate)
{
	const struct sharing sharing = sharing_read(gate);
	char trouble[SHARING_TEXT], effect[SHARING_TEXT];

	print_bool("has_shared_limits", sharing.is_wanted);
	print_number("shared_divided_by", NULL, sharing.divided_by);
	if (sharing.sharer == SHARER_NONE) {
		print_null("shared_by");
	} else {
		print_object("shared_by");
		print_known("pid", NULL, sharing.pid, sharing.pid);
		print_known("silent_ms", NULL, sharing.silent_ns, sharing.silent_ns / NS_PER_MS);
		print_end();
	}
	if (sharing.sharer == SHARER_LIVES) {
		print_node(&sharing);
		return;
	}
	print_null("shared");
	if (!sharing.is_wanted)
		return;
	print_text("  shared limits are not shared: %s: %s", sharing_trouble(&sharing, trouble),
		   sharing_effect(&sharing, effect));
	if (sharing.sharer == SHARER_NONE)
		print_text("; to share them: 'sluice %s%sshare STORE'", netns_typed(),
			   gate_option(gate->name));
	print_text("\n");
}

/* --- Gates ---------------------------------------------------------------------------------- */

struct status_view {
	unsigned int count;
	int err; /* negative errno of the last gate that could not be read, or 0 */
};

static void print_gate(const struct gate *gate, const struct facts *facts)
{
	uint64_t trial_left = trial_left_ns(gate->state);

	print_object(NULL);
	print_string("gate", "gate %s:", gate->name);
	print_number("generation", " generation %" PRIu64 ",", gate->state->generation);
	print_number("rules", " %" PRIu64, facts->rules);
	print_text(" %s\n", plural(facts->rules, "rule", "rules"));
	print_kept(gate->name);
	print_bool("resize_interrupted", gate_resize_is_interrupted(gate));
	print_sharing(gate);
	print_known("trial_left_ms", NULL, trial_left, trial_left / NS_PER_MS + 1);
	if (trial_left)
		print_text("  on trial for another %" PRIu64
			   " s; to keep the change: 'sluice %sconfirm'\n",
			   trial_left / NS_PER_SEC + 1, gate_option(gate->name));
	print_attachments(gate, facts);
	print_pressure(gate, facts);
	print_budgets(facts);
	print_sources(facts);
	print_maps(facts);
	print_array("findings");
	for (unsigned int i = 0; i < facts->findings.count; i++)
		print_finding(&facts->findings.list[i], false, "  ");
	print_end();
	print_end();
}

static void facts_free(struct facts *facts)
{
	for (unsigned int i = 0; i < facts->seen.count; i++)
		free(facts->holding[i].command);
	free(facts->budgets);
	findings_free(&facts->findings);
}

static int gate_view(const char *name, void *data)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(facts_free) struct facts facts = {0};
	struct status_view *view = data;
	int err = gate_open(&gate, name, GATE_READ, NULL) ?: facts_read(&gate, &facts);

	if (err) {
		view->err = err;
		return 0;
	}
	if (view->count++) {
		print_text("\n");
	} else {
		print_object(NULL);
		print_array("gates");
	}
	print_gate(&gate, &facts);
	return 0;
}

int report_status(const char *gate)
{
	struct status_view view = {0};
	int err = gate ? gate_view(gate, &view) : gates_for_each(gate_view, NULL, &view);

	if (!err && !view.count && !view.err)
		err = bpffs_refuse_private();
	err = err ?: view.err;
	if (!view.count && !err) {
		print_text("there is no gate; to make one: 'sluice %sattach DEV'\n", netns_typed());
		print_object(NULL);
		print_array("gates");
	}
	print_end();
	print_end();
	return err;
}
