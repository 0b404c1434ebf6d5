// SPDX-License-Identifier: GPL-2.0
/* include/credit.h, case by case. Random sequences are in test_credit_property.c. */
#include "test.h"
#include "credit_cases.h"

#define PLENTY 5000 /* more packets than any burst here */

static struct model fresh(uint64_t cost, uint64_t burst, uint32_t cpus, uint64_t epoch)
{
	struct sl_limit limit = model_limit(cost, burst, cpus, JIFFY);
	struct model model;

	model_begin(&model, &limit, JIFFY, epoch);
	return model;
}

static struct model drained(uint64_t cost, uint64_t burst, uint32_t cpus, uint64_t epoch)
{
	struct model model = fresh(cost, burst, cpus, epoch);

	model_drain(&model);
	return model;
}

static void test_purses_only_where_they_pay(void **state)
{
	static const struct {
		uint64_t cost, burst;
		uint32_t cpus;
		bool has_purse;
	} cases[] = {
		{COST, 1000 * COST, 0, false},	     {COST, 1000 * COST, 1, true},
		{COST, 1000 * COST, 8, true},	     {COST, 31 * COST, 1, false},
		{COST, 64 * COST, 1, true},	     {COST, 64 * COST, 8, false},
		{COST / 1000, 1000 * COST, 8, true}, {1, 1000, 1, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit =
			model_limit(cases[i].cost, cases[i].burst, cases[i].cpus, JIFFY);

		assert_int_equal(!!limit.purse, cases[i].has_purse);
		assert_int_equal(limit.refill + (limit.purse ? limit.burst / 16 : 0), limit.burst);
	}
}

static void test_fresh_ledger_holds_its_burst(void **state)
{
	static const struct {
		uint64_t cost;
		uint64_t packets; /* in the burst */
	} cases[] = {
		{COST, 1},    {COST, 2},    {COST, 16},	   {COST, 1000},
		{80, 100000}, {1, 1000000}, {60 * SEC, 3}, {60 * SEC, 500},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			uint64_t burst = cases[i].cost * cases[i].packets;
			struct model model = fresh(cases[i].cost, burst, cpu_counts[j], 12345);

			assert_int_equal(model_burst(&model, 0, cases[i].packets + 10),
					 cases[i].packets);
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

static void test_burst_that_is_no_whole_number_of_packets(void **state)
{
	struct model model = fresh(COST, 10 * COST + COST - 1, 0, 0);

	(void)state;
	model.limit.refuse_by_jiffy = false;
	assert_int_equal(model_burst(&model, 0, 20), 10);
	model.now += 1;
	assert_int_equal(model_burst(&model, 0, 20), 1);
}

/* Eight CPUs together find the burst, less at most what is stranded in the others' purses. */
static void test_fresh_ledger_on_eight_cpus(void **state)
{
	struct model model = fresh(COST, 1000 * COST, 8, 12345);
	uint64_t passed = 0;

	(void)state;
	for (int i = 0; i < PLENTY; i++)
		passed += model_send(&model, i % 8, 1, 60);
	assert_in_range(passed, 1000 - 1000 / 16, 1000);
	assert_int_equal(model_excess(&model), 0);
}

static void test_refill_to_the_packet(void **state)
{
	static const struct {
		uint64_t advance, passes; /* in packets */
	} cases[] = {{0, 0},	 {1, 1},       {2, 2},	     {37, 37},
		     {900, 900}, {1000, 1000}, {1001, 1000}, {5000, 1000}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			struct model model = drained(COST, 1000 * COST, cpu_counts[j], 12345);

			model.limit.refuse_by_jiffy = false;
			assert_false(model_send(&model, 0, 1, 60));
			model.now += cases[i].advance * COST;
			assert_int_equal(model_burst(&model, 0, PLENTY), cases[i].passes);
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

/* Just before it is whole, a ledger with purses has refilled to 15/16 and waits there. */
static void test_refill_stops_while_purses_may_be_out(void **state)
{
	struct model model = drained(COST, 1600 * COST, 8, 0);

	(void)state;
	model.now += 1600 * COST - 1;
	assert_int_equal(model_burst(&model, 0, PLENTY), 1500);
	model = drained(COST, 1600 * COST, 0, 0);
	model.now += 1600 * COST - 1;
	assert_int_equal(model_burst(&model, 0, PLENTY), 1599);
}

/* What a fresh ledger holds above `refill` can be spent and does not come back by itself. */
static void test_refill_does_not_exceed_what_purses_leave(void **state)
{
	struct model model = fresh(COST, 1600 * COST, 1, 0);

	(void)state;
	assert_int_equal(model_burst(&model, 0, 700), 700);
	model.now += 699 * COST;
	/* 900 and a purse are left of 1600; 699 refill, to 1500 at most, before the rebirth at 700
	 */
	assert_in_range(model_burst(&model, 0, PLENTY), 1500, 1599);
	assert_int_equal(model_excess(&model), 0);
}

/* One tick short of a packet nothing passes, on the tick it does: for each k of the first burst. */
static void test_refill_to_the_tick(void **state)
{
	struct model model = drained(COST, 10 * COST, 0, 99);

	(void)state;
	for (int k = 1; k <= 10; k++) {
		model.now += COST - 1;
		model.purse[0] = (struct sl_purse){0}; /* no refusal by jiffy */
		assert_false(model_send(&model, 0, 1, 60));
		model.now += 1;
		model.purse[0] = (struct sl_purse){0};
		assert_true(model_send(&model, 0, 1, 60));
	}
}

static void test_half_dropped_at_twice_the_rate(void **state)
{
	(void)state;
	for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
		struct model model = fresh(COST, 1000 * COST, cpu_counts[j], 12345);
		uint64_t passed = 0;

		for (int i = 0; i < 20000; i++) {
			passed += model_send(&model, 0, 1, 60);
			model.now += COST / 2;
		}
		/*
		 * 10000 and the burst, less one refusal by jiffy; with purses, what was above
		 * `refill` did not refill while it was spent.
		 */
		if (model.limit.purse)
			assert_in_range(passed, 11000 - 5 - 1000 / 32, 11000);
		else
			assert_in_range(passed, 11000 - 5, 11000);
		assert_int_equal(model_excess(&model), 0);
	}
}

static void test_one_a_minute(void **state)
{
	struct model model = fresh(60 * SEC, 5 * 60 * SEC, 8, 12345);
	uint64_t passed = 0;

	(void)state;
	for (int second = 0; second <= 3 * 3600; second++) {
		passed += model_send(&model, 0, 1, 60);
		if (second < 3 * 3600)
			model.now += SEC;
	}
	assert_int_equal(passed, 180 + 5);
}

static void test_clock_that_runs_backwards_refills_nothing(void **state)
{
	(void)state;
	for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
		struct model model = drained(COST, 1000 * COST, cpu_counts[j], 1ULL << 40);

		model.limit.refuse_by_jiffy = false;
		for (uint64_t back = 1; back < 1ULL << 38; back *= 3) {
			model.lag[0] = back;
			assert_int_equal(model_burst(&model, 0, 3), 0);
		}
		model.lag[0] = 0;
		assert_int_equal(model_burst(&model, 0, PLENTY), 0);
		model.now += 2 * COST;
		assert_int_equal(model_burst(&model, 0, PLENTY), 2);
	}
}

/* A ledger born by one CPU's clock, spent by a CPU whose clock is behind its birth. */
static void test_clock_behind_the_birth_refills_nothing(void **state)
{
	static const uint64_t lags[] = {5000 * COST, 999 * COST, 10 * COST, COST, COST / 2, 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lags); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			struct model model = fresh(COST, 1000 * COST, cpu_counts[j], 1ULL << 40);
			uint64_t passed = model_burst(&model, 0, 1);

			model.lag[1] = lags[i];
			passed += model_burst(&model, 1, PLENTY);
			passed += model_burst(&model, 0, PLENTY);
			assert_int_equal(model_excess(&model), 0);
			assert_in_range(passed, 937, 1000);
		}
	}
}

static void test_every_epoch(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			struct model model = fresh(COST, 1000 * COST, cpu_counts[j], epochs[i]);

			assert_int_equal(model_burst(&model, 0, PLENTY), 1000);
			for (int k = 1; k <= 10; k++) {
				model.now += k * COST;
				model.purse[0].until = 0; /* no refusal by jiffy */
				assert_int_equal(model_burst(&model, 0, PLENTY), k);
			}
			model.now += 7000 * COST;
			assert_int_equal(model_burst(&model, 0, PLENTY), 1000);
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

/* The longest burst, of as few packets as 2 and as many as 2^20. */
static void test_longest_burst(void **state)
{
	(void)state;
	for (int shift = 1; shift <= 20; shift += 19) {
		for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
			uint64_t cost = SL_BURST_TICKS_MAX >> shift;
			struct model model = fresh(cost, SL_BURST_TICKS_MAX, 1, epochs[i]);

			assert_int_equal(model_burst(&model, 0, (1 << shift) + 5), 1 << shift);
			model.now += cost;
			assert_int_equal(model_burst(&model, 0, 5), 1);
			model.now += SL_BURST_TICKS_MAX;
			assert_int_equal(model_burst(&model, 0, (1 << shift) + 5), 1 << shift);
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

static bool waits(const struct model *model, uint32_t packets)
{
	return credit_must_wait(&model->purse[0], credit_cost(&model->limit, packets, 60),
				model_clock(model, 0));
}

static void test_refused_until_the_purse_says(void **state)
{
	static const struct {
		uint64_t burst, cost; /* packets: of the burst, and merged into one */
		uint32_t cpus;
	} cases[] = {
		/* without purses */
		{1, 1, 0},
		{7, 1, 0},
		{7, 7, 0},
		{1000, 1000, 0},
		/* refill holds 937.5 packets */
		{1000, 1, 1},
		{1000, 1, 8},
		{1000, 900, 8},
		{1000, 937, 8},
		{1000, 938, 8},
		{1000, 1000, 8},
		/* refill holds 1500 packets */
		{1600, 1500, 8},
		{1600, 1501, 8},
		/* more than a burst */
		{1, 2, 0},
		{7, 8, 0},
		{7, 65535, 0},
		{1000, 1001, 8},
		{1000, 65535, 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(epochs); j++) {
			struct model model =
				drained(COST, cases[i].burst * COST, cases[i].cpus, epochs[j]);
			uint64_t wait;

			model.limit.refuse_by_jiffy = false;
			model.now += COST / 3;
			assert_false(model_send(&model, 0, cases[i].cost, 60));
			wait = model.purse[0].at - model_clock(&model, 0);
			model.now += wait - 1;
			assert_true(waits(&model, cases[i].cost));
			assert_false(model_send(&model, 0, cases[i].cost, 60));
			model.purse[0] = (struct sl_purse){0}; /* the ledger says so, too */
			assert_false(model_send(&model, 0, cases[i].cost, 60));
			model.now += 1;
			assert_false(waits(&model, cases[i].cost));
			assert_true(model_send(&model, 0, cases[i].cost, 60));
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

static void test_refused_by_tick(void **state)
{
	struct model model = drained(COST, 1000 * COST, 0, 12345);

	(void)state;
	assert_true(model.limit.refuse_by_jiffy);
	model.now += JIFFY / 4;
	assert_int_equal(model_burst(&model, 0, PLENTY), 1); /* and refused from here on */
	model.now += JIFFY / 2;
	assert_int_equal(model_burst(&model, 0, PLENTY), 0);
	assert_int_equal(credit_spend(&model.purse[0], COST, model_jiffies(&model)), CREDIT_REFUSE);
	model.now += JIFFY / 4 - 1;
	assert_int_equal(model_burst(&model, 0, PLENTY), 0);
	model.now += 1; /* the next tick: four packets' time in all, and no credit lost */
	assert_int_equal(model_burst(&model, 0, PLENTY), 3);
}

/* A refusal by the clock is renewed for one tick at a time. */
static void test_long_refusal_by_tick(void **state)
{
	struct model model = drained(SEC, 1000 * SEC, 0, 12345);

	(void)state;
	assert_true(model.limit.refuse_by_jiffy);
	for (int i = 0; i < 250; i++) {
		assert_false(model_send(&model, 0, 1, 60));
		assert_int_equal(model.purse[0].until, model_jiffies(&model));
		assert_int_equal(model.purse[0].at, 12345 + SEC);
		model.now += JIFFY;
	}
	assert_true(model_send(&model, 0, 1, 60));
}

static void test_no_refusal_by_tick_for_short_bursts(void **state)
{
	struct model model = drained(COST, 2 * JIFFY - 1, 0, 12345);

	(void)state;
	assert_false(model.limit.refuse_by_jiffy);
	assert_false(model_send(&model, 0, 1, 60));
	model.now += COST; /* within the same tick */
	assert_true(model_send(&model, 0, 1, 60));
}

static void test_debt_is_paid_first(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			struct model model = drained(COST, 1000 * COST, cpu_counts[j], epochs[i]);

			model.limit.refuse_by_jiffy = false;
			model.ledger.zero += 30 * COST;
			assert_int_equal(
				credit_level(&model.limit, &model.ledger, model_clock(&model, 0)),
				-(int64_t)(30 * COST));
			assert_int_equal(model_burst(&model, 0, 10), 0);
			model.now += 31 * COST - 1;
			assert_int_equal(model_burst(&model, 0, 10), 0);
			model.now += 1;
			assert_int_equal(model_burst(&model, 0, 10), 1);
		}
	}
}

/* What comes back from a purse lessens the debt by just as much. */
static void test_debt_when_a_purse_is_returned(void **state)
{
	struct model model = drained(COST, 1000 * COST, 1, 12345);
	uint64_t now = model_clock(&model, 0);

	(void)state;
	model.ledger.zero += 30 * COST;
	model.purse[0] = (struct sl_purse){.credit = 3 * COST, .at = now, .until = 0};
	assert_false(model_send(&model, 0, 10, 60));
	assert_int_equal(model.purse[0].credit, -(int64_t)(10 * COST)); /* refused */
	assert_int_equal(model.purse[0].at, now + (30 - 3 + 10) * COST);
	assert_int_equal(credit_level(&model.limit, &model.ledger, now), -(int64_t)(27 * COST));
}

static void test_bytes_cost_their_time_rounded_up(void **state)
{
	static const struct {
		uint64_t bits_per_second;
		uint32_t bytes;
		uint64_t cost; /* ticks: 8 x 16e9 x bytes / bits per second, rounded up */
	} cases[] = {
		{1000, 1, 128000000},
		{1000, 1514, 193792000000},
		{1000, 1 << 20, 134217728000000},
		{1000, 1 << 27,
		 17179869184000000}, /* 65535 times the headers of a packet, and more */
		{1000, 0xffffffff, 549755813760000000},
		{1000000, 1514, 193792000},
		{1000000000, 1, 128},
		{1000000000, 1514, 193792},
		{128000000000, 1, 1},
		{128000000000, 1514, 1514},
		{128000000001, 1514, 1514},
		{400000000000, 1, 1},
		{400000000000, 3, 1},
		{400000000000, 4, 2},
		{400000000000, 60, 20},		/* 19.2 */
		{400000000000, 1514, 485},	/* 484.48 */
		{400000000000, 1 << 18, 83888}, /* 83886.08; a byte's cost is rounded up, too */
		{7, 1 << 10, 18724571428572},	/* 18724571428571.4 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit = model_byte_limit(cases[i].bits_per_second, 0, 0, JIFFY);

		assert_int_equal(credit_cost(&limit, 1, cases[i].bytes), cases[i].cost);
		assert_int_equal(credit_cost(&limit, 9, cases[i].bytes), cases[i].cost);
	}
}

/* A cost in 1/65536 tick is rounded up too, by less than one tick in 65536 bytes. */
static void test_byte_cost_is_never_too_low(void **state)
{
	(void)state;
	for (uint64_t rate = 1000; rate < 400000000000; rate = rate * 3 + 7) {
		struct sl_limit limit = model_byte_limit(rate, 0, 0, JIFFY);

		for (uint32_t bytes = 1; bytes <= 1 << 18; bytes = bytes * 2 + 1) {
			__int128 exact = (__int128)8 * SEC * bytes;
			__int128 cost = (__int128)credit_cost(&limit, 1, bytes) * rate;
			__int128 surplus = cost - exact;

			assert_true(surplus >= 0);
			assert_true(surplus < ((__int128)rate * (1 + bytes / 65536 + 1)));
		}
	}
}

static void test_packets_cost_their_number_up_to_a_bound(void **state)
{
	struct sl_limit limit = model_limit(3600 * SEC, SL_BURST_TICKS_MAX, 0, JIFFY);

	(void)state;
	assert_int_equal(credit_cost(&limit, 1, 1514), 3600 * SEC);
	assert_int_equal(credit_cost(&limit, 20015, 60), 20015 * 3600 * SEC);
	assert_int_equal(credit_cost(&limit, 20016, 60), SL_BURST_TICKS_MAX);
	assert_int_equal(credit_cost(&limit, 65535, 60), SL_BURST_TICKS_MAX);
	limit.cost = 80;
	assert_int_equal(credit_cost(&limit, 45, 1 << 18), 45 * 80);
}

static void test_jumbo_at_one_kbit(void **state)
{
	uint64_t jumbo = 1 << 18, burst = jumbo * (128 * SEC / 16000);
	struct sl_limit limit = model_byte_limit(1000, burst, 8, JIFFY);
	struct model model;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		model_begin(&model, &limit, JIFFY, epochs[i]);
		assert_true(model_send(&model, 0, 1, jumbo));
		assert_false(model_send(&model, 0, 1, 1));
		model.now += burst;
		assert_true(model_send(&model, 0, 1, jumbo));
		assert_int_equal(model_excess(&model), 0);
	}
}

static void test_bytes_at_400_gbit(void **state)
{
	/* 60 bytes: 19.2 ticks, charged as 20 */
	struct sl_limit limit = model_byte_limit(400000000000, 20 * 100000, 1, JIFFY);
	struct model model;

	(void)state;
	model_begin(&model, &limit, JIFFY, 0);
	assert_int_equal(model_burst(&model, 0, 200000), 100000);
	model.now += 20 * 1000;
	model.purse[0] = (struct sl_purse){0};
	assert_int_equal(model_burst(&model, 0, 200000), 1000);
}

/* A limit that is shared is divided from a moment on, wherever the clock begins. */
static void test_times_that_a_packet_is_charged(void **state)
{
	(void)state;
	assert_int_equal(credit_times(0, 4, 0), 1);
	assert_int_equal(credit_times(0, 4, 1ULL << 63), 1);
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		uint64_t at = epochs[i] + 1000 * SEC;

		assert_int_equal(credit_times(at, 4, at - 1), 1);
		assert_int_equal(credit_times(at, 4, at), 4);
		assert_int_equal(credit_times(at, 4, at + 1000 * SEC), 4);
		assert_int_equal(credit_times(at, 1, at), 1);
		assert_int_equal(credit_times(at, 0, at), 1);
	}
	assert_int_equal(credit_owed(COST, 4), 4 * COST);
	assert_int_equal(credit_owed(SL_BURST_TICKS_MAX / 2, 3), SL_BURST_TICKS_MAX);
}

static struct model with_purse(void)
{
	struct model model = drained(COST, 1600 * COST, 2, 12345);

	model.limit.refuse_by_jiffy = false;
	model.now += 1500 * COST;
	assert_true(model_send(&model, 0, 1, 60)); /* draws 50 packets' worth */
	assert_int_equal(model.purse[0].credit, 50 * COST);
	return model;
}

static int64_t level_now(struct model *model)
{
	return credit_level(&model->limit, &model->ledger, model_clock(model, 0));
}

static void test_purse_is_spent_without_the_ledger(void **state)
{
	struct model model = with_purse();
	struct sl_ledger before = model.ledger;

	(void)state;
	assert_int_equal(model_burst(&model, 0, 50), 50);
	assert_memory_equal(&model.ledger, &before, sizeof(before));
	assert_int_equal(model.purse[0].credit, 0);
	assert_int_equal(level_now(&model), (1500 - 51) * COST);
	assert_true(model_send(&model, 0, 1, 60)); /* the next one asks */
	assert_int_not_equal(model.ledger.zero, before.zero);
}

/* A purse is good for `life` jiffies, the one in which it was drawn included. */
static void test_purse_expires(void **state)
{
	struct model model = with_purse();
	uint64_t drawn = model_jiffies(&model);
	struct sl_purse purse = model.purse[0];

	(void)state;
	assert_int_equal(model.limit.life, 100 * COST / JIFFY);
	assert_int_equal(credit_spend(&purse, COST, drawn), CREDIT_PASS);
	assert_int_equal(credit_spend(&purse, COST, drawn + model.limit.life - 1), CREDIT_PASS);
	assert_int_equal(credit_spend(&purse, COST, drawn + model.limit.life), CREDIT_ASK);
	assert_int_equal(purse.credit, 48 * COST);
}

/* A purse that counts what it refuses does not refuse for longer. */
static void test_a_count_of_refusals_leaves_the_purse_as_it_is(void **state)
{
	static const uint64_t jiffies[] = {0, 1, 4294967295, 4294967296, CREDIT_JIFFY_MASK - 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(jiffies); i++) {
		uint64_t jiffy = jiffies[i];
		struct sl_purse purse = {.credit = -(int64_t)COST, .at = 7, .until = jiffy};

		assert_int_equal(credit_unasked(&purse), 0);
		credit_count_unasked(&purse, 1);
		credit_count_unasked(&purse, 45);
		assert_int_equal(credit_unasked(&purse), 46);
		assert_int_equal(credit_spend(&purse, COST, jiffy), CREDIT_REFUSE);
		assert_int_equal(credit_spend(&purse, COST - 1, jiffy), CREDIT_ASK);
		assert_int_equal(credit_spend(&purse, COST, jiffy + 1), CREDIT_ASK);
		assert_int_equal(purse.credit, -(int64_t)COST);
		purse.credit = 0; /* by `forgive` */
		assert_int_equal(credit_spend(&purse, COST, jiffy), CREDIT_ASK);
	}
}

/* What the ledger is asked begins the count anew, whether it refuses or not. */
static void test_a_draw_ends_the_count_of_refusals(void **state)
{
	struct model model = drained(COST, 1600 * COST, 1, 12345);
	uint64_t jiffy = model_jiffies(&model), now = model.epoch + (uint64_t)model.now;
	struct sl_purse purse = {.credit = -(int64_t)COST, .until = jiffy};

	(void)state;
	credit_count_unasked(&purse, 1000);
	assert_false(credit_draw(&model.limit, &model.ledger, &purse, 0, COST, now, jiffy));
	assert_int_equal(credit_unasked(&purse), 0);
	credit_count_unasked(&purse, 1000);
	now += 100 * COST;
	assert_true(credit_draw(&model.limit, &model.ledger, &purse, 0, COST, now, jiffy));
	assert_int_equal(credit_unasked(&purse), 0);
}

static void test_purse_that_does_not_suffice_asks(void **state)
{
	struct model model = with_purse();
	uint64_t jiffy = model_jiffies(&model);

	(void)state;
	assert_int_equal(credit_spend(&model.purse[0], 50 * COST + 1, jiffy), CREDIT_ASK);
	assert_int_equal(model.purse[0].credit, 50 * COST);
	assert_int_equal(credit_spend(&model.purse[0], 50 * COST, jiffy), CREDIT_PASS);
	assert_int_equal(credit_spend(&model.purse[0], 1, jiffy), CREDIT_ASK);
}

/* Expired but not void: all that is left in it returns. */
static void test_purse_returned_after_expiry_loses_nothing(void **state)
{
	struct model model = drained(COST, 1600 * COST, 1, 12345);
	uint64_t passed;

	(void)state;
	model.now += 200 * COST;
	passed = model_burst(&model, 0, 1);
	model.now += 150 * COST; /* a purse lives 100 of them */
	assert_int_equal(credit_spend(&model.purse[0], COST, model_jiffies(&model)), CREDIT_ASK);
	passed += model_burst(&model, 0, PLENTY);
	assert_int_equal(passed, 350);
	assert_int_equal(model_excess(&model), 0);
}

static void test_purse_is_void_after_rebirth(void **state)
{
	struct model model = with_purse();
	uint64_t passed;

	(void)state;
	model.now += 1700 * COST;
	passed = model_burst(&model, 1, 1); /* whole again: 1600, of which one is spent */
	assert_int_equal(model.ledger.born, model_clock(&model, 0));
	passed += model_burst(&model, 1, 199);
	assert_int_equal(model.purse[0].credit, 50 * COST);
	passed += model_burst(&model, 0, PLENTY); /* CPU 0 brings its old purse */
	assert_in_range(passed, 1600 - 50, 1600); /* CPU 1 still has its own */
	passed += model_burst(&model, 1, PLENTY);
	assert_int_equal(passed, 1600);
	assert_int_equal(model_excess(&model), 0);
}

/* A refusal holds for packets that cost as much or more; a cheaper one asks the ledger. */
static void test_refusal_is_of_a_cost(void **state)
{
	struct model model = drained(COST, 1000 * COST, 0, 12345);

	(void)state;
	model.now += 5 * COST;
	assert_false(model_send(&model, 0, 10, 60));
	assert_false(model_send(&model, 0, 6, 60));
	assert_true(model_send(&model, 0, 5, 60));
	assert_false(model_send(&model, 0, 1, 60));
	assert_int_equal(model_excess(&model), 0);
}

static void test_what_is_left_in_a_purse_returns_to_the_ledger(void **state)
{
	enum { ZERO = 1 << 20, REFILL = 1500, BURST = 1600 };
	static const struct {
		int64_t born;  /* from zero */
		int64_t drawn; /* the purse's `at`, from zero */
		int64_t now;   /* from zero */
		int64_t credit;
		int64_t level; /* expected */
	} cases[] = {
		{0, 0, 100, 0, 100},
		{0, 0, 100, 50, 150},
		{0, 99, 100, 50, 150},
		{0, 0, 100, -7, 100}, /* refused: nothing to take back */
		{0, 0, 1490, 10, REFILL},
		{0, 0, 1490, 50, 1540}, /* above refill, to burst at most */
		{0, 0, 1599, 50, 1550},
		{0, 0, 1599, 150, BURST},
		{0, 0, 1600, 50, BURST}, /* rested: whole, and no more */
		{-99, -99, -30, 50, 20}, /* debt */
		{-99, -99, -30, 10, -20},
		{50, 49, 100, 50, 100}, /* drawn before the birth: void */
		{50, 50, 100, 50, 150},
		{1550, 1555, 1560, 40, 1590}, /* fresh, above refill */
	};
	const struct sl_limit limit = {.cost = 1, .burst = BURST, .refill = REFILL, .purse = 50};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_ledger ledger = {
			.zero = ZERO, .born = ZERO + cases[i].born, .drawn = ZERO};
		struct sl_purse purse = {.credit = cases[i].credit, .at = ZERO + cases[i].drawn};

		assert_int_equal(credit_take_back(&limit, &ledger, &purse, ZERO + cases[i].now),
				 cases[i].level);
		assert_int_equal(purse.credit, 0);
		assert_int_equal(ledger.zero, ZERO);
	}
}

static void test_a_level_rises_to_refill_and_at_rest_to_the_burst(void **state)
{
	enum { ZERO = 1 << 20, REFILL = 1500, BURST = 1600 };
	static const struct {
		int64_t born, now, level; /* moments from zero */
	} cases[] = {
		{0, 0, 0},	    {0, 700, 700},	{0, 1500, 1500},
		{0, 1501, 1500},    {0, 1599, 1500},	{0, 1600, 1600},
		{0, 9999, 1600},    {-5, -5, -5},	{-100, -5, -5},
		{1600, 1600, 1600}, {1550, 1550, 1550}, {1550, 1599, 1550},
		{1501, 1501, 1501}, {300, 300, 300},	{300, 800, 800},
		{1600, 1590, 1600}, /* by a clock behind the birth: no more than the burst */
	};
	const struct sl_limit limit = {.cost = 1, .burst = BURST, .refill = REFILL};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_ledger ledger = {
			.zero = ZERO, .born = ZERO + cases[i].born, .drawn = ZERO};
		int64_t level = credit_level(&limit, &ledger, ZERO + cases[i].now);

		assert_int_equal(level, cases[i].level);
		credit_set_level(&limit, &ledger, level, ZERO + cases[i].now);
		assert_int_equal(credit_level(&limit, &ledger, ZERO + cases[i].now), level);
	}
}

/* More than a burst since its birth: that birth's draw was lost. */
static void test_level_after_a_lost_birth(void **state)
{
	enum { ZERO = 1 << 20, REFILL = 1500, BURST = 1600 };
	const struct sl_limit limit = {.cost = 1, .burst = BURST, .refill = REFILL};

	(void)state;
	for (int64_t born = BURST + 1; born < 4 * BURST; born += 100) {
		struct sl_ledger ledger = {.zero = ZERO, .born = ZERO + born, .drawn = ZERO + born};

		for (int64_t later = 0; later < 2 * (BURST - REFILL); later += 50)
			assert_int_equal(credit_level(&limit, &ledger, ledger.born + later),
					 REFILL);
		assert_int_equal(credit_level(&limit, &ledger, ledger.born + 2 * (BURST - REFILL)),
				 BURST);
	}
}

static void test_a_new_ledger_holds_the_burst(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		struct sl_limit limit = model_limit(COST, 1000 * COST, 1, JIFFY);
		struct sl_ledger ledger = credit_birth(&limit, 0, epochs[i]);

		assert_int_equal(ledger.born, epochs[i]);
		assert_int_equal(epochs[i] - ledger.zero, limit.burst);
		assert_int_equal(credit_level(&limit, &ledger, epochs[i]), limit.burst);
		assert_int_equal(credit_level(&limit, &ledger, epochs[i] - 1), limit.burst);
	}
}

/* What is above `refill` fills purses, but does not refill itself: rule 1. */
static void test_purse_from_above_refill(void **state)
{
	struct model model = fresh(COST, 1600 * COST, 2, 12345);

	(void)state;
	assert_true(model_send(&model, 0, 1, 60));
	assert_int_equal(model.purse[0].credit, 50 * COST);
	assert_int_equal(level_now(&model), 1549 * COST);
	model.now += 100 * COST - 1;
	assert_int_equal(level_now(&model), 1549 * COST);
	model.now += 100 * COST + 1; /* long after the purse has ended: whole again */
	assert_int_equal(level_now(&model), 1600 * COST);
}

/*
 * A purse may be spent at the end of its life, out of a bucket that is full: that bucket then lacks
 * S, and takes S to be full again. Only then may the ledger be whole.
 */
static void test_purse_spent_last_is_refilled_first(void **state)
{
	struct model model = fresh(COST, 1600 * COST, 1, 12345);

	(void)state;
	assert_true(model_send(&model, 0, 1, 60)); /* 1499 in the ledger, 100 in the purse */
	model.now += 99 * COST;
	assert_int_equal(model_burst(&model, 0, 99), 99); /* the purse: a bucket has 1501 left */
	model.now += 2 * COST;
	model.purse[0] = (struct sl_purse){0};
	assert_int_equal(level_now(&model), model.limit.refill);
	assert_int_equal(model_burst(&model, 0, PLENTY), 1500);
	assert_int_equal(model_excess(&model), 0);
}

/*
 * Credit that returns from a purse may lift the ledger above `refill`. That must not make it whole:
 * the bucket lacks what was spent until it has had the time to refill.
 */
static void test_return_above_refill_is_no_rest(void **state)
{
	struct model model = drained(COST, 1600 * COST, 1, 12345);

	(void)state;
	model.limit.refuse_by_jiffy = false;
	model.now += 1500 * COST;
	assert_int_equal(model_burst(&model, 0, 1), 1); /* 1399 in the ledger, 100 in the purse */
	model.now += 80 * COST;
	assert_int_equal(model_burst(&model, 0, 40), 40);
	assert_true(model_send(&model, 0, 61, 60)); /* returns the purse, 1479 + 60, and draws */
	assert_int_equal(model.purse[0].credit, 100 * COST);
	assert_int_equal(level_now(&model), 1378 * COST);
	model.now += 20 * COST; /* the time of the first purse is over */
	assert_int_equal(model_burst(&model, 0, PLENTY), 1498);
	assert_int_equal(model_excess(&model), 0);
}

/* --- Packets that cost more than the ledger can hold ------------------------------------------ */

/* Such a packet passes with a full ledger; the next one of any cost when the rest is paid. */
static void test_large_packet_passes_and_is_owed(void **state)
{
	static const uint32_t packets[] = {11, 45, 1000, 65535};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(epochs); j++) {
			struct model model = fresh(COST, 10 * COST, 0, epochs[j]);
			uint64_t owed = (packets[i] - 10) * COST;

			model.limit.refuse_by_jiffy = false;
			assert_true(model_send(&model, 0, packets[i], 60));
			assert_int_equal(level_now(&model), -(int64_t)owed);
			assert_false(model_send(&model, 0, 1, 60));
			model.now += owed + COST - 1;
			assert_false(model_send(&model, 1, 1, 60));
			model.now += 1;
			assert_true(model_send(&model, 1, 1, 60));
			assert_false(model_send(&model, 1, 1, 60));
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

/* With a packet less than full, and with a tick less, it waits. */
static void test_large_packet_waits_for_a_full_ledger(void **state)
{
	struct model model = fresh(COST, 10 * COST, 0, 12345);

	(void)state;
	model.limit.refuse_by_jiffy = false;
	assert_true(model_send(&model, 0, 1, 60));
	assert_false(model_send(&model, 0, 45, 60));
	model.now += COST - 1;
	assert_false(model_send(&model, 0, 45, 60));
	assert_false(model_send(&model, 0, 10, 60)); /* needs as much */
	model.now += 1;
	assert_true(model_send(&model, 0, 45, 60));
}

/* A sender of nothing but such packets gets its rate: to the tick, for any size and any burst. */
static void test_large_packets_get_their_rate(void **state)
{
	static const struct {
		uint64_t burst;
		uint32_t packets, cpus;
	} cases[] = {{1, 2, 0},	      {8, 45, 0},      {25, 45, 0},	{25, 26, 8},
		     {1600, 1501, 8}, {1600, 1601, 8}, {1600, 65535, 8}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model model = drained(COST, cases[i].burst * COST, cases[i].cpus, 12345);
		uint64_t each = cases[i].packets * COST;

		model.limit.refuse_by_jiffy = false;
		model.now += model.limit.refill;
		for (int k = 0; k < 1000; k++) {
			assert_true(model_send(&model, k % 8, cases[i].packets, 60));
			assert_false(model_send(&model, k % 8, cases[i].packets, 60));
			model.now += each - 1;
			assert_false(model_send(&model, k % 8, cases[i].packets, 60));
			model.now += 1;
		}
		assert_int_equal(model_excess(&model), 0);
	}
}

/*
 * The bound is met, and not exceeded: the largest packet, and all that lies in other CPUs' purses.
 */
static void test_large_packet_beside_full_purses(void **state)
{
	struct model model = fresh(COST, 1600 * COST, 8, 12345);
	uint64_t passed = 0;

	(void)state;
	for (int cpu = 1; cpu < 8; cpu++)
		assert_true(model_send(&model, cpu, 1, 60)); /* 12.5 more in each purse */
	model.now += 99 * COST;				     /* to `refill`, 1500, at least */
	assert_true(model_send(&model, 0, 2000, 60));
	assert_int_equal(model.purse[0].credit, 0);
	for (int cpu = 0; cpu < 8; cpu++)
		passed += model_burst(&model, cpu, PLENTY);
	assert_int_equal(passed, 7 * 12);
	assert_int_equal(model_excess(&model), 0);
}

/*
 * A trickle on the other CPUs, whose purses are never all at rest: a packet that only a whole
 * ledger would cover passes as soon as the ledger is at `refill`, and the trickle goes on when that
 * is paid.
 */
static void test_trickle_starves_no_large_packet(void **state)
{
	static const uint32_t packets[] = {1501, 1600, 1601, 5000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		struct model model = drained(COST, 1600 * COST, 8, 12345);
		uint64_t waits = 0, trickle = 0;

		model.limit.refuse_by_jiffy = false;
		while (!model_send(&model, 0, packets[i], 60)) {
			trickle += model_send(&model, 1 + waits % 7, 1, 60);
			model.now += 10 * COST; /* a tenth of the rate */
			waits++;
		}
		assert_in_range(waits, 150, 1500 / 9 + 7 * 2);
		assert_true(trickle > waits - 3);
		assert_true(model.ledger.drawn != model.ledger.born); /* it was not whole */
		model.now += (packets[i] - 1500 + 1) * COST;
		assert_true(model_send(&model, 3, 1, 60));
		assert_int_equal(model_excess(&model), 0);
	}
}

/*
 * A refusal holds for packets that need as much credit; those that cost more than `refill` need
 * less than they cost.
 */
static void test_refusal_of_a_large_packet(void **state)
{
	struct model model = drained(COST, 1600 * COST, 8, 12345);
	const struct sl_purse *purse = &model.purse[0];

	(void)state;
	assert_false(model_send(&model, 0, 65535, 60));
	assert_int_equal(purse->credit, -(int64_t)(1500 * COST));
	assert_int_equal(purse->at, 12345 + 1500 * COST);
	assert_false(credit_refused(purse, 1500 * COST - 1));
	assert_true(credit_refused(purse, 1500 * COST));
	assert_true(credit_refused(purse, 1501 * COST));
	assert_int_equal(credit_ready_at(&model.limit, &model.ledger, 1499 * COST),
			 12345 + 1499 * COST);
	assert_int_equal(credit_ready_at(&model.limit, &model.ledger, SL_BURST_TICKS_MAX),
			 12345 + 1500 * COST);
}

/* What is refunded of it is all that it took, out of debt again. */
static void test_refund_of_a_large_packet(void **state)
{
	struct model model = fresh(COST, 10 * COST, 0, 12345);

	(void)state;
	assert_true(model_judge(&model, 0, 45 * COST, model_jiffies(&model)));
	assert_int_equal(level_now(&model), -(int64_t)(35 * COST));
	model_refund(&model, 0, 45 * COST);
	assert_int_equal(level_now(&model), 10 * COST);
	assert_int_equal(model_burst(&model, 0, 20), 10);
}

/* A bucket that starts empty is to fill first. */
static void test_large_packet_at_an_empty_start(void **state)
{
	struct sl_limit limit = {.cost = COST, .burst = 10 * COST, .start_empty = 1};
	struct model model;

	(void)state;
	model_shape(&limit, 2 * COST, 0, 1, 0);
	model_begin(&model, &limit, 1, 12345);
	assert_false(model_send(&model, 0, 45, 60));
	model.now += 10 * COST - 1;
	assert_false(model_send(&model, 0, 45, 60));
	model.now += 1;
	assert_true(model_send(&model, 0, 45, 60));
	assert_int_equal(model_excess(&model), 0);
}

/* A bucket of a shared limit starts with a part of the burst, and fills as any other. */
static void test_start_share(void **state)
{
	static const struct {
		uint32_t nodes;
		uint64_t level;
	} cases[] = {{0, 10}, {1, 10}, {2, 5}, {10, 1}, {1000000, 0}};
	struct sl_limit limit = {.cost = COST, .burst = 10 * COST, .start_share = 1};
	struct model model;

	(void)state;
	model_shape(&limit, 2 * COST, 0, 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		model_begin(&model, &limit, 1, 12345);
		model.ledger = credit_birth(&limit, cases[i].nodes, model_clock(&model, 0));
		assert_int_equal(model_burst(&model, 0, 20), cases[i].level);
		model.now += 10 * COST;
		assert_int_equal(model_burst(&model, 0, 20), 10);
	}
	limit.start_share = 0;
	model_begin(&model, &limit, 1, 12345);
	model.ledger = credit_birth(&limit, 10, model_clock(&model, 0));
	assert_int_equal(model_burst(&model, 0, 20), 10);
}

/* A burst of less than one packet: one at a time, evenly. */
static void test_burst_of_less_than_a_packet(void **state)
{
	struct model model = fresh(COST, COST / 10, 8, 12345);

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(model_burst(&model, 0, 5), 1);
		model.now += COST - 1;
		assert_int_equal(model_burst(&model, 0, 5), 0);
		model.now += 1;
	}
	assert_int_equal(model_excess(&model), 0);
}

/* By a clock that runs backwards no debt is paid, and none is made twice. */
static void test_debt_and_a_clock_behind(void **state)
{
	(void)state;
	for (uint64_t lag = 1; lag < 1ULL << 38; lag *= 7) {
		struct model model = fresh(COST, 10 * COST, 0, 1ULL << 40);

		model.limit.refuse_by_jiffy = false;
		assert_true(model_send(&model, 0, 45, 60));
		model.lag[1] = lag;
		assert_int_equal(model_burst(&model, 1, 5), 0);
		assert_int_equal(level_now(&model), -(int64_t)(35 * COST));
		model.now += 36 * COST;
		assert_int_equal(model_burst(&model, 0, 5), 1);
		assert_int_equal(model_excess(&model), 0);
	}
}

/* --- No sender's packets --------------------------------------------------------------------- */

/*
 * 65535 merged packets at one an hour exceed the greatest cost: they are charged just that, and it
 * is paid.
 */
static void test_cost_that_no_packet_has(void **state)
{
	static const uint64_t bursts[] = {1, 8, 20000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(bursts); j++) {
			uint64_t hour = 3600 * SEC;
			struct model model = fresh(hour, bursts[j] * hour, 0, epochs[i]);

			model.limit.refuse_by_jiffy = false;
			assert_true(model_send(&model, 0, 65535, 60));
			assert_int_equal(model.ledger.zero - model_clock(&model, 0),
					 SL_BURST_TICKS_MAX - bursts[j] * hour);
			for (int k = 0; k < 3; k++) {
				model.purse[0] = (struct sl_purse){0};
				assert_false(model_send(&model, 0, 65535, 60));
				assert_int_equal(model_burst(&model, 0, 3), 0);
			}
			model.now += SL_BURST_TICKS_MAX - bursts[j] * hour + hour - 1;
			assert_int_equal(model_burst(&model, 1, 3), 0);
			model.now += 1;
			assert_int_equal(model_burst(&model, 1, 3), 1);
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

static void test_what_is_owed_is_bounded(void **state)
{
	static const struct {
		uint64_t cost;
		uint32_t count;
		uint64_t owed;
	} cases[] = {
		{COST, 0, 0},
		{COST, 1, COST},
		{COST, 255, 255 * COST},
		{SL_BURST_TICKS_MAX, 0, 0},
		{SL_BURST_TICKS_MAX, 1, SL_BURST_TICKS_MAX},
		{SL_BURST_TICKS_MAX, 2, SL_BURST_TICKS_MAX},
		{SL_BURST_TICKS_MAX, 255, SL_BURST_TICKS_MAX}, /* wraps */
		{SL_BURST_TICKS_MAX / 16, 16, SL_BURST_TICKS_MAX},
		{SL_BURST_TICKS_MAX / 16, 17, SL_BURST_TICKS_MAX},
		{SL_BURST_TICKS_MAX / 16, 15, SL_BURST_TICKS_MAX / 16 * 15},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(credit_owed(cases[i].cost, cases[i].count), cases[i].owed);
}

/*
 * However often a ledger is told of debts, it sinks to a bound and no further: it never comes out
 * full.
 */
static void test_debts_do_not_wrap(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		struct model model = fresh(COST, 10 * COST, 0, epochs[i]);
		uint64_t now = model_clock(&model, 0);

		model.ledger.zero += credit_debit(&model.ledger, 3 * COST, now);
		assert_int_equal(level_now(&model), 7 * COST);
		for (int k = 0; k < 100; k++) {
			model.ledger.zero += credit_debit(&model.ledger, SL_BURST_TICKS_MAX, now);
			assert_true(level_now(&model) < 0);
			assert_true(level_now(&model) >= -(int64_t)SL_BURST_TICKS_MAX);
		}
		assert_int_equal(level_now(&model), -(int64_t)SL_BURST_TICKS_MAX);
		model.ledger.zero += credit_debit(&model.ledger, SL_BURST_TICKS_MAX,
						  now - COST); /* a clock behind */
		assert_int_equal(level_now(&model), -(int64_t)SL_BURST_TICKS_MAX);
	}
}

/* The last packets in the ledger: the purse takes what there is. */
static void test_purse_from_a_poor_ledger(void **state)
{
	struct model model = drained(COST, 1600 * COST, 2, 12345);

	(void)state;
	model.now += 10 * COST + 7;
	assert_true(model_send(&model, 0, 1, 60));
	assert_int_equal(model.purse[0].credit, 9 * COST + 7);
	assert_int_equal(level_now(&model), 0);
}

/* Another CPU finds nothing while the purse is out, and what was returned once it is back. */
static void test_refusal_returns_the_purse(void **state)
{
	struct model model = drained(COST, 1600 * COST, 2, 12345);

	(void)state;
	model.limit.refuse_by_jiffy = false;
	model.now += 10 * COST;
	assert_true(model_send(&model, 0, 1, 60));
	assert_false(model_send(&model, 1, 1, 60));
	assert_false(model_send(&model, 0, 20, 60)); /* too much: the purse returns */
	model.purse[1] = (struct sl_purse){0};
	assert_int_equal(model_burst(&model, 1, 20), 9);
}

/*
 * A tick count that is late keeps a purse alive for longer. `life` leaves room for that: a purse
 * must be dead before the ledger can be whole again.
 */
static void test_late_ticks_revive_no_purse(void **state)
{
	struct sl_limit limit = {.cost = COST, .burst = 1600 * COST};
	struct model model;
	uint64_t passed;

	(void)state;
	model_shape(&limit, 2 * COST, 8, 80 * COST, 20 * COST);
	assert_int_equal(limit.life, 1);
	model_begin(&model, &limit, 80 * COST, 12345);
	model_drain(&model);
	model.now += 1520 * COST; /* a tick begins, the ledger is at refill */
	assert_true(model_send(&model, 1, 1, 60));
	assert_int_equal(model.purse[1].credit, 12 * COST + COST / 2);
	/* whole again 113.5 packets later; the next tick was due after 80, and counted after 99 */
	model.now += 113 * COST + COST / 2;
	model.tick_late = 20 * COST;
	passed = model_burst(&model, 0, PLENTY) + model_burst(&model, 1, PLENTY);
	assert_in_range(passed, 1500, 1600);
	assert_int_equal(model_excess(&model), 0);
}

static void send_from_behind(struct model *model)
{
	uint64_t *ret_passed = model->context;

	model->meanwhile = NULL;
	*ret_passed += model_send(model, 1, 1, 60);
}

/*
 * A CPU finds the ledger rested, publishes the birth, and loses its draw to a CPU by whose clock
 * the moment is not yet come: what that one drew must not be in the ledger as well.
 */
static void test_birth_that_loses_its_draw(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (uint64_t lag = 1; lag <= COST; lag *= 10) {
			struct model model = fresh(COST, 1600 * COST, 8, epochs[i]);
			uint64_t passed = 0;

			assert_true(model_send(&model, 0, 1, 60)); /* 12 more in its purse */
			assert_true(level_now(&model) > (int64_t)model.limit.refill);
			model.now += 200 * COST; /* whole, at this very moment */
			model.lag[1] = lag;
			model.meanwhile = send_from_behind;
			model.context = &passed;
			passed += model_send(&model, 0, 1, 60);
			assert_int_equal(passed, 2);
			assert_true(model_holds(&model) <= (int64_t)((1600 - 2) * COST + lag));
			for (int cpu = 0; cpu < 8; cpu++)
				passed += model_burst(&model, cpu, PLENTY);
			assert_in_range(passed, 1500, 1600);
			assert_true(model_excess(&model) <= (__int128)lag);
		}
	}
}

/* A purse takes back what it has room for, whole; else nothing, and it stays as it was. */
static void test_a_purse_takes_back_no_more_than_it_holds(void **state)
{
	const struct sl_limit limit = {.burst = 1000000, .purse = 1000, .cost = 100};
	struct sl_purse purse = {.credit = 900};

	(void)state;
	assert_true(credit_give_back(&limit, &purse, 100));
	assert_int_equal(purse.credit, 1000);
	assert_false(credit_give_back(&limit, &purse, 1));
	assert_int_equal(purse.credit, 1000);
	purse.credit = -1; /* what it remembers is a refusal */
	assert_false(credit_give_back(&limit, &purse, 100));
	assert_int_equal(purse.credit, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_that_a_packet_is_charged),
		cmocka_unit_test(test_purses_only_where_they_pay),
		cmocka_unit_test(test_fresh_ledger_holds_its_burst),
		cmocka_unit_test(test_burst_that_is_no_whole_number_of_packets),
		cmocka_unit_test(test_fresh_ledger_on_eight_cpus),
		cmocka_unit_test(test_refill_to_the_packet),
		cmocka_unit_test(test_refill_stops_while_purses_may_be_out),
		cmocka_unit_test(test_refill_does_not_exceed_what_purses_leave),
		cmocka_unit_test(test_refill_to_the_tick),
		cmocka_unit_test(test_half_dropped_at_twice_the_rate),
		cmocka_unit_test(test_one_a_minute),
		cmocka_unit_test(test_clock_that_runs_backwards_refills_nothing),
		cmocka_unit_test(test_clock_behind_the_birth_refills_nothing),
		cmocka_unit_test(test_every_epoch),
		cmocka_unit_test(test_longest_burst),
		cmocka_unit_test(test_refused_until_the_purse_says),
		cmocka_unit_test(test_refused_by_tick),
		cmocka_unit_test(test_long_refusal_by_tick),
		cmocka_unit_test(test_no_refusal_by_tick_for_short_bursts),
		cmocka_unit_test(test_debt_is_paid_first),
		cmocka_unit_test(test_debt_when_a_purse_is_returned),
		cmocka_unit_test(test_bytes_cost_their_time_rounded_up),
		cmocka_unit_test(test_byte_cost_is_never_too_low),
		cmocka_unit_test(test_packets_cost_their_number_up_to_a_bound),
		cmocka_unit_test(test_jumbo_at_one_kbit),
		cmocka_unit_test(test_bytes_at_400_gbit),
		cmocka_unit_test(test_purse_is_spent_without_the_ledger),
		cmocka_unit_test(test_purse_expires),
		cmocka_unit_test(test_a_count_of_refusals_leaves_the_purse_as_it_is),
		cmocka_unit_test(test_a_draw_ends_the_count_of_refusals),
		cmocka_unit_test(test_purse_that_does_not_suffice_asks),
		cmocka_unit_test(test_purse_returned_after_expiry_loses_nothing),
		cmocka_unit_test(test_purse_is_void_after_rebirth),
		cmocka_unit_test(test_refusal_is_of_a_cost),
		cmocka_unit_test(test_what_is_left_in_a_purse_returns_to_the_ledger),
		cmocka_unit_test(test_a_level_rises_to_refill_and_at_rest_to_the_burst),
		cmocka_unit_test(test_level_after_a_lost_birth),
		cmocka_unit_test(test_a_new_ledger_holds_the_burst),
		cmocka_unit_test(test_purse_from_above_refill),
		cmocka_unit_test(test_purse_spent_last_is_refilled_first),
		cmocka_unit_test(test_return_above_refill_is_no_rest),
		cmocka_unit_test(test_large_packet_passes_and_is_owed),
		cmocka_unit_test(test_large_packet_waits_for_a_full_ledger),
		cmocka_unit_test(test_large_packets_get_their_rate),
		cmocka_unit_test(test_large_packet_beside_full_purses),
		cmocka_unit_test(test_trickle_starves_no_large_packet),
		cmocka_unit_test(test_refusal_of_a_large_packet),
		cmocka_unit_test(test_refund_of_a_large_packet),
		cmocka_unit_test(test_large_packet_at_an_empty_start),
		cmocka_unit_test(test_start_share),
		cmocka_unit_test(test_burst_of_less_than_a_packet),
		cmocka_unit_test(test_debt_and_a_clock_behind),
		cmocka_unit_test(test_cost_that_no_packet_has),
		cmocka_unit_test(test_what_is_owed_is_bounded),
		cmocka_unit_test(test_debts_do_not_wrap),
		cmocka_unit_test(test_purse_from_a_poor_ledger),
		cmocka_unit_test(test_refusal_returns_the_purse),
		cmocka_unit_test(test_late_ticks_revive_no_purse),
		cmocka_unit_test(test_birth_that_loses_its_draw),
		cmocka_unit_test(test_a_purse_takes_back_no_more_than_it_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
