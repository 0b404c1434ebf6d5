// SPDX-License-Identifier: GPL-2.0
/* Tests user/base/array.h: an array that grows when items are added. */
#include "test.h"
#include "base/array.h"

#define ITEMS 1000

TEST(test_growth_keeps_the_items_and_doubles_the_room)
{
	unsigned int count = 0, room = 0, expected = ARRAY_ROOM_FIRST;
	uint64_t *items = NULL;

	for (; count < ITEMS; count++) {
		if (count == expected)
			expected *= 2;
		assert_true(array_grow(items, count, room));
		assert_int_equal(room, expected);
		items[count] = count * 0x9e3779b97f4a7c15ULL;
	}
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(items[i], i * 0x9e3779b97f4a7c15ULL);
	free(items);
}

/*
 * array_grow() must fail if the array has 2^31 items. It must not access these items: the array has
 * only one byte of memory.
 */
TEST(test_room_that_would_overflow_is_refused)
{
	unsigned int room = 1U << 31;
	char *memory = malloc(1), *items = memory;

	assert_false(array_grow(items, room, room));
	assert_ptr_equal(items, memory);
	assert_int_equal(room, 1U << 31);
	assert_true(array_grow(items, room - 1, room));
	assert_ptr_equal(items, memory);
	free(memory);
}

TESTS(NULL, NULL)
