/* SPDX-License-Identifier: GPL-2.0 */
/* Lets the programs of bpf/carry.h add to what packets add to at the same time. 0, or a negative errno. */
#ifndef SLUICE_CARRIER_H
#define SLUICE_CARRIER_H

#include "carried.h"
#include "object.h"

/* Charges a ledger with what another of its key was charged. */
int carrier_ledger(const struct carriers *carriers, struct sl_carry_ledger *ledger);

/* Adds to the counters of policy `number`. */
int carrier_counters(const struct carriers *carriers, uint32_t number,
		     const struct sl_counters *counters);

#endif
