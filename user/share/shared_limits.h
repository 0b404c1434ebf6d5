/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the limits of a gate that have `shared yes` or `shared block`, and the keys in the store
 * for them.
 */
#ifndef SLUICE_SHARED_LIMITS_H
#define SLUICE_SHARED_LIMITS_H

#include <stdbool.h>

#include "gate/gate.h"
#include "share/store.h"
#include "ways.h"

/* A shared limit, compiled for one address family. */
struct shared_limit {
	struct sl_limit limit;
	enum sl_family family;
	bool shares_blocks;
	uint32_t since;	  /* generation of the rules that gave the limit its id */
	uint64_t meaning; /* hash of prefix, name, rate, burst, key and match; equal on all nodes */
};

struct shared_limits {
	struct shared_limit *list; /* array of limits, sorted by id and family */
	unsigned int count, room;
	uint64_t burst_most; /* longest burst of these limits in ticks; 0 without limits */
	uint64_t meaning; /* sum of `meaning` of all limits: equal on nodes with the same limits */
	uint32_t generation; /* generation at which the read began; the limits may be newer */
};

#define SHARED_LIMITS_NONE ((struct shared_limits){0})

int shared_limits_read(const struct gate *gate, struct shared_limits *ret);
void shared_limits_free(struct shared_limits *limits);

/* Returns the shared limit with this id (sl_entry.limit), or NULL if the limit is not shared. */
const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t limit);

/* Returns a hash of a text that is equal on all nodes. */
uint64_t shared_hash(const char *text);

/*
 * Formats the name in the store for a key of the table. name: the common name of the nodes. block:
 * set to the name of the key's block, or to "" if the limit does not share blocks. Limits with
 * another `meaning` have other names.
 */
void shared_key_format(const char *name, const struct shared_limit *limit,
		       const struct state_key *key, char text[STORE_KEY], char block[STORE_KEY]);

#endif
