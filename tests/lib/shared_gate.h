/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replaces user/gate/table.h and user/share/shared_limits.h in tests of user/share/accounts.h. The
 * simulated gate has one shared limit, number 9. The test fills the table of states.
 */
#ifndef SLUICE_TEST_SHARED_GATE_H
#define SLUICE_TEST_SHARED_GATE_H

#include <stdio.h>
#include <stdlib.h>
#include "share/accounts.h"

static struct table gate_table; /* result of table_open() */
static struct shared_limit limit;
static bool limit_is_shared = true;
static uint32_t generation; /* generation of the gate's rules */

int table_open(const struct gate *gate, struct table *ret)
{
	(void)gate;
	*ret = gate_table;
	return 0;
}

void table_close(struct table *table)
{
	(void)table;
}

int table_read(const struct gate *gate, const struct table *table, const struct state_key *key,
	       struct found_entry *ret)
{
	(void)gate;
	ret->is_found = false;
	for (uint32_t i = 0; i < table->count && !ret->is_found; i++)
		if (entry_is(&table->entries[i], key))
			*ret = (struct found_entry){table->entries[i], i, true};
	return 0;
}

int shared_limits_read(const struct gate *gate, struct shared_limits *ret)
{
	(void)gate;
	*ret = (struct shared_limits){.generation = generation};
	if (!limit_is_shared)
		return 0;
	*ret = (struct shared_limits){.list = malloc(sizeof(limit)),
				      .count = 1,
				      .burst_most = limit.limit.burst,
				      .meaning = limit.meaning,
				      .generation = generation};
	*ret->list = limit;
	return 0;
}

void shared_limits_free(struct shared_limits *limits)
{
	free(limits->list);
	*limits = SHARED_LIMITS_NONE;
}

const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t number)
{
	return limits->count && number == 9 ? limits->list : NULL;
}

/* Formats "NAME:MEANING:ADDRESS". */
void shared_key_format(const char *name, const struct shared_limit *of, const struct state_key *key,
		       char text[STORE_KEY], char block[STORE_KEY])
{
	snprintf(text, STORE_KEY, "%s:%d:%d", name, (int)of->meaning, (int)key->addr[0]);
	snprintf(block, STORE_KEY, "%s", of->shares_blocks ? "block" : "");
}

/*
 * Makes an entry with a full state for the key `addr`. Stores the key's tag in way `way` of `set`.
 */
static void entry_make(struct sl_entry *entry, struct sl_set *set, unsigned int way, uint64_t addr,
		       uint64_t now)
{
	*entry = (struct sl_entry){.addr = {addr}, .limit = 9};
	*entry_state(entry) = credit_full(&limit.limit, now);
	set->tag[way] = 2;
}

/* Charges and counts a packet as the packet path does. Returns whether the packet passes. */
static bool packet_send(struct sl_entry *entry, uint64_t now)
{
	struct sl_slice slice = {0};
	bool passes = credit_charge(&limit.limit, entry_state(entry), &slice, 0, limit.limit.cost,
				    now, 1);
	uint32_t units = limit.limit.cost >> limit.limit.unit_shift;

	entry->count.shared.taken += passes ? units : 0;
	entry->count.shared.refused += passes ? 0 : units;
	return passes;
}

#endif
