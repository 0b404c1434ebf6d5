// SPDX-License-Identifier: GPL-2.0
/* include/admission.h: windows, and counts in total and by second. */
#include "test.h"
#include "admission.h"

static void test_a_window_is_never_0(void **state)
{
	const struct sl_params params = {.interval_shift = 4};

	(void)state;
	assert_int_equal(flood_interval(&params, 0), 1);
	assert_int_equal(flood_interval(&params, 15), 1);
	assert_int_equal(flood_interval(&params, 16), 2);
	assert_int_equal(flood_interval(&params, 16 * 1000 + 3), 1001);
}

static void test_a_crowd_lasts_until_its_jiffy(void **state)
{
	const struct sl_admission here = {.flood_until = {100, 200}};

	(void)state;
	assert_true(flood_is_on(&here, false, 99));
	assert_false(flood_is_on(&here, false, 100));
	assert_true(flood_is_on(&here, true, 199));
	assert_true(flood_is_any(&here, 199));
	assert_false(flood_is_any(&here, 200));
	assert_false(flood_is_any(&(struct sl_admission){0}, 0));
}

static void test_newcomers_of_a_window_are_counted_once(void **state)
{
	struct sl_admission here = {.new_keys = {4, 3}, .second = 5};

	(void)state;
	flood_count_interval(&here);
	flood_count_interval(&here);
	assert_int_equal(here.event[SL_EVENT_NEW_KEY].total, 7);
	assert_int_equal(here.event[SL_EVENT_NEW_KEY].now, 7);
	assert_int_equal(here.new_keys[0] + here.new_keys[1], 0);
}

/* What was counted in a second is told in the next one, and not later. */
static void test_a_rate_is_that_of_the_second_before(void **state)
{
	static const struct {
		uint32_t from, to, last;
	} cases[] = {{5, 5, 1}, {5, 6, 9}, {5, 7, 0}, {5, 4, 0}, {0xffffffff, 0, 9}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int event = 0; event < SL_EVENTS; event++) {
			struct sl_admission here = {.second = cases[i].from};

			here.event[event] =
				(struct sl_event_count){.total = 20, .now = 9, .last = 1};
			flood_turn(&here, cases[i].to);
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
		cmocka_unit_test(test_a_rate_is_that_of_the_second_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
