/* SPDX-License-Identifier: GPL-2.0 */
/* Share: the limits of a gate that specify `shared`, by the number of sl_entry.limit. */
#ifndef SLUICE_SHARED_LIMITS_H
#define SLUICE_SHARED_LIMITS_H

#include <stdbool.h>

#include "gate/gate.h"
#include "share/store.h"
#include "ways.h"

/* A limit as it is compiled for one family. */
struct shared_limit {
	struct sl_limit limit;
	enum sl_family family;
	bool shares_blocks;
	uint32_t since;	  /* the generation of the rules since which it has its id */
	uint64_t meaning; /* a hash of prefix, name, rate, burst, key and match; same on any node */
};

struct shared_limits {
	struct shared_limit *list; /* by id and family, ascending */
	unsigned int count, room;
	uint64_t burst_most; /* ticks; 0: there is none */
	uint64_t meaning;    /* of all: the same on nodes that share the same limits */
	uint32_t generation; /* of the rules, or of later rules */
};

#define SHARED_LIMITS_NONE ((struct shared_limits){0})

int shared_limits_read(const struct gate *gate, struct shared_limits *ret);
void shared_limits_free(struct shared_limits *limits);

/* Returns the limit of an entry by sl_entry.limit; NULL: it is not shared. */
const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t limit);

/* Returns a hash of a text, the same on any node. */
uint64_t shared_hash(const char *text);

/*
 * Formats the store's key for a key of the table, and that of its block, or "" if its limit does
 * not share blocks. Nodes whose limits differ in `meaning` use different keys.
 */
void shared_key_format(const char *name, const struct shared_limit *limit,
		       const struct state_key *key, char text[STORE_KEY], char block[STORE_KEY]);

#endif
