/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: from when on the packet path divides shared limits by the nodes, of `--on-loss divide`.
 * Pure: no clock and no map; time is an argument.
 *
 * `at` is the word `divide_at` of the gate: from that moment on a packet of a shared limit is
 * charged as often as there are nodes. It is a lease: a process that charges states, and is
 * answered, moves it ahead at each step. It ends by itself where the process is killed or stopped;
 * where the store is away the process ends it. Either way it is renewed only once rounds have been
 * answered for DIVISION_GRACE.
 */
#ifndef SLUICE_DIVISION_H
#define SLUICE_DIVISION_H

#include "share/flow.h"

/*
 * How long the packet path takes it that the process charges states, since it last said so: longer
 * than a busy machine lets it wait, or than it follows a resize.
 */
#define DIVISION_LEASE (3 * SL_TICKS_PER_SEC)

/*
 * How long limits stay divided once rounds are answered: other nodes may find the store a little
 * later, and take their part meanwhile without telling of it.
 */
#define DIVISION_GRACE (2 * SL_TICKS_PER_SEC)

struct division {
	uint64_t at;	      /* 0: never */
	uint64_t answered_at; /* since when rounds are answered */
	bool is_answered;     /* one of the last FLOW_LOST rounds was */
	bool divides;	      /* the packet path did at the last step */
};

/* at: what the gate says. Nothing was answered yet. */
void division_begin(struct division *division, uint64_t at);

/*
 * Returns whether the packet path divides now: then nothing is charged for others, and what is
 * known of them begins anew.
 */
bool division_step(struct division *division, uint64_t now);

/*
 * lost: rounds in a row without an answer, with this one; 0: it was answered. Behind
 * division_step() of the same moment.
 */
void division_round(struct division *division, unsigned int lost, uint64_t now);

#endif
