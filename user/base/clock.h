/* SPDX-License-Identifier: GPL-2.0 */
/* Base: reads the clocks of the packet path, and converts the ends of list entries and dates. */
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
 * Return the time since boot without suspend, in ns or in ticks, as bpf_ktime_get_ns() does. The
 * time of a time namespace is ignored.
 */
uint64_t uptime_ns(void);
uint64_t uptime_ticks(void);

/*
 * Makes uptime_ns() and uptime_ticks() return this time from now on. `sluice replay` uses the time
 * of the last packet that it judged.
 */
void uptime_set(uint64_t ns);

/*
 * The functions until_*() count time since boot in units of 2^SL_UNTIL_SHIFT ns, like
 * sl_rule_content.until. 0 means that an entry has no end. until_after() returns the end of an
 * entry that lasts `ns` from now, rounded up.
 */
uint32_t until_after(uint64_t ns);

/*
 * until_at() converts a time in seconds since 1970 to an end; a time in the past gives 1.
 * until_time() converts an end to seconds since 1970, rounded up. It returns exactly the time that
 * until_at() got; for any other end, the result may be one unit early.
 */
uint32_t until_at(time_t when);
time_t until_time(uint32_t until);

/*
 * until_equal() treats ends as equal if they differ by less than this, because rules files store
 * whole seconds.
 */
#define UNTIL_SAME_NS 2000000000ULL

bool until_equal(uint32_t a, uint32_t b);

/*
 * Returns whether an entry would end over a second earlier than before. now: new end. was: old end.
 * An end of 0 means never.
 */
bool until_is_cut(uint32_t was, uint32_t now);

/* Returns the time from now to an end, in ns, or 0 if the end is past. `until` must not be 0. */
uint64_t until_left_ns(uint32_t until);

/* Returns the value of bpf_jiffies64(). The result may be up to 10 ms too high. */
uint64_t jiffies_now(void);

/* --- Calendar ------------------------------------------------------------------------------- */

#define MOMENT_TEXT 32 /* size of a buffer for any formatted time up to the year 9999 */

/*
 * Parses a time of RFC 3339, such as "2026-11-21T13:00:00Z" or "2026-11-21T15:00:00+02:00". Ignores
 * a fraction of a second. Returns 0 or a negative errno.
 */
int moment_parse(const char *text, time_t *ret);

/*
 * Parses the end of an entry, which may be at most two years away. Sets `ret_ended` if it is past.
 * Returns 0 or a negative errno.
 */
int until_parse(const char *text, uint32_t *ret, bool *ret_ended);

/* Formats a time in UTC. */
const char *moment_format(time_t when, char text[MOMENT_TEXT]);

#endif
