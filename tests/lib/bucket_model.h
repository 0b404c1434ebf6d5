/* SPDX-License-Identifier: GPL-2.0 */
/* A reference for include/credit.h: a bucket that knows nothing of states and slices. */
#ifndef SLUICE_TEST_BUCKET_MODEL_H
#define SLUICE_TEST_BUCKET_MODEL_H

#include "sluice.h"

/* Time as it really is: it neither wraps nor runs backwards, and begins at 0. */
typedef __int128 true_time;

/*
 * A plain token bucket, in 1/65536 tick, told as a level and not as a moment. It is the exact upper
 * envelope of promise 1: for all spans [s, t], admitted <= burst + (t - s), if and only if this
 * bucket, charged with each admitted packet, never falls below zero. A packet that costs more than
 * `refill` may take it below, by the rest of its cost; the time that passes takes that leave back.
 * So where no packet costs more than `refill`, the bound is the burst's.
 */
struct reference {
	__int128 burst;
	__int128 refill;
	__int128 level;
	__int128 leave;	 /* how far below zero the level may be */
	__int128 lowest; /* below zero: the promise is broken, by this much */
	true_time at;
};

static inline struct reference reference_full(const struct sl_limit *limit, true_time now)
{
	__int128 burst = (__int128)limit->burst << 16;

	return (struct reference){
		.burst = burst, .refill = (__int128)limit->refill << 16, .level = burst, .at = now};
}

static inline void reference_charge(struct reference *reference, __int128 cost, true_time now)
{
	__int128 passed = (now - reference->at) << 16;

	reference->at = now;
	reference->level += passed;
	reference->leave -= passed;
	if (reference->level > reference->burst)
		reference->level = reference->burst;
	reference->level -= cost;
	if (reference->leave < cost - reference->refill)
		reference->leave = cost - reference->refill;
	if (reference->leave < 0)
		reference->leave = 0;
	if (reference->level + reference->leave < reference->lowest)
		reference->lowest = reference->level + reference->leave;
}

#endif
