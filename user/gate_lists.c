// SPDX-License-Identifier: GPL-2.0
#include "gate_lists.h"

#include <errno.h>
#include <string.h>

#include "lists.h"
#include "rulemap.h"
#include "uptime.h"

uint64_t lists_lasting(const struct gate *gate, uint64_t lists)
{
	uint64_t left = lists & gate->state->lists_ending;

	while (left) {
		uint64_t bit = left & -left;

		left ^= bit;
		if (!until_left_ns(gate->state->list_ends[list_end_index(bit)]))
			lists ^= bit;
	}
	return lists;
}

/* Since its generation, and until it is gone. */
static bool list_is_seen(const struct sl_list_info *list, uint32_t generation)
{
	uint32_t since = __atomic_load_n(&list->since, __ATOMIC_ACQUIRE);

	return since && (int32_t)(since - generation) <= 0 &&
	       !(list->gone && (int32_t)(list->gone - generation) <= 0);
}

void lists_copy(const struct gate *gate, struct sl_list_info ret[SL_LIST_PLACES])
{
	uint32_t generation = rulemap_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		ret[place] = gate->lists[place];
		if (!list_is_seen(&gate->lists[place], generation))
			ret[place] = (struct sl_list_info){0};
		ret[place].name[SL_LIST_NAME - 1] = '\0';
	}
}

/* Nothing names the place yet, so no packet looks at its word and end. */
static void list_write(struct gate *gate, unsigned int place, const struct sl_list_info *wanted)
{
	struct sl_gate *state = gate->state;
	struct sl_list_info list = *wanted;
	uint64_t bit = (1ULL << place);

	list.since = list.gone = 0;
	gate->lists[place] = list;
	state->lists_allow &= ~bit;
	state->lists_ending &= ~bit;
	if (list.list == SL_LIST_ALLOW)
		state->lists_allow |= bit;
	if (list.until)
		state->lists_ending |= bit;
	state->list_ends[list_end_index(bit)] = list.until;
	__atomic_store_n(&gate->lists[place].since, rulemap_generation(gate) + 1, __ATOMIC_RELEASE);
}

static void list_free(struct gate *gate, unsigned int place)
{
	__atomic_store_n(&gate->lists[place].since, 0, __ATOMIC_RELEASE);
	gate->lists[place] = (struct sl_list_info){0};
}

int lists_prepare(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *has = &gate->lists[place];
		const struct sl_list_info *want = &wanted[place];

		if (!has->since && *want->name)
			list_write(gate, place, want);
		else if (has->since && !*want->name)
			has->gone = rulemap_generation(gate) + 1;
		else if (has->since && !list_same(has, want))
			return -EINVAL;
	}
	return 0;
}

void lists_clear(struct gate *gate, const struct sl_list_info wanted[SL_LIST_PLACES])
{
	for (int place = 0; place < SL_LIST_PLACES; place++) {
		if (gate->lists[place].gone)
			list_free(gate, place);
		else
			gate->lists[place].replaced = wanted[place].replaced;
	}
}

void lists_settle(struct gate *gate, uint64_t ended)
{
	uint32_t generation = rulemap_generation(gate);

	for (int place = 0; place < SL_LIST_PLACES; place++) {
		struct sl_list_info *list = &gate->lists[place];

		if (list->since && (!list_is_seen(list, generation) || ended & (1ULL << place)))
			list_free(gate, place);
		list->gone = 0;
	}
}
