// SPDX-License-Identifier: GPL-2.0
#include "doctor/gate_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/cases.h"
#include "doctor/host_checks.h"
#include "gate/pins.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "gate/trial.h"
#include "rules/sizes.h"
#include "rules/value.h"
#include "state/pressure.h"

/* --- Limits that observe -------------------------------------------------------------------- */

/*
 * A limit that observes is for a time of trial. A gate does not keep when a limit was set, so one
 * counts as forgotten that has found packets to drop: it can tell no more by going on.
 */
void observes_check(const char *gate, const struct stats *stats, const struct ruleset *set,
		    struct findings *findings)
{
	const struct stats_line *line = NULL;
	const struct stats_limit *first = NULL;
	char object[PREFIX_TEXT + LIMIT_LABEL];
	unsigned int count = 0;
	const struct rule *rule;
	struct sl_prefix prefix;
	uint64_t refused;

	for (unsigned int i = 0; i < stats->count; i++)
		for (unsigned int j = 0; j < stats->lines[i].limits; j++) {
			const struct stats_limit *limit = &stats->lines[i].limit[j];

			if (limit->action != SL_ACTION_OBSERVE ||
			    !stats->lines[i].counters.refused[limit->slot].packets || count++)
				continue;
			line = &stats->lines[i];
			first = limit;
		}
	rule = count && !prefix_parse(line->policy, &prefix) ? ruleset_find(set, &prefix) : NULL;
	if (!rule)
		return;
	refused = line->counters.refused[first->slot].packets;
	snprintf(object, sizeof(object), "%s %s", line->policy, first->name);
	finding_add(findings, FIND_OBSERVES, object,
		    "it only observes: %" PRIu64 " %s went on that it would drop%s", refused,
		    plural(refused, "packet", "packets"), count > 1 ? "; others observe, too" : "");
	for (unsigned int i = 0; i < rule->limits; i++) {
		struct limit wanted = rule->limit[i];

		/* the label of a second rate is the name and more */
		if (strlen(wanted.spec.name) != strcspn(first->name, ":") ||
		    strncmp(wanted.spec.name, first->name, strlen(wanted.spec.name)))
			continue;
		wanted.spec.action = SL_ACTION_DROP;
		advise_setting(&rule->prefix, &wanted, gate, findings);
		return;
	}
}

/* --- Room ----------------------------------------------------------------------------------- */

/* Full maps are told from here on. */
#define NEARLY_FULL 0.9

/* The maps that a change of rules can fill, and the size that each has in a rules file. */
static const struct {
	enum gate_map map;
	enum size size;
} rooms[] = {
	{MAP_HOSTS4, SIZE_HOSTS},
	{MAP_HOSTS6, SIZE_HOSTS},
	{MAP_PREFIXES, SIZE_PREFIXES},
	{MAP_POLICIES, SIZE_POLICIES},
};

/* Advises a size by a file: `gate` comes first in what dump writes, and may be missing there. */
static void advise_size(const char *gate, enum size size, uint64_t wanted,
			struct findings *findings)
{
	finding_advise(findings,
		       "sluice -g %s dump | sed -e '1i gate:\\n  %s: %" PRIu64 "' "
		       "-e '/^gate:$/d; /^  %s: /d' | sluice -g %s apply - --resize",
		       gate, size_names[size], wanted, size_names[size], gate);
}

void room_check(const char *gate, enum gate_map map, const struct occupancy *o,
		struct findings *findings)
{
	if (!o->counted || o->entries < o->max_entries * NEARLY_FULL)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		if (rooms[i].map != map)
			continue;
		finding_add(findings, FIND_ROOM_SHORT, gate,
			    "map '%s' has %" PRIu32 " entries, and room for %" PRIu32
			    ": rules that find no room are refused",
			    gate_map_names[map], o->entries, o->max_entries);
		advise_size(gate, rooms[i].size, 2 * (uint64_t)o->max_entries, findings);
	}
}

void table_check(const char *gate, const struct table_fill *fill, struct findings *findings)
{
	char text[TABLE_SHORT_TEXT];
	const char *lack = table_fill_short(fill, text);

	if (!lack)
		return;
	finding_add(findings, FIND_ROOM_SHORT, gate, "%s", lack);
	if (fill->sources_short < SIZE_MAX_ENTRIES)
		advise_size(gate, SIZE_SOURCES, fill->sources_short, findings);
	else
		finding_advise(findings, "sluice %sstatus", gate_option(gate));
}

static int rooms_examine(const struct gate *gate, struct findings *findings)
{
	struct occupancy occupancy;
	int status = OK;

	for (size_t i = 0; !status && i < ARRAY_SIZE(rooms); i++) {
		if (!(gate->state->sizes_stated & SIZE_BIT(rooms[i].size)))
			continue; /* it grows */
		status = occupancy_read(gate, rooms[i].map, &occupancy);
		if (!status)
			room_check(gate->name, rooms[i].map, &occupancy, findings);
	}
	return status;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

/* However little one source may send: a budget is for all that come at once. */
#define BUDGET_LEAST_PPS  1000
#define BUDGET_LEAST_BITS 10000000

#define BUDGET_LEAST_PPS_TEXT  "1kpps"
#define BUDGET_LEAST_BITS_TEXT "10mbit"

#define BUDGET_MOST_PPS	 200000000
#define BUDGET_MOST_BITS 400000000000

/*
 * A budget to begin with: twice what one source may send, by the limit that lets most pass. The
 * right one depends on what the machine behind the gate bears, which a gate does not know.
 */
static struct sl_limit_spec budget_of(const struct rule *rule)
{
	bool bits = rule && rule->limits && rule->limit[0].spec.rate_unit == SL_RATE_BITS;
	double rate = bits ? BUDGET_LEAST_BITS : BUDGET_LEAST_PPS;
	double most = bits ? BUDGET_MOST_BITS : BUDGET_MOST_PPS;

	for (unsigned int i = 0; rule && i < rule->limits; i++) {
		const struct sl_limit_spec *spec = &rule->limit[i].spec;
		double twice = 2 * rate_per_second(spec);

		if ((spec->rate_unit == SL_RATE_BITS) == bits && twice > rate)
			rate = twice;
	}
	return (struct sl_limit_spec){
		.rate = rate < most ? rate : most,
		.rate_unit = bits ? SL_RATE_BITS : SL_RATE_PPS,
	};
}

/* count: policies without a budget; `prefix` is the first of them. */
void budget_tell(const char *gate, enum finding_id id, const struct sl_prefix *prefix,
		 unsigned int count, const struct ruleset *set, struct findings *findings)
{
	const struct rule *rule = ruleset_find(set, prefix);
	const struct sl_limit_spec budget = budget_of(rule);
	const char *least =
		budget.rate_unit == SL_RATE_BITS ? BUDGET_LEAST_BITS_TEXT : BUDGET_LEAST_PPS_TEXT;
	char text[PREFIX_TEXT], rate[UNITS_TEXT], more[48] = "";
	const char *name = prefix_format(prefix, text);
	bool sends = rule && rule_meets_destinations(rule);
	const char *what = sends ? "destination" : "source";

	if (count > 1)
		snprintf(more, sizeof(more), "; %u other %s the same", count - 1,
			 plural(count - 1, "policy is", "policies are"));
	finding_add(findings, id, name,
		    "it has limits and no budget for newcomers, so %s %s. The budget is what all "
		    "new %ss together may %s then: begin with twice the limit of one %s, or %s if "
		    "that is more, and stay below what the machines behind bear%s",
		    sends		      ? "a flood to new destinations"
		    : id == FIND_FLOOD_PASSES ? "the flood of new sources"
					      : "a flood of forged sources",
		    id == FIND_FLOOD_PASSES ? "passes" : "would pass", what, sends ? "get" : "send",
		    what, least, more);
	finding_advise(findings, "sluice %snewcomers %s rate %s", gate_option(gate), name,
		       rate_format(&budget, rate));
}

static int newcomers_examine(const struct gate *gate, const struct ruleset *set,
			     struct findings *findings)
{
	const struct sl_policy **policies, *first = NULL;
	struct pressure pressure;
	struct passing passing = {0};
	struct table_fill fill;
	unsigned int count, lacking = 0;
	int status = pressure_read(gate, &pressure);

	if (!status)
		status = table_fill_read(gate, &pressure, &fill);
	if (!status) {
		table_check(gate->name, &fill, findings);
		status = passing_read(gate, &pressure, &passing);
	}
	if (!status && passing.policies)
		budget_tell(gate->name, FIND_FLOOD_PASSES, &passing.first, passing.policies, set,
			    findings);
	if (!status)
		status = rules_policies(gate, &policies, &count);
	if (status)
		return status;
	for (unsigned int i = 0; i < count; i++)
		if (policy_lacks_budget(policies[i]) && !lacking++)
			first = policies[i];
	if (lacking && !passing.policies)
		budget_tell(gate->name, FIND_NO_BUDGET, &first->prefix, lacking, set, findings);
	free(policies);
	return OK;
}

/* --- Sharing -------------------------------------------------------------------------------- */

/* The file of the unit that shares. */
#define SHARE_FILE "/etc/sluice/%s.share"

/* Where a store listens on this machine. */
#define STORE_USUAL "localhost:6379"

/* Asks the first node of the store for a word, from where the process asks it. */
static void advise_store(const struct sharing *sharing, struct findings *findings)
{
	char node[SHARE_TEXT];
	char option[NETNS_OPTION], exec[NETNS_EXEC];
	char *name = node, *colon;

	snprintf(node, sizeof(node), "%.*s", (int)strcspn(sharing->store, ","), sharing->store);
	colon = strrchr(node, ':');
	if (colon)
		*colon = '\0';
	if (*name == '[') {
		name++;
		name[strcspn(name, "]")] = '\0';
	}
	netns_option(netns_of_process(sharing->pid), netns_home(), option);
	finding_advise(findings, "%sredis-cli -h %s -p %s ping", netns_exec(option, exec),
		       word_typed(name), word_typed(colon ? colon + 1 : "6379"));
}

static void advise_sharing(const char *gate, const struct sharing *sharing, bool has_unit,
			   struct findings *findings)
{
	bool is_named = *sharing->name && strcmp(sharing->name, gate);

	if (has_unit && sharing->sharer == SHARER_LIVES)
		finding_advise(findings, "journalctl -n 20 -u sluice-share@%s", gate);
	else if (has_unit)
		finding_advise(findings,
			       "systemctl enable sluice-share@%s && "
			       "systemctl restart sluice-share@%s",
			       gate, gate);
	else if (sharing->sharer == SHARER_NONE && *sharing->command)
		finding_advise(findings, "%s", sharing->command);
	else if (sharing->sharer == SHARER_NONE)
		finding_advise(
			findings, "sluice %s%sshare %s%s%s", netns_typed(), gate_option(gate),
			operand_typed(*sharing->store ? sharing->store : STORE_USUAL),
			is_named ? " --name " : "", is_named ? word_typed(sharing->name) : "");
	else if (sharing->sharer == SHARER_SILENT && sharing->pid)
		finding_advise(findings, "kill -s cont %d", sharing->pid);
	else if (sharing->sharer == SHARER_LIVES)
		advise_store(sharing, findings);
	else
		finding_advise(findings, "sluice %sstatus", gate_option(gate));
}

#define MOST_OPTION " --most "

/* The process wrote the command itself: an option's value ends at a blank. */
static void advise_most(const char *gate, const struct sharing *sharing, bool has_unit,
			struct findings *findings)
{
	const char *command = sharing->command, *option = strstr(command, MOST_OPTION), *rest = "";
	int length = option ? option - command : (int)strlen(command);

	if (option) {
		rest = option + strlen(MOST_OPTION);
		rest += strcspn(rest, " ");
	}
	if (!sharing_most(sharing))
		finding_advise(findings, "sluice help set");
	else if (has_unit)
		finding_advise(findings, "vi " SHARE_FILE " && systemctl restart sluice-share@%s",
			       gate, gate);
	else if (sharing->pid && *command)
		finding_advise(findings, "kill %d && sleep 1 && %.*s%s" MOST_OPTION "%u",
			       sharing->pid, length, command, rest, sharing_most(sharing));
	else
		finding_advise(findings, "sluice help share");
}

static void left_out_check(const char *gate, const struct sharing *sharing, bool has_unit,
			   struct findings *findings)
{
	const struct share_state *state = &sharing->state;
	char room[SHARING_ROOM];

	if (!state->left_out_now || state->nodes < 2)
		return;
	finding_add(
		findings, FIND_LEFT_OUT, gate,
		"the store is told of %" PRIu64 " %s, and %" PRIu64 " more %s all of the limit "
		"at each node: %s; %s",
		state->reported, plural(state->reported, "source", "sources"), state->left_out_now,
		plural(state->left_out_now, "finds no place and takes", "find no place and take"),
		sharing_room(sharing, room),
		sharing_most(sharing) ? "the same on all nodes"
				      : "a wider key (per) or a higher rate makes them fewer");
	advise_most(gate, sharing, has_unit, findings);
}

void sharing_check(const char *gate, const struct sharing *sharing, bool has_unit,
		   struct findings *findings)
{
	char trouble_text[SHARING_TEXT], effect[SHARING_TEXT], nodes[64];
	const char *trouble = sharing_trouble(sharing, trouble_text);
	uint64_t others = sharing->state.nodes - 1;
	bool is_guessed = sharing->sharer == SHARER_NONE && !*sharing->store && !has_unit;

	if (!sharing->is_wanted)
		return;
	if (!trouble && sharing->state.unlike) {
		snprintf(nodes, sizeof(nodes), "%" PRIu64 " of %" PRIu64 " other nodes",
			 sharing->state.unlike, others);
		finding_add(findings, FIND_OTHER_LIMITS, gate,
			    "%s %s other limits than this one: what a source takes is added up "
			    "only where prefix, name, rate, burst, key and match are the same",
			    others == 1 ? "the other node" : nodes,
			    plural(sharing->state.unlike, "shares", "share"));
		finding_advise(findings, "sluice %sdump", gate_option(gate));
	}
	if (!trouble && sharing->state.same_node) {
		finding_add(findings, FIND_SAME_NODE, gate,
			    "%" PRIu64
			    " other %s as node '%s': they count as one node, so a source "
			    "gets more than its limit; give each its own --node",
			    sharing->state.same_node,
			    plural(sharing->state.same_node, "process shares", "processes share"),
			    sharing->node);
		finding_advise(findings, "sluice help share");
	}
	if (!trouble) {
		left_out_check(gate, sharing, has_unit, findings);
		return;
	}
	finding_add(findings, sharing->divided_by > 1 ? FIND_DIVIDED : FIND_UNSHARED, gate,
		    "limits are to be shared, and are not: %s: %s%s", trouble,
		    sharing_effect(sharing, effect),
		    is_guessed ? "; " STORE_USUAL " stands for your store, Redis or Valkey" : "");
	advise_sharing(gate, sharing, has_unit, findings);
}

static void sharing_examine(const struct gate *gate, struct findings *findings)
{
	const struct sharing sharing = sharing_read(gate);
	char file[sizeof(SHARE_FILE) + GATE_NAME];

	snprintf(file, sizeof(file), SHARE_FILE, gate->name);
	sharing_check(gate->name, &sharing, !access(file, F_OK) && !access(SYSTEMD_RUNS, F_OK),
		      findings);
}

/* --- Lists of a kept gate ------------------------------------------------------------------- */

void lists_check(const char *gate, const struct lock_holder *keeper, struct findings *findings)
{
	char name[SL_LIST_NAME], word[8];

	for (const char *line = keeper->more; *line; line += strcspn(line, "\n") + 1) {
		if (!strchr(line, '\n') || sscanf(line, "%7s %255s", word, name) != 2)
			return;
		finding_add(findings, FIND_LIST_UNREAD, name,
			    strcmp(word, LIST_IS_OLD)
				    ? "its file is bad and there is no earlier copy: the list has "
				      "no entries"
				    : "its file is bad: the entries of its last good version "
				      "stay in force");
		if (*keeper->path)
			finding_advise(findings, "sluice %sdiff %s", gate_option(gate),
				       word_typed(keeper->path));
		else
			finding_advise(findings, "systemctl status sluice@%s", gate);
	}
}

static void lists_examine(const struct gate *gate, struct findings *findings)
{
	struct lock_holder keeper;

	if (lock_file_find(LOCK_KEEP, gate->name, &keeper) == LOCK_HELD)
		lists_check(gate->name, &keeper, findings);
}

/* --- All of a gate -------------------------------------------------------------------------- */

static void trial_examine(const struct gate *gate, struct findings *findings)
{
	uint64_t left = trial_left_ns(gate->state);

	if (!left)
		return;
	finding_add(findings, FIND_TRIAL, gate->name,
		    "its rules are on trial: the previous rules come back in %" PRIu64
		    " s unless the change is confirmed; until then no other command changes them",
		    left / NS_PER_SEC + 1);
	finding_advise(findings, "sluice %sconfirm", gate_option(gate->name));
}

static void resize_examine(const struct gate *gate, struct findings *findings)
{
	if (!gate_resize_is_interrupted(gate))
		return;
	finding_add(findings, FIND_RESIZE_INTERRUPTED, gate->name,
		    "a resize was interrupted: until it is finished, devices can filter by two "
		    "sets of maps, and a source can use a limit twice");
	finding_advise(findings, "sluice %supgrade", gate_option(gate->name));
}

int gate_examine(const struct gate *gate, const struct ruleset *set, struct findings *findings)
{
	struct stats stats;
	int status = stats_read(gate, &stats);

	trial_examine(gate, findings);
	resize_examine(gate, findings);
	sharing_examine(gate, findings);
	lists_examine(gate, findings);
	if (!status) {
		observes_check(gate->name, &stats, set, findings);
		stats_free(&stats);
		status = rooms_examine(gate, findings);
	}
	return status ? status : newcomers_examine(gate, set, findings);
}
