// SPDX-License-Identifier: GPL-2.0
/* Tests include/list_ends.h, which returns whether a list is in effect at a time. */
#include "test.h"

#include "list_ends.h"

/* A list is in effect until just before the time `until`. */
TEST(test_a_list_ends_with_the_unit_of_its_expiry)
{
	static const struct {
		__u32 until, now;
		bool holds;
	} cases[] = {
		{2, 1, true},	     {1, 1, false},	   {1000, 999, true}, {1000, 1000, false},
		{1000, 1001, false}, {~0U, ~0U - 1, true}, {~0U, ~0U, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases) * SL_LIST_PLACES; i++) {
		__u64 bit = 1ULL << i % SL_LIST_PLACES, others = ~bit;
		const __u32 until = cases[i / SL_LIST_PLACES].until;
		bool holds = cases[i / SL_LIST_PLACES].holds;
		struct sl_gate gate = {.lists_ending = bit};
		__u32 end = 0;

		gate.list_ends[list_end_index(bit)] = until;
		assert_true(lists_in_force(&gate, ~0ULL, cases[i / SL_LIST_PLACES].now, &end) ==
			    (holds ? ~0ULL : others));
		assert_int_equal(end, holds ? until : 0);
	}
}

TEST(test_the_first_expiry_limits_the_result)
{
	struct sl_gate gate = {.lists_ending = 0x7};
	__u32 end = 0;

	gate.list_ends[list_end_index(1)] = 30;
	gate.list_ends[list_end_index(2)] = 20;
	gate.list_ends[list_end_index(4)] = 10;
	assert_true(lists_in_force(&gate, 0xf, 10, &end) == 0xb);
	assert_int_equal(end, 20);
	end = 15;
	assert_true(lists_in_force(&gate, 0xf, 10, &end) == 0xb);
	assert_int_equal(end, 15);
}

TESTS(NULL, NULL)
