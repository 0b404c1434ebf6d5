// SPDX-License-Identifier: GPL-2.0
#include "share/choice.h"

#include <endian.h>
#include <stdlib.h>

#include "credit.h"

/* By how much the factor of a key exceeds 1 at most. */
#define FACTOR_SPAN .25

/* Where nothing is asked for any more, demand below this is none. */
#define DEMAND_LEAST 0x1p-12f

/* Above 1, so that what asks for more than its limit does not fall below 1 by chance. */
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

/* The last step of MurmurHash3: each bit of the result depends on each bit. */
static uint64_t mix(uint64_t word)
{
	word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
	word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
	return word ^ word >> 33;
}

double choice_weight(float demand, uint64_t meaning, const struct state_key *key)
{
	/* of what the store's key has, so the same on any machine */
	uint64_t mixed = mix(mix(mix(meaning) ^ be64toh(key->addr[0])) ^ be64toh(key->addr[1]));

	return (demand < 1 ? demand : 1) * (1 + FACTOR_SPAN * (mixed >> 11) * 0x1p-53);
}

/* --- Choices -------------------------------------------------------------------------------- */

/* A heap: none is lighter than the one at (i - 1) / 2. */
static void choices_rise(struct choices *choices, unsigned int i, struct choice choice)
{
	struct choice *list = choices->list;

	for (; i && list[(i - 1) / 2].weight > choice.weight; i = (i - 1) / 2)
		list[i] = list[(i - 1) / 2];
	list[i] = choice;
}

static void choices_sink(struct choices *choices, struct choice choice)
{
	struct choice *list = choices->list;
	unsigned int i = 0, child;

	for (; (child = 2 * i + 1) < choices->count; i = child) {
		if (child + 1 < choices->count && list[child + 1].weight < list[child].weight)
			child++;
		if (list[child].weight >= choice.weight)
			break;
		list[i] = list[child];
	}
	list[i] = choice;
}

bool choices_add(struct choices *choices, double weight, unsigned int *ret_number)
{
	if (choices->count < choices->most) {
		*ret_number = choices->count++;
		choices_rise(choices, *ret_number, (struct choice){weight, *ret_number});
		return true;
	}
	if (!choices->count || choices->list[0].weight >= weight)
		return false;
	*ret_number = choices->list[0].number;
	choices_sink(choices, (struct choice){weight, *ret_number});
	return true;
}

static int by_weight(const void *a, const void *b)
{
	double x = ((const struct choice *)a)->weight, y = ((const struct choice *)b)->weight;

	return (x > y) - (x < y);
}

static int by_weight_down(const void *a, const void *b)
{
	return by_weight(b, a);
}

void choices_sort(struct choices *choices, bool largest_first)
{
	if (choices->count)
		qsort(choices->list, choices->count, sizeof(*choices->list),
		      largest_first ? by_weight_down : by_weight);
}
