// SPDX-License-Identifier: GPL-2.0
/* user/share/division.h: when the packet path divides shared limits, for `--on-loss divide`. */
#include "test.h"
#include "credit.h"
#include "share/division.h"

#define ROUND (100 * MS)
#define STEP  (10 * MS)
#define NODES 4
#define GRACE (DIVISION_GRACE / ROUND) /* rounds */

enum what {
	END,
	ANSWERED, /* `count` rounds with a reply */
	LOST,	  /* `count` rounds without */
	STOPPED,  /* the process is stopped or killed for `count` steps */
	LATE,	  /* a reply that waited for the stopped process */
	WORD,	  /* the process begins; the gate has a lease of `count` steps from now on */
};

/* Each step, and whether the packet path divides after it. A process begins without a lease. */
static const struct {
	const char *name;
	struct {
		enum what what;
		int count;
		bool divides;
	} steps[8];
} cases[] = {
	{"not while one of three rounds is answered",
	 {{ANSWERED, 1, false},
	  {LOST, 2, false},
	  {ANSWERED, 1, false},
	  {LOST, 2, false},
	  {ANSWERED, 1, false}}},
	{"from the third lost round on",
	 {{ANSWERED, 10, false}, {LOST, FLOW_LOST - 1, false}, {LOST, 1, true}, {LOST, 600, true}}},
	{"for a while after a loss, and a short loss does not begin it again",
	 {{LOST, FLOW_LOST, true},
	  {ANSWERED, GRACE, true},
	  {LOST, FLOW_LOST, true},
	  {ANSWERED, GRACE - 3, true},
	  {LOST, FLOW_LOST - 1, true},
	  {ANSWERED, 1, true},
	  {ANSWERED, 21, false}}},
	{"once the lease of a process that stands still has ended; a reply of before does not "
	 "count",
	 {{ANSWERED, 10, false},
	  {STOPPED, DIVISION_LEASE / STEP - 1, false},
	  {STOPPED, 1, true},
	  {LATE, 0, true},
	  {ANSWERED, GRACE - 1, true},
	  {ANSWERED, 1, false}}},
	{"until rounds are answered if the previous process was killed",
	 {{WORD, -100, true}, {LOST, 600, true}, {ANSWERED, GRACE, true}, {ANSWERED, 1, false}}},
	{"nothing renews the lease of the previous process before the first reply",
	 {{WORD, 10, false}, {LOST, FLOW_LOST - 1, true}}},
	{"a reply within that lease renews it", {{WORD, 20, false}, {ANSWERED, 20, false}}},
};

static struct division division;
static uint64_t now;
static unsigned int lost;

static bool divides(void)
{
	return credit_times(division.at, NODES, now) == NODES;
}

static void round_run(bool is_answered)
{
	for (uint64_t end = now + ROUND; now != end; now += STEP)
		division_step(&division, now);
	division_step(&division, now);
	lost = is_answered ? 0 : lost + 1;
	division_round(&division, lost, now);
}

TEST(test_when_limits_are_divided)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		now = 0 - SEC; /* moments wrap soon */
		lost = 0;
		division = (struct division){0};
		for (int k = 0; k < 8 && cases[i].steps[k].what; k++) {
			enum what what = cases[i].steps[k].what;
			int count = cases[i].steps[k].count;

			if (what == STOPPED)
				now += count * STEP;
			else if (what == WORD)
				division.at = now + count * (int64_t)STEP;
			else if (what == LATE && division_step(&division, now))
				division_round(&division, 0, now);
			for (int n = 0; (what == ANSWERED || what == LOST) && n < count; n++)
				round_run(what == ANSWERED);
			if (divides() != cases[i].steps[k].divides)
				fail_msg("%s: step %d", cases[i].name, k);
		}
	}
	assert_in_range(division.at - now, DIVISION_LEASE - STEP, DIVISION_LEASE);
}

/* 0 is the word for never. */
TEST(test_no_moment_is_never)
{
	division = (struct division){0};
	now = 0;
	division_round(&division, FLOW_LOST, now);
	now = 1;
	assert_true(divides());
	now = 0 - DIVISION_LEASE;
	division = (struct division){0};
	division_round(&division, 0, now);
	division_step(&division, now);
	assert_int_equal(division.at, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_when_limits_are_divided),
		cmocka_unit_test(test_no_moment_is_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
