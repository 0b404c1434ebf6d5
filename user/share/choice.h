/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: chooses the keys that a node reports if there are more keys than accounts. Pure functions:
 * no clock, no map.
 *
 * The limit of a key works only if all nodes that get its packets report the key. Nodes do not
 * negotiate which keys to report. Instead, all nodes sort keys by the same weight: demand times
 * factor. Demand is at most 1 (the limit). The factor is a hash of the key, from 1 to 5/4.
 *
 * Keys above the limit have demand 1, so all nodes sort them equally. For other keys, nodes measure
 * slightly different demand. The factor makes their orders more similar. A larger range of factors
 * would make nodes agree more often, but would exclude more keys with high demand.
 */
#ifndef SLUICE_CHOICE_H
#define SLUICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ways.h"

/*
 * Average demand over this time, or over the time of a burst if that is longer. A key with demand
 * also keeps its account for this time, because each change of accounts lets a key exceed its limit
 * by a burst and two rounds.
 */
#define CHOICE_TICKS (4 * SL_TICKS_PER_SEC)

/*
 * Returns the average demand as a multiple of the limit, between 0 and 2. before: previous average.
 * asked: ticks that packets requested in the last `passed` ticks. The average falls to 0 if `asked`
 * remains 0.
 */
float choice_demand(float before, int64_t asked, uint64_t passed, uint64_t burst);

/* Returns the weight of a key. meaning: hash of the key's limit, equal on all nodes. */
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
 * Adds an item. If the heap is full, replaces list[0] if it has a smaller weight. Returns whether
 * the item was added. Stores the number of the item in ret_number: the number of the replaced item,
 * or the next free number.
 */
bool choices_add(struct choices *choices, double weight, unsigned int *ret_number);

/* Sorts the items by increasing weight. */
void choices_sort(struct choices *choices);

#endif
