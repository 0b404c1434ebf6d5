/* SPDX-License-Identifier: GPL-2.0 */
/* Base: the clocks of the packet path, the ends of list entries, and the calendar of files. */
#ifndef SLUICE_CLOCK_H
#define SLUICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

#define NS_PER_SEC ((uint64_t)1000000000)
#define NS_PER_MS  ((uint64_t)1000000)

/* Reads a clock, in ns. */
uint64_t clock_read(clockid_t clock);

/*
 * The time since boot as bpf_ktime_get_ns() returns it, in ns and in ticks: CLOCK_MONOTONIC without
 * the offset of a time namespace. It stands still while the machine is suspended.
 */
uint64_t uptime_ns(void);
uint64_t uptime_ticks(void);

/*
 * The end of an entry that lasts `ns` from now, in the unit of struct sl_rule_content.until.
 * Rounded up, never 0.
 */
uint32_t until_after(uint64_t ns);

/*
 * until_at() converts a moment of the calendar to such an end; 1: the moment is past. until_time()
 * returns the moment, in whole seconds: exactly, if until_at() made the end, and otherwise rounded
 * up, or down by less than a unit.
 */
uint32_t until_at(time_t when);
time_t until_time(uint32_t until);

/* Two ends are equal when they differ by less than this: a file has them in whole seconds. */
#define UNTIL_SAME_NS 2000000000ULL

bool until_equal(uint32_t a, uint32_t b);

/* Returns whether an end moved by more than a second to the earlier. 0: no end. */
bool until_is_cut(uint32_t was, uint32_t now);

/* The time, in ns, that an entry lasts from now. until: not 0. 0: it has ended. */
uint64_t until_left_ns(uint32_t until);

/* Returns the present jiffy of bpf_jiffies64(), or a later one of the present 10 ms. */
uint64_t jiffies_now(void);

/* --- Calendar ------------------------------------------------------------------------------- */

#define MOMENT_TEXT 32 /* room for any formatted moment up to the year 9999 */

/* Parses "2026-11-21T13:00:00Z", or with an offset, "+02:00". Drops a fraction of a second. */
int moment_parse(const char *text, time_t *ret);

/* Parses the end of an entry, at most two years away, for until_at(). ret_ended: it is past. */
int until_parse(const char *text, uint32_t *ret, bool *ret_ended);

/* Formats a moment in UTC. */
const char *moment_format(time_t when, char text[MOMENT_TEXT]);

#endif
