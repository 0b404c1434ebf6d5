/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: counters that machines have in common, in Redis or Valkey, alone or as a cluster.
 *
 * A command without a reply is never sent again: consumption may be missed, and is never counted twice.
 * Replies are hostile input: they can be wrong, but can neither crash a caller nor cost it memory
 * without bound, nor time beyond timeout_ms. Calls block, and only one thread may use a store. They
 * block SIGPIPE in that thread, forever.
 */
#ifndef SLUICE_SHARE_STORE_H
#define SLUICE_SHARE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "share/slots.h"

#define STORE_KEY 128 /* the longest key, and a NUL */

/* The fields of a key: integers of 64 bits, one after the other in a string. */
struct store_fields {
	int64_t taken, asked;
};

/* One key, and what this node adds to its fields. The caller sets the members above `answered`. */
struct store_item {
	char key[STORE_KEY];	   /* has a {hash tag}; one node holds all keys of a tag */
	struct store_fields delta; /* both 0: the key is only read, and not created */
	bool lasts;		   /* it has an expiry, which stays as it is */
	char block_key[STORE_KEY]; /* exists as long as a block; "": blocks are not shared */
	uint64_t block_ms;	   /* of a block that this node reports; 0: none */

	bool answered; /* by both fields */
	bool expires; /* the store replied that the key expires; or it was only read, and is none */
	bool sent;    /* the store may have received it: it must not be added again */
	struct store_fields total; /* with the deltas; if `answered` */
	uint64_t blocked_ms;	   /* how long a block still lasts; 0: there is none */
};

struct store_options {
	const char *address; /* HOST:PORT, more with commas: the first nodes to ask */
	const char *user;    /* of an ACL; NULL: the default user */
	const char *password;
	const char *ca_file; /* TLS: of the authority of the store's certificate; NULL: no TLS */
	int timeout_ms;	     /* of a whole call */
};

struct store_counts {
	uint64_t commands; /* that were sent */
	uint64_t lost;	   /* items that were sent and got no reply */
	uint64_t refusals[REFUSALS];
	uint64_t refused;   /* commands, and not tried again */
	uint64_t bad;	    /* replies that violate the protocol, or do not fit the command */
	uint64_t connects;  /* attempts */
	unsigned int nodes; /* known nodes of the store */
	bool is_cluster;    /* by the last map */
};

struct store;

/* Whether an address of store_options is valid: at most 16 of HOST:PORT. */
bool store_address_is_valid(const char *address);

/*
 * Makes no connection yet. Copies the options. Returns NULL and sets errno: EINVAL if the address
 * is not valid, there is no timeout, a user has no password, or ca_file cannot be read; EOPNOTSUPP
 * if there is a ca_file, but this build has no TLS.
 */
struct store *store_open(const struct store_options *options);
void store_close(struct store *store);

/*
 * Adds to the fields of items, sets their expiry, and reads their totals and blocks, in one round
 * trip to all nodes. Follows the refusals of a cluster that changes, and deletes a key of another
 * type first. expire_s: until the store drops a key that gets no addition; not 0. Returns 0, or a
 * negative errno if no item was answered.
 */
int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s);

/*
 * Stores in a sorted set that this node is alive, and counts the nodes that did so within alive_ms,
 * at least 1. The node of the key reads the time, so that all nodes use one clock. Two round trips.
 */
int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		unsigned int *ret_nodes);

const struct store_counts *store_counts(const struct store *store);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t store_now_ms(void);

/* The last failure in one line of printable ASCII; "": there was none. */
const char *store_error(const struct store *store);

#endif
