/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two reference models for include/window.h. Their time does not wrap.
 *
 *   window_log     a list of all passed packets; finds the span in which most packets passed
 *   window_plain   counters of aligned sub-windows; passes as much as a window may pass
 */
#ifndef SLUICE_TEST_WINDOW_MODEL_H
#define SLUICE_TEST_WINDOW_MODEL_H

#include <stdlib.h>
#include <string.h>
#include "bucket_model.h"
#include "window.h"

/* --- Never too much ------------------------------------------------------------------------- */

struct window_entry {
	true_time at;
	__u64 cost;
};

struct window_log {
	struct window_entry *entries; /* all packets that passed, sorted by time */
	size_t count, room;
};

/* Adds a passed packet. The calls need not be in the order of `at`. */
static inline void window_log_add(struct window_log *log, true_time at, __u64 cost)
{
	size_t i = log->count++;

	if (log->count > log->room) {
		log->room = 2 * log->count + 64;
		log->entries = realloc(log->entries, log->room * sizeof(*log->entries));
		if (!log->entries)
			abort();
	}
	for (; i && log->entries[i - 1].at > at; i--)
		log->entries[i] = log->entries[i - 1];
	log->entries[i] = (struct window_entry){.at = at, .cost = cost};
}

/* Returns the largest total cost of packets that passed in any span (t - span, t]. */
static inline __int128 window_log_most(const struct window_log *log, true_time span)
{
	__int128 sum = 0, most = 0;
	size_t first = 0;

	for (size_t i = 0; i < log->count; i++) {
		sum += log->entries[i].cost;
		while (log->entries[first].at <= log->entries[i].at - span)
			sum -= log->entries[first++].cost;
		if (sum > most)
			most = sum;
	}
	return most;
}

static inline void window_log_end(struct window_log *log)
{
	free(log->entries);
	*log = (struct window_log){0};
}

/* --- Never too little ----------------------------------------------------------------------- */

struct window_plain {
	const struct sl_limit *limit;
	__int128 current; /* number of the sub-window in counts[0] */
	/* counts[i] is the total cost in sub-window number `current` - i */
	__int128 counts[WINDOW_GROUPS_MAX + 1];
};

/*
 * Returns the number of the sub-window at time `clock`, which does not wrap. If the 64-bit clock
 * wraps within a sub-window, the parts before and after this moment have the same number.
 */
static inline __int128 window_plain_number(const struct sl_limit *limit, true_time clock)
{
	const true_time wrap = (true_time)1 << 64;

	if (clock < wrap)
		return (clock >> limit->coarse) * limit->factor >> WINDOW_FACTOR_BITS;
	return window_plain_number(limit, wrap - 1) + window_plain_number(limit, clock - wrap);
}

static inline struct window_plain window_plain_begin(const struct sl_limit *limit, true_time clock)
{
	return (struct window_plain){.limit = limit, .current = window_plain_number(limit, clock)};
}

static inline __int128 window_plain_sum(struct window_plain *plain, true_time clock)
{
	__int128 number = window_plain_number(plain->limit, clock), sum = 0;

	for (int i = 0; plain->current < number && i <= plain->limit->groups;
	     i++, plain->current++) {
		memmove(&plain->counts[1], &plain->counts[0],
			plain->limit->groups * sizeof(*plain->counts));
		plain->counts[0] = 0;
	}
	if (plain->current < number)
		plain->current = number;
	for (int i = 0; i <= plain->limit->groups; i++)
		sum += plain->counts[i];
	return sum;
}

/* Returns the amount that the window would still pass at time `clock`. */
static inline __int128 window_plain_left(struct window_plain *plain, true_time clock)
{
	return plain->limit->most - window_plain_sum(plain, clock);
}

static inline void window_plain_charge(struct window_plain *plain, true_time clock, __u64 cost)
{
	window_plain_sum(plain, clock);
	plain->counts[0] += cost;
}

#endif
