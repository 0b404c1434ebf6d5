/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: carries levels and counters from a gate's maps to those that replace them, while packets
 * are judged. Ledgers are copied first. What packets charge to the old ledgers after that is
 * charged to the copies when no packet uses the old ones any more. Counters need no copy: the final
 * counts of the old ones are added.
 */
#ifndef SLUICE_CARRY_H
#define SLUICE_CARRY_H

#include "carry_args.h"
#include "migrate/levels.h"

struct carry;

/*
 * Copies the ledgers, unless the gates share them. No packet uses `to` yet. number: for each policy of `from` its number in `to`; 0: the policy is not in
 * force, and its counts go to SL_POLICY_FIRST. now: the uptime in ticks. Where there is no room for
 * all ledgers those are left out that lose least.
 */
enum status carry_begin(const struct gate *from, const struct gate *to, const uint32_t *number,
			uint64_t now, struct carry **ret);

/*
 * Carries over what changed since carry_begin(). No packet uses `from` any more. since: the uptime,
 * in ticks, from which packets used `to`.
 */
enum status carry_end(struct carry *carry, uint64_t since);

/* The number of ledgers that were not whole, and did not fit. */
unsigned int carry_lost(const struct carry *carry);
void carry_free(struct carry *carry);

/*
 * Charges to the ledgers of `to` what packets charged to copies that are given up. now: the uptime
 * in ticks.
 */
enum status carry_back(const struct gate *to, int table, uint64_t now);

#endif
