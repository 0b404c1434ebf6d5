// SPDX-License-Identifier: GPL-2.0
#include "share/division.h"

#include "credit.h"

/* 0 is no moment. */
static uint64_t moment(uint64_t at)
{
	return at ?: 1;
}

void division_begin(struct division *division, uint64_t at)
{
	*division = (struct division){.at = at};
}

bool division_step(struct division *division, uint64_t now)
{
	/* as the packet path has it */
	bool divides = credit_times(division->at, FLOW_NODES_MAX, now) > 1;

	/* the lease has ended, as this process was stopped: answers of before count no more */
	if (divides && !division->divides)
		division->is_answered = false;
	if (!divides && division->is_answered)
		division->at = moment(now + DIVISION_LEASE);
	division->divides = divides;
	return divides;
}

void division_round(struct division *division, unsigned int lost, uint64_t now)
{
	if (lost >= FLOW_LOST) {
		division->is_answered = false;
		if (!division->divides)
			division->at = moment(now);
		division->divides = true;
		return;
	}
	if (lost)
		return;
	if (!division->is_answered)
		division->answered_at = now;
	division->is_answered = true;
	if (division->divides && credit_span(division->answered_at, now) >= (int64_t)DIVISION_GRACE)
		division->at = moment(now + DIVISION_LEASE);
}
