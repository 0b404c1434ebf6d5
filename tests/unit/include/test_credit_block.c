// SPDX-License-Identifier: GPL-2.0
/*
 * include/credit.h: blocks, and buckets that start empty. Where a test counts to the last unit of
 * time the kernel's tick is as short: a refusal is remembered to the end of the tick.
 */
#include "test.h"
#include "credit_cases.h"

#define BURST  (10 * COST)
#define PLENTY 50 /* more packets than the burst */

/* From one tick to the longest that user/rules/units.c accepts. */
static const uint64_t blocks[] = {
	1,     COST / 3,  COST,	    3 * COST + 1, BURST - 1,
	BURST, BURST + 1, 30 * SEC, 86400 * SEC,  SL_BURST_TICKS_MAX,
};

static struct model blocking(uint64_t block, uint64_t tick_length, uint64_t epoch)
{
	struct sl_limit limit = {.cost = COST, .burst = BURST, .block = block};
	struct model model;

	model_shape(&limit, 2 * COST, MODEL_CPUS, tick_length, 0);
	model_begin(&model, &limit, tick_length, epoch);
	model.now += 7; /* no block of these ends at moment 0, which says that there is none */
	return model;
}

/* Sends the burst, and one packet too many. */
static struct model blocked(uint64_t block, uint64_t tick_length, uint64_t epoch)
{
	struct model model = blocking(block, tick_length, epoch);

	assert_int_equal(model_burst(&model, 0, 10), 10);
	assert_int_equal(model_block_left(&model), 0);
	assert_false(model_send(&model, 0, 1, 60));
	assert_int_equal(model_block_left(&model), block);
	return model;
}

/* One packet on each CPU: how many pass? */
static uint64_t send_everywhere(struct model *model)
{
	uint64_t passed = 0;

	for (int cpu = 0; cpu < MODEL_CPUS; cpu++)
		passed += model_send(model, cpu, 1, 60);
	return passed;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void test_no_purse_outlasts_the_beginning(void **state)
{
	struct model model = blocking(SEC, 1, 0);

	(void)state;
	assert_int_equal(model.limit.purse, 0);
	assert_int_equal(model.limit.refill, model.limit.burst);
}

/* A refused packet begins it; nothing passes until its end; then passes what has refilled. */
static void test_block_lasts_to_the_tick(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(blocks); j++) {
			struct model model = blocked(blocks[j], 1, epochs[i]);
			true_time end = model.now + blocks[j];
			uint64_t level = least(blocks[j], BURST) / COST;

			assert_int_equal(send_everywhere(&model), 0);
			for (int part = 1; part < 8; part++) {
				model.now = end - (__int128)blocks[j] * part / 8;
				if (model.now < end)
					assert_int_equal(send_everywhere(&model), 0);
			}
			model.now = end - 1;
			assert_int_equal(send_everywhere(&model), 0);
			model.now = end;
			assert_int_equal(model_burst(&model, j % MODEL_CPUS, level), level);
			assert_int_equal(model_excess(&model), 0);
			assert_false(model.bent);
		}
	}
}

/* The source goes on sending all the while: its ledger does not even change. */
static void test_refused_packets_do_not_prolong_it(void **state)
{
	struct model model = blocked(30 * SEC, 1, 12345);
	struct sl_ledger before = model.ledger;
	true_time end = model.now + 30 * SEC;

	(void)state;
	for (int i = 0; model.now < end; i++) {
		assert_int_equal(model_burst(&model, i % MODEL_CPUS, 3), 0);
		assert_memory_equal(&model.ledger, &before, sizeof(before));
		model.now += 10 * MS + i;
	}
	model.now = end;
	assert_int_equal(model_burst(&model, 3, PLENTY), 10);
}

/*
 * The end of a block is no new overrun: what the rest gave can be spent, and one more begins the
 * next.
 */
static void test_blocks_follow_only_overruns(void **state)
{
	struct model model = blocked(SEC, 1, 12345);

	(void)state;
	for (int i = 0; i < 100; i++) {
		model.now += SEC;
		assert_int_equal(send_everywhere(&model), 8);
		assert_int_equal(model_block_left(&model), 0);
		assert_int_equal(send_everywhere(&model), 2);
		assert_int_equal(model_block_left(&model), SEC);
	}
	assert_int_equal(model_excess(&model), 0);
}

/* After a block the level is that of a source which just rested for as long. */
static void test_level_after_a_block(void **state)
{
	(void)state;
	for (size_t j = 0; j < ARRAY_SIZE(blocks); j++) {
		for (uint64_t spent = 1; spent <= 10; spent++) {
			struct model model = blocking(blocks[j], 1, 12345), rested;
			uint64_t now;

			assert_int_equal(model_burst(&model, 0, spent), spent);
			rested = model;
			assert_false(model_send(&model, 0, 11 - spent, 60));
			assert_int_equal(model_block_left(&model), blocks[j]);
			model.now += blocks[j];
			rested.now += blocks[j];
			now = model_clock(&model, 0);
			assert_int_equal(credit_level(&model.limit, &model.ledger, now),
					 credit_level(&rested.limit, &rested.ledger, now));
			assert_int_equal(model_burst(&model, 1, PLENTY),
					 model_burst(&rested, 1, PLENTY));
		}
	}
}

/* A block that outlasts the refill: the ledger is born again at its end, whole. */
static void test_rebirth_after_a_block(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		struct model model = blocked(BURST, 1, epochs[i]);

		model.now += BURST - 1;
		assert_int_equal(send_everywhere(&model), 0);
		assert_int_not_equal(model.ledger.born, model_clock(&model, 0));
		model.now += 1;
		assert_true(model_send(&model, 5, 1, 60));
		assert_int_equal(model.ledger.born, model_clock(&model, 0));
		assert_int_equal(model_burst(&model, 2, PLENTY), 9);
		assert_int_equal(model_block_left(&model), BURST);
		assert_int_equal(model_excess(&model), 0);
	}
}

/* One packet that costs more than is left blocks those that cost less, too. */
static void test_a_large_packet_blocks_small_ones(void **state)
{
	struct model model = blocking(SEC, 1, 12345);

	(void)state;
	assert_int_equal(model_burst(&model, 0, 5), 5);
	assert_false(model_send(&model, 1, 6, 60));
	assert_int_equal(send_everywhere(&model), 0);
	model.now += SEC - 1;
	assert_int_equal(send_everywhere(&model), 0);
	model.now += 1;
	assert_int_equal(send_everywhere(&model), 8);
}

/*
 * A packet of more than the burst passes with a full bucket, as under any limit. It is the next
 * packet, while the rest is owed, that begins the block.
 */
static void test_large_packet_and_a_block(void **state)
{
	struct model model = blocking(SEC, 1, 12345);

	(void)state;
	assert_true(model_send(&model, 0, 15, 60));
	assert_int_equal(model_block_left(&model), 0);
	model.now += 6 * COST - 1;
	assert_false(model_send(&model, 1, 1, 60));
	assert_int_equal(model_block_left(&model), SEC);
	model.now += SEC;
	assert_int_equal(model_burst(&model, 0, 1), 1);
	assert_false(model_send(&model, 0, 15, 60)); /* one packet less than full: too soon */
	assert_int_equal(model_block_left(&model), SEC);
	assert_false(model.bent);
}

/* --- Clocks ---------------------------------------------------------------------------------- */

/*
 * The overrun is seen by the foremost clock: a CPU that is behind ends the block that much later.
 */
static void test_block_seen_by_a_clock_behind(void **state)
{
	static const uint64_t lags[] = {1, COST / 2, COST, 5 * COST, 29 * SEC};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lags); i++) {
		struct model model = blocked(30 * SEC, 1, 1ULL << 40);

		model.lag[1] = lags[i];
		assert_false(model_send(&model, 1, 1, 60));
		model.now += 30 * SEC - 1;
		assert_int_equal(send_everywhere(&model), 0);
		model.now += 1;
		assert_false(model_send(&model, 1, 1, 60));
		model.now += lags[i] - 1;
		assert_false(model_send(&model, 1, 1, 60));
		model.now += 1;
		assert_true(model_send(&model, 1, 1, 60));
		assert_false(model.bent);
		assert_int_equal(model_excess(&model), 0);
	}
}

/* Once a packet has passed after the block, by any clock, it is over for all of them. */
static void test_block_is_over_for_a_clock_behind(void **state)
{
	struct model model = blocked(30 * SEC, 1, 1ULL << 40);

	(void)state;
	model.lag[1] = 5 * COST;
	model.now += 30 * SEC;
	assert_true(model_send(&model, 0, 1, 60));
	assert_true(model_send(&model, 1, 1, 60));
	assert_int_equal(model_burst(&model, 1, PLENTY), 8);
}

/*
 * The overrun is seen by a clock that is behind: it counts from the last draw, by whatever clock
 * that was.
 */
static void test_overrun_seen_by_a_clock_behind(void **state)
{
	(void)state;
	for (uint64_t idle = 0; idle <= 2 * COST / 3; idle += COST / 3) {
		struct model model = blocking(30 * SEC, 1, 1ULL << 40);
		uint64_t left;

		model.lag[1] = COST / 2;
		assert_int_equal(model_burst(&model, 0, 10), 10);
		model.now += idle;
		assert_false(model_send(&model, 1, 1, 60));
		left = 30 * SEC - least(idle, COST / 2);
		assert_int_equal(model_block_left(&model), left);
		model.now += left - 1;
		assert_int_equal(send_everywhere(&model), 0);
		model.now += 1;
		assert_int_equal(model_burst(&model, 0, PLENTY), 10);
		assert_int_equal(model_excess(&model), 0);
	}
}

/* --- Two CPUs at once ------------------------------------------------------------------------ */

static void send_on_cpu_1(struct model *model)
{
	bool *ret_passed = model->context;

	model->meanwhile = NULL;
	*ret_passed = model_send(model, 1, 1, 60);
}

/*
 * While one CPU finds its packet too large, or draws all there is, another's packet passes: as if
 * it had come first.
 */
static void test_draw_during_an_overrun(void **state)
{
	(void)state;
	for (uint64_t spent = 4; spent <= 5; spent++) {
		struct model model = blocking(SEC, 1, 12345);
		bool passed = false;

		assert_int_equal(model_burst(&model, 2, spent), spent);
		model.meanwhile = send_on_cpu_1;
		model.context = &passed;
		assert_false(model_send(&model, 0, 6, 60));
		assert_true(passed);
		assert_int_equal(model_block_left(&model), SEC);
		assert_int_equal(send_everywhere(&model), 0);
		assert_int_equal(model_excess(&model), 0);
	}
}

/* Two CPUs find the same overrun: it is one block. */
static void test_two_overruns_at_once(void **state)
{
	struct model model = blocking(SEC, 1, 12345);
	bool passed = true;

	(void)state;
	assert_int_equal(model_burst(&model, 0, 10), 10);
	model.meanwhile = send_on_cpu_1;
	model.context = &passed;
	assert_false(model_send(&model, 0, 1, 60));
	assert_false(passed);
	assert_int_equal(model_block_left(&model), SEC);
	model.now += SEC - 1;
	assert_int_equal(send_everywhere(&model), 0);
	model.now += 1;
	assert_int_equal(model_burst(&model, 0, PLENTY), 10);
}

/* --- Kernel ticks ---------------------------------------------------------------------------- */

/*
 * A CPU that has refused goes on for the rest of the kernel's tick, without a look at the ledger.
 */
static void test_refusal_lasts_a_kernel_tick(void **state)
{
	uint64_t jiffy = 4 * MS;
	struct model model = blocking(10 * MS, jiffy, 12345);

	(void)state;
	model.now = 3 * jiffy;
	assert_int_equal(model_burst(&model, 0, 10), 10);
	assert_false(model_send(&model, 0, 1, 60));
	model.now += 10 * MS - 1; /* in the middle of a tick */
	assert_int_equal(send_everywhere(&model), 0);
	model.purse[1] = (struct sl_purse){0};
	model.now += 1;
	assert_true(model_send(&model, 1, 1, 60)); /* it asks the ledger */
	assert_false(model_send(&model, 0, 1, 60));
	assert_int_equal(credit_spend(&model.purse[0], 1, model_jiffies(&model)), CREDIT_REFUSE);
	model.now = 6 * jiffy;
	assert_true(model_send(&model, 0, 1, 60));
}

/*
 * A forgiven source has a full bucket at once, and on a CPU that has just refused, from the next
 * tick.
 */
static void test_a_forgiven_source_has_a_full_bucket(void **state)
{
	uint64_t jiffy = 4 * MS;
	struct model model = blocking(86400 * SEC, jiffy, 12345);

	(void)state;
	model.now = 3 * jiffy;
	assert_int_equal(model_burst(&model, 0, 10), 10);
	assert_false(model_send(&model, 0, 1, 60));
	model.now += MS;
	model.ledger = credit_full(&model.limit, model_clock(&model, 0));
	assert_int_equal(model_block_left(&model), 0);
	assert_int_equal(model_burst(&model, 1, 5), 5);
	assert_false(model_send(&model, 0, 1, 60));
	model.now = 4 * jiffy;
	assert_int_equal(model_burst(&model, 0, 5), 5);
}

/* --- Changes of the limit -------------------------------------------------------------------- */

/* A limit whose action is no longer `block` has no block. */
static void test_limit_that_no_longer_blocks(void **state)
{
	struct model model = blocked(86400 * SEC, 1, 12345);

	(void)state;
	model.limit.block = 0;
	model.now += COST;
	assert_true(model_send(&model, 0, 1, 60));
	assert_false(model_send(&model, 0, 1, 60));
	model.now += COST;
	assert_true(model_send(&model, 0, 1, 60));
}

/*
 * A limit that never blocked, or whose ledger never overran, has no block, whatever the clock
 * shows.
 */
static void test_no_block_without_an_overrun(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		struct model model = blocking(SEC, 1, epochs[i]);

		for (int k = 0; k < 1000; k++) {
			assert_true(model_send(&model, k % MODEL_CPUS, 1, 60));
			model.now += COST;
		}
		assert_int_equal(model.ledger.blocked, 0);
	}
}

/* --- Starting empty -------------------------------------------------------------------------- */

static struct model starting_empty(uint64_t burst, uint32_t cpus, uint64_t epoch)
{
	struct sl_limit limit = model_limit(COST, burst, cpus, 1);
	struct model model;

	limit.start_empty = 1;
	model_begin(&model, &limit, 1, epoch);
	return model;
}

static void test_start_empty(void **state)
{
	static const uint32_t cpu_counts[] = {0, 1, 8};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			struct model model = starting_empty(1600 * COST, cpu_counts[j], epochs[i]);

			assert_int_equal(model_burst(&model, 0, 3), 0);
			model.now += COST - 1;
			assert_int_equal(model_burst(&model, 0, 3), 0);
			model.now += 1;
			assert_int_equal(model_burst(&model, 0, 3), 1);
			model.now += 37 * COST;
			assert_int_equal(model_burst(&model, 0, 50), 37);
			model.now += 1600 * COST; /* rested: from here on it is as every other */
			assert_int_equal(model_burst(&model, 0, 2000), 1600);
			assert_int_equal(model_excess(&model), 0);
		}
	}
}

/* Its birth tells of no level: what purses leave is not above `refill`. */
static void test_start_empty_refills_to_what_purses_leave(void **state)
{
	struct model model = starting_empty(1600 * COST, 8, 12345);

	(void)state;
	model.now += 1600 * COST - 1;
	assert_int_equal(model_burst(&model, 0, 2000), 1500);
	model = starting_empty(1600 * COST, 8, 12345);
	model.now += 1600 * COST;
	assert_int_equal(model_burst(&model, 0, 2000), 1600);
}

/* For a limit that blocks, too, a first packet without credit is an overrun. */
static void test_start_empty_and_block(void **state)
{
	struct sl_limit limit = {.cost = COST, .burst = BURST, .block = SEC, .start_empty = 1};
	struct model model;

	(void)state;
	model_shape(&limit, 2 * COST, MODEL_CPUS, 1, 0);
	model_begin(&model, &limit, 1, 12345);
	assert_false(model_send(&model, 0, 1, 60));
	assert_int_equal(model_block_left(&model), SEC);
	model.now += SEC;
	assert_int_equal(model_burst(&model, 0, PLENTY), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_purse_outlasts_the_beginning),
		cmocka_unit_test(test_block_lasts_to_the_tick),
		cmocka_unit_test(test_refused_packets_do_not_prolong_it),
		cmocka_unit_test(test_blocks_follow_only_overruns),
		cmocka_unit_test(test_level_after_a_block),
		cmocka_unit_test(test_rebirth_after_a_block),
		cmocka_unit_test(test_a_large_packet_blocks_small_ones),
		cmocka_unit_test(test_large_packet_and_a_block),
		cmocka_unit_test(test_block_seen_by_a_clock_behind),
		cmocka_unit_test(test_block_is_over_for_a_clock_behind),
		cmocka_unit_test(test_overrun_seen_by_a_clock_behind),
		cmocka_unit_test(test_draw_during_an_overrun),
		cmocka_unit_test(test_two_overruns_at_once),
		cmocka_unit_test(test_refusal_lasts_a_kernel_tick),
		cmocka_unit_test(test_a_forgiven_source_has_a_full_bucket),
		cmocka_unit_test(test_limit_that_no_longer_blocks),
		cmocka_unit_test(test_no_block_without_an_overrun),
		cmocka_unit_test(test_start_empty),
		cmocka_unit_test(test_start_empty_refills_to_what_purses_leave),
		cmocka_unit_test(test_start_empty_and_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
