/* SPDX-License-Identifier: GPL-2.0 */
/* The ledgers of one family as they were when they were copied to another map. */
#ifndef SLUICE_COPIES_H
#define SLUICE_COPIES_H

#include "limit_index.h"

struct copy {
	struct sl_carry_key key;
	struct sl_ledger ledger;
};

/* Begins zeroed. */
struct copies {
	struct copy *items; /* by key, once they are written */
	unsigned int count;
	unsigned int room;
};

/* Reads the ledgers of a map, but for those whose limit is deleted. 0, or a negative errno. */
int copies_read(struct copies *copies, int fd, const struct limit_index *limits);

/* Writes them to a map that no packet uses yet. 0, or a negative errno. ret_lost: how many did not fit. */
int copies_write(struct copies *copies, int fd, enum sl_family family, unsigned int *ret_lost);

/* The ledger of that key, of those written, as it was then; NULL: there was none. */
const struct sl_ledger *copies_find(const struct copies *copies, const struct sl_carry_key *key);

void copies_free(struct copies *copies);

#endif
