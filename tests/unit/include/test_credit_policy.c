// SPDX-License-Identifier: GPL-2.0
/*
 * include/credit.h where a policy has several limits: a packet that one of them refuses gets back
 * what the others charged. The order and the refunds are bpf/charge.h's, as credit_model.h tells
 * them; random sequences are in test_credit_property.c.
 */
#include "test.h"
#include "credit_cases.h"

#define PLENTY 5000

/* Limits of 1000 packets per second, and so many packets; a burst of 0 ends the list. */
static struct model_policy policy_of(const uint64_t bursts[SL_LIMITS_MAX], uint32_t cpus,
				     uint64_t epoch)
{
	struct model_policy policy = {0};

	while (policy.limits < SL_LIMITS_MAX && bursts[policy.limits]) {
		struct sl_limit limit =
			model_limit(COST, bursts[policy.limits] * COST, cpus, JIFFY);

		limit.refuse_by_jiffy = false;
		model_begin(&policy.limit[policy.limits++], &limit, JIFFY, epoch);
	}
	return policy;
}

#define POLICY(cpus, epoch, ...)                                                                   \
	policy_of((const uint64_t[SL_LIMITS_MAX]){__VA_ARGS__}, cpus, epoch)

#define ALL 0xfU

/* Sends so many packets on one CPU; how many pass? */
static uint64_t policy_burst(struct model_policy *policy, int cpu, uint64_t count, uint32_t matches)
{
	uint64_t passed = 0;

	while (count--)
		passed += policy_send(policy, cpu, 1, 60, matches);
	return passed;
}

static int64_t level_now(const struct model *model)
{
	return credit_level(&model->limit, &model->ledger, model_clock(model, 0));
}

/* --- Into the purse -------------------------------------------------------------------------- */

static void test_a_purse_takes_a_refund_it_has_room_for(void **state)
{
	static const struct {
		uint64_t purse; /* the most that it may hold */
		int64_t credit;
		uint64_t cost;
		bool taken;
	} cases[] = {
		{100, 0, 1, true},
		{100, 0, 100, true},
		{100, 0, 101, false},
		{100, 60, 40, true},
		{100, 60, 41, false},
		{100, 99, 1, true},
		{100, 100, 1, false}, /* just drawn: it is full */
		{100, -1, 1, false},  /* it remembers a refusal */
		{100, -50, 50, false},
		{100, -50, 120, false},
		{0, 0, 1, false}, /* a limit without purses */
		{0, -1, 1, false},
		{0, -1, 2, false},
		{1ULL << 56, 0, 1ULL << 56, true},
		{1ULL << 56, 1, 1ULL << 56, false},
		{1ULL << 56, 1, SL_BURST_TICKS_MAX, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit = {.purse = cases[i].purse};
		struct sl_purse purse = {.credit = cases[i].credit, .at = 7, .until = 9};

		assert_int_equal(credit_give_back(&limit, &purse, cases[i].cost), cases[i].taken);
		assert_int_equal(purse.credit,
				 cases[i].credit + (cases[i].taken ? cases[i].cost : 0));
		assert_int_equal(purse.at, 7);
		assert_int_equal(purse.until, 9);
	}
}

/*
 * A purse that was spent from is as it was; what it was when full came from the ledger, and returns
 * there.
 */
static void test_refund_goes_where_it_came_from(void **state)
{
	struct model_policy policy = POLICY(2, 12345, 1600);
	struct model *model = &policy.limit[0];
	uint64_t jiffy = model_jiffies(model);
	struct sl_purse purse;
	struct sl_ledger ledger;

	(void)state;
	assert_true(model_judge(model, 0, COST, jiffy)); /* draws 50 packets' worth on top */
	assert_int_equal(model->purse[0].credit, 50 * COST);
	model_refund(model, 0, COST);
	assert_int_equal(model->purse[0].credit, 50 * COST);
	assert_int_equal(level_now(model), 1550 * COST);

	purse = model->purse[0];
	ledger = model->ledger;
	assert_true(model_judge(model, 0, COST, jiffy));
	model_refund(model, 0, COST);
	assert_memory_equal(&model->purse[0], &purse, sizeof(purse));
	assert_memory_equal(&model->ledger, &ledger, sizeof(ledger));
}

/* --- Into the ledger ------------------------------------------------------------------------- */

/* A limit without purses: a refund is exact, at any level and any moment. */
static void test_refund_to_the_ledger_is_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (uint64_t spent = 0; spent < 10; spent++) {
			struct model_policy policy = POLICY(0, epochs[i], 10);
			struct model *model = &policy.limit[0];
			uint64_t jiffy = model_jiffies(model);

			assert_int_equal(policy_burst(&policy, 0, spent, ALL), spent);
			assert_true(model_judge(model, 0, COST, jiffy));
			model_refund(model, 0, COST);
			assert_int_equal(level_now(model), (10 - spent) * COST);
			assert_int_equal(policy_burst(&policy, 1, PLENTY, ALL), 10 - spent);
			policy_pass_time(&policy, 10 * COST);
			assert_int_equal(policy_burst(&policy, 1, PLENTY, ALL), 10);
		}
	}
}

/* A refund never lifts a ledger above its burst: neither at once, nor once it has rested. */
static void test_refund_to_a_full_ledger(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpu_counts); i++) {
		struct model_policy policy = POLICY(cpu_counts[i], 12345, 1600);
		struct model *model = &policy.limit[0];

		model->ledger.zero -= 100 * COST;
		assert_true(model_holds(model) <= (int64_t)(1600 * COST));
		policy_pass_time(&policy, 200 * COST);
		assert_int_equal(model_holds(model), 1600 * COST);
		assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 1600);
		assert_int_equal(model_excess(model), 0);
	}
}

static void drain_elsewhere(struct model *model)
{
	uint64_t *ret_passed = model->context;

	model->meanwhile = NULL;
	*ret_passed += model_burst(model, 1, PLENTY);
}

/*
 * Between charge and refund another CPU takes all there is: what is refunded is all that is left.
 */
static void test_refund_after_another_cpus_draw(void **state)
{
	struct model_policy policy = POLICY(0, 12345, 10, 1);
	uint64_t passed = 0;

	(void)state;
	assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 1);
	policy.limit[0].meanwhile = drain_elsewhere;
	policy.limit[0].context = &passed;
	assert_false(policy_send(&policy, 0, 7, 60, ALL)); /* the second limit is empty */
	assert_int_equal(passed, 9);
	assert_int_equal(level_now(&policy.limit[0]), 0);

	/* the refund, and not the draw, is interrupted */
	policy = POLICY(0, 12345, 10, 1);
	passed = 0;
	assert_true(model_judge(&policy.limit[0], 0, 7 * COST, model_jiffies(&policy.limit[0])));
	assert_int_equal(model_burst(&policy.limit[0], 1, PLENTY), 3);
	model_refund(&policy.limit[0], 0, 7 * COST);
	assert_int_equal(level_now(&policy.limit[0]), 7 * COST);
}

/* --- A policy -------------------------------------------------------------------------------- */

/*
 * The tighter limit refuses as often as can be: the wider one is none the poorer, on one CPU or on
 * eight.
 */
static void test_a_drop_charges_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
			struct model_policy policy =
				POLICY(cpu_counts[j], epochs[i], 1600, 1500, 10);
			uint64_t passed = policy_burst(&policy, 0, 10, ALL);

			assert_int_equal(passed, 10);
			assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 0);
			assert_int_equal(policy.refunds, 2 * PLENTY);
			assert_int_equal(model_holds(&policy.limit[0]), 1590 * COST);
			assert_int_equal(model_holds(&policy.limit[1]), 1490 * COST);
			assert_int_equal(policy_burst(&policy, 0, PLENTY, 3), 1490);
			assert_int_equal(policy_burst(&policy, 0, PLENTY, 1), 100);
		}
	}
}

/* The same while time passes, and a little passes, too. */
static void test_drops_do_not_slow_the_refill(void **state)
{
	(void)state;
	for (size_t j = 0; j < ARRAY_SIZE(cpu_counts); j++) {
		struct model_policy policy = POLICY(cpu_counts[j], 12345, 1600, 1);
		uint64_t passed = 0;

		model_drain(&policy.limit[0]);
		model_drain(&policy.limit[1]);
		policy.limit[1].limit.cost = 100 * COST; /* 10 packets per second */
		policy.limit[1].limit.burst = policy.limit[1].limit.refill = 100 * COST;
		for (int i = 0; i < 1000; i++) {
			policy_pass_time(&policy, COST);
			passed += policy_burst(&policy, 0, 10, ALL);
		}
		assert_int_equal(passed, 10);
		assert_int_equal(model_holds(&policy.limit[0]), 990 * COST);
		assert_int_equal(policy_burst(&policy, 0, PLENTY, 1), 990);
	}
}

static void test_each_limit_refuses_for_all(void **state)
{
	(void)state;
	for (int tightest = 0; tightest < SL_LIMITS_MAX; tightest++) {
		uint64_t bursts[SL_LIMITS_MAX] = {100, 100, 100, 100};
		struct model_policy policy;

		bursts[tightest] = 7;
		policy = policy_of(bursts, 0, 12345);
		assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 7);
		for (int i = 0; i < SL_LIMITS_MAX; i++)
			assert_int_equal(level_now(&policy.limit[i]), (bursts[i] - 7) * COST);
		assert_int_equal(policy.refunds, (PLENTY - 7) * tightest);
	}
}

/* What a limit is not for costs nothing under it, and is not refused by it. */
static void test_limits_that_do_not_match(void **state)
{
	struct model_policy policy = POLICY(0, 12345, 10, 20, 30);

	(void)state;
	assert_int_equal(policy_burst(&policy, 0, PLENTY, 1 << 1), 20);
	assert_int_equal(level_now(&policy.limit[0]), 10 * COST);
	assert_int_equal(policy_burst(&policy, 0, PLENTY, 1 << 0 | 1 << 2), 10);
	assert_int_equal(level_now(&policy.limit[2]), 20 * COST);
	assert_int_equal(policy_burst(&policy, 0, PLENTY, 0), PLENTY);
}

/* A limit that only observes lets everything pass, and charges what it would have passed. */
static void test_limit_that_observes(void **state)
{
	struct model_policy policy = POLICY(0, 12345, 50, 10);

	(void)state;
	policy.limit[1].limit.observe = 1;
	assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 50);
	assert_int_equal(level_now(&policy.limit[0]), 0);
	assert_int_equal(level_now(&policy.limit[1]), 0);
	policy_pass_time(&policy, 5 * COST);
	assert_int_equal(policy_burst(&policy, 0, 3, ALL), 3);
	assert_int_equal(level_now(&policy.limit[1]), 2 * COST);
	assert_int_equal(model_excess(&policy.limit[1]), 0);
}

/*
 * While one limit is blocked the others are not charged; nor does a refusal elsewhere begin a
 * block.
 */
static void test_limits_beside_a_block(void **state)
{
	struct model_policy policy = POLICY(0, 12345, 100, 10);

	(void)state;
	policy.limit[1].limit.block = SEC / 2;
	assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 10);
	assert_int_equal(level_now(&policy.limit[0]), 90 * COST);
	assert_int_equal(policy_burst(&policy, 0, PLENTY, 1), 90); /* not what is blocked */
	policy_pass_time(&policy, 20 * COST);
	assert_int_equal(policy_burst(&policy, 1, PLENTY, ALL), 0);
	assert_int_equal(level_now(&policy.limit[0]), 20 * COST);
	assert_int_equal(model_burst(&policy.limit[0], 0, PLENTY), 20);
	policy_pass_time(&policy, SEC / 2 - 20 * COST);
	assert_int_equal(model_burst(&policy.limit[0], 0, PLENTY), 480 - 380); /* its burst */
	assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 0);
	assert_int_equal(model_block_left(&policy.limit[1]), 0);
}

/*
 * A limit that is apart finds no purse in the bucket: each packet draws its own cost, and gets it
 * back.
 */
static void test_limit_that_is_apart(void **state)
{
	struct model_policy policy = POLICY(0, 12345, 1600, 10);
	struct sl_purse none = {0};

	(void)state;
	policy.limit[0].limit.apart = 1;
	assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 10);
	assert_memory_equal(&policy.limit[0].purse[0], &none, sizeof(none));
	assert_int_equal(level_now(&policy.limit[0]), 1590 * COST);
	assert_int_equal(policy_burst(&policy, 3, PLENTY, 1), 1590);
}

/* A packet and a bit rate at once are two limits. */
static void test_packets_and_bytes(void **state)
{
	struct model_policy policy = POLICY(0, 12345, 100);
	struct sl_limit bytes = model_byte_limit(8000000, 0, 0, JIFFY); /* 1 byte in 1 us */
	uint64_t byte = SEC / 1000000;

	(void)state;
	bytes.burst = bytes.refill = 10000 * byte;
	bytes.refuse_by_jiffy = false;
	model_begin(&policy.limit[policy.limits++], &bytes, JIFFY, 12345);
	assert_true(policy_send(&policy, 0, 1, 9000, ALL));
	assert_false(policy_send(&policy, 0, 1, 1001, ALL));
	assert_int_equal(level_now(&policy.limit[0]), 99 * COST);
	assert_true(policy_send(&policy, 0, 1, 1000, ALL));
	policy_pass_time(&policy, 10000 * byte);
	assert_int_equal(policy_burst(&policy, 0, PLENTY, ALL), 100);
	assert_int_equal(level_now(&policy.limit[1]), 4000 * byte);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_purse_takes_a_refund_it_has_room_for),
		cmocka_unit_test(test_refund_goes_where_it_came_from),
		cmocka_unit_test(test_refund_to_the_ledger_is_exact),
		cmocka_unit_test(test_refund_to_a_full_ledger),
		cmocka_unit_test(test_refund_after_another_cpus_draw),
		cmocka_unit_test(test_a_drop_charges_nothing),
		cmocka_unit_test(test_drops_do_not_slow_the_refill),
		cmocka_unit_test(test_each_limit_refuses_for_all),
		cmocka_unit_test(test_limits_that_do_not_match),
		cmocka_unit_test(test_limit_that_observes),
		cmocka_unit_test(test_limits_beside_a_block),
		cmocka_unit_test(test_limit_that_is_apart),
		cmocka_unit_test(test_packets_and_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
