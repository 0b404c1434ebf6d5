/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the limits of a gate with `shared yes` or `shared block`, and the names of their keys in
 * the store.
 */
#ifndef SLUICE_SHARED_LIMITS_H
#define SLUICE_SHARED_LIMITS_H

#include <stdbool.h>

#include "gate/gate.h"
#include "share/store.h"
#include "ways.h"

/* A shared limit, as compiled for IPv4 or IPv6. */
struct shared_limit {
	struct sl_limit limit;
	enum sl_family family;
	bool shares_blocks;
	uint32_t since;	  /* generation of the rules in which the limit got its id */
	uint64_t meaning; /* hash of prefix, name, rate, burst, key and match; equal on all nodes */
};

struct shared_limits {
	struct shared_limit *list; /* array, sorted by id and family */
	unsigned int count, room;
	uint64_t burst_most; /* largest burst of these limits, in ticks; 0: no limits */
	uint64_t meaning;    /* sum of all `meaning` in `list`; equal on nodes with equal limits */
	uint32_t generation; /* generation of the rules before `list` was read */
};

#define SHARED_LIMITS_NONE ((struct shared_limits){0})

int shared_limits_read(const struct gate *gate, struct shared_limits *ret);
void shared_limits_free(struct shared_limits *limits);

/* Returns the shared limit with the number `sl_entry.limit`, or NULL if it is not shared. */
const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t limit);

/* Returns a hash of a text. The hash is the same on all nodes. */
uint64_t shared_hash(const char *text);

/*
 * Formats the name of a key in the store. Limits that differ in `meaning` have different names.
 * name: common name of the nodes. block: gets the name of the key that exists during a block, or ""
 * if the limit does not share blocks.
 */
void shared_key_format(const char *name, const struct shared_limit *limit,
		       const struct state_key *key, char text[STORE_KEY], char block[STORE_KEY]);

#endif
