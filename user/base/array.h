/* SPDX-License-Identifier: GPL-2.0 */
/* Base: counts the items of an array, and appends items to growing arrays. */
#ifndef SLUICE_ARRAY_H
#define SLUICE_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define ARRAY_ROOM_FIRST 64

/*
 * Makes room for one more item at the end of an array, which may move. Returns false, and does not
 * change the array, if there is no memory. items: variable that points to the array; initially
 * NULL. count: number of used items. room: variable with the number of items that fit; initially 0.
 * The caller frees `items`.
 */
#define array_grow(items, count, room)                                                             \
	({                                                                                         \
		void *grown_ = array_room(items, count, &(room), sizeof(*(items)));                \
		if (grown_)                                                                        \
			(items) = grown_;                                                          \
		grown_ != NULL;                                                                    \
	})

/*
 * Makes room for array_grow(). Returns the array at its new address, or NULL if there is no memory.
 */
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
