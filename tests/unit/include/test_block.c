// SPDX-License-Identifier: GPL-2.0
/* include/block.h: the steps of `escalate` at their boundaries. */
#include "test.h"

#include "block.h"

#define BLOCK (10 * SL_TICKS_PER_SEC)
#define NOW   (1000 * SL_TICKS_PER_SEC)

/*
 * A block that begins within the length of the last one after its end has a step more, and for each
 * such length that has passed a step less.
 */
static void test_a_step_back_takes_the_whole_length_of_the_last_block(void **state)
{
	static const struct {
		unsigned int steps;   /* of the last block */
		unsigned int lengths; /* of it, since its end */
		int more;	      /* ticks, besides */
		unsigned int next;    /* steps of the block that begins */
	} cases[] = {
		{0, 0, 0, 1}, {0, 1, -1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 9, 0, 0},
		{2, 0, 1, 3}, {2, 1, -1, 3}, {2, 1, 0, 3}, {2, 1, 1, 2}, {2, 2, -1, 2},
		{2, 2, 0, 2}, {2, 2, 1, 1},  {2, 3, 0, 1}, {2, 3, 1, 0}, {2, 4, 1, 0},
		{3, 0, 1, 4}, {4, 0, 1, 4}, /* as long as the longest */
	};
	const struct sl_limit limit = {
		.block = BLOCK, .block_max = 16 * BLOCK, .escalate = 2, .steps_max = 4};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_state state = {.blocked_until = NOW | cases[i].steps};
		__u64 length = BLOCK << cases[i].steps;
		__u64 now = NOW + cases[i].lengths * length + cases[i].more;
		__u64 next = block_next(&limit, &state, now);

		assert_int_equal(block_steps(&limit, &state, now), cases[i].next);
		assert_int_equal(next & BLOCK_STEPS_MAX, cases[i].next);
		assert_in_range((next & ~BLOCK_STEPS_MAX) - now, BLOCK << cases[i].next,
				(BLOCK << cases[i].next) + BLOCK_STEPS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_step_back_takes_the_whole_length_of_the_last_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
