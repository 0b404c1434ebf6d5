/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How newcomers are met: how many come, how many get memory, and whether they have to wait for it. Told from maps
 * `admission` and `pools`, of which a walk over all sources is no part: cheap.
 */
#ifndef SLUICE_PRESSURE_H
#define SLUICE_PRESSURE_H

#include <stdint.h>

#include "gate/gate.h"

/* How often something happened, on all CPUs. */
struct pace {
	uint64_t total;
	uint64_t per_second; /* in the last second that is over */
};

struct pressure {
	struct pace event[SL_EVENTS];
	unsigned int flooded; /* CPUs on which newcomers wait */
	unsigned int crowded; /* those that skip the bucket lookup for unknown sources */
	uint64_t jiffy;	      /* jiffies64 when they were */
};

enum status pressure_read(const struct gate *gate, struct pressure *ret);

/*
 * Whether newcomers have passed a policy for want of a budget, although it has limits that drop. The rules alone do not
 * tell: its packets may all be denied, or be matched by none of its limits, and no budget stops these.
 */
enum status policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret);

/* Such policies: how many, and the first, by prefix. None where there is no flood. */
struct passing {
	unsigned int policies;
	struct sl_prefix first;
};

enum status passing_read(const struct gate *gate, const struct pressure *pressure,
			 struct passing *ret);

/* The events that are refused insertions, in order, and what people call their causes. */
#define CAUSES (SL_EVENTS - SL_EVENT_BUSY)

extern const char *const cause_names[CAUSES];

static inline const struct pace *pressure_refused(const struct pressure *pressure, int cause)
{
	return &pressure->event[SL_EVENT_BUSY + cause];
}

/* --- Known sources -------------------------------------------------------------------------- */

/* jiffy: jiffies64. limit: what the limit asks; NULL: what decides whether a bucket is looked for. */
enum status known_source_read(const struct gate *gate, const struct sl_limit *limit,
			      const struct sl_prefix *address, uint64_t jiffy, bool *ret);

/* --- Copying -------------------------------------------------------------------------------- */

/*
 * Entry `index` of a map of `count` entries, from the entries of one of `old_count`. Both are
 * powers of two; an index is the low bits of a hash. A larger map repeats entries, and until the
 * epochs end it takes too many sources for known. A smaller map joins entries.
 */
struct sl_known known_fit(const struct sl_known *old, uint32_t old_count, uint32_t count,
			  uint32_t index);

/*
 * Fills the map of `to`, which no packet uses yet. A source that gets its ledger between this and the switch is not
 * copied: it is a newcomer once more, and in a flood has to pass the bar again.
 */
enum status known_copy(const struct gate *from, const struct gate *to);

#endif
