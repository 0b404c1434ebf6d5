/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which slices of a bucket are good. A pure function, shared by the packet path and the command
 * line.
 */
#ifndef SLUICE_PURSES_H
#define SLUICE_PURSES_H

#include "sluice.h"

/*
 * Fits the slices of a bucket to a policy. Slices belong to the limits of one policy: under another
 * policy they are void, and so is the slice of a limit that has another state now. After any change
 * of the policy the slices end, so that their credit goes back to the state at the next packet, and
 * refusals are forgotten.
 */
static inline void purses_fit(struct sl_bucket *bucket, const struct sl_policy *policy,
			      __u32 number)
{
	if (bucket->policy == number && bucket->policy_since == policy->since)
		return;
	for (int i = 0; i < SL_LIMITS_MAX; i++) {
		struct sl_purse *slice = &bucket->slice[i];

		if (bucket->policy != number || slice->credit < 0 ||
		    (__s32)(policy->changed[i] - bucket->policy_since) > 0)
			slice->credit = 0;
		slice->until = 0;
		bucket->state[i] = 0;
	}
	bucket->policy = number;
	bucket->policy_since = policy->since;
}

#endif
