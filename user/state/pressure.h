/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the load of new sources on a gate. Reads how many new sources arrive, how many get a
 * state, and whether they must wait. Also reads how much of the budgets and of the table is left.
 */
#ifndef SLUICE_PRESSURE_H
#define SLUICE_PRESSURE_H

#include <stdint.h>

#include "gate/table.h"

/* A count of events of one kind, summed over all CPUs. */
struct pace {
	uint64_t total;
	uint64_t per_second; /* rate in the last complete second */
};

struct pressure {
	struct pace event[SL_EVENTS];
	unsigned int flooded; /* number of CPUs on which new sources wait for a state */
	/* the same number: [0] for policies without a budget, [1] for policies with a budget */
	unsigned int flooded_by[2];
	double bursts_lost;	 /* missing credit of evicted states, in bursts */
	uint64_t crossings_lost; /* crossings of limits not recorded in map `events` */
};

/* Reads map `admission`, by one system call, and computes the pressure. */
int pressure_read(const struct gate *gate, struct pressure *ret);

/*
 * Names of the causes why a new source got no state (events from SL_EVENT_BUSY on) or no bucket
 * (events from SL_EVENT_BUCKET_BUSY on, in the same order).
 */
#define CAUSES 2
extern const char *const cause_names[CAUSES];

/* --- Policies without a budget -------------------------------------------------------------- */

/*
 * Stores whether new sources have passed a policy that has limits that drop, but no budget. Reads
 * counters, because the rules do not show this: they may deny all packets, or their limits may
 * match none.
 */
int policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret);

/* Policies without a budget, whose new sources pass during a flood. */
struct passing {
	unsigned int policies;	/* number of these policies; 0: there is no flood */
	struct sl_prefix first; /* the first of these policies, in the order of prefixes */
};

int passing_read(const struct gate *gate, const struct pressure *pressure, struct passing *ret);

/* --- Budgets -------------------------------------------------------------------------------- */

/* The use of a budget by its policy and by the policies that inherit it. */
struct budget_use {
	const struct sl_policy *policy; /* the policy that owns the budget, in the gate's memory */
	uint64_t left;			/* remaining burst, in packets; for a bit rate, in bytes */
	/* packets of new sources that passed; includes packets from before the budget was set */
	uint64_t passed;
	uint64_t dropped; /* packets that the budget dropped */
};

/* Reads all budgets of a gate, sorted by prefix. The caller frees *ret. */
int budgets_read(const struct gate *gate, struct budget_use **ret, unsigned int *ret_count);

/* --- The table ------------------------------------------------------------------------------ */

struct table_fill {
	uint32_t entries;
	uint32_t in_use;
	uint32_t partial;   /* number of states that are not full */
	uint32_t protected; /* number of partial states that are evicted last */
	uint32_t limited;   /* number of states that would drop the next packet */
	uint32_t blocked;   /* number of limited states that are blocked */
	uint32_t bytes;	    /* memory of the table per source, in bytes */
	uint32_t sources;   /* number of sources for which the gate was made */
	/* recommended number of sources if the table is too small for the load; otherwise 0 */
	uint32_t sources_short;
};

/* Reads the table, and counts its states. pressure: result of a recent pressure_read(). */
int table_fill_read(const struct gate *gate, const struct pressure *pressure,
		    struct table_fill *ret);

/* Computes `bytes` and `sources_short` from `entries`, `sources` and the pressure. */
void table_fill_judge(struct table_fill *fill, const struct pressure *pressure);

#endif
