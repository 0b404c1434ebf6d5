/* SPDX-License-Identifier: GPL-2.0 */
/* Arrays: how many items one has, and one that grows. */
#ifndef SLUICE_ARRAY_H
#define SLUICE_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define ARRAY_ROOM_FIRST 64

/*
 * Makes room for one more item behind the `count` that the variable `items` points to. `room` is the
 * variable that tells for how many there is memory: it doubles, and then the items move. An empty array
 * is NULL and 0; free(items) ends any. False: out of memory, and the array is as it was.
 */
#define array_grow(items, count, room)                                                             \
	({                                                                                         \
		void *grown_ = array_room(items, count, &(room), sizeof(*(items)));                \
		if (grown_)                                                                        \
			(items) = grown_;                                                          \
		grown_ != NULL;                                                                    \
	})

/* Does the work of array_grow(): returns the items, or NULL. */
static inline void *array_room(void *items, unsigned int count, unsigned int *room, size_t size)
{
	unsigned int more = *room ? 2 * *room : ARRAY_ROOM_FIRST;

	if (count < *room)
		return items;
	if (more <= *room)
		return NULL;
	items = reallocarray(items, more, size);
	if (items)
		*room = more;
	return items;
}

#endif
