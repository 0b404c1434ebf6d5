// SPDX-License-Identifier: GPL-2.0
#include "gate/schema5.h"

#include <stddef.h>
#include <string.h>
#include <linux/bpf.h>

#include "aggregate.h"
#include "gate/old_schema.h"
#include "rules/sizes.h"

_Static_assert(SL_LIMITS_MAX == SCHEMA5_LIMITS_MAX && SL_FAMILIES == SCHEMA5_FAMILIES, "schema 5");
_Static_assert(SL_HOME(3, 2) == 14, "schema 5: homes are copied unchanged");
_Static_assert(SL_LIST_PLACES == SCHEMA5_LIST_PLACES && SL_LIST_NAME == SCHEMA5_LIST_NAME,
	       "schema 5: a list keeps its place, and so its bit");

/* --- The gate ------------------------------------------------------------------------------- */

/* The maps in the order of that schema's ids. */
static const enum gate_map maps[SCHEMA5_MAPS] = {
	MAP_GATE,	  MAP_HOSTS4,	 MAP_HOSTS6,	MAP_PREFIXES,	  MAP_SPLITS,
	MAP_LISTS,	  MAP_POLICIES,	 MAP_COUNTERS,	MAP_OLD_LEDGERS4, MAP_OLD_LEDGERS6,
	MAP_OLD_BUCKETS4, GATE_UNREAD,	 MAP_ADMISSION, GATE_UNREAD,	  GATE_UNREAD,
	GATE_UNREAD,	  MAP_SHORTCUTS, MAP_BLOCKS,	MAP_BUDGETS,	  MAP_ALLOWANCES,
};

static struct sl_gate state_convert(const void *value, uint32_t bytes)
{
	const struct schema5_gate *old = value;
	struct sl_gate state = {
		.schema = SL_SCHEMA,
		.generation = old->generation,
		.jiffy_ns = old->jiffy_ns,
		.hosts = old->hosts,
		.split_rules = old->split_rules,
		.prefixes = old->prefixes,
		.changing = old->changing,
		.hand_allows = old->hand_allows,
		.lists_allow = old->lists_allow,
		.lists_ending = old->lists_ending,
		.next_limit = old->next_limit,
		.next_policy = old->next_policy,
		.policies_seen = old->policies_seen,
		.sizes_stated = SIZES_OF_SOURCES,
	};

	(void)bytes;
	old_ids_convert(&state, old->map_ids, maps, SCHEMA5_MAPS);
	memcpy(state.meeting.secret, old->secret, sizeof(state.meeting.secret));
	/* list_end_index() is that of schema 5 */
	memcpy(state.list_ends, old->list_ends, sizeof(state.list_ends));
	return state;
}

_Static_assert(sizeof(((struct sl_meeting *)0)->secret) ==
		       sizeof(((struct schema5_gate *)0)->secret),
	       "schema 5: the secret is copied unchanged");
_Static_assert(sizeof(((struct sl_gate *)0)->list_ends) ==
		       sizeof(((struct schema5_gate *)0)->list_ends),
	       "schema 5");

/* --- Counters ------------------------------------------------------------------------------- */

static const enum sl_reason reasons[SCHEMA5_REASONS] = {
	[SCHEMA5_PASS_WITHIN] = SL_PASS_WITHIN,
	[SCHEMA5_PASS_NO_LIMIT] = SL_PASS_NO_LIMIT,
	[SCHEMA5_PASS_NEWCOMER] = SL_PASS_NEWCOMER,
	[SCHEMA5_PASS_ALLOWED] = SL_PASS_ALLOWED,
	[SCHEMA5_PASS_NO_RULE] = SL_PASS_NO_RULE,
	[SCHEMA5_PASS_NOT_IP] = SL_PASS_NOT_IP,
	[SCHEMA5_PASS_SHORT] = SL_PASS_SHORT,
	[SCHEMA5_PASS_BAD_HEADER] = SL_PASS_BAD_HEADER,
	[SCHEMA5_DROP_UNREADABLE] = SL_DROP_UNREADABLE,
	[SCHEMA5_DROP_VLAN_DEPTH] = SL_DROP_VLAN_DEPTH,
	[SCHEMA5_DROP_OVER_LIMIT] = SL_DROP_OVER_LIMIT,
	[SCHEMA5_DROP_BLOCKED] = SL_DROP_BLOCKED,
	[SCHEMA5_DROP_OVER_BUDGET] = SL_DROP_OVER_BUDGET,
	[SCHEMA5_DROP_DENIED] = SL_DROP_DENIED,
	[SCHEMA5_DROP_CONTENDED] = SL_DROP_CONTENDED,
};

static struct sl_counters counters_convert(const void *value)
{
	const struct schema5_counters *old = value;
	struct sl_counters counters = {0};

	for (int reason = 0; reason < SCHEMA5_REASONS; reason++)
		schema4_cell_add(&counters.reason[reasons[reason]], &old->reason[reason]);
	for (int slot = 0; slot < SCHEMA5_LIMITS_MAX; slot++)
		schema4_cell_add(&counters.refused[slot], &old->refused[slot]);
	return counters;
}

/* --- Rules ---------------------------------------------------------------------------------- */

static struct sl_face face_convert(const struct schema5_face *old)
{
	return (struct sl_face){
		.record = old->record,
		.list = old->list,
		.until = old->until,
		.lists = old->lists,
	};
}

struct sl_rule schema5_rule_convert(const void *value)
{
	const struct schema5_rule *old = value;

	return (struct sl_rule){
		.since = old->since,
		.bits = old->bits,
		.now = face_convert(&old->now),
		.before = face_convert(&old->before),
	};
}

struct sl_list_info schema5_list_convert(const void *value)
{
	const struct schema5_list_info *old = value;
	struct sl_list_info list = {
		.since = old->since,
		.gone = old->gone,
		.until = old->until,
		.list = old->list,
		.replaced = old->replaced,
	};

	memcpy(list.name, old->name, sizeof(list.name));
	return list;
}

static void policy_convert(const void *value, struct sl_policy *ret)
{
	const struct schema5_policy *old = value;

	*ret = (struct sl_policy){
		.since = old->since,
		.inherits = old->inherits,
		.newcomers_home = old->newcomers_home,
		.newcomers_since = old->newcomers_since,
		.parent = old->parent,
		.newcomers_spec = schema4_spec_convert(&old->newcomers_spec),
		.prefix = schema4_prefix_convert(&old->prefix),
		.base = counters_convert(&old->base),
	};
	for (int slot = 0; slot < SCHEMA5_LIMITS_MAX; slot++) {
		ret->spec[slot] = schema4_spec_convert(&old->spec[slot]);
		ret->match[slot] = schema4_match_convert(&old->match[slot]);
		ret->home[slot] = old->home[slot];
		ret->changed[slot] = old->changed[slot];
	}
}

/* --- The schema ----------------------------------------------------------------------------- */

const struct old_schema schema5 = {
	.number = 5,
	.map =
		{
			[MAP_GATE] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema5_gate)},
			[MAP_HOSTS4] = {BPF_MAP_TYPE_HASH, 4, sizeof(struct schema5_rule)},
			[MAP_HOSTS6] = {BPF_MAP_TYPE_HASH, 16, sizeof(struct schema5_rule)},
			[MAP_PREFIXES] = {BPF_MAP_TYPE_LPM_TRIE, 24, sizeof(struct schema5_rule)},
			[MAP_SPLITS] = {BPF_MAP_TYPE_HASH, 8, 4},
			[MAP_LISTS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema5_list_info)},
			[MAP_POLICIES] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema5_policy)},
			[MAP_COUNTERS] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					  sizeof(struct schema5_counters)},
			[MAP_OLD_LEDGERS4] = {BPF_MAP_TYPE_LRU_HASH, 8, 32},
			[MAP_OLD_LEDGERS6] = {BPF_MAP_TYPE_LRU_HASH, 20, 32},
			[MAP_OLD_BUCKETS4] = {BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 168},
			[MAP_ADMISSION] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 120},
			[MAP_SHORTCUTS] = {BPF_MAP_TYPE_ARRAY, 4, 16},
			[MAP_BLOCKS] = {BPF_MAP_TYPE_ARRAY, 4, 8},
			[MAP_BUDGETS] = {BPF_MAP_TYPE_ARRAY, 4, 32},
			[MAP_ALLOWANCES] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 32},
		},
	/*
	 * Rules and lists are shared, as a resize shares them: policies keep their numbers. The
	 * state of a CPU or of a moment is not: another version may keep another one.
	 */
	.shared = {[MAP_HOSTS4] = true,
		   [MAP_HOSTS6] = true,
		   [MAP_PREFIXES] = true,
		   [MAP_SPLITS] = true,
		   [MAP_LISTS] = true,
		   [MAP_BLOCKS] = true,
		   [MAP_BUDGETS] = true},
	.state = state_convert,
	.rule = schema5_rule_convert,
	.list = schema5_list_convert,
	.counters = counters_convert,
	.policy = policy_convert,
};

#define SAME_FIELD(now, member, old)                                                               \
	(offsetof(now, member) == offsetof(old, member) &&                                         \
	 sizeof(((now *)0)->member) == sizeof(((old *)0)->member))

_Static_assert(sizeof(struct sl_rule) == sizeof(struct schema5_rule) &&
		       SAME_FIELD(struct sl_rule, since, struct schema5_rule) &&
		       SAME_FIELD(struct sl_rule, bits, struct schema5_rule) &&
		       SAME_FIELD(struct sl_rule, now, struct schema5_rule) &&
		       SAME_FIELD(struct sl_rule, before, struct schema5_rule) &&
		       SAME_FIELD(struct sl_face, until, struct schema5_face) &&
		       SAME_FIELD(struct sl_face, lists, struct schema5_face),
	       "schema 5: maps of rules are shared");
_Static_assert(sizeof(struct sl_list_info) == sizeof(struct schema5_list_info) &&
		       SAME_FIELD(struct sl_list_info, since, struct schema5_list_info) &&
		       SAME_FIELD(struct sl_list_info, gone, struct schema5_list_info) &&
		       SAME_FIELD(struct sl_list_info, until, struct schema5_list_info) &&
		       SAME_FIELD(struct sl_list_info, list, struct schema5_list_info) &&
		       SAME_FIELD(struct sl_list_info, replaced, struct schema5_list_info) &&
		       SAME_FIELD(struct sl_list_info, name, struct schema5_list_info),
	       "schema 5: `lists` is shared");
_Static_assert(SL_AGGREGATES == 65536, "schema 5: `blocks` is shared");
_Static_assert(sizeof(struct sl_ledger) == 32, "schema 5: `budgets` is shared");
_Static_assert(sizeof(struct schema5_policy) <= OLD_VALUE_MAX, "schema 5");
