/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the pressure of new sources on a gate: how many come, how many get memory, whether they
 * have to wait, and what is left of their budgets and of the table.
 */
#ifndef SLUICE_PRESSURE_H
#define SLUICE_PRESSURE_H

#include <stdint.h>

#include "gate/table.h"

/* How often an event happened, on all CPUs. */
struct pace {
	uint64_t total;
	uint64_t per_second; /* in the last complete second */
};

struct pressure {
	struct pace event[SL_EVENTS];
	unsigned int flooded;	 /* CPUs on which new sources wait for a state */
	unsigned int crowded[2]; /* of these, by policies without and with a budget */
	double bursts_lost;	 /* credit that evicted states lacked, in bursts */
};

/* Reads map `admission`, without a walk over sources. */
int pressure_read(const struct gate *gate, struct pressure *ret);

/*
 * The causes for which new sources got no state, and sources no bucket: the events from
 * SL_EVENT_BUSY on, and from SL_EVENT_BUCKET_BUSY on, in their order.
 */
#define CAUSES 2
extern const char *const cause_names[CAUSES];

/* --- Policies without a budget -------------------------------------------------------------- */

/*
 * Reads whether new sources have passed a policy without a budget although it has limits that drop.
 * The rules alone are not enough: if all its packets are denied, or match none of its limits, a
 * budget would stop no packet.
 */
int policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret);

/* The number of such policies, and the first by prefix. 0 if there is no flood. */
struct passing {
	unsigned int policies;
	struct sl_prefix first;
};

int passing_read(const struct gate *gate, const struct pressure *pressure, struct passing *ret);

/* --- Budgets -------------------------------------------------------------------------------- */

/* The budget of a policy, with the policies that inherit it. */
struct budget_use {
	const struct sl_policy *policy; /* in the gate's memory */
	uint64_t left;			/* of its burst, in packets, or bytes of a bit rate */
	uint64_t passed;		/* packets that it paid for */
	uint64_t dropped;
};

/* Reads all budgets of a gate, by prefix. The caller frees `ret`. */
int budgets_read(const struct gate *gate, struct budget_use **ret, unsigned int *ret_count);

/* --- The table ------------------------------------------------------------------------------ */

struct table_fill {
	uint32_t entries;
	uint32_t in_use;
	uint32_t partial;   /* states that are not full, so that an eviction loses something */
	uint32_t protected; /* partial states that are evicted last */
	uint32_t bytes;	    /* bytes of the table for each of `sources` */
	uint32_t sources;   /* size of the gate: so many sources with one limit fit */
	/* while room is short, the least size with a larger table, or the largest size; else 0 */
	uint32_t sources_short;
};

/* Walks the table. pressure: of the same time. */
int table_fill_read(const struct gate *gate, const struct pressure *pressure,
		    struct table_fill *ret);

/* Computes `bytes` and `sources_short` from `entries`, `sources` and the pressure. */
void table_fill_judge(struct table_fill *fill, const struct pressure *pressure);

#endif
