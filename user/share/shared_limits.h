/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the limits of a gate that say `shared yes`, by the number that entries of the table have.
 */
#ifndef SLUICE_SHARED_LIMITS_H
#define SLUICE_SHARED_LIMITS_H

#include <stdbool.h>

#include "gate/gate.h"
#include "share/store.h"
#include "ways.h"

/* One limit, as it is compiled for one family. */
struct shared_limit {
	struct sl_limit limit;
	enum sl_family family;
	bool shares_blocks;
	uint32_t since;	  /* the generation of the rules since which it has its id */
	uint64_t meaning; /* of prefix, name, rate, burst, key and match: a hash, on any node */
	char label[SL_NAME + 1];
};

struct shared_limits {
	struct shared_limit *list; /* by id and family, ascending */
	unsigned int count;
	uint64_t burst_most; /* ticks; 0: there is none */
	uint64_t meaning;    /* of all, the same on nodes that share all */
	uint32_t generation; /* of the rules, or of later ones */
};

#define SHARED_LIMITS_NONE ((struct shared_limits){0})

int shared_limits_read(const struct gate *gate, struct shared_limits *ret);
void shared_limits_free(struct shared_limits *limits);

/* The limit of a entry, by sl_entry.limit. NULL: it is not shared. */
const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t limit);

/* A hash of a text, the same on any node. */
uint64_t shared_hash(const char *text);

/*
 * Writes the key of the store for a key of the table, and that for its block; "": its limit shares
 * none. Nodes whose limits differ in what makes `meaning` have other keys.
 */
void shared_key_format(const char *name, const struct shared_limit *limit,
		       const struct state_key *key, char text[STORE_KEY], char block[STORE_KEY]);

#endif
