/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which purses of a bucket are good. A pure function, shared by the packet path and the command
 * line.
 */
#ifndef SLUICE_PURSES_H
#define SLUICE_PURSES_H

#include "sluice.h"

/*
 * Fits the purses of a bucket to a policy, number `owner`. Purses belong to the limits of one
 * policy: under another policy they are void, and so is the purse of a limit that has another
 * ledger now. After any change of the policy the purses end, so that their credit goes back to the
 * ledgers at the next packet, and refusals are forgotten.
 */
static inline void purses_fit(struct sl_bucket *bucket, const struct sl_policy *policy, __u32 owner)
{
	if (bucket->owner == owner && bucket->owner_since == policy->since)
		return;
	for (int i = 0; i < SL_LIMITS_MAX; i++) {
		struct sl_purse *purse = &bucket->purse[i];

		if (bucket->owner != owner || purse->credit < 0 ||
		    (__s32)(policy->changed[i] - bucket->owner_since) > 0)
			purse->credit = 0;
		purse->until = 0;
	}
	bucket->owner = owner;
	bucket->owner_since = policy->since;
}

#endif
