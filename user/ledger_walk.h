/* SPDX-License-Identifier: GPL-2.0 */
/* All ledgers of a map, read in batches. */
#ifndef SLUICE_LEDGER_WALK_H
#define SLUICE_LEDGER_WALK_H

#include "carried.h"
#include "gate.h"

extern const enum gate_map ledger_maps[SL_FAMILIES];

typedef int ledger_call(void *data, enum sl_family family, const struct sl_carry_key *key,
			const struct sl_ledger *ledger);

/* Calls for each ledger of the map, until it returns a negative errno, which is returned. */
int ledgers_walk(int fd, enum sl_family family, ledger_call *call, void *data);

#endif
