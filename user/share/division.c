// SPDX-License-Identifier: GPL-2.0
#include "share/division.h"

#include "credit.h"

bool division_step(struct division *division, uint64_t now)
{
	bool divides = credit_times(division->at, FLOW_NODES_MAX, now) > 1; /* as it does */

	/* this process was stopped until the lease expired: earlier replies no longer count */
	if (divides && !division->divides)
		division->is_answered = false;
	if (!divides && division->is_answered)
		division->at = (now + DIVISION_LEASE) ?: 1;
	division->divides = divides;
	return divides;
}

void division_round(struct division *division, unsigned int lost, uint64_t now)
{
	if (lost >= FLOW_LOST) {
		division->is_answered = false;
		if (!division->divides)
			division->at = now ?: 1;
		division->divides = true;
		return;
	}
	if (lost)
		return;
	if (!division->is_answered)
		division->answered_at = now;
	division->is_answered = true;
	if (division->divides && credit_span(division->answered_at, now) >= (int64_t)DIVISION_GRACE)
		division->at = (now + DIVISION_LEASE) ?: 1;
}
