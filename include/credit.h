/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of a token bucket: pure functions without maps, helpers or clocks; time is an
 * argument. kinds.h puts it beside the other kinds of limit, behind one interface.
 *
 *   credit_spend       decides by a purse alone, without a clock
 *   credit_draw        charges a ledger and fills a purse, or refuses
 *   credit_level       what a ledger holds
 *   credit_cost        what a packet costs
 *   credit_give_back   undoes a charge
 *
 * A ledger is a token bucket that is told as one moment, `zero`: when it was empty. Its level is
 * the time since then, at most `burst`. A packet costs time and moves `zero` forward by its cost.
 * This is the virtual scheduling form of the Generic Cell Rate Algorithm (ITU-T I.371, annex A):
 * refill is lazy by construction, and no fraction is ever lost. A `zero` ahead of now is debt: the
 * level is negative, and nothing is drawn until the debt is paid.
 *
 * Purses. A CPU draws several packets' worth from the ledger into a purse of its own, and spends
 * that without touching shared memory. Let S be the most that all purses can hold together. Three
 * rules keep ledger and purses within one burst at all times, and give a rested source all of it:
 *
 *  1. The ledger refills to `refill` = burst - S at most, so that with full purses beside it the
 *     sum is one burst. It may hold more than that from its birth, or because purses gave back.
 *     That part is told from `born` (born - zero), can be spent, and does not refill.
 *  2. A purse is good for S, as a time, from when it was drawn. Then it goes back to the ledger.
 *  3. A ledger is whole when it had time to fill (burst since `zero`) and nothing was drawn from it
 *     for 2 S: S for every purse to end, S to refill what they may have spent at the last moment.
 *     It is born again then, and what older purses still hold is void.
 *
 * Large packets. A ledger in use refills to `refill` and no further, so a packet passes when the
 * ledger holds its cost or `refill`, whichever is less, and owes the rest. To wait for more would
 * stop a stream of merged packets that cost more than the burst. It would also let a trickle, which
 * keeps rule 3 from ever applying, starve a packet that costs more than `refill`. A source that
 * uses a part p of its rate leaves its ledger at `refill` for 1 - p of the time; a packet of any
 * cost passes then. A packet that costs more than `refill` is refused if it always comes right
 * behind a small one of its own source.
 *
 * The bound. Over any span of t, packets worth at most
 *
 *     max(burst, cost of the largest packet + S) + t
 *
 * pass, S being burst / 16, or 0 for a limit without purses. That is burst + t if no packet costs
 * more than `refill`.
 *
 * Proof. Let `held` be the level of the ledger and of all purses that are not void. The rules keep
 * held <= burst. Time raises it by no more than itself. A draw, a return and an expiry move credit
 * or lose it. A packet that passes lowers it by its cost, and a refund undoes that. So what passes
 * costs at most held(begin) - held(end) + t. No purse is negative, and a ledger only falls below 0
 * in a draw that costs more than `refill`, from `refill` at least: held(end) >= -(cost - refill).
 * Then burst + (cost - refill) = cost + S. Debt is paid before anything else is drawn, so debts
 * never add up, and the rate is exact in the long run. Rule 3 holds in debt too, because it needs
 * burst since `zero`. Clocks that differ add the most by which they do, once.
 *
 * Units. Time is in ticks (1/16 ns). Moments are compared by signed difference, so they may wrap.
 * Costs are rounded up, so rounding never admits too much. Spans and costs are at most
 * SL_BURST_TICKS_MAX, debts twice that.
 */
#ifndef SLUICE_CREDIT_H
#define SLUICE_CREDIT_H

#include "sluice.h"

/* Ticks from `then` to `now`: negative if `now` is earlier. */
static inline __s64 credit_span(__u64 then, __u64 now)
{
	return (__s64)(now - then);
}

static inline __s64 credit_min(__s64 a, __s64 b)
{
	return a < b ? a : b;
}

static inline __s64 credit_max(__s64 a, __s64 b)
{
	return a > b ? a : b;
}

/*
 * The later of two moments. A CPU whose clock is behind that of another draws at the moment of the
 * other, because what the ledger tells from that moment must not be told again from an earlier one.
 */
static inline __u64 credit_latest(__u64 a, __u64 b)
{
	return credit_span(a, b) > 0 ? b : a;
}

/*
 * What a frame costs under a limit, in ticks, rounded up. packets: 1 to 65535, more than 1 if the
 * kernel merged them; bytes: their length on the wire. Nothing wraps for the rates that the command
 * accepts: a packet costs less than 2^46, and a byte less than 2^43 before the shift. A merged
 * packet that would cost more than SL_BURST_TICKS_MAX, by a gso_size that no sender uses, costs
 * that.
 */
static inline __u64 credit_cost(const struct sl_limit *limit, __u32 packets, __u32 bytes)
{
	const __u64 fraction = (1ULL << SL_BYTE_COST_SHIFT) - 1;

	if (!limit->by_bytes)
		return credit_min(limit->cost * packets, SL_BURST_TICKS_MAX);
	return (limit->cost >> SL_BYTE_COST_SHIFT) * bytes +
	       (((limit->cost & fraction) * bytes + fraction) >> SL_BYTE_COST_SHIFT);
}

/* The cost of `count` packets at `cost` each, at most SL_BURST_TICKS_MAX. */
static inline __u64 credit_owed(__u64 cost, __u32 count)
{
	return count && cost > SL_BURST_TICKS_MAX / count ? SL_BURST_TICKS_MAX : cost * count;
}

/*
 * How often a packet is charged its cost under a shared limit: once, or as often as nodes share it,
 * so that each has a part. divide_at, nodes: of the gate.
 */
static inline __u32 credit_times(__u64 divide_at, __u32 nodes, __u64 now)
{
	return divide_at && credit_span(divide_at, now) >= 0 ? credit_max(1, nodes) : 1;
}

/* Converts ticks to packets or bytes, rounded down. ticks: at most 2 SL_BURST_TICKS_MAX. */
static inline __u64 credit_units(const struct sl_limit *limit, __u64 ticks)
{
	if (!limit->by_bytes)
		return ticks / limit->cost;
	return (ticks / limit->cost << SL_BYTE_COST_SHIFT) +
	       ((ticks % limit->cost << SL_BYTE_COST_SHIFT) / limit->cost);
}

/* What a ledger must hold so that a packet of this cost passes. The rest becomes debt. */
static inline __s64 credit_needed(const struct sl_limit *limit, __u64 cost)
{
	return credit_min(cost, limit->refill);
}

/* S: the most that all purses can hold together. As a time: how long a purse is good. */
static inline __u64 credit_purses(const struct sl_limit *limit)
{
	return limit->burst - limit->refill;
}

/* The moment from which a ledger is whole (rule 3), if nothing draws from it until then. */
static inline __u64 credit_whole_at(const struct sl_limit *limit, const struct sl_ledger *ledger)
{
	return credit_latest(ledger->zero + limit->burst, ledger->drawn + 2 * credit_purses(limit));
}

static inline bool credit_rested(const struct sl_limit *limit, const struct sl_ledger *ledger,
				 __u64 now)
{
	return credit_span(credit_whole_at(limit, ledger), now) >= 0;
}

/*
 * The level of a ledger, in ticks: at most burst; negative is debt. Time that runs backwards adds
 * nothing.
 *
 * born - zero can exceed burst only if a draw by another CPU, based on the birth before, raced this
 * birth. That happens only after a rest that is longer by S than the ledger took to fill, so the
 * excess is larger than any draw may take: then `born` is ignored, and only the refill counts.
 */
static inline __s64 credit_level(const struct sl_limit *limit, const struct sl_ledger *ledger,
				 __u64 now)
{
	__s64 refilled = credit_min(credit_span(ledger->zero, now), limit->refill);
	__s64 born_with = credit_span(ledger->zero, ledger->born);

	if (credit_rested(limit, ledger, now))
		return limit->burst;
	return born_with > (__s64)limit->burst ? refilled : credit_max(refilled, born_with);
}

/*
 * The moment at which a ledger lets a packet of this cost pass, if nothing draws from it until
 * then.
 */
static inline __u64 credit_ready_at(const struct sl_limit *limit, const struct sl_ledger *ledger,
				    __u64 cost)
{
	return ledger->zero + credit_needed(limit, cost);
}

/* A full ledger, which `forgive` makes too. */
static inline struct sl_ledger credit_full(const struct sl_limit *limit, __u64 now)
{
	return (struct sl_ledger){.zero = now - limit->burst, .born = now, .drawn = now};
}

/* The ledger of a new key. nodes: that share limits; 0 and 1: this one alone */
static inline struct sl_ledger credit_birth(const struct sl_limit *limit, __u32 nodes, __u64 now)
{
	struct sl_ledger ledger = credit_full(limit, now);

	if (limit->start_empty)
		ledger.zero = now;
	else if (limit->start_share && nodes > 1)
		ledger.zero = now - limit->burst / nodes;
	return ledger;
}

/*
 * Sets the ledger to a level. Above `refill` the level is told from `born` and does not refill
 * (rule 1).
 */
static inline void credit_set_level(const struct sl_limit *limit, struct sl_ledger *ledger,
				    __s64 level, __u64 now)
{
	ledger->zero = (level > (__s64)limit->refill ? ledger->born : now) - level;
	ledger->drawn = now;
}

/*
 * How much of the cost of earlier packets a ledger is charged: its level falls to
 * -SL_BURST_TICKS_MAX at most. owed: at most SL_BURST_TICKS_MAX.
 */
static inline __u64 credit_debit(const struct sl_ledger *ledger, __u64 owed, __u64 now)
{
	__s64 room = SL_BURST_TICKS_MAX - credit_span(now, ledger->zero);

	return credit_max(0, credit_min(owed, room));
}

/*
 * Empties a purse and returns the level of the ledger with what was left in it. A purse that was
 * drawn before the last birth of the ledger is void.
 */
static inline __s64 credit_take_back(const struct sl_limit *limit, const struct sl_ledger *ledger,
				     struct sl_purse *purse, __u64 now)
{
	__s64 level = credit_level(limit, ledger, now);
	__s64 credit = purse->credit;

	purse->credit = 0;
	if (credit <= 0 || credit_span(ledger->born, purse->at) < 0)
		return level;
	return credit_min(level + credit, limit->burst);
}

/*
 * `until` of a purse that remembers a refusal holds in its high bits how many packets it refused
 * since the ledger was asked, of a limit that is shared. jiffies64 needs 40 bits in 34 years of
 * 1,000 a second. More refusals than fit begin again from 0.
 */
#define CREDIT_JIFFY_BITS 40
#define CREDIT_JIFFY_MASK ((1ULL << CREDIT_JIFFY_BITS) - 1)

static inline __u32 credit_unasked(const struct sl_purse *purse)
{
	return purse->until >> CREDIT_JIFFY_BITS;
}

static inline void credit_count_unasked(struct sl_purse *purse, __u32 packets)
{
	purse->until += (__u64)packets << CREDIT_JIFFY_BITS;
}

enum credit_answer {
	CREDIT_PASS,
	CREDIT_REFUSE,
	CREDIT_ASK, /* the purse cannot tell: the ledger decides */
};

/* Whether the ledger refused a packet that needed no more credit than one of this cost. */
static inline bool credit_refused(const struct sl_purse *purse, __u64 cost)
{
	return purse->credit < 0 && (__s64)cost >= -purse->credit;
}

/* Spends `cost` from a purse, without a clock: jiffies64 is all but free to read. */
static inline enum credit_answer credit_spend(struct sl_purse *purse, __u64 cost, __u64 jiffy)
{
	if (jiffy > purse->until)
		return CREDIT_ASK;
	if (purse->credit >= (__s64)cost) {
		purse->credit -= cost;
		return CREDIT_PASS;
	}
	/* looked at again here, as a count in `until` makes any jiffy earlier */
	return credit_refused(purse, cost) && jiffy <= (purse->until & CREDIT_JIFFY_MASK)
		       ? CREDIT_REFUSE
		       : CREDIT_ASK;
}

/* Whether the refusal in a purse still holds for a packet of this cost, by the clock. */
static inline bool credit_must_wait(const struct sl_purse *purse, __u64 cost, __u64 now)
{
	return credit_refused(purse, cost) && credit_span(now, purse->at) > 0;
}

/* Lets a refusal hold for the rest of this jiffy, without reading clock or ledger. */
static inline void credit_refuse_jiffy(const struct sl_limit *limit, struct sl_purse *purse,
				       __u64 jiffy)
{
	purse->until = limit->refuse_by_jiffy ? jiffy : 0;
}

/* A block refuses every cost. It holds for one jiffy at a time, because `forgive` may end it. */
static inline void credit_refuse_block(struct sl_purse *purse, __u64 now, __u64 jiffy)
{
	*purse = (struct sl_purse){.credit = -1, .at = now, .until = jiffy};
}

/*
 * Gives a cost back to the purse that it was spent from. False: the purse cannot take it, so the
 * ledger must.
 */
static inline bool credit_give_back(const struct sl_limit *limit, struct sl_purse *purse,
				    __u64 cost)
{
	if (purse->credit < 0 || purse->credit + cost > limit->purse)
		return false;
	purse->credit += cost;
	return true;
}

/*
 * Charges `cost` to a ledger and draws a purse of at most `fill`, or refuses. `ledger` and `purse`
 * are copies, which the caller publishes: the ledger by compare-and-swap on `zero`. What is left in
 * the purse goes back first. On refusal (false) the purse tells what the ledger needs to hold, and
 * when it will if nothing draws from it. fill: limit->purse, or 0; now, jiffy: the moment of the
 * packet.
 */
static inline bool credit_draw(const struct sl_limit *limit, struct sl_ledger *ledger,
			       struct sl_purse *purse, __u64 fill, __u64 cost, __u64 now,
			       __u64 jiffy)
{
	__s64 level;
	bool has_credit = purse->credit > 0;

	now = credit_latest(now, credit_latest(ledger->born, ledger->drawn));
	if (credit_rested(limit, ledger, now))
		ledger->born = now;
	level = credit_take_back(limit, ledger, purse, now);

	if (level < credit_needed(limit, cost)) {
		if (has_credit)
			credit_set_level(limit, ledger, level, now);
		purse->credit = -credit_needed(limit, cost);
		purse->at = credit_ready_at(limit, ledger, cost);
		credit_refuse_jiffy(limit, purse, jiffy);
		return false;
	}
	level -= cost;
	fill = credit_max(0, credit_min(level, fill));
	credit_set_level(limit, ledger, level - fill, now);
	purse->credit = fill;
	purse->at = now;
	purse->until = jiffy + limit->life - 1;
	return true;
}

/*
 * Fits the slices of a bucket to a policy. Slices belong to the limits of one policy: under another
 * policy they are void, and so is the slice of a limit that has another state now. After any change
 * of the policy the slices end, so that their credit goes back to the state at the next packet, and
 * refusals are forgotten.
 */
static inline void purses_fit(struct sl_bucket *bucket, const struct sl_policy *policy,
			      __u32 number)
{
	if (bucket->policy == number && bucket->policy_since == policy->since)
		return;
	for (int i = 0; i < SL_LIMITS_MAX; i++) {
		struct sl_purse *slice = &bucket->slice[i];

		if (bucket->policy != number || slice->credit < 0 ||
		    (__s32)(policy->changed[i] - bucket->policy_since) > 0)
			slice->credit = 0;
		slice->until = 0;
		bucket->state[i] = 0;
	}
	bucket->policy = number;
	bucket->policy_since = policy->since;
}

#endif
