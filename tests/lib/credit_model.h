/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests and the fuzzer of include/credit.h share: a builder of limits, and a model of the
 * packet path (bpf/charge.h and bpf/ledger.h without maps).
 */
#ifndef SLUICE_TEST_CREDIT_MODEL_H
#define SLUICE_TEST_CREDIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include "bucket_model.h"
#include "kinds.h"

#define MODEL_CPUS    8
#define MODEL_TRIES   16	    /* LEDGER_TRIES in bpf/ledger.h */
#define MODEL_JIFFIES 4294892296ULL /* INITIAL_JIFFIES: where a kernel's count begins, HZ=250 */

/*
 * Fills in what follows from cost and burst. Purses only where one holds `worthwhile`: two packets;
 * not for a limit that blocks, or whose ledgers are not its buckets'.
 * skew: the most that a clock, or the count of jiffies, may lag behind another. A purse has to
 * be dead by jiffies64 before the ledger is born again by any clock: so its life is that much
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
	if (cpus && life && purses / cpus >= worthwhile && !limit->block && !limit->apart) {
		limit->refill = limit->burst - purses;
		limit->purse = purses / cpus;
		limit->life = life < 0xffffffffU ? life : 0xffffffffU;
	}
	limit->refuse_by_jiffy = limit->refill >= 2 * tick_length;
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
	bool bent;     /* a packet passed during a block, or was refused and prolonged it */
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
	model->ledger = credit_birth(limit, 0, model_clock(model, 0));
	model->reference = reference_full(limit, 0);
	if (limit->start_empty)
		model->reference.level = 0;
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

/* ledger_publish in bpf/ledger.h. */
static inline bool model_try(struct model *model, struct sl_purse *purse, __u64 cost, __u64 now,
			     __u64 jiffy, bool *passes)
{
	struct sl_limit *limit = &model->limit;
	struct sl_ledger seen = model->ledger, next = seen;

	*passes = kind_draw(
		SL_BUCKET, limit, &next, purse,
		&(struct draw){.cost = cost, .fill = limit->purse, .now = now, .jiffy = jiffy});
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

/* ledger_block in bpf/ledger.h. */
static inline void model_block(struct model *model, struct sl_purse *purse, __u64 now, __u64 jiffy)
{
	if (!model->limit.block)
		return;
	if (model->meanwhile)
		model->meanwhile(model);
	now = kind_now(SL_BUCKET, &model->ledger, now);
	if (block_holds(&model->limit, &model->ledger, now))
		return;
	model->ledger.blocked = block_next(&model->limit, &model->ledger, now);
	credit_refuse_block(purse, now, jiffy);
}

/* limit_ask in bpf/charge.h, for a ledger that exists. */
static inline bool model_ask(struct model *model, struct sl_purse *purse, __u64 cost, __u64 now,
			     __u64 jiffy)
{
	if (credit_must_wait(purse, cost, now)) {
		credit_refuse_jiffy(&model->limit, purse, jiffy);
		return false;
	}
	for (int i = 0; i < MODEL_TRIES; i++) {
		struct sl_purse copy = *purse;
		bool passes;

		if (model_try(model, &copy, cost, now, jiffy, &passes)) {
			*purse = copy;
			if (!passes)
				model_block(model, purse, now, jiffy);
			return passes;
		}
	}
	return false;
}

/* limit_charge in bpf/charge.h. A limit that is apart finds no purse, and has none afterwards. */
static inline bool model_charge(struct model *model, int cpu, __u64 cost, __u64 jiffy)
{
	struct sl_purse none = {0}, *purse = model->limit.apart ? &none : &model->purse[cpu];
	enum credit_answer answer = credit_spend(purse, cost, jiffy);

	if (answer != CREDIT_ASK)
		return answer == CREDIT_PASS;
	return model_ask(model, purse, cost, model_clock(model, cpu), jiffy);
}

/* How long a block still lasts, by a clock that does not lag; 0: there is none. */
static inline __u64 model_block_left(const struct model *model)
{
	__u64 now = model->epoch + (__u64)model->now;

	if (!block_holds(&model->limit, &model->ledger, now))
		return 0;
	return model->ledger.blocked - now;
}

/* The same, and checks the block in force: packets of other CPUs may come meanwhile. */
static inline bool model_judge(struct model *model, int cpu, __u64 cost, __u64 jiffy)
{
	true_time end = model->now + model_block_left(model);
	bool passes = model_charge(model, cpu, cost, jiffy);

	if (model->now < end && (passes || model->now + model_block_left(model) != end))
		model->bent = true;
	return passes;
}

/* policy_refund and ledger_refund in bpf/, for one limit. */
static inline void model_refund(struct model *model, int cpu, __u64 cost)
{
	if (model->limit.apart || !credit_give_back(&model->limit, &model->purse[cpu], cost))
		model->ledger.zero -= cost;
}

/*
 * What the ledger and all purses that are not void hold together, by a clock that does not lag. It
 * has to be one burst at most.
 */
static inline __s64 model_holds(struct model *model)
{
	__u64 now = model->epoch + (__u64)model->now, jiffy = model_jiffies(model);
	__s64 sum = credit_level(&model->limit, &model->ledger, now);
	bool rested = credit_rested(&model->limit, &model->ledger, now);

	for (int i = 0; i < MODEL_CPUS; i++) {
		const struct sl_purse *purse = &model->purse[i];
		bool is_void = rested || credit_span(model->ledger.born, purse->at) < 0;

		if (purse->credit > 0 && (!is_void || jiffy <= purse->until))
			sum += purse->credit;
	}
	return sum;
}

/* What frames cost with no rounding, in 1/65536 tick: not what credit_cost says. */
static inline __int128 model_exact_cost(const struct sl_limit *limit, __u32 packets, __u32 bytes)
{
	__int128 most = (__int128)SL_BURST_TICKS_MAX << 16;
	__int128 cost = (__int128)limit->cost * (limit->by_bytes ? bytes : packets);

	if (!limit->by_bytes)
		cost <<= 16;
	return cost < most ? cost : most;
}

/* Sends one frame. If it passes, the reference is charged, at the time when the verdict is out. */
static inline bool model_send(struct model *model, int cpu, __u32 packets, __u32 bytes)
{
	__u64 cost = credit_cost(&model->limit, packets, bytes);

	if (!model_judge(model, cpu, cost, model_jiffies(model)))
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

/* --- Several limits ------------------------------------------------------------------------- */

/* One source under a policy. Time, and the lags of clocks, are the same for all of its limits. */
struct model_policy {
	int limits;
	__u64 refunds; /* charges that were undone */
	struct model limit[SL_LIMITS_MAX];
};

static inline void policy_pass_time(struct model_policy *policy, __u64 ticks)
{
	for (int i = 0; i < policy->limits; i++)
		policy->limit[i].now += ticks;
}

/* The one count of ticks that every limit of a packet is asked with. */
static inline __u64 policy_jiffies(struct model_policy *policy)
{
	__u64 jiffy = model_jiffies(&policy->limit[0]);

	for (int i = 1; i < policy->limits; i++)
		policy->limit[i].jiffies = jiffy;
	return jiffy;
}

static inline __u64 policy_cost(const struct model_policy *policy, int i, __u32 packets,
				__u32 bytes)
{
	return credit_cost(&policy->limit[i].limit, packets, bytes);
}

/* As policy_refund in bpf/charge.h; other CPUs may act before. */
static inline void policy_refund(struct model_policy *policy, int cpu, __u32 packets, __u32 bytes,
				 __u32 charged)
{
	for (int i = 0; i < policy->limits; i++) {
		struct model *model = &policy->limit[i];

		if (!(charged >> i & 1))
			continue;
		if (model->meanwhile)
			model->meanwhile(model);
		model_refund(model, cpu, policy_cost(policy, i, packets, bytes));
		policy->refunds++;
	}
}

/*
 * As policy_charge in bpf/charge.h: whether the packet passes. matches: a bit for each limit that
 * is for it. ret_charged: likewise, those that were charged; only if it passes.
 */
static inline bool policy_judge(struct model_policy *policy, int cpu, __u32 packets, __u32 bytes,
				__u32 matches, __u32 *ret_charged)
{
	__u64 jiffy = policy_jiffies(policy);
	__u32 charged = 0;

	for (int i = 0; i < policy->limits; i++) {
		struct model *model = &policy->limit[i];

		if (!(matches >> i & 1))
			continue;
		if (model_judge(model, cpu, policy_cost(policy, i, packets, bytes), jiffy)) {
			charged |= 1U << i;
		} else if (!model->limit.observe) {
			policy_refund(policy, cpu, packets, bytes, charged);
			return false;
		}
	}
	*ret_charged = charged;
	return true;
}

/* Sends one frame. If it passes, the references of the limits that were charged are, too. */
static inline bool policy_send(struct model_policy *policy, int cpu, __u32 packets, __u32 bytes,
			       __u32 matches)
{
	__u32 charged;

	if (!policy_judge(policy, cpu, packets, bytes, matches, &charged))
		return false;
	for (int i = 0; i < policy->limits; i++) {
		struct model *model = &policy->limit[i];

		if (charged >> i & 1)
			reference_charge(&model->reference,
					 model_exact_cost(&model->limit, packets, bytes),
					 model->now);
	}
	return true;
}

#endif
