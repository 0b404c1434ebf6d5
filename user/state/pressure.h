/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the pressure of newcomers on a gate: how many come, how many get memory, and whether they
 * have to wait. It is read from maps `admission` and `pools`, without a walk over sources.
 */
#ifndef SLUICE_PRESSURE_H
#define SLUICE_PRESSURE_H

#include <stdint.h>

#include "gate/gate.h"

/* How often an event happened, on all CPUs. */
struct pace {
	uint64_t total;
	uint64_t per_second; /* in the last complete second */
};

struct pressure {
	struct pace event[SL_EVENTS];
	unsigned int flooded; /* CPUs on which newcomers wait */
	unsigned int crowded; /* CPUs that skip the bucket lookup for unknown sources */
	uint64_t jiffy;	      /* jiffies64 at that moment */
};

enum status pressure_read(const struct gate *gate, struct pressure *ret);

/*
 * Whether newcomers have passed a policy without a budget although it has limits that drop. The
 * rules alone do not tell: all its packets may be denied or match none of its limits, and then no
 * budget would stop them.
 */
enum status policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret);

/* The number of such policies, and the first by prefix. 0 when there is no flood. */
struct passing {
	unsigned int policies;
	struct sl_prefix first;
};

enum status passing_read(const struct gate *gate, const struct pressure *pressure,
			 struct passing *ret);

/* The names of the events that are refused insertions, in their order. */
#define CAUSES (SL_EVENTS - SL_EVENT_BUSY)

extern const char *const cause_names[CAUSES];

static inline const struct pace *pressure_refused(const struct pressure *pressure, int cause)
{
	return &pressure->event[SL_EVENT_BUSY + cause];
}

/* --- Known sources -------------------------------------------------------------------------- */

/*
 * Whether the filter of known sources has an address. limit: the address is made a key of this
 * limit; NULL: a key of the bucket lookup. jiffy: jiffies64.
 */
enum status known_source_read(const struct gate *gate, const struct sl_limit *limit,
			      const struct sl_prefix *address, uint64_t jiffy, bool *ret);

/* --- Copying the filter of known sources ---------------------------------------------------- */

/*
 * Computes entry `index` of a filter of `count` entries from a filter of `old_count`. Both are
 * powers of two; an index is the low bits of a hash. A larger filter repeats entries, and until its
 * epochs end it reports too many sources as known. A smaller one joins entries.
 */
struct sl_known known_fit(const struct sl_known *old, uint32_t old_count, uint32_t count,
			  uint32_t index);

/*
 * Fills the filter of `to`, which no packet uses yet. A source that gets its ledger between this
 * and the switch is not copied: it is a newcomer again, and must pass the bar again in a flood.
 */
enum status known_copy(const struct gate *from, const struct gate *to);

#endif
