// SPDX-License-Identifier: GPL-2.0
#include "state/source_state.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "kinds.h"
#include "ledger_key.h"
#include "rules/prefix.h"

/* --- Ledgers -------------------------------------------------------------------------------- */

/* The number of tries. Each failure means that a packet made the ledger first. */
#define FILL_TRIES 64

/* The map and the key of a ledger. */
struct place {
	int fd;
	union ledger_key key;
};

static struct place ledger_place(const struct gate *gate, const struct sl_limit *limit,
				 const struct sl_prefix *address)
{
	bool ipv4 = prefix_is_ipv4(address);
	struct place place = {.fd = gate->map[ipv4 ? MAP_LEDGERS4 : MAP_LEDGERS6]};
	__u64 addr[2];

	memcpy(addr, address->addr, sizeof(addr));
	ledger_key_make(limit, addr, ipv4, &place.key);
	return place;
}

enum status ledger_read(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address, uint64_t now, struct sl_ledger *ret,
			bool *ret_found)
{
	struct place place = ledger_place(gate, limit, address);
	struct sl_ledger ledger = kind_birth(limit->kind, limit, now);
	int err = bpf_map_lookup_elem(place.fd, &place.key, &ledger);

	if (err && err != -ENOENT)
		return failure("cannot read a ledger of gate '%s': %s", gate->name, why(err));
	*ret = ledger;
	*ret_found = !err;
	return OK;
}

/*
 * Deletes and inserts: an update would take a free node first, and so could evict another source.
 * Inserting may fail at any time, while a packet works on the same part of the map.
 */
enum status ledger_fill(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address)
{
	struct place place = ledger_place(gate, limit, address);
	int err = -EEXIST;

	for (int i = 0; err && i < FILL_TRIES; i++) {
		struct sl_ledger full;

		err = bpf_map_delete_elem(place.fd, &place.key);
		if (err && err != -ENOENT)
			continue;
		full = kind_full(limit, uptime_ticks());
		err = bpf_map_update_elem(place.fd, &place.key, &full, BPF_NOEXIST);
	}
	if (err == -EEXIST)
		return failure(
			"cannot fill a bucket of gate '%s': its source sends too fast: try again",
			gate->name);
	return err ? failure("cannot fill a bucket of gate '%s': %s", gate->name, why(err)) : OK;
}

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

/* A trial charge of a packet's cost to copies of a ledger and of its purses. */
struct trial {
	const struct sl_limit *limit;
	struct sl_ledger ledger;
	uint64_t cost;
	uint64_t now;
	const struct sl_bucket *cpus; /* NULL: no CPU has a purse of this ledger */
	unsigned int count;
};

static struct sl_purse purse_of(const struct trial *q, unsigned int cpu)
{
	return q->cpus ? q->cpus[cpu].purse[q->limit->slot] : (struct sl_purse){0};
}

/* Whether the packet would pass on that CPU, as limit_ask() in bpf/charge.h decides. */
static bool cpu_passes(const struct trial *q, unsigned int cpu)
{
	struct sl_purse purse = purse_of(q, cpu);
	struct sl_ledger ledger = q->ledger;

	if (credit_must_wait(&purse, q->cost, q->now))
		return false;
	kind_roll(q->limit, &ledger, q->now);
	return kind_draw(q->limit->kind, q->limit, &ledger, &purse,
			 &(struct draw){.cost = q->cost, .now = q->now});
}

/* What purses hold of a bucket beside its ledger, in ticks. */
static uint64_t trial_held(const struct trial *q)
{
	uint64_t held = 0;

	for (unsigned int cpu = 0; q->limit->kind == SL_BUCKET && cpu < q->count; cpu++) {
		struct sl_purse purse = purse_of(q, cpu);

		if (purse.credit > 0 && credit_span(q->ledger.born, purse.at) >= 0)
			held += purse.credit;
	}
	return held;
}

static enum sl_reason trial_reason(const struct trial *q)
{
	if (block_holds(q->limit, &q->ledger, q->now))
		return SL_DROP_BLOCKED;
	for (unsigned int cpu = 0; cpu < q->count; cpu++)
		if (cpu_passes(q, cpu))
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
	struct decision decision =
		kind_decide(q->limit, &q->ledger, trial_held(q), q->cost, q->now);

	state->reason = trial_reason(q);
	state->remaining = decision.remaining;
	state->remaining_after_waiting = decision.remaining_then;
	state->full_in_ms = ms_of(decision.full_in);
	state->never = decision.retry_after == KIND_NEVER;
	if (block_holds(q->limit, &q->ledger, q->now))
		state->blocked_ms = ms_of(credit_span(q->now, block_end(q->limit, &q->ledger)));
	if (state->reason == SL_PASS_WITHIN)
		state->remaining_after_waiting = decision.remaining;
	else if (!state->never)
		state->retry_after_ms = ms_of(decision.retry_after) ?: 1;
}

enum status limit_state_read(const struct gate *gate, const struct source *source,
			     const struct sl_limit *limit, const struct packet_args *packet,
			     uint64_t now, struct limit_state *ret)
{
	const struct sl_prefix *address = limit->key_dst ? &packet->destination : &packet->source;
	struct trial q = {.limit = limit, .count = gate->machine.cpus};
	struct limit_state state = {.matches =
					    match_limit(limit, &source->policy->match[limit->slot],
							&packet->facts, packet->egress)};
	enum status status = OK;
	bool found;

	state.known = key_is_known(limit, address);
	if (state.known)
		status = ledger_read(gate, limit, address, now, &q.ledger, &found);
	if (status)
		return status;
	if (state.known) {
		state.fresh = !found;
		q.cost = credit_cost(limit, 1, packet->bytes);
		q.now = kind_now(limit->kind, &q.ledger, now);
		q.cpus = limit->apart ? NULL : source->cpus;
		trial_run(&q, &state);
	}
	*ret = state;
	return OK;
}

/* --- The newcomers' budget ------------------------------------------------------------------ */

/*
 * Reads each CPU's purse of the budget, as bucket entries with one purse. A purse drawn under
 * another record is void, as in budget_charge() of bpf/budget.h. NULL and errno: reading failed.
 */
static struct sl_bucket *allowances_read(const struct gate *gate, const struct sl_policy *policy,
					 uint32_t number)
{
	struct sl_allowance *allowances = calloc(gate->machine.cpus, sizeof(*allowances));
	struct sl_bucket *cpus = calloc(gate->machine.cpus, sizeof(*cpus));
	int err = -ENOMEM;

	if (allowances && cpus)
		err = bpf_map_lookup_elem(gate->map[MAP_ALLOWANCES], &number, allowances);
	for (unsigned int cpu = 0; !err && cpu < gate->machine.cpus; cpu++)
		if (allowances[cpu].since == policy->newcomers_since)
			cpus[cpu].purse[policy->newcomers.slot] = allowances[cpu].purse;
	free(allowances);
	if (!err)
		return cpus;
	free(cpus);
	errno = -err;
	return NULL;
}

enum status budget_state_read(const struct gate *gate, const struct sl_policy *policy,
			      unsigned int bytes, uint64_t now, struct limit_state *ret)
{
	uint32_t number = policy->newcomers_home ?: SL_POLICY(policy - gate->policies);
	struct sl_bucket *cpus = allowances_read(gate, policy, number);
	struct trial q = {
		.limit = &policy->newcomers,
		.ledger = gate->budgets[number],
		.cost = credit_cost(&policy->newcomers, 1, bytes),
		.cpus = cpus,
		.count = gate->machine.cpus,
	};
	struct limit_state state = {.matches = true, .known = true};

	if (!cpus)
		return failure("cannot read the newcomers' budget of gate '%s': %s", gate->name,
			       why(errno));
	q.now = kind_now(q.limit->kind, &q.ledger, now);
	trial_run(&q, &state);
	if (state.reason == SL_PASS_WITHIN)
		state.reason = SL_PASS_NEWCOMER;
	else if (state.reason == SL_DROP_OVER_LIMIT)
		state.reason = SL_DROP_OVER_BUDGET;
	free(cpus);
	*ret = state;
	return OK;
}
