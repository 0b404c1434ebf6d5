/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: which keys a node tells of where more are due than it has accounts. Pure; time is an
 * argument.
 *
 * A key is held only where the nodes that it comes through all tell of it. Nodes do not agree on
 * that, so they go by an order that is the same on all of them: by the demand for a key, at most
 * its limit, times a factor between 1 and 5/4 that follows from the key. Of keys that ask for more
 * than their limit at each node the factor alone decides. Demand that two nodes measure a little
 * differently changes few places, as there is no bound at which it changes for all keys that ask
 * alike. A wider factor has nodes agree more often, and leaves out more that ask for much.
 */
#ifndef SLUICE_CHOICE_H
#define SLUICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ways.h"

/*
 * The time over which demand counts, or, if that is longer, a burst's time. So long a key keeps its
 * account, too: to tell of a key anew costs a burst at this node, and two rounds.
 */
#define CHOICE_TICKS (4 * SL_TICKS_PER_SEC)

/*
 * Demand in times of the limit, at most 2, once `asked` ticks were asked for in `passed`, of which
 * all counts, however long that is. before: that of the time before. What is left of it at last
 * is 0.
 */
float choice_demand(float before, int64_t asked, uint64_t passed, uint64_t burst);

/* meaning: of the limit, on any node */
double choice_weight(float demand, uint64_t meaning, const struct state_key *key);

struct choice {
	double weight;
	unsigned int number; /* the caller's */
};

struct choices {
	struct choice *list; /* room for `most`; the least weight is first */
	unsigned int most, count;
};

/*
 * Whether the weight is among the largest so far. Its number is that of the key whose place it has,
 * or the next one from 0.
 */
bool choices_add(struct choices *choices, double weight, unsigned int *ret_number);

/* The largest first, or the least. */
void choices_sort(struct choices *choices, bool largest_first);

#endif
