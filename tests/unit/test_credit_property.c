// SPDX-License-Identifier: GPL-2.0
/*
 * Promise 1 on random sequences: any limit, any number of CPUs, clocks that lag, purses that get
 * lost, draws that collide. The judge is the reference bucket of credit_model.h.
 *
 * On failure the seed and the number of the run are printed; each run has its own seed, so one run
 * alone repeats it: test_credit_property SEED.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "credit_model.h"

#define SEED	   20240607ULL
#define RUNS	   6000
#define STEPS	   250
#define SALVO	   48
#define LONG_RUNS  80
#define LONG_STEPS 6000

struct source {
	struct model model;
	uint64_t seed;
	uint64_t random; /* state of splitmix64 */
	uint64_t skew;	 /* the most that a clock and the tick count, together, lag */
	int cpus;
	int busy; /* the CPU in the middle of a draw */
	bool collides;
	uint64_t passed, refused;
};

static uint64_t first_seed = SEED;
static bool only_one;

/* splitmix64 (Steele, Lea, Flood 2014) */
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

static struct sl_limit draw_limit(struct source *source, uint64_t *ret_tick_length)
{
	struct sl_limit limit = {.by_bytes = one_in(source, 3)};
	uint64_t packet, packets = draw_scale(source, 13), purses;

	limit.cost = draw_scale(source, limit.by_bytes ? 43 : 40);
	packet = limit.by_bytes ? (limit.cost * 1514 >> SL_BYTE_COST_SHIFT) + 1 : limit.cost;
	limit.burst = packet * packets + draw_below(source, packet);
	purses = limit.burst / 16;

	/* Often the life of a purse is all that it may be: that is where mistakes would show. */
	*ret_tick_length = one_in(source, 2) ? purses / (1 + draw_below(source, 8)) + 1
					     : draw_scale(source, 20);
	if (*ret_tick_length > 1)
		*ret_tick_length -= 1;
	if (source->skew > limit.burst / 32)
		source->skew = limit.burst / 32;
	model_shape(&limit, packet * (1 + draw_below(source, 2)), source->cpus, *ret_tick_length,
		    source->skew);
	return limit;
}

static void source_send(struct source *source, int cpu)
{
	uint32_t packets = one_in(source, 8) ? draw_scale(source, 7) : 1;
	uint32_t bytes =
		one_in(source, 16) ? draw_scale(source, 18) : 60 + draw_below(source, 1455);

	if (model_send(&source->model, cpu, packets, bytes))
		source->passed++;
	else
		source->refused++;
}

/* Another CPU's packet, or several, while one CPU is between reading the ledger and swapping it. */
static void source_collide(struct model *model)
{
	struct source *source = model->context;
	int cpu = draw_below(source, source->cpus);

	if (cpu == source->busy || !one_in(source, 8))
		return;
	model->meanwhile = NULL; /* no collisions within collisions */
	for (int i = draw_below(source, 4); i >= 0; i--)
		source_send(source, cpu);
	model->meanwhile = source_collide;
}

static void source_salvo(struct source *source)
{
	int one_cpu = draw_below(source, source->cpus);
	bool spread = one_in(source, 2);

	for (int i = draw_below(source, SALVO); i >= 0; i--) {
		source->busy = spread ? (int)draw_below(source, source->cpus) : one_cpu;
		source_send(source, source->busy);
	}
}

/* One frame takes all that the ledger has: then what lies in purses is too much, if it should not.
 */
static void source_drain(struct source *source)
{
	struct model *model = &source->model;
	const struct sl_limit *limit = &model->limit;
	int cpu = draw_below(source, source->cpus);
	int64_t level = credit_level(limit, &model->ledger, model_clock(model, cpu));
	__int128 most = level > 0 ? level : 0;
	uint32_t size, top = limit->by_bytes ? 1 << 20 : 65535;

	most = limit->by_bytes ? (most << SL_BYTE_COST_SHIFT) / limit->cost : most / limit->cost;
	size = most < top ? most : top;
	source->busy = cpu;
	if (size && model_send(model, cpu, size, size))
		source->passed++;
}

/* Time passes: any length, but often one at which something happens. */
static void source_idle(struct source *source)
{
	const struct sl_limit *limit = &source->model.limit;
	const uint64_t lengths[] = {
		limit->burst,
		limit->burst - limit->refill,
		limit->refill,
		limit->life * source->model.tick_length,
		source->model.tick_length,
		limit->cost,
		limit->purse,
		/* to the very moment at which the ledger is whole */
		limit->burst - (model_clock(&source->model, 0) - source->model.ledger.zero),
	};
	uint64_t length = lengths[draw_below(source, sizeof(lengths) / sizeof(*lengths))];

	if (one_in(source, 2) || length > 4 * limit->burst)
		length = draw_scale(source, 62) % (2 * limit->burst);
	else if (one_in(source, 2))
		length += draw_below(source, 3) - 1;
	source->model.now += (int64_t)length > 0 ? length : 0;
}

static void source_skew_clock(struct source *source)
{
	uint64_t lag = one_in(source, 2) ? source->skew : draw_below(source, source->skew + 1);
	uint64_t late = source->skew - lag;

	for (int i = 0; i < source->cpus; i++)
		source->model.lag[i] = one_in(source, 3) ? 0 : draw_below(source, lag + 1);
	source->model.lag[draw_below(source, source->cpus)] = lag;
	source->model.tick_late = one_in(source, 3) ? 0 : draw_below(source, late + 1);
}

/* A frame that only a whole ledger covers: mostly it is refused, and what was in the purse returns. */
static void source_ask_for_all(struct source *source)
{
	const struct sl_limit *limit = &source->model.limit;
	__int128 most = limit->burst;
	uint32_t top = limit->by_bytes ? 1 << 20 : 65535;

	most = limit->by_bytes ? (most << SL_BYTE_COST_SHIFT) / limit->cost : most / limit->cost;
	most -= draw_below(source, 2);
	source->busy = draw_below(source, source->cpus);
	if (most > 0 && most <= top)
		model_send(&source->model, source->busy, most, most);
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
		if (one_in(source, 4)) /* its bucket was evicted */
			source->model.purse[draw_below(source, source->cpus)] =
				(struct sl_purse){0};
		break;
	case 8:
		source_ask_for_all(source);
		break;
	case 9:
	case 10:
		source_drain(source);
		source_salvo(source);
		break;
	default:
		source->busy = draw_below(source, source->cpus);
		source_send(source, source->busy);
	}
}

static void source_begin(struct source *source, uint64_t seed, bool lags, bool collides)
{
	uint64_t tick_length;
	struct sl_limit limit;

	*source = (struct source){.seed = seed, .random = seed};
	source->cpus = 1 + draw_below(source, MODEL_CPUS);
	source->skew = lags ? draw_scale(source, 30) : 0;
	limit = draw_limit(source, &tick_length);
	model_begin(&source->model, &limit, tick_length, draw_epoch(source));
	source->model.now += draw_below(source, tick_length); /* no CPU's ticks begin at 0 */
	source->model.meanwhile = collides ? source_collide : NULL;
	source->model.context = source;
}

static void assert_promise(const struct source *source, uint64_t slack, int step)
{
	const struct model *model = &source->model;
	__int128 excess = model_excess(model);

	if (excess <= (__int128)slack)
		return;
	fail_msg("seed %llu, step %d: %lld ticks too much (slack %llu, skew %llu); cost %llu, "
		 "burst %llu, refill %llu, purse %llu, life %u, tick %llu, cpus %d, by_bytes %d",
		 (unsigned long long)source->seed, step, (long long)excess,
		 (unsigned long long)slack, (unsigned long long)source->skew,
		 (unsigned long long)model->limit.cost, (unsigned long long)model->limit.burst,
		 (unsigned long long)model->limit.refill, (unsigned long long)model->limit.purse,
		 model->limit.life, (unsigned long long)model->tick_length, source->cpus,
		 model->limit.by_bytes);
}

/*
 * Slack: the most by which a clock lags. It is needed: a draw by a clock that lags finds the
 * ledger as it was that long ago, so a ledger at its cap is charged as if it had stood there less
 * long, and refills by the lag once more. It is not added up: at its cap the ledger is at its cap.
 */
static void check_promise(bool lags, bool collides)
{
	uint64_t passed = 0, refused = 0;
	struct source source;

	for (int run = 0; run < (only_one ? 1 : RUNS); run++) {
		source_begin(&source, first_seed + run, lags, collides);
		for (int step = 0; step < STEPS; step++) {
			source_step(&source);
			assert_promise(&source, source.skew, step);
		}
		passed += source.passed;
		refused += source.refused;
	}
	if (only_one)
		return;
	/* Both answers have to be common, or the sequences test nothing. */
	assert_true(passed > 100ULL * RUNS);
	assert_true(refused > 100ULL * RUNS);
}

/*
 * A source that sends at twice its rate from an empty bucket gets its rate: but for what lies in
 * purses when the span ends, one packet, and one kernel tick where refusals last as long.
 */
static void check_share(struct source *source)
{
	struct model *model = &source->model;
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
	if (limit->refuse_by_tick)
		least -= model->tick_length;
	if (passed < least)
		fail_msg("seed %llu: only %lld of %lld ticks passed",
			 (unsigned long long)source->seed, (long long)passed, (long long)span);
}

static void test_its_share_at_twice_the_rate(void **state)
{
	struct source source;
	int tried = 0;

	(void)state;
	for (int run = 0; run < (only_one ? 1 : LONG_RUNS); run++) {
		source_begin(&source, first_seed + run, false, false);
		/* A burst of less than two packets cannot bridge the gap between two packets. */
		if (source.model.limit.burst < 2 * credit_cost(&source.model.limit, 1, 1514))
			continue;
		check_share(&source);
		tried++;
	}
	if (!only_one)
		assert_true(tried > LONG_RUNS / 2);
}

static void test_never_too_much(void **state)
{
	(void)state;
	check_promise(false, false);
}

static void test_never_too_much_when_draws_collide(void **state)
{
	(void)state;
	check_promise(false, true);
}

static void test_never_too_much_when_clocks_lag(void **state)
{
	(void)state;
	check_promise(true, false);
}

static void test_never_too_much_when_clocks_lag_and_draws_collide(void **state)
{
	(void)state;
	check_promise(true, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_too_much),
		cmocka_unit_test(test_never_too_much_when_draws_collide),
		cmocka_unit_test(test_never_too_much_when_clocks_lag),
		cmocka_unit_test(test_never_too_much_when_clocks_lag_and_draws_collide),
		cmocka_unit_test(test_its_share_at_twice_the_rate),
	};

	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 0);
		only_one = true;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
