// SPDX-License-Identifier: GPL-2.0
#include "share/choice.h"

#include <endian.h>
#include <stdlib.h>

#include "credit.h"

#define FACTOR_SPAN  .25      /* the factor of a key is between 1 and 1 + FACTOR_SPAN */
#define DEMAND_LEAST 0x1p-12f /* a smaller average demand counts as 0 */
/* Largest average demand. With 1, noise would push the averages of busy keys below 1. */
#define DEMAND_MOST 2

float choice_demand(float before, int64_t asked, uint64_t passed, uint64_t burst)
{
	float span = credit_max(credit_max(burst, CHOICE_TICKS), passed);
	float fades = passed / span, demand;

	demand = before - before * fades + asked / span;
	if (demand < 0 || (!asked && demand < DEMAND_LEAST))
		return 0;
	return demand < DEMAND_MOST ? demand : DEMAND_MOST;
}

/* The finalizer of MurmurHash3. Each bit of the argument affects each bit of the result. */
static uint64_t mix(uint64_t word)
{
	word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
	word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
	return word ^ word >> 33;
}

double choice_weight(float demand, uint64_t meaning, const struct state_key *key)
{
	/*
	 * All nodes must compute the same hash. So hash only fields in the name of the key in the
	 * store, in a fixed byte order.
	 */
	uint64_t mixed = mix(mix(mix(meaning) ^ be64toh(key->addr[0])) ^ be64toh(key->addr[1]));

	return (demand < 1 ? demand : 1) * (1 + FACTOR_SPAN * (mixed >> 11) * 0x1p-53);
}

bool choices_add(struct choices *choices, double weight, unsigned int *ret_number)
{
	struct choice *list = choices->list;
	unsigned int i, child;

	if (choices->count < choices->most) { /* append the item to the heap, and move it up */
		*ret_number = i = choices->count++;
		for (; i && list[(i - 1) / 2].weight > weight; i = (i - 1) / 2)
			list[i] = list[(i - 1) / 2];
		list[i] = (struct choice){weight, *ret_number};
		return true;
	}
	if (!choices->count || list[0].weight >= weight)
		return false;
	*ret_number = list[0].number; /* replace the smallest item by the new item */
	for (i = 0; (child = 2 * i + 1) < choices->count; i = child) {
		if (child + 1 < choices->count && list[child + 1].weight < list[child].weight)
			child++;
		if (list[child].weight >= weight)
			break;
		list[i] = list[child];
	}
	list[i] = (struct choice){weight, *ret_number};
	return true;
}

static int by_weight(const void *a, const void *b)
{
	double x = ((const struct choice *)a)->weight, y = ((const struct choice *)b)->weight;

	return (x > y) - (x < y);
}

void choices_sort(struct choices *choices)
{
	if (choices->count)
		qsort(choices->list, choices->count, sizeof(*choices->list), by_weight);
}
