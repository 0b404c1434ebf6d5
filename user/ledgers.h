/* SPDX-License-Identifier: GPL-2.0 */
/* The ledgers of a gate, one a limit and key: read, or made full. */
#ifndef SLUICE_LEDGERS_H
#define SLUICE_LEDGERS_H

#include "gate.h"

/*
 * Reads the ledger of a limit for an address, which is cut to the limit's key length. None:
 * `ret_found` is false, and `ret` is what a packet at `now` would make.
 */
enum status ledger_read(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address, uint64_t now, struct sl_ledger *ret,
			bool *ret_found);

/* Replaces it by a full one, from now on. */
enum status ledger_fill(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address);

#endif
