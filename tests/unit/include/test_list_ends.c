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

#define HOUR (3600U * 1000000000ULL >> SL_UNTIL_SHIFT)

/* Sets two expiries, in both orders, and returns the stored expiry of list 5. */
static __u32 stored(__u32 of_5, __u32 of_63)
{
	struct list_end a = {of_5, 5}, b = {of_63, 63}, got[LIST_ENDS];
	__u32 list_until, timed, again, timed_again;

	list_ends_set(b, a, &again, &timed_again);
	list_ends_set(a, b, &list_until, &timed);
	if (of_5 != of_63)
		assert_true(again == list_until && timed_again == timed);
	for (int i = 0; i < LIST_ENDS; i++)
		got[i] = list_end_get(list_until, timed, i);
	assert_true(got[0].until >= got[1].until);
	assert_int_equal(got[0].until, of_5 > of_63 ? of_5 : of_63);
	if (!of_5 || !of_63) {
		assert_int_equal(got[1].until, 0);
		return got[0].list == 5 ? got[0].until : 0;
	}
	assert_int_equal(got[0].list ^ got[1].list, 5 ^ 63);
	return got[0].list == 5 ? got[0].until : got[1].until;
}

TEST(test_two_expiries_are_stored)
{
	static const __u32 differences[] = {0,	   1,	 2,	    32767,	32768,
					    65537, HOUR, 24 * HOUR, 9000 * HOUR};

	assert_int_equal(stored(0, 0), 0);
	assert_int_equal(stored(7, 0), 7);
	assert_int_equal(stored(0, 7), 0);
	for (__u32 i = 0; i < ARRAY_SIZE(differences) * 1000; i++) {
		__u32 difference = differences[i / 1000], until = 1 + i * 7919, got;

		got = stored(until, until + difference);
		assert_in_range(got, until, until + difference / 16384);
		if (difference < 32768)
			assert_int_equal(got, until);
		assert_int_equal(stored(got, until + difference), got);
		assert_int_equal(stored(until + difference, until), until + difference);
	}
}

/* A list that ends in an hour ends then, however often another list gets a day from now. */
TEST(test_an_expiry_that_is_written_again_does_not_move)
{
	__u32 until = HOUR;

	for (__u32 now = 0; now < HOUR; now += 29)
		until = stored(until, now + 24 * HOUR);
	assert_in_range(until, HOUR, HOUR + 24 * HOUR / 16384);
}

TEST(test_a_prefix_is_on_each_list_until_its_expiry)
{
	__u32 list_until, timed, end;

	list_ends_set((struct list_end){10, 2}, (struct list_end){30, 4}, &list_until, &timed);
	for (__u32 now = 0; now < 40; now++) {
		__u64 lists = 1 | (now < 10 ? 1 << 2 : 0) | (now < 30 ? 1 << 4 : 0);

		end = 0;
		assert_true(entries_in_force(0x15, list_until, timed, now, &end) == lists);
		assert_int_equal(end, now < 10 ? 10 : now < 30 ? 30 : 0);
	}
	list_ends_keep(~(1ULL << 4), &list_until, &timed);
	assert_int_equal(list_until, 10);
	assert_int_equal(timed, 2);
	list_ends_keep(0, &list_until, &timed);
	assert_int_equal(list_until | timed, 0);
}

TESTS(NULL, NULL)
