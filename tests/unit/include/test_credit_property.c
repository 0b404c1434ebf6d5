// SPDX-License-Identifier: GPL-2.0
/*
 * Promise 1 on random sequences: any limits, any number of CPUs, clocks that lag, purses that get
 * lost, draws that collide, charges that are undone. The judge is the reference bucket of
 * credit_model.h, which is charged with what passes and with nothing else.
 *
 * On failure the seed and the number of the run are printed; each run has its own seed, so one run
 * alone repeats it: test_credit_property SEED.
 */
#include "test.h"
#include "credit_model.h"

#define SEED	   20240607ULL
#define RUNS	   6000
#define STEPS	   250
#define SALVO	   48
#define LONG_RUNS  80
#define LONG_STEPS 6000

/* What a test is about. */
struct kind {
	int limits; /* at most */
	bool lags, collides;
	bool exact; /* limits without purses, clocks without lag, ticks of no length */
};

struct source {
	struct model_policy policy;
	uint64_t seed;
	uint64_t random; /* state of splitmix64 */
	uint64_t skew;	 /* the most that a clock, jiffies64 and a packet, together, lag */
	uint64_t delay;	 /* the most that a packet may take: other CPUs' packets come in between */
	uint64_t delayed;
	uint64_t tick_length;
	int cpus;
	int busy; /* the CPU in the middle of a draw */
	uint64_t passed, refused;
};

static uint64_t first_seed = SEED;
static bool only_one;

/* splitmix64 (Steele, Lea, Flood 2014): of any seed */
static uint64_t draw(struct source *source)
{
	uint64_t z = source->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 0 to bound - 1 */
static uint64_t draw_below(struct source *source, uint64_t bound)
{
	return draw(source) % bound;
}

static bool one_in(struct source *source, uint64_t n)
{
	return !draw_below(source, n);
}

/* 1 to 2^bits: every order of magnitude as likely as every other. */
static uint64_t draw_scale(struct source *source, int bits)
{
	uint64_t top = 1ULL << draw_below(source, bits + 1);

	return top - draw_below(source, (top + 1) / 2);
}

static uint64_t draw_epoch(struct source *source)
{
	static const uint64_t around[] = {0, 1ULL << 32, 1ULL << 60, 1ULL << 63};

	if (one_in(source, 3))
		return draw(source);
	return around[draw_below(source, 4)] + 1000 - draw_scale(source, 50);
}

/* What a usual packet costs. */
static uint64_t packet_cost(const struct sl_limit *limit)
{
	return limit->by_bytes ? (limit->cost * 1514 >> SL_BYTE_COST_SHIFT) + 1 : limit->cost;
}

static struct sl_limit draw_limit(struct source *source)
{
	struct sl_limit limit = {.by_bytes = one_in(source, 3)};
	uint64_t packet, packets = draw_scale(source, 13);

	limit.cost = draw_scale(source, limit.by_bytes ? 43 : 40);
	packet = packet_cost(&limit);
	limit.burst = packet * packets + draw_below(source, packet);
	return limit;
}

/* A limit in some proportion to the first one: else one of them would never refuse. */
static struct sl_limit draw_limit_beside(struct source *source, const struct sl_limit *first)
{
	struct sl_limit limit = {.by_bytes = one_in(source, 3)};
	uint64_t packet =
		(packet_cost(first) << draw_below(source, 4) >> draw_below(source, 4)) + 1;

	limit.cost = packet;
	if (limit.by_bytes) {
		__int128 scaled = ((__int128)packet << SL_BYTE_COST_SHIFT) / 1514 + 1;

		/* as in draw_limit: the longest frame's cost fits 64 bits */
		limit.cost = scaled < 1LL << 43 ? scaled : 1LL << 43;
	}
	packet = packet_cost(&limit);
	limit.burst = packet * draw_scale(source, 11) + draw_below(source, packet);
	return limit;
}

/* What else a limit may be, where there are several. */
static void draw_manner(struct source *source, struct sl_limit *limit)
{
	switch (draw_below(source, 8)) {
	case 0:
		limit->observe = 1;
		break;
	case 1:
	case 2:
		limit->block = draw_scale(source, 40) % (2 * limit->burst) + 1;
		break;
	}
	limit->apart = one_in(source, 6);
	limit->start_empty = one_in(source, 6);
}

static void draw_tick_length(struct source *source, const struct sl_limit *limit)
{
	uint64_t purses = limit->burst / 16;

	/* Often the life of a purse is all that it may be: that is where mistakes would show. */
	source->tick_length = one_in(source, 2) ? purses / (1 + draw_below(source, 8)) + 1
						: draw_scale(source, 20);
	if (source->tick_length > 1)
		source->tick_length -= 1;
}

static void draw_limits(struct source *source, const struct kind *kind,
			struct sl_limit limit[SL_LIMITS_MAX])
{
	int limits = source->policy.limits;

	limit[0] = draw_limit(source);
	for (int i = 1; i < limits; i++)
		limit[i] = draw_limit_beside(source, &limit[0]);
	draw_tick_length(source, &limit[0]);
	if (kind->exact)
		source->tick_length = 1;
	for (int i = 0; i < limits; i++) {
		if (source->skew > limit[i].burst / 32)
			source->skew = limit[i].burst / 32;
		if (kind->limits > 1)
			draw_manner(source, &limit[i]);
	}
	for (int i = 0; i < limits; i++)
		model_shape(&limit[i], packet_cost(&limit[i]) * (1 + draw_below(source, 2)),
			    kind->exact ? 0 : source->cpus, source->tick_length, source->skew);
}

/* Which limits a packet is for. */
static uint32_t draw_matches(struct source *source)
{
	uint32_t all = (1U << source->policy.limits) - 1;

	if (source->policy.limits == 1 || one_in(source, 2))
		return all;
	return draw_below(source, all + 1);
}

static struct model *draw_model(struct source *source)
{
	int limits = source->policy.limits;

	return &source->policy.limit[limits == 1 ? 0 : draw_below(source, limits)];
}

static bool source_send_to(struct source *source, int cpu, uint32_t packets, uint32_t bytes,
			   uint32_t matches)
{
	bool passes = policy_send(&source->policy, cpu, packets, bytes, matches);

	if (passes)
		source->passed++;
	else
		source->refused++;
	return passes;
}

static void source_send(struct source *source, int cpu)
{
	uint32_t packets = one_in(source, 8) ? draw_scale(source, 7) : 1;
	uint32_t bytes =
		one_in(source, 16) ? draw_scale(source, 18) : 60 + draw_below(source, 1455);

	source_send_to(source, cpu, packets, bytes, draw_matches(source));
}

static void source_meanwhile(struct source *source, void (*meanwhile)(struct model *model))
{
	for (int i = 0; i < source->policy.limits; i++) {
		source->policy.limit[i].meanwhile = meanwhile;
		source->policy.limit[i].context = source;
	}
}

/* A packet takes its time: not more than `delay` in all. */
static void source_delay(struct source *source)
{
	uint64_t left = source->delay - source->delayed, length;

	if (!left || one_in(source, 2))
		return;
	length = one_in(source, 4) ? left : draw_below(source, left + 1);
	source->delayed += length;
	policy_pass_time(&source->policy, length);
}

/* Another CPU's packet, or several, while one CPU is between reading the ledger and swapping it. */
static void source_collide(struct model *model)
{
	struct source *source = model->context;
	int cpu = draw_below(source, source->cpus);

	if (cpu == source->busy || !one_in(source, 8))
		return;
	source_meanwhile(source, NULL); /* no collisions within collisions */
	source_delay(source);
	for (int i = draw_below(source, 4); i >= 0; i--)
		source_send(source, cpu);
	source_meanwhile(source, source_collide);
}

/* From here on `cpu` is in the middle of a packet. */
static void source_busy(struct source *source, int cpu)
{
	source->busy = cpu;
	source->delayed = 0;
}

static void source_salvo(struct source *source)
{
	int one_cpu = draw_below(source, source->cpus);
	bool spread = one_in(source, 2);

	for (int i = draw_below(source, SALVO); i >= 0; i--) {
		source_busy(source, spread ? (int)draw_below(source, source->cpus) : one_cpu);
		source_send(source, source->busy);
	}
}

/*
 * One frame that costs so much under a limit, and is for no other; none, if there is no such frame.
 */
static void source_send_worth(struct source *source, const struct model *model, __int128 ticks,
			      bool may_cut)
{
	const struct sl_limit *limit = &model->limit;
	uint32_t top = limit->by_bytes ? 1 << 20 : 65535;
	__int128 size =
		limit->by_bytes ? (ticks << SL_BYTE_COST_SHIFT) / limit->cost : ticks / limit->cost;

	if (may_cut && size > top)
		size = top;
	if (size > 0 && size <= top)
		source_send_to(source, source->busy, size, size,
			       1U << (model - source->policy.limit));
}

/* One frame takes all that the ledger has: then what lies in purses is too much, if it should not.
 */
static void source_drain(struct source *source)
{
	const struct model *model = draw_model(source);
	int64_t level;

	source_busy(source, draw_below(source, source->cpus));
	level = credit_level(&model->limit, &model->ledger, model_clock(model, source->busy));
	source_send_worth(source, model, level > 0 ? level : 0, true);
}

/*
 * A frame that only a whole ledger covers: mostly it is refused, and what was in the purse returns.
 */
static void source_ask_for_all(struct source *source)
{
	const struct model *model = draw_model(source);
	__int128 most = model->limit.burst;

	if (one_in(source, 2))
		most -= credit_cost(&model->limit, 1, 1);
	source_busy(source, draw_below(source, source->cpus));
	source_send_worth(source, model, most, false);
}

/* A frame that costs more than a ledger in use can hold, and up to some bursts. */
static void source_send_large(struct source *source)
{
	const struct model *model = draw_model(source);
	const struct sl_limit *limit = &model->limit;
	__int128 ticks = (__int128)limit->refill +
			 draw_below(source, limit->burst) * (one_in(source, 2) ? 1 : 8);

	source_busy(source, draw_below(source, source->cpus));
	source_send_worth(source, model, ticks + 2 * credit_cost(limit, 1, 1), false);
}

/* Time passes: any length, but often one at which something happens. */
static void source_idle(struct source *source)
{
	const struct model *model = draw_model(source);
	const struct sl_limit *limit = &model->limit;
	const uint64_t lengths[] = {
		limit->burst,
		limit->burst - limit->refill,
		limit->refill,
		limit->life * model->tick_length,
		model->tick_length,
		limit->cost,
		limit->purse,
		/* to the very moment at which the ledger is whole */
		limit->burst - (model_clock(model, 0) - model->ledger.zero),
		/* to the end of its block */
		model_block_left(model),
	};
	uint64_t length = lengths[draw_below(source, limit->block ? 9 : 8)];

	if (one_in(source, 2) || length > 4 * limit->burst)
		length = draw_scale(source, 62) % (2 * limit->burst);
	else if (one_in(source, 2))
		length += draw_below(source, 3) - 1;
	policy_pass_time(&source->policy, (int64_t)length > 0 ? length : 0);
}

static void source_skew_clock(struct source *source)
{
	uint64_t skew = source->skew - source->delay, lags[MODEL_CPUS] = {0};
	uint64_t lag = one_in(source, 2) ? skew : draw_below(source, skew + 1);
	uint64_t late = skew - lag;

	for (int i = 0; i < source->cpus; i++)
		lags[i] = one_in(source, 3) ? 0 : draw_below(source, lag + 1);
	lags[draw_below(source, source->cpus)] = lag;
	late = one_in(source, 3) ? 0 : draw_below(source, late + 1);
	for (int i = 0; i < source->policy.limits; i++) {
		struct model *model = &source->policy.limit[i];

		memcpy(model->lag, lags, sizeof(lags));
		model->tick_late = late;
	}
}

/* This CPU's bucket of the source is evicted. */
static void source_forget(struct source *source)
{
	int cpu = draw_below(source, source->cpus);

	for (int i = 0; i < source->policy.limits; i++)
		source->policy.limit[i].purse[cpu] = (struct sl_purse){0};
}

static void source_step(struct source *source)
{
	switch (draw_below(source, 16)) {
	case 0:
	case 1:
	case 2:
		source_salvo(source);
		break;
	case 3:
	case 4:
	case 5:
		source_idle(source);
		break;
	case 6:
		source_skew_clock(source);
		break;
	case 7:
		if (one_in(source, 4))
			source_forget(source);
		break;
	case 8:
		source_ask_for_all(source);
		break;
	case 9:
	case 10:
		source_drain(source);
		source_salvo(source);
		break;
	case 11:
		source_send_large(source);
		source_salvo(source);
		break;
	default:
		source_busy(source, draw_below(source, source->cpus));
		source_send(source, source->busy);
	}
}

static void source_begin(struct source *source, uint64_t seed, const struct kind *kind)
{
	struct sl_limit limit[SL_LIMITS_MAX];
	uint64_t epoch;

	*source = (struct source){.seed = seed, .random = seed};
	source->cpus = 1 + draw_below(source, MODEL_CPUS);
	source->skew = kind->lags ? draw_scale(source, 30) : 0;
	source->policy.limits = kind->limits == 1 ? 1 : 1 + draw_below(source, kind->limits);
	draw_limits(source, kind, limit);
	if (kind->lags && kind->collides && one_in(source, 2))
		source->delay = draw_below(source, source->skew + 1);
	epoch = draw_epoch(source);
	if (kind->exact) /* so that no block ends at moment 0, which says that there was none */
		epoch >>= 2;
	for (int i = 0; i < source->policy.limits; i++)
		model_begin(&source->policy.limit[i], &limit[i], source->tick_length, epoch);
	/* no CPU's ticks begin at 0 */
	policy_pass_time(&source->policy, draw_below(source, source->tick_length));
	source_meanwhile(source, kind->collides ? source_collide : NULL);
}

/* --- Never too much -------------------------------------------------------------------------- */

static void fail_with(const struct source *source, const struct model *model, int step,
		      const char *what, int64_t ticks)
{
	const struct sl_limit *limit = &model->limit;

	fail_msg("seed %llu, step %d, limit %d of %d: %s: %lld ticks (skew %llu); cost %llu, "
		 "burst %llu, refill %llu, purse %llu, life %u, block %llu, jiffy %llu, cpus %d, "
		 "by_bytes %d",
		 (unsigned long long)source->seed, step, (int)(model - source->policy.limit),
		 source->policy.limits, what, (long long)ticks, (unsigned long long)source->skew,
		 (unsigned long long)limit->cost, (unsigned long long)limit->burst,
		 (unsigned long long)limit->refill, (unsigned long long)limit->purse, limit->life,
		 (unsigned long long)limit->block, (unsigned long long)source->tick_length,
		 source->cpus, limit->by_bytes);
}

/*
 * Slack: the most by which a clock lags. It is needed: a draw by a clock that lags finds the
 * ledger as it was that long ago, so a ledger at its cap is charged as if it had stood there less
 * long, and refills by the lag once more. It is not added up: at its cap the ledger is at its cap.
 */
static void assert_promise(struct source *source, int step)
{
	for (int i = 0; i < source->policy.limits; i++) {
		struct model *model = &source->policy.limit[i];
		const struct sl_limit *limit = &model->limit;
		__int128 excess = model_excess(model);
		int64_t surplus = model_holds(model) - (int64_t)limit->burst;

		if (excess > (__int128)source->skew)
			fail_with(source, model, step, "too much passed", excess);
		if (surplus > (int64_t)source->skew)
			fail_with(source, model, step, "more than one burst", surplus);
		if (model->bent)
			fail_with(source, model, step, "a block did not hold", 0);
		for (int cpu = 0; cpu < source->cpus; cpu++)
			if (model->purse[cpu].credit > (int64_t)limit->purse)
				fail_with(source, model, step, "too much in a purse",
					  model->purse[cpu].credit);
	}
}

/* All answers have to be common, or the sequences test nothing. */
struct answers {
	uint64_t passed, refused, refunds;
};

static void answers_add(struct answers *answers, const struct source *source)
{
	answers->passed += source->passed;
	answers->refused += source->refused;
	answers->refunds += source->policy.refunds;
}

static void assert_common(const struct answers *answers, const struct kind *kind)
{
	if (only_one)
		return;
	assert_true(answers->passed > 100ULL * RUNS);
	assert_true(answers->refused > 100ULL * RUNS);
	assert_true(kind->limits == 1 || answers->refunds > 100ULL * RUNS);
}

static void check_promise(const struct kind *kind)
{
	struct answers answers = {0};
	struct source source;

	for (int run = 0; run < (only_one ? 1 : RUNS); run++) {
		source_begin(&source, first_seed + run, kind);
		for (int step = 0; step < STEPS; step++) {
			source_step(&source);
			assert_promise(&source, step);
		}
		answers_add(&answers, &source);
	}
	assert_common(&answers, kind);
}

static void test_never_too_much(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = 1});
}

static void test_never_too_much_when_draws_collide(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = 1, .collides = true});
}

static void test_never_too_much_when_clocks_lag(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = 1, .lags = true});
}

static void test_never_too_much_when_clocks_lag_and_draws_collide(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = 1, .lags = true, .collides = true});
}

static void test_never_too_much_under_several_limits(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = SL_LIMITS_MAX});
}

static void test_never_too_much_under_several_limits_when_draws_collide(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = SL_LIMITS_MAX, .collides = true});
}

static void test_never_too_much_under_several_limits_when_clocks_lag(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = SL_LIMITS_MAX, .lags = true});
}

static void test_never_too_much_under_several_limits_when_all_goes_wrong(void **state)
{
	(void)state;
	check_promise(&(struct kind){.limits = SL_LIMITS_MAX, .lags = true, .collides = true});
}

/* --- Not too little -------------------------------------------------------------------------- */

/*
 * A source that sends at twice its rate from an empty bucket gets its rate: but for what lies in
 * purses when the span ends, one packet, and one jiffy where refusals last as long.
 */
static void check_share(struct source *source)
{
	struct model *model = &source->policy.limit[0];
	const struct sl_limit *limit = &model->limit;
	uint64_t largest = credit_cost(limit, 1, 1514);
	__int128 passed = 0, least, span;
	true_time begin;
	int cpu = 0;

	model_drain(model);
	begin = model->now;
	for (int i = 0; i < LONG_STEPS; i++) {
		uint32_t bytes = 60 + draw_below(source, 1455);
		uint64_t cost = credit_cost(limit, 1, bytes);

		if (one_in(source, 4))
			cpu = draw_below(source, source->cpus);
		model->now += draw_below(source, cost + 1); /* half its cost on average */
		if (model_send(model, cpu, 1, bytes))
			passed += cost;
	}
	span = model->now - begin;
	least = span - span / 100 - (limit->burst - limit->refill) - largest;
	if (limit->refuse_by_jiffy)
		least -= model->tick_length;
	if (passed < least)
		fail_msg("seed %llu: only %lld of %lld ticks passed",
			 (unsigned long long)source->seed, (long long)passed, (long long)span);
}

static void test_its_share_at_twice_the_rate(void **state)
{
	static const struct kind kind = {.limits = 1};
	struct source source;
	int tried = 0;

	(void)state;
	for (int run = 0; run < (only_one ? 1 : LONG_RUNS); run++) {
		const struct sl_limit *limit = &source.policy.limit[0].limit;

		source_begin(&source, first_seed + run, &kind);
		/* A burst of less than two packets cannot bridge the gap between two packets. */
		if (limit->burst < 2 * credit_cost(limit, 1, 1514))
			continue;
		check_share(&source);
		tried++;
	}
	if (!only_one)
		assert_true(tried > LONG_RUNS / 2);
}

/* --- Neither --------------------------------------------------------------------------------- */

/* A limit told as plainly as can be: a level, below zero what is owed, and when a block ends. */
struct plain {
	const struct sl_limit *limit;
	__int128 level;
	true_time at;
	true_time blocked;
};

static struct plain plain_begin(const struct sl_limit *limit)
{
	return (struct plain){.limit = limit, .level = limit->start_empty ? 0 : limit->burst};
}

static bool plain_covers(struct plain *plain, uint64_t cost, true_time now)
{
	plain->level += now - plain->at;
	plain->at = now;
	if (plain->level > plain->limit->burst)
		plain->level = plain->limit->burst;
	if (now < plain->blocked)
		return false;
	if (plain->level >= (cost < plain->limit->burst ? cost : plain->limit->burst))
		return true;
	plain->blocked = now + plain->limit->block;
	return false;
}

/* A packet passes if every limit that is for it has the credit; only then is any charged. */
static bool plain_judge(const struct source *source, struct plain *plain, uint32_t packets,
			uint32_t bytes, uint32_t matches)
{
	uint64_t charge[SL_LIMITS_MAX] = {0};

	for (int i = 0; i < source->policy.limits; i++) {
		uint64_t cost = policy_cost(&source->policy, i, packets, bytes);

		if (!(matches >> i & 1))
			continue;
		if (plain_covers(&plain[i], cost, source->policy.limit[i].now))
			charge[i] = cost;
		else if (!plain[i].limit->observe)
			return false;
	}
	for (int i = 0; i < source->policy.limits; i++)
		plain[i].level -= charge[i];
	return true;
}

static void check_packet(struct source *source, struct plain *plain, int step)
{
	uint32_t packets = one_in(source, 8) ? draw_scale(source, 7) : 1;
	uint32_t bytes = 60 + draw_below(source, 1455), matches = draw_matches(source);
	bool passes = plain_judge(source, plain, packets, bytes, matches);
	int cpu = draw_below(source, source->cpus);

	if (source_send_to(source, cpu, packets, bytes, matches) != passes)
		fail_msg("seed %llu, step %d: %u packets, %u bytes, limits %#x of %d should %s",
			 (unsigned long long)source->seed, step, packets, bytes, matches,
			 source->policy.limits, passes ? "pass" : "be dropped");
}

/*
 * Limits without purses and exact clocks: to the packet what plain buckets decide. So a dropped
 * packet charges nothing, to the last unit of time.
 */
static void test_several_limits_as_plain_buckets(void **state)
{
	static const struct kind kind = {.limits = SL_LIMITS_MAX, .exact = true};
	struct plain plain[SL_LIMITS_MAX];
	struct answers answers = {0};
	struct source source;

	(void)state;
	for (int run = 0; run < (only_one ? 1 : RUNS); run++) {
		source_begin(&source, first_seed + run, &kind);
		for (int i = 0; i < source.policy.limits; i++)
			plain[i] = plain_begin(&source.policy.limit[i].limit);
		for (int step = 0; step < STEPS / 4; step++) {
			for (int i = draw_below(&source, SALVO); i >= 0; i--)
				check_packet(&source, plain, step);
			source_idle(&source);
		}
		answers_add(&answers, &source);
	}
	assert_common(&answers, &kind);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_too_much),
		cmocka_unit_test(test_never_too_much_when_draws_collide),
		cmocka_unit_test(test_never_too_much_when_clocks_lag),
		cmocka_unit_test(test_never_too_much_when_clocks_lag_and_draws_collide),
		cmocka_unit_test(test_never_too_much_under_several_limits),
		cmocka_unit_test(test_never_too_much_under_several_limits_when_draws_collide),
		cmocka_unit_test(test_never_too_much_under_several_limits_when_clocks_lag),
		cmocka_unit_test(test_never_too_much_under_several_limits_when_all_goes_wrong),
		cmocka_unit_test(test_its_share_at_twice_the_rate),
		cmocka_unit_test(test_several_limits_as_plain_buckets),
	};

	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 0);
		only_one = true;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
