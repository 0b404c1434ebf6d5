/* SPDX-License-Identifier: GPL-2.0 */
/* The limits that the ledgers of one family belong to, by the id that the ledgers' keys name. */
#ifndef SLUICE_LIMIT_INDEX_H
#define SLUICE_LIMIT_INDEX_H

#include "carried.h"
#include "gate.h"

struct limit_index {
	const struct sl_limit **limits; /* by id */
	unsigned int count;
	enum sl_family family;
};

/* Of all records that packets may see. Good while the gate is open. 0, or a negative errno. */
int limit_index_make(const struct gate *gate, enum sl_family family, struct limit_index *ret);
void limit_index_free(struct limit_index *index);

/* The limit of a ledger; NULL: it is deleted, and no packet will ask for the ledger again. */
const struct sl_limit *limit_of_key(const struct limit_index *index,
				    const struct sl_carry_key *key);

#endif
