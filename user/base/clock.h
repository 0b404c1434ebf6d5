/* SPDX-License-Identifier: GPL-2.0 */
/* The clocks of the packet path, the moments at which list entries end, and moments as files write them. */
#ifndef SLUICE_CLOCK_H
#define SLUICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/log.h"

/*
 * bpf_ktime_get_ns(): CLOCK_MONOTONIC without what a time namespace adds to it. It stands still while the machine is
 * suspended.
 */
uint64_t uptime_ns(void);
uint64_t uptime_ticks(void);

/* The end of an entry that lasts `ns` from now, as struct sl_face has it: rounded up, never 0. */
uint32_t until_after(uint64_t ns);

/* The same for a moment of the calendar (1: it is past), and the reverse. */
uint32_t until_at(time_t when);
time_t until_time(uint32_t until);

/* Two ends that differ by less than this are the same: a file tells them in seconds. */
#define UNTIL_SAME_NS 2000000000ULL

bool until_equal(uint32_t a, uint32_t b);

/* How long the entry lasts from now; 0: it has ended. until: not 0. */
uint64_t until_left_ns(uint32_t until);

/* --- Jiffies -------------------------------------------------------------------------------- */

/* bpf_jiffies64(), now. The kernel shows it to programs only: this runs one. */
enum status jiffies_read(uint64_t *ret);

/* --- Moments of the calendar ---------------------------------------------------------------- */

#define MOMENT_TEXT 32 /* room for any formatted moment of these millennia */

/* Parses "2026-11-21T13:00:00Z", or with an offset, "+02:00"; a fraction of a second is dropped. */
enum status moment_parse(const char *text, time_t *ret);

/* In UTC. */
const char *moment_format(time_t when, char text[MOMENT_TEXT]);

#endif
