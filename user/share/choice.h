/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: selects the keys that a node reports if more keys are due than it has accounts. Pure.
 *
 * A key is limited only if every node that it passes reports it. Nodes do not negotiate, so all of
 * them sort keys by the same weight: the demand for the key, at most its limit, times a factor
 * between 1 and 5/4 that is a hash of the key. The factor alone sorts keys that exceed their limit
 * at each node. Demand that two nodes measure a little differently changes few selections. With a
 * wider factor nodes agree more often, but drop more keys of high demand.
 */
#ifndef SLUICE_CHOICE_H
#define SLUICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ways.h"

/*
 * Demand is averaged over this time, or over a burst's time if that is longer. A key keeps its
 * account at least as long, because reporting a new key costs a burst at this node and two rounds.
 */
#define CHOICE_TICKS (4 * SL_TICKS_PER_SEC)

/*
 * Returns the demand in times of the limit, 0 to 2, after `asked` ticks were asked for in `passed`.
 * before: the previous demand. Demand that nothing renews becomes 0 in the end.
 */
float choice_demand(float before, int64_t asked, uint64_t passed, uint64_t burst);

/* meaning: the hash of the limit, which is the same on all nodes */
double choice_weight(float demand, uint64_t meaning, const struct state_key *key);

struct choice {
	double weight;
	unsigned int number; /* the caller's */
};

/* The items of the largest weights, in a heap with the smallest weight first. */
struct choices {
	struct choice *list; /* room for `most` */
	unsigned int most, count;
};

/*
 * Adds a weight if it is among the largest. Returns whether it is. ret_number: the number of the
 * item that it replaces, or the next free number.
 */
bool choices_add(struct choices *choices, double weight, unsigned int *ret_number);

/* Sorts by weight, ascending. */
void choices_sort(struct choices *choices);

#endif
