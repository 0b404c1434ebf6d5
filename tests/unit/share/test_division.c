// SPDX-License-Identifier: GPL-2.0
/* user/share/division.h: when the packet path divides shared limits, of `--on-loss divide`. */
#include "test.h"
#include "credit.h"
#include "share/division.h"

#define ROUND (100 * MS)
#define STEP  (10 * MS)
#define NODES 4

static struct division division;
static uint64_t now;
static unsigned int lost;

/* Whether the packet path divides. */
static bool divides(void)
{
	return credit_times(division.at, NODES, now) == NODES;
}

/* The process lives on for some rounds; as share.c has it. */
static void rounds_run(unsigned int count, bool are_answered)
{
	while (count--) {
		for (uint64_t end = now + ROUND; now != end; now += STEP)
			division_step(&division, now);
		division_step(&division, now);
		lost = are_answered ? 0 : lost + 1;
		division_round(&division, lost, now);
	}
}

/* A process that begins where the gate says this, for such a moment from now on. */
static void process_begin(bool has_word, int64_t span)
{
	now = 0 - SEC; /* moments wrap soon */
	lost = 0;
	division = (struct division){.at = has_word ? now + span : 0};
}

TEST(test_nothing_is_divided_while_rounds_are_answered)
{
	process_begin(false, 0);
	for (int i = 0; i < 100; i++) {
		rounds_run(1, i % FLOW_LOST == 0); /* two of three are lost */
		assert_false(divides());
	}
	assert_in_range(division.at - now, DIVISION_LEASE - STEP, DIVISION_LEASE);
}

TEST(test_it_divides_from_the_third_lost_round_on)
{
	process_begin(false, 0);
	rounds_run(10, true);
	rounds_run(FLOW_LOST - 1, false);
	assert_false(divides());
	rounds_run(1, false);
	assert_true(divides());
	assert_true(division_step(&division, now));
	rounds_run(600, false);
	assert_true(divides());
}

/* Others may find the store a little later, and it may be lost again. */
TEST(test_it_divides_for_a_while_behind_a_loss)
{
	process_begin(false, 0);
	rounds_run(10, true);
	rounds_run(FLOW_LOST, false);
	rounds_run(DIVISION_GRACE / ROUND, true);
	assert_true(divides());
	rounds_run(FLOW_LOST, false);
	rounds_run(DIVISION_GRACE / ROUND - 3, true);
	rounds_run(FLOW_LOST - 1, false); /* so short a loss does not begin it again */
	rounds_run(1, true);
	assert_true(divides());
	rounds_run(1, true);
	assert_false(divides());
	assert_false(division_step(&division, now));
	rounds_run(20, true);
	assert_false(divides());
}

/* Killed, or stopped for longer than the lease: it needs nobody to say so. */
TEST(test_it_divides_where_the_process_is_not_heard_of)
{
	process_begin(false, 0);
	rounds_run(10, true);
	now += DIVISION_LEASE - STEP;
	assert_false(divides());
	now += STEP;
	assert_true(divides());
	/* an answer that waited for it is of before */
	assert_true(division_step(&division, now));
	division_round(&division, 0, now);
	assert_true(divides());
	rounds_run(DIVISION_GRACE / ROUND - 1, true);
	assert_true(divides());
	rounds_run(1, true);
	assert_false(divides());
}

/* The process before was killed, and the store may be away. */
TEST(test_what_a_process_finds_goes_on_until_rounds_are_answered)
{
	process_begin(true, -(int64_t)SEC);
	rounds_run(1, false);
	assert_true(divides());
	rounds_run(600, false);
	assert_true(divides());
	rounds_run(DIVISION_GRACE / ROUND, true);
	assert_true(divides());
	rounds_run(1, true);
	assert_false(divides());

	/* its lease still holds: nobody renews it before the first answer */
	process_begin(true, SEC / 10);
	rounds_run(FLOW_LOST - 1, false);
	assert_true(divides());

	process_begin(true, SEC / 5);
	rounds_run(20, true);
	assert_false(divides());

	process_begin(false, 0);
	rounds_run(FLOW_LOST, false);
	assert_true(divides());
}

/* 0 is the word for never. */
TEST(test_no_moment_is_never)
{
	process_begin(false, 0);
	now = 0;
	division_round(&division, FLOW_LOST, now);
	now = 1;
	assert_true(divides());
	now = 0 - DIVISION_LEASE;
	division = (struct division){.at = 0};
	division_round(&division, 0, now);
	division_step(&division, now);
	assert_int_equal(division.at, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_divided_while_rounds_are_answered),
		cmocka_unit_test(test_it_divides_from_the_third_lost_round_on),
		cmocka_unit_test(test_it_divides_for_a_while_behind_a_loss),
		cmocka_unit_test(test_it_divides_where_the_process_is_not_heard_of),
		cmocka_unit_test(test_what_a_process_finds_goes_on_until_rounds_are_answered),
		cmocka_unit_test(test_no_moment_is_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
