// SPDX-License-Identifier: GPL-2.0
/*
 * Schema 7 counts newcomers in two words of each set of the table, and has no map `newcomers`. All
 * else is as in this version. So the next gate shares what holds numbers; what it makes anew is the
 * records, as each version compiles its own limits, and what a packet remembers of them.
 */
#include "gate/schema6.h"

#include <stddef.h>
#include <string.h>
#include <linux/bpf.h>

#include "base/array.h"
#include "gate/old_schema.h"

/* --- The gate ------------------------------------------------------------------------------- */

/* The maps in the order of that schema's ids. */
static const enum gate_map maps[] = {
	MAP_GATE,      MAP_HOSTS4,    MAP_HOSTS6,	  MAP_PREFIXES, MAP_SPLITS,  MAP_LISTS,
	MAP_POLICIES,  MAP_COUNTERS,  MAP_SETS,		  MAP_LEDGERS,	MAP_HOT,     MAP_BUCKETS,
	MAP_ADMISSION, MAP_SHORTCUTS, MAP_HOST_SHORTCUTS, MAP_BLOCKS,	MAP_BUDGETS, MAP_ALLOWANCES,
};

/*
 * The first versions of the schema ended the entry before `divide_at`, and had the number of nodes
 * at the end of the settings of admission.
 */
#define FIRST_GATE offsetof(struct sl_gate, divide_at)

static struct sl_gate state_convert(const void *value, uint32_t bytes)
{
	const struct sl_gate *old = value;
	struct sl_gate state = *old;

	state.schema = SL_SCHEMA;
	memset(state.map_ids, 0, sizeof(state.map_ids));
	old_ids_convert(&state, old->map_ids, maps, ARRAY_SIZE(maps));
	if (bytes == FIRST_GATE)
		state.nodes = old->meeting.sketch_mask;
	state.meeting.sketch_mask = 0;
	return state;
}

/* --- The schema ----------------------------------------------------------------------------- */

const struct old_schema schema7 = {
	.number = 7,
	.map =
		{
			[MAP_GATE] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_gate),
				      .first_value_size = FIRST_GATE},
			[MAP_HOSTS4] = {BPF_MAP_TYPE_HASH, 4, sizeof(struct schema5_rule)},
			[MAP_HOSTS6] = {BPF_MAP_TYPE_HASH, 16, sizeof(struct schema5_rule)},
			[MAP_PREFIXES] = {BPF_MAP_TYPE_LPM_TRIE, 24, sizeof(struct schema5_rule)},
			[MAP_SPLITS] = {BPF_MAP_TYPE_HASH, 8, 4},
			[MAP_LISTS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema5_list_info)},
			[MAP_POLICIES] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema6_policy)},
			[MAP_COUNTERS] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					  sizeof(struct schema6_counters)},
			[MAP_SETS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_set)},
			[MAP_LEDGERS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_line)},
			[MAP_HOT] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_hot)},
			[MAP_BUCKETS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_bucket)},
			[MAP_ADMISSION] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					   sizeof(struct sl_admission)},
			[MAP_SHORTCUTS] = {BPF_MAP_TYPE_ARRAY, 4, 16},
			[MAP_HOST_SHORTCUTS] = {BPF_MAP_TYPE_ARRAY, 4, 64},
			[MAP_BLOCKS] = {BPF_MAP_TYPE_ARRAY, 4, 8},
			[MAP_BUDGETS] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_ledger)},
			[MAP_ALLOWANCES] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					    sizeof(struct sl_allowance)},
		},
	.shared = {[MAP_HOSTS4] = true,
		   [MAP_HOSTS6] = true,
		   [MAP_PREFIXES] = true,
		   [MAP_SPLITS] = true,
		   [MAP_LISTS] = true,
		   [MAP_COUNTERS] = true,
		   [MAP_SETS] = true,
		   [MAP_LEDGERS] = true,
		   [MAP_HOT] = true,
		   [MAP_BUCKETS] = true,
		   [MAP_ADMISSION] =
			   true, /* it counts the sources that keep their bucket entries */
		   [MAP_BLOCKS] = true,
		   [MAP_BUDGETS] = true,
		   [MAP_ALLOWANCES] = true},
	.state = state_convert,
	.rule = schema5_rule_convert,
	.list = schema5_list_convert,
	.counters = schema6_counters_convert,
	.policy = schema6_policy_convert,
};

/* schema5.c asserts what rules, lists, `blocks` and `budgets` are shared for. */

#define AT(type, member, at) (offsetof(type, member) == (at))

_Static_assert(FIRST_GATE == 544 && sizeof(struct sl_gate) == 560 &&
		       AT(struct sl_gate, lists_allow, 32) && AT(struct sl_gate, map_ids, 60) &&
		       AT(struct sl_gate, meeting.crowd, 232) &&
		       AT(struct sl_gate, meeting.sources, 252) &&
		       AT(struct sl_gate, meeting.sketch_mask, 260) &&
		       AT(struct sl_gate, list_ends, 272) && AT(struct sl_gate, trial_until, 528) &&
		       AT(struct sl_gate, nodes, 552),
	       "schema 7: the state is taken as it is");
_Static_assert(sizeof(struct sl_counters) == sizeof(struct schema6_counters),
	       "schema 7: `counters` is shared");
_Static_assert(sizeof(struct sl_set) == 32 && AT(struct sl_set, tag, 0) &&
		       AT(struct sl_set, unused, 16) && AT(struct sl_set, away, 24),
	       "schema 7: `sets` is shared");
_Static_assert(sizeof(struct sl_line) == 64 && AT(struct sl_line, addr, 0) &&
		       AT(struct sl_line, limit, 16) && AT(struct sl_line, span, 20) &&
		       AT(struct sl_line, made, 22) && AT(struct sl_line, taken, 24) &&
		       AT(struct sl_line, refused, 28) && AT(struct sl_line, ledger, 32) &&
		       AT(struct sl_ledger, zero, 0) && AT(struct sl_ledger, born, 8) &&
		       AT(struct sl_ledger, drawn, 16) && AT(struct sl_ledger, blocked, 24),
	       "schema 7: `ledgers` is shared");
_Static_assert(sizeof(struct sl_hot) == 16 && AT(struct sl_hot, tag, 0) &&
		       AT(struct sl_hot, used, 8),
	       "schema 7: `hot` is shared");
_Static_assert(sizeof(struct sl_bucket) == 192 && AT(struct sl_bucket, source, 0) &&
		       AT(struct sl_bucket, generation, 16) && AT(struct sl_bucket, record, 20) &&
		       AT(struct sl_bucket, until, 24) && AT(struct sl_bucket, passed, 32) &&
		       AT(struct sl_bucket, purse, 48) && AT(struct sl_bucket, dropped, 144) &&
		       AT(struct sl_bucket, observed, 160) && AT(struct sl_bucket, owner, 176) &&
		       AT(struct sl_bucket, owner_since, 180) &&
		       AT(struct sl_bucket, served, 184) && AT(struct sl_bucket, kept, 188),
	       "schema 7: `buckets` is shared");
_Static_assert(sizeof(struct sl_purse) == 24 && AT(struct sl_purse, credit, 0) &&
		       AT(struct sl_purse, at, 8) && AT(struct sl_purse, until, 16) &&
		       sizeof(struct sl_allowance) == 32 && AT(struct sl_allowance, purse, 0) &&
		       AT(struct sl_allowance, since, 24),
	       "schema 7: purses in `buckets` and `allowances` are shared");
_Static_assert(sizeof(struct sl_admission) == 120 && AT(struct sl_admission, window, 0) &&
		       AT(struct sl_admission, crowd_until, 8) &&
		       AT(struct sl_admission, met, 16) && AT(struct sl_admission, second, 20) &&
		       AT(struct sl_admission, given, 24) && AT(struct sl_admission, asked, 28) &&
		       AT(struct sl_admission, lost, 32) && AT(struct sl_admission, event, 40) &&
		       sizeof(struct sl_pace) == 16,
	       "schema 7: `admission` is shared");
