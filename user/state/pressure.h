/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the load of new sources on a gate: how many arrive, how many get a state, whether new
 * sources must wait, and what is left of budgets and of the table.
 */
#ifndef SLUICE_PRESSURE_H
#define SLUICE_PRESSURE_H

#include <stdint.h>

#include "gate/table.h"

/* How often an event happened, summed over all CPUs. */
struct pace {
	uint64_t total;
	uint64_t per_second; /* rate in the last complete second */
};

struct pressure {
	struct pace event[SL_EVENTS];
	unsigned int flooded; /* number of CPUs on which new sources wait for a state */
	/* number of these CPUs for policies without [0] and with a budget [1] */
	unsigned int flooded_by[2];
	double bursts_lost; /* credit that evicted states lacked, in bursts */
};

/* Reads the pressure from map `admission`, without a walk over sources. */
int pressure_read(const struct gate *gate, struct pressure *ret);

/*
 * The causes why a new source got no state, or no bucket. They are the events that begin at
 * SL_EVENT_BUSY and at SL_EVENT_BUCKET_BUSY, in the same order.
 */
#define CAUSES 2
extern const char *const cause_names[CAUSES];

/* --- Policies without a budget -------------------------------------------------------------- */

/*
 * Reads whether new sources have passed a policy that has no budget, but limits that drop. The
 * rules alone do not show that: a budget would stop no packet if all packets of the policy are
 * denied, or match none of its limits.
 */
int policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret);

/* The policies that new sources pass in a flood because they have no budget. */
struct passing {
	unsigned int policies;	/* number of these policies; 0 if there is no flood */
	struct sl_prefix first; /* the first of these policies in the order of prefixes */
};

int passing_read(const struct gate *gate, const struct pressure *pressure, struct passing *ret);

/* --- Budgets -------------------------------------------------------------------------------- */

/* The use of a budget by its policy and by the policies that inherit it. */
struct budget_use {
	const struct sl_policy *policy; /* the policy of the budget, in the gate's memory */
	uint64_t left;	 /* rest of the burst, in packets, or in bytes for a bit rate */
	uint64_t passed; /* packets that were charged to the budget */
	uint64_t dropped;
};

/* Reads all budgets of a gate, sorted by prefix. The caller frees *ret. */
int budgets_read(const struct gate *gate, struct budget_use **ret, unsigned int *ret_count);

/* --- The table ------------------------------------------------------------------------------ */

struct table_fill {
	uint32_t entries;
	uint32_t in_use;
	uint32_t partial;   /* states that are not full, whose eviction loses credit */
	uint32_t protected; /* partial states that are evicted only after all others */
	uint32_t bytes;	    /* size of the table, in bytes for each of `sources` */
	uint32_t sources;   /* number of sources that fit if each has one limit */
	/* if the table is too small: a size with a larger table, or the largest; otherwise 0 */
	uint32_t sources_short;
};

/* Walks the table. pressure: the pressure that was read at the same time. */
int table_fill_read(const struct gate *gate, const struct pressure *pressure,
		    struct table_fill *ret);

/* Computes `bytes` and `sources_short` from `entries`, `sources` and the pressure. */
void table_fill_judge(struct table_fill *fill, const struct pressure *pressure);

#endif
