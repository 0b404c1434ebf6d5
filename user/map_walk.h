/* SPDX-License-Identifier: GPL-2.0 */
/* All entries of a hash map, read in batches. */
#ifndef SLUICE_MAP_WALK_H
#define SLUICE_MAP_WALK_H

#include <stddef.h>

typedef int entry_call(void *data, const void *key, const void *value);

/*
 * Calls for each entry, until it returns a negative errno, which is returned. The sizes are the map's; of what comes
 * and goes meanwhile some may be missed.
 */
int map_walk(int fd, size_t key_size, size_t value_size, entry_call *call, void *data);

#endif
