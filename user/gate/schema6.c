// SPDX-License-Identifier: GPL-2.0
#include "gate/schema6.h"

#include <stddef.h>
#include <string.h>
#include <linux/bpf.h>

#include "aggregate.h"
#include "gate/old_schema.h"
#include "rules/sizes.h"

_Static_assert(SL_LIMITS_MAX == SCHEMA6_LIMITS_MAX && SL_FAMILIES == SCHEMA6_FAMILIES, "schema 6");
_Static_assert(SL_BUCKET == (int)SCHEMA6_BUCKET && SL_WINDOW == (int)SCHEMA6_WINDOW &&
		       SL_SHAPE == (int)SCHEMA6_SHAPE,
	       "schema 6: kinds are copied unchanged");
_Static_assert(SL_START_FULL == 0 && SL_START_EMPTY == 1 && SL_START_SHARE == 2 &&
		       SL_SHARED_NO == 0 && SL_SHARED_YES == 1 && SL_SHARED_BLOCK == 2,
	       "schemas 6 and 7: starts are copied unchanged, and what is shared");
_Static_assert(SL_LIST_PLACES == SCHEMA6_LIST_PLACES, "schema 6: a list keeps its place");
_Static_assert(SIZE_SOURCES == 0 && SIZE_HOT == 1 && SIZE_POLICIES == 2 && SIZE_HOSTS == 3 &&
		       SIZE_PREFIXES == 4,
	       "schema 6: bits of sizes are copied unchanged");

/* --- The gate ------------------------------------------------------------------------------- */

/* The maps in the order of that schema's ids. */
static const enum gate_map maps[SCHEMA6_MAPS] = {
	MAP_GATE,	  MAP_HOSTS4,	 MAP_HOSTS6,	MAP_PREFIXES,	  MAP_SPLITS,
	MAP_LISTS,	  MAP_POLICIES,	 MAP_COUNTERS,	MAP_OLD_LEDGERS4, MAP_OLD_LEDGERS6,
	MAP_OLD_BUCKETS4, GATE_UNREAD,	 MAP_ADMISSION, GATE_UNREAD,	  GATE_UNREAD,
	GATE_UNREAD,	  MAP_SHORTCUTS, MAP_BLOCKS,	MAP_BUDGETS,	  MAP_ALLOWANCES,
};

/* The first versions of the schema had neither trials nor stated sizes. */
#define FIRST_GATE offsetof(struct schema6_gate, trial_until)

static struct sl_gate state_convert(const void *value, uint32_t bytes)
{
	const struct schema6_gate *old = value;
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
		.trial_until = old->trial_until,
		.trial = old->trial,
		.sizes_stated = bytes == FIRST_GATE ? SIZES_OF_SOURCES : old->sizes_stated,
	};

	old_ids_convert(&state, old->map_ids, maps, SCHEMA6_MAPS);
	memcpy(state.meeting.secret, old->secret, sizeof(state.meeting.secret));
	/* list_end_index() is that of schemas 5 and 6 */
	memcpy(state.list_ends, old->list_ends, sizeof(state.list_ends));
	return state;
}

_Static_assert(sizeof(((struct sl_meeting *)0)->secret) ==
		       sizeof(((struct schema6_gate *)0)->secret),
	       "schema 6: the secret is copied unchanged");
_Static_assert(sizeof(((struct sl_gate *)0)->list_ends) ==
		       sizeof(((struct schema6_gate *)0)->list_ends),
	       "schema 6");

/* --- Counters ------------------------------------------------------------------------------- */

static const enum sl_reason reasons[SCHEMA6_REASONS] = {
	[SCHEMA6_PASS_WITHIN] = SL_PASS_WITHIN,
	[SCHEMA6_PASS_NO_LIMIT] = SL_PASS_NO_LIMIT,
	[SCHEMA6_PASS_NEWCOMER] = SL_PASS_NEWCOMER,
	[SCHEMA6_PASS_ALLOWED] = SL_PASS_ALLOWED,
	[SCHEMA6_PASS_NO_RULE] = SL_PASS_NO_RULE,
	[SCHEMA6_PASS_NOT_IP] = SL_PASS_NOT_IP,
	[SCHEMA6_PASS_SHORT] = SL_PASS_SHORT,
	[SCHEMA6_PASS_BAD_HEADER] = SL_PASS_BAD_HEADER,
	[SCHEMA6_DROP_UNREADABLE] = SL_DROP_UNREADABLE,
	[SCHEMA6_DROP_VLAN_DEPTH] = SL_DROP_VLAN_DEPTH,
	[SCHEMA6_DROP_OVER_LIMIT] = SL_DROP_OVER_LIMIT,
	[SCHEMA6_DROP_OVERSIZE] = SL_DROP_OVERSIZE,
	[SCHEMA6_DROP_OVER_HORIZON] = SL_DROP_OVER_HORIZON,
	[SCHEMA6_DROP_BLOCKED] = SL_DROP_BLOCKED,
	[SCHEMA6_DROP_OVER_BUDGET] = SL_DROP_OVER_BUDGET,
	[SCHEMA6_DROP_DENIED] = SL_DROP_DENIED,
	[SCHEMA6_DROP_CONTENDED] = SL_DROP_CONTENDED,
};

struct sl_counters schema6_counters_convert(const void *value)
{
	const struct schema6_counters *old = value;
	struct sl_counters counters = {0};

	for (int reason = 0; reason < SCHEMA6_REASONS; reason++)
		schema4_cell_add(&counters.reason[reasons[reason]], &old->reason[reason]);
	for (int slot = 0; slot < SCHEMA6_LIMITS_MAX; slot++)
		schema4_cell_add(&counters.refused[slot], &old->refused[slot]);
	return counters;
}

/* --- Rules ---------------------------------------------------------------------------------- */

static struct sl_limit_spec spec_convert(const struct schema6_limit_spec *old)
{
	struct sl_limit_spec spec = {
		.rate = old->rate,
		.burst = old->burst,
		.span_ns = old->span_ns,
		.block_ns = old->block_ns,
		.block_max_ns = old->block_max_ns,
		.id = old->id,
		.kind = old->kind,
		.rate_unit = old->rate_unit,
		.burst_unit = old->burst_unit,
		.groups = old->groups,
		.action = old->action,
		.escalate = old->escalate,
		.per = {old->per[SL_IPV4], old->per[SL_IPV6]},
		.key_dst = old->key_dst,
		.start = old->start,
		.second = old->second,
		.shared = old->shared,
	};

	memcpy(spec.name, old->name, sizeof(spec.name));
	return spec;
}

void schema6_policy_convert(const void *value, struct sl_policy *ret)
{
	const struct schema6_policy *old = value;

	*ret = (struct sl_policy){
		.since = old->since,
		.inherits = old->inherits,
		.newcomers_home = old->newcomers_home,
		.newcomers_since = old->newcomers_since,
		.parent = old->parent,
		.newcomers_spec = spec_convert(&old->newcomers_spec),
		.prefix = schema4_prefix_convert(&old->prefix),
		.base = schema6_counters_convert(&old->base),
	};
	for (int slot = 0; slot < SCHEMA6_LIMITS_MAX; slot++) {
		ret->spec[slot] = spec_convert(&old->spec[slot]);
		ret->match[slot] = schema4_match_convert(&old->match[slot]);
		ret->home[slot] = old->home[slot];
		ret->changed[slot] = old->changed[slot];
	}
}

/* --- The schema ----------------------------------------------------------------------------- */

const struct old_schema schema6 = {
	.number = 6,
	.map =
		{
			[MAP_GATE] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema6_gate),
				      .first_value_size = FIRST_GATE},
			[MAP_HOSTS4] = {BPF_MAP_TYPE_HASH, 4, sizeof(struct schema5_rule)},
			[MAP_HOSTS6] = {BPF_MAP_TYPE_HASH, 16, sizeof(struct schema5_rule)},
			[MAP_PREFIXES] = {BPF_MAP_TYPE_LPM_TRIE, 24, sizeof(struct schema5_rule)},
			[MAP_SPLITS] = {BPF_MAP_TYPE_HASH, 8, 4},
			[MAP_LISTS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema5_list_info)},
			[MAP_POLICIES] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema6_policy)},
			[MAP_COUNTERS] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					  sizeof(struct schema6_counters)},
			[MAP_OLD_LEDGERS4] = {BPF_MAP_TYPE_LRU_HASH, 8, 32},
			[MAP_OLD_LEDGERS6] = {BPF_MAP_TYPE_LRU_HASH, 20, 32},
			[MAP_OLD_BUCKETS4] = {BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 168},
			[MAP_ADMISSION] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 120},
			[MAP_SHORTCUTS] = {BPF_MAP_TYPE_ARRAY, 4, 16},
			[MAP_BLOCKS] = {BPF_MAP_TYPE_ARRAY, 4, 8},
			[MAP_BUDGETS] = {BPF_MAP_TYPE_ARRAY, 4, 32},
			[MAP_ALLOWANCES] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 32},
		},
	/* as of schema 5 */
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
	.counters = schema6_counters_convert,
	.policy = schema6_policy_convert,
};

/* schema5.c says why its rules, lists and ledgers can be shared. */
_Static_assert(FIRST_GATE == 536, "schema 6");
_Static_assert(sizeof(struct schema6_policy) <= OLD_VALUE_MAX, "schema 6");
