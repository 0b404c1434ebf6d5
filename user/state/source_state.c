// SPDX-License-Identifier: GPL-2.0
#include "state/source_state.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "gate/records.h"
#include "rules/prefix.h"
#include "state/states.h"
#include "ways.h"

/* --- Sources and units ---------------------------------------------------------------------- */

#define TICKS_PER_MS (SL_TICKS_PER_SEC / 1000)

const struct sl_limit *source_limits(const struct source *source, unsigned int *ret_count)
{
	enum sl_family family = prefix_is_ipv4(&source->prefix) ? SL_IPV4 : SL_IPV6;

	*ret_count = source->policy ? source->policy->limits[family] : 0;
	return source->policy ? source->policy->limit[family] : NULL;
}

struct limit source_limit(const struct source *source, const struct sl_limit *limit)
{
	return (struct limit){
		.spec = source->policy->spec[limit->slot],
		.match = source->policy->match[limit->slot],
	};
}

const char *source_label(const struct source *source, const struct sl_limit *limit,
			 char text[LIMIT_LABEL])
{
	return limit_label(&source->policy->spec[limit->slot], text);
}

struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes)
{
	return (struct packet_args){
		.source = source->prefix,
		.facts.facts = SL_FACT_ANY,
		.bytes = bytes,
	};
}

/* Whether the address determines the key: a /64 has many keys under a limit with longer ones. */
static bool key_is_known(const struct sl_limit *limit, const struct sl_prefix *address)
{
	if (prefix_is_ipv6(address) && address->bits < SL_FAMILY_BITS + 128)
		return !limit->mask[1];
	return address->bits;
}

uint64_t burst_units(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return limit->most;
	/* of shape, as kind_decide() tells: the last packet may depart at the horizon itself */
	return credit_units(limit, limit->burst) + (limit->kind == SL_SHAPE);
}

/* --- State of one limit --------------------------------------------------------------------- */

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
	const int64_t most = SL_BURST_TICKS_MAX;
	struct sl_slice slice = {0};

	if (index < q->count)
		slice = q->buckets[index].slice[q->limit->slot];
	if (slice.credit > most || slice.credit < -most)
		slice.credit = 0;
	return slice;
}

/* Whether the packet would pass with that slice, as limit_ask() in bpf/charge.h decides. */
static bool slice_passes(const struct trial *q, unsigned int index)
{
	struct sl_slice slice = slice_of(q, index);
	struct sl_state state = q->state;

	if (credit_must_wait(&slice, q->cost, q->now))
		return false;
	kind_roll(q->limit, &state, q->now);
	return kind_charge(q->limit->kind, q->limit, &state, &slice,
			   &(struct kind_charge){.cost = q->cost, .now = q->now});
}

/* What slices hold of a bucket beside its state, in ticks. */
static uint64_t trial_held(const struct trial *q)
{
	uint64_t held = 0;

	for (unsigned int i = 0; q->limit->kind == SL_TOKEN_BUCKET && i < q->count; i++) {
		struct sl_slice slice = slice_of(q, i);

		if (slice.credit > 0 && credit_span(q->state.full_at, slice.at) >= 0)
			held += slice.credit;
	}
	return held;
}

/*
 * A large packet leaves a debt, and so do other nodes with which the limit is shared, and a packet
 * of a limit that is divided by more nodes than its burst has packets. The state has their sum.
 */
static uint64_t trial_owed(const struct trial *q)
{
	int64_t debt =
		q->limit->kind == SL_TOKEN_BUCKET ? credit_span(q->now, q->state.empty_at) : 0;

	return debt > 0 ? credit_units(q->limit, credit_min(debt, 2 * SL_BURST_TICKS_MAX)) : 0;
}

static enum sl_reason trial_reason(const struct trial *q)
{
	if (block_holds(q->limit, &q->state, q->now))
		return SL_DROP_BLOCKED;
	for (unsigned int i = 0; i < q->cpus && i <= q->count; i++)
		if (slice_passes(q, i))
			return SL_PASS_WITHIN;
	return kind_refusal(q->limit, q->cost);
}

/* The time until a moment in milliseconds, rounded up so that it is past by then. */
static uint64_t ms_of(uint64_t ticks)
{
	return ticks / TICKS_PER_MS + !!(ticks % TICKS_PER_MS);
}

static void trial_run(const struct trial *q, struct limit_state *state)
{
	struct decision decision = kind_decide(q->limit, &q->state, trial_held(q), q->cost, q->now);

	state->reason = trial_reason(q);
	state->remaining = decision.remaining / q->times;
	state->owed = trial_owed(q);
	state->remaining_after_waiting = decision.remaining_then / q->times;
	state->full_in_ms = ms_of(decision.full_in);
	state->never = decision.retry_after == KIND_NEVER;
	if (block_holds(q->limit, &q->state, q->now))
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
	struct trial q = {.limit = limit, .times = 1, .cpus = gate->machine.cpus};
	struct limit_state state = {.matches =
					    match_limit(limit, &source->policy->match[limit->slot],
							&packet->facts, packet->egress)};
	int status = OK;
	bool found;

	state.known = key_is_known(limit, address);
	if (state.known)
		status = state_read(gate, source->table, limit, address, now, &q.state, &found,
				    &state.age);
	if (status)
		return status;
	if (state.known) {
		state.fresh = !found;
		if (limit->shared)
			q.times = gate_divided_by(gate, now);
		q.cost = credit_multiply(credit_cost(limit, 1, packet->bytes), q.times);
		q.now = kind_now(limit->kind, &q.state, now);
		q.buckets = source->buckets;
		q.count = limit->apart ? 0 : source->count;
		trial_run(&q, &state);
	}
	*ret = state;
	return OK;
}

/* --- The newcomers' budget ------------------------------------------------------------------ */

/*
 * Reads each CPU's slice of the budget, as bucket entries with one slice. A slice drawn under
 * another record is void, as in budget_charge() of bpf/budget.h. NULL and errno: reading failed.
 */
static struct sl_bucket *budget_slices_read(const struct gate *gate, const struct sl_policy *policy,
					    uint32_t number)
{
	struct sl_budget_slice *budget_slices = calloc(gate->machine.cpus, sizeof(*budget_slices));
	struct sl_bucket *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	int err = -ENOMEM;

	if (budget_slices && cpus)
		err = bpf_map_lookup_elem(gate->map[MAP_BUDGET_SLICES], &number, budget_slices);
	for (unsigned int cpu = 0; !err && cpu < gate->machine.cpus; cpu++)
		if (budget_slices[cpu].since == policy->newcomers_since)
			cpus[cpu].slice[policy->newcomers.slot] = budget_slices[cpu].slice;
	free(budget_slices);
	if (!err)
		return cpus;
	free(cpus);
	errno = -err;
	return NULL;
}

int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret)
{
	uint32_t number = policy->newcomers_origin ?: SL_POLICY(record_number(gate, policy));
	struct sl_bucket *cpus = budget_slices_read(gate, policy, number);
	struct trial q = {
		.limit = &policy->newcomers,
		.state = gate->budgets[number],
		.cost = credit_cost(&policy->newcomers, 1, bytes),
		.times = 1,
		.buckets = cpus,
		.count = gate->machine.cpus,
		.cpus = gate->machine.cpus,
	};
	struct limit_state state = {.matches = true, .known = true};

	if (!cpus)
		return failure("cannot read the newcomers' budget of gate '%s': %s", gate->name,
			       why(errno));
	q.now = kind_now(q.limit->kind, &q.state, now);
	trial_run(&q, &state);
	if (state.reason == SL_PASS_WITHIN)
		state.reason = waits && credit_is_low(q.limit, &q.state, now) ? SL_DROP_OVER_BUDGET
									      : SL_PASS_NEWCOMER;
	else if (state.reason == SL_DROP_OVER_LIMIT)
		state.reason = SL_DROP_OVER_BUDGET;
	free(cpus);
	*ret = state;
	return OK;
}
