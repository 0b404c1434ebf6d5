// SPDX-License-Identifier: GPL-2.0
/*
 * Tests what a charge stores in a shaper's state (include/shape.h). test_kinds.c tests departure
 * times.
 */
#include "test.h"

#include "shape.h"

/* A charge never moves `charged_at` back. */
TEST(test_a_charge_writes_its_time)
{
	static const struct {
		__u64 drawn, now, ready; /* initial `charged_at`, clock, initial `ready_at` */
		bool passes;
		__u64 then;
	} cases[] = {
		{100, 500, 100, true, 500}, {100, 500, 600, true, 500},
		{500, 400, 600, true, 500}, {100, 500, 1501, false, 100},
		{~0ULL - 5, 5, 0, true, 5},
	};
	const struct sl_limit limit = {.kind = SL_SHAPE, .cost = 100, .horizon = 1000};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_state state = {.ready_at = cases[i].ready, .charged_at = cases[i].drawn};
		__u64 departure;

		assert_int_equal(shape_charge(&limit, &state, 100, cases[i].now, 0, &departure),
				 cases[i].passes);
		assert_true(state.charged_at == cases[i].then);
	}
}

/* A packet with a departure time of its sender passes if this time is within the horizon. */
TEST(test_a_sender_may_delay_a_packet_up_to_the_horizon)
{
	const struct sl_limit limit = {.kind = SL_SHAPE, .cost = 100, .horizon = 1000};
	static const __u64 nows[] = {1, 5000, ~0ULL - 500};

	for (size_t i = 0; i < ARRAY_SIZE(nows); i++) {
		assert_false(shape_is_too_late(&limit, 0, nows[i]));
		assert_false(shape_is_too_late(&limit, nows[i] - 1000, nows[i]));
		assert_false(shape_is_too_late(&limit, nows[i] + 1000, nows[i]));
		assert_true(shape_is_too_late(&limit, nows[i] + 1001, nows[i]));
	}
}

TESTS(NULL, NULL)
