/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: chooses the keys that a node reports if there are more keys than accounts. Pure functions:
 * no clock, no map.
 *
 * A key is limited only if every node that gets its packets reports it. The nodes do not negotiate.
 * Instead all nodes sort keys by the same weight: the demand, at most 1 (the limit), times a factor
 * between 1 and 5/4, which is a hash of the key. Keys that exceed the limit on every node are
 * sorted by the factor only. For other keys, nodes measure slightly different demand, and the
 * factor makes their order more similar. With a larger range of factors, nodes would agree more
 * often, but would leave out more keys with high demand.
 */
#ifndef SLUICE_CHOICE_H
#define SLUICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ways.h"

/*
 * Time over which demand is averaged, or the time of a burst if that is longer. A key with demand
 * keeps its account for at least this time, because a key with a new account can pass a burst and
 * two rounds too much.
 */
#define CHOICE_TICKS (4 * SL_TICKS_PER_SEC)

/*
 * Returns the average demand as a multiple of the limit, between 0 and 2. before: previous average.
 * asked: ticks that packets requested in the last `passed` ticks. If `asked` is 0 for long, the
 * average becomes 0.
 */
float choice_demand(float before, int64_t asked, uint64_t passed, uint64_t burst);

/* Returns the weight of a key. meaning: hash of the key's limit, the same on all nodes. */
double choice_weight(float demand, uint64_t meaning, const struct state_key *key);

struct choice {
	double weight;
	unsigned int number; /* the caller's index of the item */
};

/* A heap of the `most` items with the largest weights. list[0] has the smallest weight. */
struct choices {
	struct choice *list; /* room for `most` items */
	unsigned int most, count;
};

/*
 * Adds an item. If the heap is full, the item replaces list[0], but only if list[0] has a smaller
 * weight. Returns whether the item was added. Stores its number in ret_number: the number of the
 * replaced item, or the next free number.
 */
bool choices_add(struct choices *choices, double weight, unsigned int *ret_number);

/* Sorts the items by increasing weight. */
void choices_sort(struct choices *choices);

#endif
