/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests and the fuzzer of include/credit.h share: a builder of limits, a model of the
 * packet path (bpf/bucket.h and bpf/ledger.h without maps), and a reference bucket that knows
 * nothing of ledgers and purses.
 */
#ifndef SLUICE_TEST_CREDIT_MODEL_H
#define SLUICE_TEST_CREDIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include "sluice.h"
#include "credit.h"

#define MODEL_CPUS    8
#define MODEL_TRIES   16	    /* LEDGER_TRIES in bpf/ledger.h */
#define MODEL_JIFFIES 4294892296ULL /* INITIAL_JIFFIES: where a kernel's count begins, HZ=250 */

/* Time as it really is: it neither wraps nor runs backwards, and begins at 0. */
typedef __int128 true_time;

/*
 * A plain token bucket, in 1/65536 tick, told as a level and not as a moment. It is the exact upper
 * envelope of promise 1: for all spans [s, t], admitted <= burst + (t - s), if and only if this
 * bucket, charged with each admitted packet, never falls below zero.
 */
struct reference {
	__int128 burst;
	__int128 level;
	__int128 lowest; /* below zero: the promise is broken, by this much */
	true_time at;
};

static inline struct reference reference_full(__u64 burst_ticks, true_time now)
{
	__int128 burst = (__int128)burst_ticks << 16;

	return (struct reference){.burst = burst, .level = burst, .at = now};
}

static inline void reference_charge(struct reference *reference, __int128 cost, true_time now)
{
	reference->level += (now - reference->at) << 16;
	reference->at = now;
	if (reference->level > reference->burst)
		reference->level = reference->burst;
	reference->level -= cost;
	if (reference->level < reference->lowest)
		reference->lowest = reference->level;
}

/*
 * Fills in what follows from cost and burst. Purses only where one holds `worthwhile`: two packets.
 * skew: the most that a clock, or the count of kernel ticks, may lag behind another. A purse has to
 * be dead by the tick count before the ledger is born again by any clock: so its life is that much
 * shorter.
 */
static inline void model_shape(struct sl_limit *limit, __u64 worthwhile, __u32 cpus,
			       __u64 tick_length, __u64 skew)
{
	__u64 purses = limit->burst / 16;
	__u64 life = purses > skew ? (purses - skew) / tick_length : 0;

	limit->refill = limit->burst;
	limit->purse = 0;
	limit->life = 1;
	if (cpus && life && purses / cpus >= worthwhile) {
		limit->refill = limit->burst - purses;
		limit->purse = purses / cpus;
		limit->life = life < 0xffffffffU ? life : 0xffffffffU;
	}
	limit->refuse_by_tick = limit->refill >= 2 * tick_length;
}

/* A packet limit. cpus: 0 for no purses. */
static inline struct sl_limit model_limit(__u64 cost, __u64 burst, __u32 cpus, __u64 tick_length)
{
	struct sl_limit limit = {.cost = cost, .burst = burst};

	model_shape(&limit, 2 * cost, cpus, tick_length, 0);
	return limit;
}

static inline __u64 model_byte_cost(__u64 bits_per_second)
{
	__int128 second = (__int128)SL_TICKS_PER_SEC << SL_BYTE_COST_SHIFT;

	return (8 * second + bits_per_second - 1) / bits_per_second;
}

static inline struct sl_limit model_byte_limit(__u64 bits_per_second, __u64 burst, __u32 cpus,
					       __u64 tick_length)
{
	struct sl_limit limit = {
		.cost = model_byte_cost(bits_per_second), .burst = burst, .by_bytes = 1};

	model_shape(&limit, (limit.cost * 3000) >> SL_BYTE_COST_SHIFT, cpus, tick_length, 0);
	return limit;
}

/* One source under one limit: its ledger, and on each CPU its purse and that CPU's clock. */
struct model {
	struct sl_limit limit;
	struct sl_ledger ledger;
	struct sl_purse purse[MODEL_CPUS];
	__u64 lag[MODEL_CPUS]; /* how far that CPU's clock is behind */
	__u64 epoch;	       /* what a clock without lag shows at time 0 */
	__u64 tick_length;
	__u64 tick_late; /* how late the kernel counts its ticks */
	__u64 jiffies;	 /* the last count seen: it never goes back */
	true_time now;
	struct reference reference;
	/* Called where another CPU may act in the middle of a draw; may be NULL. */
	void (*meanwhile)(struct model *model);
	void *context; /* for `meanwhile` */
};

static inline __u64 model_clock(const struct model *model, int cpu)
{
	return model->epoch + (__u64)model->now - model->lag[cpu];
}

static inline __u64 model_jiffies(struct model *model)
{
	true_time counted = model->now - model->tick_late;
	__u64 jiffies = MODEL_JIFFIES;

	if (counted > 0)
		jiffies += (__u64)(counted / model->tick_length);
	if (jiffies > model->jiffies)
		model->jiffies = jiffies;
	return model->jiffies;
}

/* A source that has just come: its ledger is fresh. Set lags afterwards. */
static inline void model_begin(struct model *model, const struct sl_limit *limit, __u64 tick_length,
			       __u64 epoch)
{
	*model = (struct model){.limit = *limit, .tick_length = tick_length, .epoch = epoch};
	model->ledger = credit_birth(limit, model_clock(model, 0));
	model->reference = reference_full(limit->burst, 0);
}

/* Empties the ledger and all purses. */
static inline void model_drain(struct model *model)
{
	__u64 now = model_clock(model, 0);

	model->ledger = (struct sl_ledger){.zero = now, .born = now, .drawn = now};
	for (int i = 0; i < MODEL_CPUS; i++)
		model->purse[i] = (struct sl_purse){0};
	reference_charge(&model->reference, 0, model->now);
	model->reference.level = 0;
}

/* ledger_try in bpf/ledger.h. */
static inline bool model_try(struct model *model, struct sl_purse *purse, __u64 cost, __u64 now,
			     __u64 tick, bool *passes)
{
	struct sl_limit *limit = &model->limit;
	struct sl_ledger seen = model->ledger, next = seen;

	*passes = credit_draw(limit, &next, purse, limit->purse, cost, now, tick);
	if (model->meanwhile)
		model->meanwhile(model);
	/* forward only, as moment_advance in bpf/ledger.h */
	model->ledger.born = credit_latest(model->ledger.born, next.born);
	model->ledger.drawn = credit_latest(model->ledger.drawn, next.drawn);
	if (next.zero == seen.zero)
		return true;
	if (model->meanwhile)
		model->meanwhile(model);
	if (model->ledger.zero != seen.zero)
		return false;
	model->ledger.zero = next.zero;
	return true;
}

/* bucket_charge, bucket_ask and ledger_charge, for a bucket and a ledger that exist. */
static inline bool model_judge(struct model *model, int cpu, __u64 cost)
{
	struct sl_purse *purse = &model->purse[cpu];
	__u64 tick = model_jiffies(model);
	enum credit_answer answer = credit_spend(purse, cost, tick);
	__u64 now = model_clock(model, cpu);

	if (answer != CREDIT_ASK)
		return answer == CREDIT_PASS;
	if (cost > model->limit.burst)
		return false;
	if (credit_must_wait(purse, cost, now)) {
		credit_refuse_tick(&model->limit, purse, tick);
		return false;
	}
	for (int i = 0; i < MODEL_TRIES; i++) {
		struct sl_purse copy = *purse;
		bool passes;

		if (model_try(model, &copy, cost, now, tick, &passes)) {
			*purse = copy;
			return passes;
		}
	}
	return false;
}

/* What frames cost with no rounding, in 1/65536 tick: not what credit_cost says. */
static inline __int128 model_exact_cost(const struct sl_limit *limit, __u32 packets, __u32 bytes)
{
	if (limit->by_bytes)
		return (__int128)limit->cost * bytes;
	return ((__int128)limit->cost * packets) << 16;
}

/* Sends one frame. If it passes, the reference is charged, at the time when the verdict is out. */
static inline bool model_send(struct model *model, int cpu, __u32 packets, __u32 bytes)
{
	__u64 cost = credit_cost(&model->limit, packets, bytes);

	if (!model_judge(model, cpu, cost))
		return false;
	reference_charge(&model->reference, model_exact_cost(&model->limit, packets, bytes),
			 model->now);
	return true;
}

/* Sends up to `count` single packets at once; how many passed? */
static inline __u64 model_burst(struct model *model, int cpu, __u64 count)
{
	__u64 passed = 0;

	while (count--)
		passed += model_send(model, cpu, 1, 60);
	return passed;
}

/* How far promise 1 was overstepped, in ticks, rounded up; 0 if it holds. */
static inline __int128 model_excess(const struct model *model)
{
	return (-model->reference.lowest + 65535) >> 16;
}

#endif
