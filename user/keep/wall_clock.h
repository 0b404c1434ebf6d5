/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: hears when the wall clock is set, by a timer that the kernel cancels then. A resume from
 * suspension sets it, too: the time since boot that ends go by has stood still.
 */
#ifndef SLUICE_WALL_CLOCK_H
#define SLUICE_WALL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/* ret_fd: it can be read when the clock has been set. */
int wall_clock_watch(int *ret_fd);

/* Whether it has been set since the last call. */
bool wall_clock_was_set(int fd);

/* How long the machine has been suspended since boot, in ms. */
uint64_t suspended_ms(void);

#endif
