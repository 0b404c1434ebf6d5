/* SPDX-License-Identifier: GPL-2.0 */
/* The clock of the packet path, and the moments at which list entries end. */
#ifndef SLUICE_UPTIME_H
#define SLUICE_UPTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * bpf_ktime_get_ns(): CLOCK_MONOTONIC without what a time namespace adds to it. It stands still while the machine is
 * suspended.
 */
uint64_t uptime_ns(void);
uint64_t uptime_ticks(void);

/* The end of an entry that lasts `ns` from now, as struct sl_face has it: rounded up, never 0. */
uint32_t until_after(uint64_t ns);

/* The same of a moment of the calendar; one that is past: 1. And back. */
uint32_t until_at(time_t when);
time_t until_time(uint32_t until);

/* Two ends that differ by less than this are the same: a file tells them in seconds. */
#define UNTIL_SAME_NS 2000000000ULL

bool until_equal(uint32_t a, uint32_t b);

/* How long the entry lasts from now; 0: it has ended. until: not 0. */
uint64_t until_left_ns(uint32_t until);

#endif
