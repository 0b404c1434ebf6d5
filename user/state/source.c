// SPDX-License-Identifier: GPL-2.0
#include "state/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/counters.h"
#include "gate/policy.h"
#include "rules/prefix.h"
#include "state/states.h"
#include "ways.h"

int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret)
{
	struct source source = {.prefix = prefix_source(address), .table = table};
	int err = rules_judge(gate, address, &source.rule)
			  ?: buckets_read(gate, &source.prefix, &source.buckets, &source.count);
	uint32_t rules, owner;

	if (err)
		return err;
	/* as source_is_split() in bpf/rules.h decides */
	source.split = prefix_is_ipv6(&source.prefix) &&
		       source.prefix.bits == SL_FAMILY_BITS + 64 && gate->state->split_rules &&
		       !bpf_map_lookup_elem(gate->map[MAP_SPLITS], source.prefix.addr, &rules);
	owner = SL_POLICY(source.rule.version);
	if (source.rule.version) {
		enum sl_family family = prefix_is_ipv4(&source.prefix) ? SL_IPV4 : SL_IPV6;

		source.policy = policy_version(gate, source.rule.version);
		source.limits = source.policy->limit[family];
		source.limit_count = source.policy->limits[family];
	}
	for (unsigned int i = 0; i < source.count; i++) {
		struct sl_bucket *bucket = &source.buckets[i];

		cell_add_to(&source.passed, &bucket->passed);
		cell_add_to(&source.dropped, &bucket->dropped);
		cell_add_to(&source.observed, &bucket->observed);
		/* a split /64 has no slices */
		if (source.split || owner < SL_POLICY_FIRST)
			memset(bucket->slice, 0, sizeof(bucket->slice));
		else
			slices_fit(bucket, source.policy, owner);
	}
	*ret = source;
	return 0;
}

void source_free(struct source *source)
{
	free(source->buckets);
	source->buckets = NULL;
	source->count = 0;
}

struct limit source_limit(const struct source *source, const struct sl_limit *limit)
{
	return (struct limit){
		.spec = source->policy->spec[limit->slot],
		.match = source->policy->match[limit->slot],
	};
}

struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes)
{
	return (struct packet_args){
		.source = source->prefix,
		.facts.facts = SL_FACT_ANY,
		.bytes = bytes,
	};
}

uint64_t burst_units(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return limit->most;
	/* shape, as in kind_decide(): the last packet may depart at the horizon itself */
	return credit_units(limit, limit->burst) + (limit->kind == SL_SHAPE);
}

/* --- A trial charge ------------------------------------------------------------------------- */

/* A trial charge of a packet's cost to copies of a state and of its slices. */
struct trial {
	const struct sl_limit *limit;
	struct sl_state state;
	uint64_t cost;
	unsigned int times; /* how often a packet is charged its cost: credit_times() */
	uint64_t now;
	const struct sl_bucket *buckets; /* with a slice of this state */
	unsigned int count;
	unsigned int cpus; /* those without such a bucket have an empty slice */
};

/*
 * A slice with more than any packet leaves there, which the owner of the gate wrote, is empty.
 * index: of a bucket, or beyond them.
 */
static struct sl_slice slice_of(const struct trial *q, unsigned int index)
{
	const int64_t max = SL_BURST_TICKS_MAX;
	struct sl_slice slice = {0};

	if (index < q->count)
		slice = q->buckets[index].slice[q->limit->slot];
	if (slice.credit > max || slice.credit < -max)
		slice.credit = 0;
	return slice;
}

/*
 * Returns whether the packet would pass with the slice of any CPU: limit_charge() in bpf/charge.h.
 */
static bool trial_passes(const struct trial *q)
{
	for (unsigned int i = 0; i < q->cpus && i <= q->count; i++) {
		struct sl_slice slice = slice_of(q, i);
		struct sl_state state = q->state;
		struct kind_charge charge = {.cost = q->cost, .now = q->now};

		if (credit_must_wait(&slice, q->cost, q->now))
			continue;
		kind_roll(q->limit, &state, q->now);
		if (kind_charge(q->limit->kind, q->limit, &state, &slice, &charge))
			return true;
	}
	return false;
}

/* Returns ticks in milliseconds, rounded up so that a time is past by then. */
static uint64_t ms_of(uint64_t ticks)
{
	const uint64_t per_ms = SL_TICKS_PER_SEC / 1000;

	return ticks / per_ms + !!(ticks % per_ms);
}

static void trial_run(const struct trial *q, struct limit_state *state)
{
	bool is_bucket = q->limit->kind == SL_TOKEN_BUCKET;
	bool is_blocked = block_holds(q->limit, &q->state, q->now);
	int64_t debt = is_bucket ? credit_span(q->now, q->state.empty_at) : 0;
	struct decision decision;
	uint64_t held = 0; /* in slices, beside the state */

	for (unsigned int i = 0; is_bucket && i < q->count; i++) {
		struct sl_slice slice = slice_of(q, i);

		if (slice.credit > 0 && credit_span(q->state.full_at, slice.at) >= 0)
			held += slice.credit;
	}
	decision = kind_decide(q->limit, &q->state, held, q->cost, q->now);
	state->reason = is_blocked	  ? SL_DROP_BLOCKED
			: trial_passes(q) ? SL_PASS_WITHIN
					  : kind_refusal(q->limit, q->cost);
	state->remaining = decision.remaining / q->times;
	/* of large packets, of other nodes, and of a limit divided by more nodes than its burst */
	if (debt > 0)
		state->owed = credit_units(q->limit, credit_min(debt, 2 * SL_BURST_TICKS_MAX));
	state->remaining_after_waiting = decision.remaining_then / q->times;
	state->full_in_ms = ms_of(decision.full_in);
	state->never = decision.retry_after == KIND_NEVER;
	if (is_blocked)
		state->blocked_ms = ms_of(credit_span(q->now, block_end(q->limit, &q->state)));
	if (state->reason == SL_PASS_WITHIN)
		state->remaining_after_waiting = state->remaining;
	else if (!state->never)
		state->retry_after_ms = ms_of(decision.retry_after) ?: 1;
}

int limit_state_read(const struct gate *gate, const struct source *source,
		     const struct sl_limit *limit, const struct packet_args *packet, uint64_t now,
		     struct limit_state *ret)
{
	const struct sl_prefix *address = limit->key_dst ? &packet->destination : &packet->source;
	const struct sl_match *match = &source->policy->match[limit->slot];
	struct trial q = {
		.limit = limit,
		.times = limit->shared ? gate_divided_by(gate, now) : 1,
		.buckets = source->buckets,
		.count = limit->apart ? 0 : source->count,
		.cpus = gate->machine.cpus,
	};
	/* a prefix of IPv6 has many keys if they are longer than /64 */
	bool is_part = prefix_is_ipv6(address) && address->bits < SL_FAMILY_BITS + 128;
	bool found;
	int err;

	*ret = (struct limit_state){
		.matches = match_limit(limit, match, &packet->facts, packet->egress),
		.known = is_part ? !limit->mask[1] : address->bits,
	};
	if (!ret->known)
		return 0;
	err = state_read(gate, source->table, limit, address, now, &q.state, &found, &ret->age);
	if (err)
		return err;
	ret->fresh = !found;
	q.cost = credit_multiply(credit_cost(limit, 1, packet->bytes), q.times);
	q.now = kind_now(limit->kind, &q.state, now);
	trial_run(&q, ret);
	return 0;
}

int source_states_read(const struct gate *gate, const struct source *source,
		       const struct packet_args *packet, struct limit_state ret[SL_LIMITS_MAX])
{
	uint64_t now = uptime_ticks();
	int err = 0;

	for (unsigned int i = 0; !err && i < source->limit_count; i++)
		err = limit_state_read(gate, source, &source->limits[i], packet, now, &ret[i]);
	return err;
}

/* The slices of the budget are charged like buckets that have one slice. */
int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret)
{
	uint32_t number = policy->newcomers_origin ?: SL_POLICY(policy_version_index(gate, policy));
	_cleanup_free_ struct sl_budget_slice *slices = calloc(gate->machine.cpus, sizeof(*slices));
	_cleanup_free_ struct sl_bucket *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	struct trial q = {
		.limit = &policy->newcomers,
		.state = gate->budgets[number],
		.cost = credit_cost(&policy->newcomers, 1, bytes),
		.times = 1,
		.buckets = cpus,
		.count = gate->machine.cpus,
		.cpus = gate->machine.cpus,
	};
	int err = -ENOMEM;

	if (slices && cpus)
		err = bpf_map_lookup_elem(gate->map[MAP_BUDGET_SLICES], &number, slices);
	if (err)
		return error_add(err, "map-read", NULL,
				 "cannot read the newcomers' budget of gate '%s': %s", gate->name,
				 why(err));
	/* a slice borrowed under another record is void, as in budget_charge() of bpf/charge.h */
	for (unsigned int cpu = 0; cpu < gate->machine.cpus; cpu++)
		if (slices[cpu].since == policy->newcomers_since)
			cpus[cpu].slice[policy->newcomers.slot] = slices[cpu].slice;
	q.now = kind_now(q.limit->kind, &q.state, now);
	*ret = (struct limit_state){.matches = true, .known = true};
	trial_run(&q, ret);
	if (ret->reason == SL_PASS_WITHIN)
		ret->reason = waits && credit_is_low(q.limit, &q.state, now) ? SL_DROP_OVER_BUDGET
									     : SL_PASS_NEWCOMER;
	else if (ret->reason == SL_DROP_OVER_LIMIT)
		ret->reason = SL_DROP_OVER_BUDGET;
	return 0;
}
