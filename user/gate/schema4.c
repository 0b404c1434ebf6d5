// SPDX-License-Identifier: GPL-2.0
#include "gate/schema4.h"

#include <string.h>
#include <linux/bpf.h>

#include "gate/old_schema.h"
#include "rules/sizes.h"

/* Numbers that schemas 4 and 5 share with this one, so that they are copied unchanged. */
_Static_assert(SL_FAMILIES == SCHEMA4_FAMILIES && SL_IPV4 == 0 && SL_IPV6 == 1, "schema 4");
_Static_assert(SL_LIMITS_MAX == SCHEMA4_LIMITS_MAX && SL_PORTS_MAX == SCHEMA4_PORTS_MAX &&
		       SL_NAME == 16,
	       "schema 4");
_Static_assert(SL_RATE_PPS == 0 && SL_RATE_PER_MIN == 1 && SL_RATE_PER_HOUR == 2 &&
		       SL_RATE_BITS == 3,
	       "schema 4");
_Static_assert(SL_BURST_PACKETS == 0 && SL_BURST_BYTES == 1 && SL_BURST_NS == 2, "schema 4");
_Static_assert(SL_ACTION_DROP == 0 && SL_ACTION_OBSERVE == 1 && SL_ACTION_BLOCK == 2, "schema 4");
_Static_assert(SL_FACT_ANY == 1 << 0 && SL_FACT_TCP == 1 << 1 && SL_FACT_UDP == 1 << 2 &&
		       SL_FACT_ICMP == 1 << 3 && SL_FACT_SYN == 1 << 4 &&
		       SL_FACT_FRAGMENT == 1 << 5 && SL_FACT_PROTO == 1 << 6,
	       "schema 4");
_Static_assert(SL_LIST_NONE == 0 && SL_LIST_ALLOW == 1 && SL_LIST_DENY == 2, "schema 4");
_Static_assert(SL_UNTIL_SHIFT == 26, "schema 4");
_Static_assert(SL_POLICY_NONE == 0 && SL_POLICY_ALLOW == 1 && SL_POLICY_DENY == 2 &&
		       SL_POLICY_FIRST == 3 && SL_RECORD(1) == 2,
	       "schema 4");
_Static_assert(SL_FAMILY_BITS == 32 && SL_FAMILY_IPV4 == 4 && SL_FAMILY_IPV6 == 6, "schema 4");
_Static_assert(sizeof(struct sl_prefix) == sizeof(struct schema4_prefix),
	       "schema 4: keys of `prefixes` are not converted");
_Static_assert(SL_TICKS_PER_NS == 16, "schema 4: ledgers are shared");

/* --- The gate ------------------------------------------------------------------------------- */

/* The maps in the order of that schema's ids. */
static const enum gate_map maps[SCHEMA4_MAPS] = {
	MAP_GATE,     MAP_HOSTS4,    MAP_HOSTS6,       MAP_PREFIXES,	 MAP_SPLITS,
	MAP_POLICIES, MAP_COUNTERS,  MAP_OLD_LEDGERS4, MAP_OLD_LEDGERS6, MAP_OLD_BUCKETS4,
	GATE_UNREAD,  MAP_ADMISSION, GATE_UNREAD,      GATE_UNREAD,	 MAP_SHORTCUTS,
	MAP_BLOCKS,   MAP_BUDGETS,   MAP_ALLOWANCES,
};

static struct sl_gate state_convert(const void *value, uint32_t bytes)
{
	const struct schema4_gate *old = value;
	struct sl_gate state = {
		.schema = SL_SCHEMA,
		.generation = old->generation,
		.jiffy_ns = old->jiffy_ns,
		.hosts = old->hosts,
		.split_rules = old->split_rules,
		.prefixes = old->prefixes,
		.changing = old->changing,
		.next_limit = old->next_limit,
		.next_policy = old->next_policy,
		.policies_seen = old->policies_seen,
		.sizes_stated = SIZES_OF_SOURCES,
	};

	(void)bytes;
	old_ids_convert(&state, old->map_ids, maps, SCHEMA4_MAPS);
	memcpy(state.meeting.secret, old->secret, sizeof(state.meeting.secret));
	return state;
}

_Static_assert(sizeof(((struct sl_meeting *)0)->secret) ==
		       sizeof(((struct schema4_gate *)0)->secret),
	       "schema 4: the secret is copied unchanged");

/* --- Counters ------------------------------------------------------------------------------- */

static const enum sl_reason reasons[SCHEMA4_REASONS] = {
	[SCHEMA4_PASS_WITHIN] = SL_PASS_WITHIN, /* includes packets that no limit matched */
	[SCHEMA4_PASS_NEWCOMER] = SL_PASS_NEWCOMER,
	[SCHEMA4_PASS_ALLOWED] = SL_PASS_ALLOWED,
	[SCHEMA4_PASS_NO_RULE] = SL_PASS_NO_RULE,
	[SCHEMA4_PASS_NOT_IP] = SL_PASS_NOT_IP,
	[SCHEMA4_PASS_SHORT] = SL_PASS_SHORT,
	[SCHEMA4_PASS_BAD_HEADER] = SL_PASS_BAD_HEADER,
	/* these packets passed without a source, behind a third tag; vlan-depth now drops */
	[SCHEMA4_PASS_VLAN_DEPTH] = SL_PASS_NOT_IP,
	[SCHEMA4_DROP_OVER_LIMIT] = SL_DROP_OVER_LIMIT,
	[SCHEMA4_DROP_BLOCKED] = SL_DROP_BLOCKED,
	[SCHEMA4_DROP_OVER_BUDGET] = SL_DROP_OVER_BUDGET,
	[SCHEMA4_DROP_DENIED] = SL_DROP_DENIED,
	/* larger than the whole burst: a bucket now never refuses a packet for ever */
	[SCHEMA4_DROP_OVERSIZE] = SL_DROP_OVER_LIMIT,
	[SCHEMA4_DROP_CONTENDED] = SL_DROP_CONTENDED,
};

void schema4_cell_add(struct sl_cell *sum, const struct schema4_cell *cell)
{
	sum->packets += cell->packets;
	sum->bytes += cell->bytes;
}

static struct sl_counters counters_convert(const void *value)
{
	const struct schema4_counters *old = value;
	struct sl_counters counters = {0};

	for (int reason = 0; reason < SCHEMA4_REASONS; reason++)
		schema4_cell_add(&counters.reason[reasons[reason]], &old->reason[reason]);
	for (int slot = 0; slot < SCHEMA4_LIMITS_MAX; slot++)
		schema4_cell_add(&counters.refused[slot], &old->refused[slot]);
	return counters;
}

/* --- Rules ---------------------------------------------------------------------------------- */

static struct sl_face face_convert(const struct schema4_face *old)
{
	return (struct sl_face){.record = old->record, .list = old->list, .until = old->until};
}

static struct sl_rule rule_convert(const void *value)
{
	const struct schema4_rule *old = value;

	return (struct sl_rule){
		.since = old->since,
		.bits = old->bits,
		.now = face_convert(&old->now),
		.before = face_convert(&old->before),
	};
}

struct sl_limit_spec schema4_spec_convert(const struct schema4_limit_spec *old)
{
	struct sl_limit_spec spec = {
		.rate = old->rate,
		.burst = old->burst,
		.block_ns = old->block_ns,
		.id = old->id,
		.rate_unit = old->rate_unit,
		.burst_unit = old->burst_unit,
		.action = old->action,
		.per = {old->per[SL_IPV4], old->per[SL_IPV6]},
		.key_dst = old->key_dst,
		.start = old->start_empty ? SL_START_EMPTY : SL_START_FULL,
	};

	memcpy(spec.name, old->name, sizeof(spec.name));
	return spec;
}

struct sl_match schema4_match_convert(const struct schema4_match *old)
{
	struct sl_match match = {
		.fact = old->fact,
		.proto = old->proto,
		.ports = old->ports,
		.vlan = old->vlan,
	};

	for (int i = 0; i < SCHEMA4_PORTS_MAX; i++)
		match.port[i] = (struct sl_ports){old->port[i].first, old->port[i].last};
	return match;
}

struct sl_prefix schema4_prefix_convert(const struct schema4_prefix *old)
{
	struct sl_prefix prefix = {.bits = old->bits, .family = old->family};

	memcpy(prefix.addr, old->addr, sizeof(prefix.addr));
	return prefix;
}

static void policy_convert(const void *value, struct sl_policy *ret)
{
	const struct schema4_policy *old = value;

	*ret = (struct sl_policy){
		.since = old->since,
		.newcomers_since = old->since,
		.newcomers_spec = schema4_spec_convert(&old->newcomers_spec),
		.prefix = schema4_prefix_convert(&old->prefix),
		.base = counters_convert(&old->base),
	};
	memcpy(ret->changed, old->changed, sizeof(ret->changed));
	for (int slot = 0; slot < SCHEMA4_LIMITS_MAX; slot++) {
		ret->spec[slot] = schema4_spec_convert(&old->spec[slot]);
		ret->match[slot] = schema4_match_convert(&old->match[slot]);
	}
}

/* --- The schema ----------------------------------------------------------------------------- */

const struct old_schema schema4 = {
	.number = 4,
	.map =
		{
			[MAP_GATE] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema4_gate)},
			[MAP_HOSTS4] = {BPF_MAP_TYPE_HASH, 4, sizeof(struct schema4_rule)},
			[MAP_HOSTS6] = {BPF_MAP_TYPE_HASH, 16, sizeof(struct schema4_rule)},
			[MAP_PREFIXES] = {BPF_MAP_TYPE_LPM_TRIE, 24, sizeof(struct schema4_rule)},
			[MAP_SPLITS] = {BPF_MAP_TYPE_HASH, 8, 4},
			[MAP_POLICIES] = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct schema4_policy)},
			[MAP_COUNTERS] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					  sizeof(struct schema4_counters)},
			[MAP_OLD_LEDGERS4] = {BPF_MAP_TYPE_LRU_HASH, 8, 32},
			[MAP_OLD_LEDGERS6] = {BPF_MAP_TYPE_LRU_HASH, 20, 32},
			[MAP_OLD_BUCKETS4] = {BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 168},
			[MAP_ADMISSION] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 112},
			[MAP_SHORTCUTS] = {BPF_MAP_TYPE_ARRAY, 4, 16},
			[MAP_BLOCKS] = {BPF_MAP_TYPE_ARRAY, 4, 8},
			[MAP_BUDGETS] = {BPF_MAP_TYPE_ARRAY, 4, 32},
			[MAP_ALLOWANCES] = {BPF_MAP_TYPE_PERCPU_ARRAY, 4, 32},
		},
	.shared = {[MAP_BUDGETS] = true},
	.state = state_convert,
	.rule = rule_convert,
	.counters = counters_convert,
	.policy = policy_convert,
};

_Static_assert(sizeof(struct sl_ledger) == 32, "schema 4: `budgets` is shared");
_Static_assert(sizeof(struct schema4_policy) <= OLD_VALUE_MAX, "schema 4");
