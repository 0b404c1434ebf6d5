/* SPDX-License-Identifier: GPL-2.0 */
/* A reference model for include/credit.h: a token bucket that has neither states nor slices. */
#ifndef SLUICE_TEST_BUCKET_MODEL_H
#define SLUICE_TEST_BUCKET_MODEL_H

#include "sluice.h"

/* Simulated time in ticks. It starts at 0, does not wrap, and never goes back. */
typedef __int128 true_time;

/*
 * A plain token bucket, in units of 1/65536 tick. It checks promise 1 of include/credit.h: in every
 * span [s, t], admitted cost <= burst + (t - s). Each admitted packet is charged to this bucket.
 * The promise holds if the level never falls below zero. If a packet costs more than `refill`, the
 * level may fall below zero by the difference. This allowance shrinks while the bucket refills.
 */
struct reference {
	__int128 burst;
	__int128 refill;
	__int128 level;
	__int128 leave;	 /* maximum debt that `level` may have now */
	__int128 lowest; /* minimum of `level` + `leave` so far; a negative value is a fault */
	true_time at;	 /* time for which `level` was computed */
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
