// SPDX-License-Identifier: GPL-2.0
#include "state/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "gate/change.h"
#include "gate/records.h"
#include "gate/rules.h"
#include "rules/lists.h"
#include "state/buckets.h"

const char *const action_names[] = {
	[SL_ACTION_DROP] = "drop",
	[SL_ACTION_OBSERVE] = "observe",
	[SL_ACTION_BLOCK] = "block",
};

/* The lines of no policy: none, allow, deny, deleted. */
#define LINES_FIXED 4

static struct stats_line *line_add(struct stats *stats, enum stats_kind kind, const char *policy)
{
	struct stats_line *line = &stats->lines[stats->count++];

	*line = (struct stats_line){.kind = kind};
	snprintf(line->policy, sizeof(line->policy), "%s", policy);
	return line;
}

static void line_add_limits(struct stats_line *line, const struct sl_policy *record)
{
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		struct stats_limit *limit = &line->limit[line->limits];

		if (!record->spec[slot].name[0])
			continue;
		line->blocks |= record->spec[slot].action == SL_ACTION_BLOCK;
		if (record->origin[slot])
			continue;
		limit_label(&record->spec[slot], limit->name);
		limit->action = record->spec[slot].action;
		limit->slot = slot;
		line->limits++;
	}
}

/* Begins a line with what the counters showed when its record got them. */
static void line_begin(struct stats *stats, enum stats_kind kind, const char *policy,
		       const struct gate *gate, const struct sl_policy *record)
{
	struct stats_line *line = line_add(stats, kind, policy);

	line->number = SL_POLICY(record_number(gate, record));
	line->counters = record->base;
	line_add_limits(line, record);
}

static int lines_begin(const struct gate *gate, struct stats *stats)
{
	const struct sl_policy **policies;
	int status = rules_policies(gate, &policies, &stats->rules);
	char text[PREFIX_TEXT];

	if (status)
		return status;
	stats->lines = calloc(stats->rules + LINES_FIXED, sizeof(*stats->lines));
	if (!stats->lines) {
		free(policies);
		return failure("cannot read the counters of gate '%s': %s", gate->name,
			       why(ENOMEM));
	}
	line_begin(stats, STATS_NONE, "none", gate,
		   record_read(gate, SL_POLICY_VERSION(SL_POLICY_NONE)));
	line_begin(stats, STATS_ALLOW, "allow", gate,
		   record_read(gate, SL_POLICY_VERSION(SL_POLICY_ALLOW)));
	line_begin(stats, STATS_DENY, "deny", gate,
		   record_read(gate, SL_POLICY_VERSION(SL_POLICY_DENY)));
	for (unsigned int i = 0; i < stats->rules; i++)
		line_begin(stats, STATS_RULE, prefix_format(&policies[i]->prefix, text), gate,
			   policies[i]);
	free(policies);
	return OK;
}

/*
 * Ends each line with what it counted itself; what its counters showed before belongs to deleted
 * policies. The counters are read after all lines are begun: they only grow, so no line is
 * negative.
 */
static int lines_end(const struct gate *gate, struct stats *stats)
{
	unsigned int seen = gate_policies_seen(gate), first = SL_POLICY_FIRST;
	unsigned int count = seen > first ? seen : first, lines = stats->count;
	struct stats_line *deleted;
	struct sl_counters *all;
	int status = counters_read_first(gate, count, &all);

	if (status)
		return status;
	deleted = line_add(stats, STATS_DELETED, "deleted");
	deleted->counters = record_read(gate, SL_POLICY_VERSION_MOVED)->base;
	for (unsigned int i = 0; i < lines; i++) {
		struct stats_line *line = &stats->lines[i];
		struct sl_counters base = line->counters;

		line->counters = all[line->number];
		counters_take_from(&line->counters, &base);
		counters_add_to(&deleted->counters, &base);
		all[line->number] = (struct sl_counters){0};
	}
	for (unsigned int number = 0; number < count; number++)
		counters_add_to(&deleted->counters, &all[number]);
	free(all);
	return OK;
}

int stats_read(const struct gate *gate, struct stats *ret)
{
	struct stats stats = {0};
	int status = lines_begin(gate, &stats);

	if (!status)
		status = lines_end(gate, &stats);
	if (status) {
		stats_free(&stats);
		return status;
	}
	for (unsigned int i = 0; i < stats.count; i++)
		counters_add_to(&stats.total, &stats.lines[i].counters);
	*ret = stats;
	return OK;
}

void stats_free(struct stats *stats)
{
	free(stats->lines);
	stats->lines = NULL;
}

/* --- Reasons of a line ---------------------------------------------------------------------- */

static bool line_can_have(const struct stats_line *line, enum sl_reason reason)
{
	bool has_limits = line->kind == STATS_RULE || line->kind == STATS_DELETED;

	if (reason == SL_PASS_ALLOWED)
		return line->kind == STATS_ALLOW;
	if (reason == SL_DROP_DENIED)
		return line->kind == STATS_DENY;
	if (reason == SL_DROP_BLOCKED)
		return line->blocks || line->kind == STATS_DELETED;
	if (reason == SL_PASS_WITHIN || reason == SL_PASS_NO_LIMIT || reason == SL_PASS_NEWCOMER ||
	    reason >= SL_FIRST_DROP)
		return has_limits;
	return line->kind == STATS_NONE;
}

bool stats_line_has(const struct stats_line *line, enum sl_reason reason)
{
	return line_can_have(line, reason) || line->counters.reason[reason].packets;
}

bool stats_line_counted(const struct stats_line *line)
{
	unsigned long long refused = 0;

	for (unsigned int i = 0; i < line->limits; i++)
		refused += line->counters.refused[line->limit[i].slot].packets;
	return refused || counters_passed(&line->counters).packets ||
	       counters_dropped(&line->counters).packets;
}

const char *stats_limit_verdict(const struct stats_limit *limit)
{
	return limit->action == SL_ACTION_OBSERVE ? "would-drop" : "drop";
}

/* --- Occupancy ------------------------------------------------------------------------------ */

/* The most entries that are counted: each is a system call, and these take some 20 ms. */
#define COUNT_MAX 65536

/* Counts keys, without a lock that packets wait for. 1; 0: there are too many; a negative errno. */
static int keys_count(int fd, uint32_t *ret)
{
	char key[2][sizeof(struct sl_prefix)]; /* the longest key of any map */
	uint32_t count = 0;
	void *last = NULL;
	int err;

	while (!(err = bpf_map_get_next_key(fd, last, key[count % 2]))) {
		last = key[count % 2];
		if (++count > COUNT_MAX)
			return 0;
	}
	*ret = count;
	return err == -ENOENT ? 1 : err;
}

/*
 * Counts the hosts of one family. The gate has the count of both: if this map is too large to
 * count, the other one is counted and subtracted.
 */
static int hosts_count(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	enum gate_map other = map == MAP_HOSTS4 ? MAP_HOSTS6 : MAP_HOSTS4;
	uint32_t both = gate->state->hosts, others;
	int counted;

	*ret = 0;
	counted = both ? keys_count(gate->map[map], ret) : 1;
	if (counted)
		return counted;
	counted = keys_count(gate->map[other], &others);
	if (counted <= 0 || others > both)
		return counted < 0 ? counted : 0;
	*ret = both - others;
	return 1;
}

static int policies_count(const struct gate *gate, uint32_t *ret)
{
	const struct sl_policy **policies;
	unsigned int count;
	int status = rules_policies(gate, &policies, &count);

	if (status)
		return status;
	free(policies);
	*ret = count;
	return OK;
}

int map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	switch (map) {
	case MAP_POLICIES:
	case MAP_COUNTERS:
	case MAP_BUDGETS:
	case MAP_BUDGET_SLICES: /* without second records and the gate's own policies */
		*ret = gate->policies_max - SL_POLICY_FIRST;
		return OK;
	case MAP_STATES: /* the other lines keep sets from filling up: gate_make.c */
		*ret = gate->state->params.sources;
		return OK;
	case MAP_LISTS: /* the other places are reserved for changes */
		*ret = SL_LISTS_MAX;
		return OK;
	default:
		return gate_map_size(gate, map, ret);
	}
}

int occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret)
{
	struct sl_list_info lists[SL_LIST_PLACES];
	struct occupancy occupancy = {0};
	int counted = 1;
	int status = map_max_entries(gate, map, &occupancy.max_entries);

	if (status)
		return status;
	lists_copy(gate, lists);
	if (map == MAP_POLICIES || map == MAP_COUNTERS)
		status = policies_count(gate, &occupancy.entries);
	else if (map == MAP_HOSTS4 || map == MAP_HOSTS6)
		counted = hosts_count(gate, map, &occupancy.entries);
	else if (map == MAP_PREFIXES)
		occupancy.entries = gate->state->prefixes;
	else if (map == MAP_LISTS)
		occupancy.entries = lists_count(lists);
	else if (map == MAP_BUCKETS4 || map == MAP_BUCKETS6)
		status = buckets_count(gate, map, &occupancy.entries);
	else if (gate_map_is_private(map) || map == MAP_STATES) /* arrays */
		counted = 0;
	else if (map == MAP_GATE)
		occupancy.entries = 1;
	else
		counted = keys_count(gate->map[map], &occupancy.entries);
	if (counted < 0)
		status = failure("cannot count the entries of map '%s' of gate '%s': %s",
				 gate_map_names[map], gate->name, why(counted));
	occupancy.counted = counted;
	if (!status)
		*ret = occupancy;
	return status;
}
