// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/published.h"
#include "attach/shaping.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/kept.h"
#include "cli/report.h"
#include "cli/shared.h"
#include "gate/pins.h"
#include "migrate/open.h"
#include "gate/object.h"
#include "gate/trial.h"
#include "rules/prefix.h"
#include "rules/sizes.h"
#include "state/stats.h"
#include "state/budgets.h"
#include "state/pressure.h"
#include "state/table_fill.h"

/* The maps of sources and rules, whose fill matters. The others are for newcomers. */
#define MAPS_LISTED MAP_ADMISSION

struct view {
	json_t *gates; /* NULL: print */
	unsigned int count;
	int status; /* a gate that cannot be read does not hide the others */
};

/* --- Attachments ---------------------------------------------------------------------------- */

/* An attachment, and whether it can do what the gate's limits shape. */
struct attached {
	struct attachment at;
	bool shapes; /* a limit that shapes holds packets back here, or should */
	struct holding holding;
};

struct attached_all {
	struct seen seen;
	struct attached one[ATTACHMENTS_MAX];
	bool idle; /* limits shape, and devices are attached, but none on hook egress */
};

static int attached_read(const struct gate *gate, struct attached_all *all)
{
	struct shaping shaping;
	int status = attachments_see(gate, &all->seen);

	if (!status)
		status = shaping_read(gate, &shaping);
	all->idle = !status && shaping.any && all->seen.count;
	for (unsigned int i = 0; !status && i < all->seen.count; i++) {
		struct attached *one = &all->one[i];

		one->at = all->seen.all[i];
		all->idle &= one->at.hook != HOOK_EGRESS;
		if (!shaping.any || one->at.hook != HOOK_EGRESS || !one->at.program_id)
			continue;
		one->shapes = true;
		status = shaping_look(&shaping, &one->at, &one->holding);
	}
	return status;
}

/* null: what is attached cannot be seen. */
static json_t *attachments_json(const struct attached_all *all)
{
	json_t *list = all->seen.sight == SIGHT_NONE ? json_null() : json_array();

	for (unsigned int i = 0; i < all->seen.count; i++) {
		const struct attached *one = &all->one[i];
		json_t *object = attachment_json(&one->at);

		json_object_set_new(object, "fq",
				    one->shapes ? json_boolean(one->holding.holds) : json_null());
		json_array_append_new(list, object);
	}
	return list;
}

/* Why an attachment filters nothing, and what to do. */
static void attachment_note(const char *gate, const struct attached *attached)
{
	const struct attachment *a = &attached->at;
	char remedy[REMEDY_TEXT];

	if (a->device_gone)
		printf("  the device is gone: '%s' clears it away",
		       attachment_remedy(a, gate, remedy));
	else if (!a->program_id)
		printf("  the filter is gone: '%s' makes it anew",
		       attachment_remedy(a, gate, remedy));
	else if (attached->shapes && !attached->holding.holds)
		printf("  no qdisc fq, so limits that shape hold no packet back: '%s'",
		       attached->holding.command ?: "tc qdisc replace");
}

static void attachment_print(const char *gate, const struct attached *attached)
{
	const struct attachment *a = &attached->at;
	char netns[NETNS_NAME];
	bool named = netns_name(a->netns, netns);

	printf("  %-15s %7u  %-7s  %-7s  %7u  %s", name_shown(a->device), a->ifindex,
	       hook_names[a->hook], mode_names[a->mode], a->program_id,
	       !named	? "(unnamed)"
	       : *netns ? name_shown(netns)
			: "-");
	attachment_note(gate, attached);
	putchar('\n');
}

static void attachments_print(const struct gate *gate, const struct attached_all *all)
{
	char path[PUBLISHED_PATH];

	if (all->seen.count)
		printf("  %-15s %7s  %-7s  %-7s  %7s  %s\n", "DEVICE", "IFINDEX", "HOOK", "MODE",
		       "PROGRAM", "NETNS");
	else if (all->seen.sight != SIGHT_NONE)
		puts("  no device is attached");
	for (unsigned int i = 0; i < all->seen.count; i++)
		attachment_print(gate->name, &all->one[i]);
	if (all->seen.sight == SIGHT_PUBLISHED)
		printf("  the devices are those published %" PRIu64 " s ago in %s\n",
		       all->seen.age_ns / NS_PER_SEC, published_path(gate, path));
	if (all->idle)
		puts("  no device is attached on hook egress, so limits that shape have no effect");
}

/* --- Maps ----------------------------------------------------------------------------------- */

/* A map, and the memory of its entries; of a full map if they are not counted. */
struct map_view {
	struct occupancy o;
	uint64_t bytes;
};

static int maps_read(const struct gate *gate, const struct table_fill *fill,
		     struct map_view maps[GATE_MAPS])
{
	int status = OK;

	for (int map = 0; !status && map < GATE_MAPS; map++) {
		struct occupancy *o = &maps[map].o;

		status = map < MAPS_LISTED ? occupancy_read(gate, map, o)
					   : map_max_entries(gate, map, &o->max_entries);
		if (map == MAP_STATES)
			*o = (struct occupancy){o->max_entries, fill->in_use, true};
		if (!status)
			status =
				gate_map_memory(gate, map, o->counted ? o->entries : o->max_entries,
						&maps[map].bytes);
	}
	return status;
}

static uint64_t maps_memory(const struct map_view maps[GATE_MAPS])
{
	uint64_t bytes = 0;

	for (int map = 0; map < GATE_MAPS; map++)
		bytes += maps[map].bytes;
	return bytes;
}

static json_t *maps_json(const struct map_view maps[GATE_MAPS])
{
	json_t *list = json_array();

	for (int map = 0; map < GATE_MAPS; map++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:I, s:I}", "name", gate_map_names[map], "entries",
				  maps[map].o.counted ? json_integer(maps[map].o.entries)
						      : json_null(),
				  "max_entries", (json_int_t)maps[map].o.max_entries,
				  "memory_bytes", (json_int_t)maps[map].bytes));
	return list;
}

/* The rows add up to the memory of all maps. */
static void maps_print(const struct map_view maps[GATE_MAPS])
{
	char memory[MEMORY_TEXT], entries[16];
	uint64_t rest = 0;

	printf("  %-10s  %10s %12s %12s\n", "MAP", "ENTRIES", "MAX", "MEMORY");
	for (int map = 0; map < GATE_MAPS; map++) {
		const struct occupancy *o = &maps[map].o;

		rest += maps[map].bytes;
		/* the memory of an index is printed with the map that it belongs to */
		if (map >= MAPS_LISTED || map == MAP_SETS || map == MAP_IN_USE)
			continue;
		snprintf(entries, sizeof(entries), o->counted ? "%" PRIu32 : "many", o->entries);
		printf("  %-10s  %10s %12" PRIu32 " %12s\n", gate_map_names[map], entries,
		       o->max_entries, memory_format(rest, memory));
		rest = 0;
	}
	printf("  %-10s  %10s %12s %12s\n", "newcomers", "-", "-", memory_format(rest, memory));
	printf("  memory of all its maps: %s\n", memory_format(maps_memory(maps), memory));
}

/* --- Sources -------------------------------------------------------------------------------- */

/* Sources that have a bucket on some CPU. */
static uint32_t bucket_sources(const struct map_view maps[GATE_MAPS])
{
	return maps[MAP_BUCKETS4].o.entries + maps[MAP_BUCKETS6].o.entries;
}

static json_t *sources_json(const struct table_fill *fill, const struct map_view maps[GATE_MAPS])
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "tracked", (json_int_t)fill->in_use,
			 "not_full", (json_int_t)fill->partial, "protected",
			 (json_int_t)fill->protected, "with_bucket",
			 (json_int_t)bucket_sources(maps), "max", (json_int_t)fill->sources,
			 "bytes_each", (json_int_t)fill->bytes, "max_wanted",
			 fill->sources_short ? json_integer(fill->sources_short) : json_null());
}

static void sources_print(const struct gate *gate, const struct table_fill *fill,
			  const struct map_view maps[GATE_MAPS])
{
	char text[TABLE_SHORT_TEXT];
	const char *lack = table_fill_short(fill, text);

	printf("  sources: %" PRIu32 " tracked (%" PRIu32 " not full, %" PRIu32
	       " protected from eviction); room for %" PRIu32 ", %" PRIu32 " bytes each; %" PRIu32
	       " have a bucket\n",
	       fill->in_use, fill->partial, fill->protected, fill->sources, fill->bytes,
	       bucket_sources(maps));
	if (!lack)
		return;
	printf("  %s", lack);
	if (fill->sources_short < SIZE_MAX_ENTRIES)
		printf(": 'sluice %sapply FILE --resize' changes that", gate_option(gate->name));
	putchar('\n');
}

/* --- Pressure ------------------------------------------------------------------------------- */

static json_t *pace_json(const struct pace *pace)
{
	return json_pack("{s:I, s:I}", "per_second", (json_int_t)pace->per_second, "total",
			 (json_int_t)pace->total);
}

static json_t *pressure_json(const struct pressure *pressure, const struct passing *passing)
{
	json_t *refused = json_object(), *buckets_refused = json_object();

	for (int cause = 0; cause < CAUSES; cause++) {
		json_object_set_new(refused, cause_names[cause],
				    pace_json(&pressure->event[SL_EVENT_BUSY + cause]));
		json_object_set_new(buckets_refused, cause_names[cause],
				    pace_json(&pressure->event[SL_EVENT_BUCKET_BUSY + cause]));
	}
	return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:f, s:o, s:o, s:o}", "state",
			 pressure->flooded ? "flood" : "quiet", "cpus_flooded",
			 (int)pressure->flooded, "policies_passed_by", (int)passing->policies,
			 "new_keys", pace_json(&pressure->event[SL_EVENT_NEW_KEY]), "insertions",
			 pace_json(&pressure->event[SL_EVENT_INSERTED]), "evicted",
			 pace_json(&pressure->event[SL_EVENT_EVICTED]), "bursts_lost",
			 pressure_bursts_lost(pressure), "refused", refused, "bucket_insertions",
			 pace_json(&pressure->event[SL_EVENT_BUCKET_INSERTED]), "buckets_refused",
			 buckets_refused);
}

static void pace_print(const char *what, const struct pace *pace)
{
	printf("  %-26s %12" PRIu64 " %20" PRIu64 "\n", what, pace->per_second, pace->total);
}

static void passing_print(const struct gate *gate, const struct passing *passing)
{
	char buffer[PREFIX_TEXT];
	const char *text = prefix_format(&passing->first, buffer);

	if (!passing->policies)
		return;
	printf("  the flood passes: new sources of %s share no limit; set one: 'sluice "
	       "%snewcomers %s rate RATE'",
	       text, gate_option(gate->name), text);
	if (passing->policies > 1)
		printf("; %u other %s the same", passing->policies - 1,
		       plural(passing->policies - 1, "policy is", "policies are"));
	putchar('\n');
}

static void pressure_print(const struct gate *gate, const struct pressure *pressure,
			   const struct passing *passing)
{
	char what[32];

	if (pressure->flooded)
		printf("  pressure: flood on %u of %u %s: a new source gets a level after more "
		       "than 2 packets\n",
		       pressure->flooded, gate->machine.cpus,
		       plural(gate->machine.cpus, "CPU", "CPUs"));
	else
		puts("  pressure: quiet: a new source gets a level with its first packet");
	passing_print(gate, passing);
	printf("  %-26s %12s %20s\n", "EVENT", "PER SECOND", "TOTAL");
	pace_print("newcomers met", &pressure->event[SL_EVENT_NEW_KEY]);
	pace_print("insertions", &pressure->event[SL_EVENT_INSERTED]);
	pace_print("evicted", &pressure->event[SL_EVENT_EVICTED]);
	for (int cause = 0; cause < CAUSES; cause++) {
		snprintf(what, sizeof(what), "refused: %s", cause_names[cause]);
		pace_print(what, &pressure->event[SL_EVENT_BUSY + cause]);
	}
	pace_print("bucket insertions", &pressure->event[SL_EVENT_BUCKET_INSERTED]);
	for (int cause = 0; cause < CAUSES; cause++) {
		snprintf(what, sizeof(what), "no bucket: %s", cause_names[cause]);
		pace_print(what, &pressure->event[SL_EVENT_BUCKET_BUSY + cause]);
	}
}

/* --- Budgets -------------------------------------------------------------------------------- */

static json_t *budgets_json(const struct budget_use *uses, unsigned int count)
{
	json_t *array = json_array();
	char prefix[PREFIX_TEXT];

	for (unsigned int i = 0; i < count; i++) {
		const struct sl_policy *policy = uses[i].policy;
		json_t *object = budget_json(&(struct limit){.spec = policy->newcomers_spec});

		json_object_set_new(object, "prefix",
				    json_string(prefix_format(&policy->prefix, prefix)));
		json_object_set_new(object, "left", json_integer(uses[i].left));
		json_object_set_new(object, "unit", json_string(unit_name(&policy->newcomers)));
		json_object_set_new(object, "passed", json_integer(uses[i].passed));
		json_object_set_new(object, "dropped", json_integer(uses[i].dropped));
		json_array_append_new(array, object);
	}
	return array;
}

static void budgets_print(const struct budget_use *uses, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		const struct sl_policy *policy = uses[i].policy;
		char rate[UNITS_TEXT], burst[UNITS_TEXT], prefix[PREFIX_TEXT];

		printf("  budget of %s: rate %s burst %s, %" PRIu64 " %s left; %" PRIu64
		       " packets passed, %" PRIu64 " dropped\n",
		       prefix_format(&policy->prefix, prefix),
		       rate_format(&policy->newcomers_spec, rate),
		       burst_format(&policy->newcomers_spec, burst), uses[i].left,
		       unit_name(&policy->newcomers), uses[i].passed, uses[i].dropped);
	}
}

/* --- Gates ---------------------------------------------------------------------------------- */

static int gate_report(struct view *view, const struct gate *gate)
{
	uint64_t trial_left = trial_left_ns(gate->state);
	bool resize_interrupted = gate_resize_is_interrupted(gate);
	struct attached_all *all = calloc(1, sizeof(*all));
	struct map_view maps[GATE_MAPS] = {0};
	unsigned int rules;
	struct pressure pressure;
	struct passing passing;
	struct table_fill fill;
	struct budget_use *budgets = NULL;
	unsigned int budget_count = 0;
	struct sharing sharing = sharing_read(gate);
	int status = all ? attached_read(gate, all)
			 : failure("cannot read the attachments: out of memory");

	if (!status)
		status = rules_count(gate, &rules);
	if (!status)
		status = pressure_read(gate, &pressure);
	if (!status)
		status = passing_read(gate, &pressure, &passing);
	if (!status)
		status = budgets_read(gate, &budgets, &budget_count);
	if (!status)
		status = table_fill_read(gate, &pressure, &fill);
	if (!status)
		status = maps_read(gate, &fill, maps);
	if (!status && !view->gates) {
		printf("%sgate %s: generation %u, %u %s\n", view->count ? "\n" : "", gate->name,
		       gate->state->generation, rules, plural(rules, "rule", "rules"));
		kept_print(gate->name);
		if (resize_interrupted)
			printf("  a resize was interrupted: until it is finished, devices can "
			       "filter by two sets of maps: 'sluice %supgrade' finishes it\n",
			       gate_option(gate->name));
		shared_print(gate, &sharing);
		if (trial_left)
			printf("  on trial for another %" PRIu64
			       " s: to keep the change: 'sluice %sconfirm'\n",
			       trial_left / NS_PER_SEC + 1, gate_option(gate->name));
		attachments_print(gate, all);
		pressure_print(gate, &pressure, &passing);
		budgets_print(budgets, budget_count);
		sources_print(gate, &fill, maps);
		maps_print(maps);
	}
	view->count++;
	if (!status && view->gates)
		json_array_append_new(
			view->gates,
			json_pack(
				"{s:s, s:I, s:i, s:o, s:b, s:b, s:o, s:o, s:I, s:o, s:o, s:o, s:o, "
				"s:o, s:o, "
				"s:I, s:o}",
				"gate", gate->name, "generation",
				(json_int_t)gate->state->generation, "rules", (int)rules, "kept",
				kept_json(gate->name), "resize_interrupted", resize_interrupted,
				"has_shared_limits", sharing.is_wanted, "shared_by",
				sharer_json(&sharing), "shared", sharing_json(&sharing),
				"shared_divided_by", (json_int_t)sharing.divided_by,
				"trial_left_ms",
				trial_left ? json_integer(trial_left / NS_PER_MS + 1) : json_null(),
				"attachments", attachments_json(all), "attachments_published_ms",
				all->seen.sight == SIGHT_PUBLISHED
					? json_integer(all->seen.age_ns / NS_PER_MS)
					: json_null(),
				"pressure", pressure_json(&pressure, &passing), "budgets",
				budgets_json(budgets, budget_count), "sources",
				sources_json(&fill, maps), "memory_bytes",
				(json_int_t)maps_memory(maps), "maps", maps_json(maps)));
	for (unsigned int i = 0; all && i < all->seen.count; i++)
		free(all->one[i].holding.command);
	free(all);
	free(budgets);
	return status;
}

static int gate_view(const char *name, void *data)
{
	struct gate gate = GATE_CLOSED;
	struct view *view = data;
	int status = gate_open(&gate, name, GATE_READ, NULL);

	if (!status)
		status = gate_report(view, &gate);
	if (status)
		view->status = status;
	gate_close(&gate);
	return OK;
}

static int status_run(const struct context *context, const void *args)
{
	struct view view = {.gates = context->json ? json_array() : NULL};
	int status;

	(void)args;
	if (context->gate_given)
		status = gate_view(context->gate, &view);
	else
		status = gates_for_each(gate_view, &view);
	if (!status && !view.count && !view.status)
		status = bpffs_refuse_private();
	view.status = status ?: view.status;
	status = OK;
	if (view.gates && (view.count || !view.status))
		status = json_print(json_pack("{s:O}", "gates", view.gates));
	else if (!view.count && !view.status)
		printf("no gate: make one with 'sluice %sattach DEV'\n", netns_typed());
	json_decref(view.gates);
	return status ?: view.status;
}

static const char status_details[] =
	"pressure: how new sources are handled, those that have no level under a limit yet.\n"
	"quiet: each gets a level with its first packet. flood: a budget refuses packets or,\n"
	"without a budget, many new sources appear. A source then gets a level only after more\n"
	"than two packets through one CPU, so that forged sources take no memory. budget: what\n"
	"new sources may send together, and what is left of it; see 'sluice help newcomers'.\n"
	"newcomers met: a packet counts once if a limit has no level for it. insertions: levels\n"
	"added, one for each limit and key. forgotten: levels that were evicted although they\n"
	"were not full. refused: new sources that got no level: busy: another CPU held the\n"
	"lock; no-room: every level that could be evicted was worth more. bucket insertions:\n"
	"sources that got an entry in buckets4 or buckets6; no bucket: the kernel had none.\n"
	"sources: the levels that the gate tracks, one for each source and limit. Full ones are\n"
	"evicted first, then those that lack little; those that lack more than half, or are\n"
	"blocked, are protected. MEMORY is what the kernel allocates for a map, or, if it\n"
	"allocates by entry, what its entries take. states: those levels; buckets4, buckets6:\n"
	"what CPUs hold for single sources; newcomers: all maps for new sources.";

const struct command command_status = {
	.name = "status",
	.brief = "gates, devices, and how full the maps are",
	.details = status_details,
	.run = status_run,
};
