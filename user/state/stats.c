// SPDX-License-Identifier: GPL-2.0
#include "state/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "gate/rules.h"
#include "gate/policy.h"
#include "rules/ruleset.h"
#include "state/buckets.h"

const char *const action_names[] = {
	[SL_ACTION_DROP] = "drop",
	[SL_ACTION_OBSERVE] = "observe",
	[SL_ACTION_BLOCK] = "block",
};

/* Number of lines without a policy: none, allow, deny, deleted. */
#define LINES_FIXED 4

/*
 * Begins a line for a policy. Sets its counters to the counts of deleted policies that had the same
 * number.
 */
static void line_begin(const struct gate *gate, struct stats *stats, enum stats_kind kind,
		       const char *policy, const struct sl_policy *record)
{
	struct stats_line *line = &stats->lines[stats->count++];

	*line = (struct stats_line){
		.kind = kind,
		.number = SL_POLICY(policy_version_index(gate, record)),
		.made_ns = record->made_ns,
		.counters = record->base,
	};
	snprintf(line->policy, sizeof(line->policy), "%s", policy);
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++) {
		const struct sl_limit_spec *spec = &record->spec[slot];
		struct stats_limit *limit = &line->limit[line->limits];

		if (!spec->name[0])
			continue;
		line->blocks |= spec->action == SL_ACTION_BLOCK;
		if (record->origin[slot])
			continue;
		limit_label(spec, limit->name);
		limit->action = spec->action;
		limit->slot = slot;
		line->limits++;
	}
}

static int lines_begin(const struct gate *gate, struct stats *stats)
{
	static const uint32_t numbers[] = {
		[STATS_NONE] = SL_POLICY_NONE,
		[STATS_ALLOW] = SL_POLICY_ALLOW,
		[STATS_DENY] = SL_POLICY_DENY,
	};
	static const char *const names[] = {
		[STATS_NONE] = "none", [STATS_ALLOW] = "allow", [STATS_DENY] = "deny"};
	_cleanup_free_ const struct sl_policy **policies = NULL;
	char text[PREFIX_TEXT];
	int err = rules_policies(gate, &policies, &stats->rules);

	if (err)
		return err;
	stats->lines = calloc(stats->rules + LINES_FIXED, sizeof(*stats->lines));
	if (!stats->lines)
		return error_add(ENOMEM, "no-memory", NULL,
				 "cannot read the counters of gate '%s': %s", gate->name,
				 why(ENOMEM));
	for (enum stats_kind kind = STATS_NONE; kind < STATS_RULE; kind++)
		line_begin(gate, stats, kind, names[kind],
			   policy_version(gate, SL_POLICY_VERSION(numbers[kind])));
	for (unsigned int i = 0; i < stats->rules; i++)
		line_begin(gate, stats, STATS_RULE, prefix_format(&policies[i]->prefix, text),
			   policies[i]);
	return 0;
}

int stats_read(const struct gate *gate, struct stats *ret)
{
	_cleanup_(stats_free) struct stats stats = {0};
	_cleanup_free_ struct sl_counters *all = NULL;
	struct sl_counters deleted;
	unsigned int count;
	int err = lines_begin(gate, &stats);

	if (err)
		return err;
	/*
	 * read counters after bases, because a counter that grows meanwhile must not be below its
	 * base
	 */
	count = gate_policies_seen(gate);
	count = count > SL_POLICY_FIRST ? count : SL_POLICY_FIRST;
	deleted = policy_version(gate, SL_POLICY_VERSION_MOVED)->base;
	err = counters_read_first(gate, count, &all);
	if (err)
		return err;
	for (unsigned int i = 0; i < stats.count; i++) {
		struct stats_line *line = &stats.lines[i];
		struct sl_counters base = line->counters;

		line->counters = all[line->number];
		counters_take_from(&line->counters, &base);
		counters_add_to(&deleted, &base);
		all[line->number] = (struct sl_counters){0};
	}
	for (unsigned int number = 0; number < count; number++)
		counters_add_to(&deleted, &all[number]);
	stats.lines[stats.count++] = (struct stats_line){
		.kind = STATS_DELETED, .policy = "deleted", .counters = deleted};
	for (unsigned int i = 0; i < stats.count; i++)
		counters_add_to(&stats.total, &stats.lines[i].counters);
	*ret = stats;
	stats.lines = NULL;
	return 0;
}

void stats_free(struct stats *stats)
{
	free(stats->lines);
	stats->lines = NULL;
}

bool stats_line_has(const struct stats_line *line, enum sl_reason reason)
{
	bool has_limits = line->kind == STATS_RULE || line->kind == STATS_DELETED;

	if (line->counters.reason[reason].packets)
		return true;
	if (reason == SL_PASS_ALLOWED)
		return line->kind == STATS_ALLOW;
	if (reason == SL_DROP_DENIED)
		return line->kind == STATS_DENY;
	if (reason == SL_DROP_BLOCKED)
		return line->blocks || line->kind == STATS_DELETED;
	if (reason == SL_PASS_WITHIN || reason == SL_PASS_NO_LIMIT || reason == SL_PASS_NEWCOMER)
		return has_limits;
	return reason >= SL_FIRST_DROP ? has_limits : line->kind == STATS_NONE;
}

struct histogram rates_histogram(const struct sl_rates *rates)
{
	return (struct histogram){rates->seconds, 0, SL_RATE_BUCKETS};
}

/* --- Occupancy ------------------------------------------------------------------------------ */

/*
 * Largest number of entries to count. Each entry needs a system call, so counting takes up to 20
 * ms.
 */
#define COUNT_MAX 65536

/*
 * Counts the keys of a map. Takes no lock that packets need. Returns 1 if it has counted all keys,
 * 0 if the map has more than COUNT_MAX keys, or -errno.
 */
static int keys_count(int fd, uint32_t *ret)
{
	char key[2][sizeof(struct sl_prefix)]; /* current and previous key */
	void *last = NULL;
	int err;

	for (*ret = 0; !(err = bpf_map_get_next_key(fd, last, key[*ret % 2])); ++*ret) {
		if (*ret == COUNT_MAX)
			return 0;
		last = key[*ret % 2];
	}
	return err == -ENOENT ? 1 : err;
}

/*
 * Counts the entries of `hosts4` or `hosts6`. If the map has more than COUNT_MAX entries, counts
 * the entries of the other map, and subtracts them from the number of all hosts in map `gate`.
 */
static int hosts_count(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	enum gate_map other = map == MAP_HOSTS4 ? MAP_HOSTS6 : MAP_HOSTS4;
	uint32_t both = gate->state->hosts, others;
	int counted = both ? keys_count(gate->map[map], ret) : 1;

	if (counted)
		return counted;
	counted = keys_count(gate->map[other], &others);
	*ret = both - others;
	return counted > 0 ? others <= both : counted;
}

int map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	switch (map) {
	case MAP_POLICIES:
	case MAP_COUNTERS:
	case MAP_BUDGETS:
	case MAP_BUDGET_SLICES: /* omit the reserved policies */
		*ret = gate->policies_max - SL_POLICY_FIRST;
		return 0;
	case MAP_STATES: /* the map is larger than this, so that its sets are rarely full */
		*ret = gate->state->params.sources;
		return 0;
	case MAP_LISTS: /* omit the places that are reserved for changes */
		*ret = SL_LISTS_MAX;
		return 0;
	default:
		return gate_map_size(gate, map, ret);
	}
}

int occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret)
{
	_cleanup_free_ const struct sl_policy **policies = NULL;
	struct sl_list_info lists[SL_LIST_PLACES];
	struct occupancy o = {0};
	int err = map_max_entries(gate, map, &o.max_entries), counted = 1;

	if (err)
		return err;
	switch (map) {
	case MAP_POLICIES:
	case MAP_COUNTERS:
		err = rules_policies(gate, &policies, &o.entries);
		break;
	case MAP_HOSTS4:
	case MAP_HOSTS6:
		counted = hosts_count(gate, map, &o.entries);
		break;
	case MAP_PREFIXES:
		o.entries = gate->state->prefixes;
		break;
	case MAP_LISTS:
		lists_copy(gate, lists);
		o.entries = lists_count(lists);
		break;
	case MAP_BUCKETS4:
	case MAP_BUCKETS6:
		err = buckets_walk(gate, map, NULL, NULL, &o.entries);
		break;
	case MAP_GATE:
		o.entries = 1;
		break;
	case MAP_STATES:
		counted = 0;
		break;
	default: /* private maps are arrays, whose used entries are not counted */
		counted = gate_map_is_private(map) ? 0 : keys_count(gate->map[map], &o.entries);
	}
	if (counted < 0)
		err = gate_map_unread(gate, map, counted);
	o.counted = counted;
	if (!err)
		*ret = o;
	return err;
}
