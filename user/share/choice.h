/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: selects the keys that a node reports if more keys are due than it has accounts. Pure: no
 * clock, no map.
 *
 * A key is limited only if every node that its packets pass reports it. Nodes do not negotiate;
 * instead all nodes sort keys by the same weight. The weight is the demand for the key, at most 1
 * (its limit), times a factor between 1 and 5/4, which is a hash of the key. Keys that exceed their
 * limit at each node are sorted by the factor alone. Nodes measure demand a little differently; the
 * factor makes that change few selections. A larger range of factors would make nodes agree more
 * often, but leave out more keys with high demand.
 */
#ifndef SLUICE_CHOICE_H
#define SLUICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ways.h"

/*
 * Demand is averaged over this time, or over a burst's time if that is longer. A key with demand
 * keeps its account at least as long, because a key gets an excess of a burst and two rounds each
 * time that it is added.
 */
#define CHOICE_TICKS (4 * SL_TICKS_PER_SEC)

/*
 * Returns the new average demand, in multiples of the limit: 0 to 2. before: the previous average.
 * asked: the ticks that packets asked for within the last `passed` ticks. If `asked` stays 0, the
 * average decays, and finally becomes 0.
 */
float choice_demand(float before, int64_t asked, uint64_t passed, uint64_t burst);

/* Returns the weight of a key. meaning: the hash of the limit, which is the same on all nodes. */
double choice_weight(float demand, uint64_t meaning, const struct state_key *key);

struct choice {
	double weight;
	unsigned int number; /* index of the item in an array of the caller */
};

/* The items with the largest weights, as a heap that has the smallest weight at index 0. */
struct choices {
	struct choice *list; /* has room for `most` items */
	unsigned int most, count;
};

/*
 * Adds an item. If there is no room, it replaces the item with the smallest weight, if that is
 * less. Returns whether it was added. ret_number: set to the number of the new item, which is the
 * next free number or the number of the replaced item.
 */
bool choices_add(struct choices *choices, double weight, unsigned int *ret_number);

/* Sorts the items by weight, ascending. */
void choices_sort(struct choices *choices);

#endif
