/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: `divide_at` of the gate, for `--on-loss divide`: from that moment on the packet path
 * charges a packet of a shared limit as often as there are nodes. It is a lease. A process that
 * gets replies moves it ahead at each step, so it expires if the process is killed or stopped; if
 * the store is away the process ends it. Pure; time is an argument.
 */
#ifndef SLUICE_DIVISION_H
#define SLUICE_DIVISION_H

#include "share/flow.h"

/* The term of the lease: longer than a busy machine stops a process, or than a resize takes. */
#define DIVISION_LEASE (3 * SL_TICKS_PER_SEC)

/*
 * Limits stay divided this long after replies have returned: other nodes may reach the store later,
 * and take their part meanwhile without reporting it.
 */
#define DIVISION_GRACE (2 * SL_TICKS_PER_SEC)

struct division {
	uint64_t at;	      /* at first the word of the gate; 0: never */
	uint64_t answered_at; /* since when rounds get replies */
	bool is_answered;     /* one of the last FLOW_LOST rounds got a reply */
	bool divides;	      /* the packet path did at the last step */
};

/* Returns whether the packet path divides limits now. Then nothing may be charged for others. */
bool division_step(struct division *division, uint64_t now);

/* After division_step() with the same `now`. lost: rounds in a row without a reply, with this one. */
void division_round(struct division *division, unsigned int lost, uint64_t now);

#endif
