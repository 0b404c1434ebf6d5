// SPDX-License-Identifier: GPL-2.0
/* include/pace.h: windows, and counts in total and by second. */
#include "test.h"
#include "pace.h"

static void test_a_window_is_never_0(void **state)
{
	const struct sl_meeting meeting = {.window_shift = 4};

	(void)state;
	assert_int_equal(window_of(&meeting, 0), 1);
	assert_int_equal(window_of(&meeting, 15), 1);
	assert_int_equal(window_of(&meeting, 16), 2);
	assert_int_equal(window_of(&meeting, 16 * 1000 + 3), 1001);
}

static void test_a_crowd_lasts_until_its_jiffy(void **state)
{
	const struct sl_admission here = {.crowd_until = {100, 200}};

	(void)state;
	assert_true(pace_is_crowded(&here, false, 99));
	assert_false(pace_is_crowded(&here, false, 100));
	assert_true(pace_is_crowded(&here, true, 199));
	assert_true(pace_is_flooded(&here, 199));
	assert_false(pace_is_flooded(&here, 200));
	assert_false(pace_is_flooded(&(struct sl_admission){0}, 0));
}

static void test_newcomers_of_a_window_are_counted_once(void **state)
{
	struct sl_admission here = {.met = {4, 3}, .second = 5};

	(void)state;
	pace_met(&here);
	pace_met(&here);
	assert_int_equal(here.event[SL_EVENT_MET].total, 7);
	assert_int_equal(here.event[SL_EVENT_MET].now, 7);
	assert_int_equal(here.met[0] + here.met[1], 0);
}

/* What was counted in a second is told in the next one, and not later. */
static void test_a_pace_is_that_of_the_second_before(void **state)
{
	static const struct {
		uint32_t from, to, last;
	} cases[] = {{5, 5, 1}, {5, 6, 9}, {5, 7, 0}, {5, 4, 0}, {0xffffffff, 0, 9}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int event = 0; event < SL_EVENTS; event++) {
			struct sl_admission here = {.second = cases[i].from};

			here.event[event] = (struct sl_pace){.total = 20, .now = 9, .last = 1};
			pace_turn(&here, cases[i].to);
			assert_int_equal(here.second, cases[i].to);
			assert_int_equal(here.event[event].total, 20);
			assert_int_equal(here.event[event].last, cases[i].last);
			assert_int_equal(here.event[event].now,
					 cases[i].from == cases[i].to ? 9 : 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_is_never_0),
		cmocka_unit_test(test_a_crowd_lasts_until_its_jiffy),
		cmocka_unit_test(test_newcomers_of_a_window_are_counted_once),
		cmocka_unit_test(test_a_pace_is_that_of_the_second_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
