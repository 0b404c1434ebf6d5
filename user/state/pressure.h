/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the pressure of newcomers on a gate: how many come, how many get memory, and whether they
 * have to wait. It is read from map `admission`, without a walk over sources.
 */
#ifndef SLUICE_PRESSURE_H
#define SLUICE_PRESSURE_H

#include <stdint.h>

#include "gate/gate.h"

/* How often an event happened, on all CPUs. */
struct pace {
	uint64_t total;
	uint64_t per_second; /* in the last complete second */
};

struct pressure {
	struct pace event[SL_EVENTS];
	unsigned int flooded;	 /* CPUs on which new sources wait for a level */
	unsigned int crowded[2]; /* of these, by policies without and with a budget */
	uint64_t lost;		 /* as in struct sl_admission */
};

int pressure_read(const struct gate *gate, struct pressure *ret);

/* What states lacked that were forgotten, in whole bursts. */
double pressure_bursts_lost(const struct pressure *pressure);

/*
 * Whether newcomers have passed a policy without a budget although it has limits that drop. The
 * rules alone do not tell: all its packets may be denied or match none of its limits, and then no
 * budget would stop them.
 */
int policy_passed_by(const struct gate *gate, const struct sl_policy *policy, bool *ret);

/* The number of such policies, and the first by prefix. 0 when there is no flood. */
struct passing {
	unsigned int policies;
	struct sl_prefix first;
};

int passing_read(const struct gate *gate, const struct pressure *pressure, struct passing *ret);

/*
 * Why newcomers got no state, and sources no bucket: the events from SL_EVENT_BUSY on, and from
 * SL_EVENT_BUCKET_BUSY on, in their order.
 */
#define CAUSES 2

extern const char *const cause_names[CAUSES];

#endif
