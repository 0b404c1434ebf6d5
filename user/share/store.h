/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: counters that several machines share in a Redis or Valkey server or cluster. A command is
 * sent only once, even if no reply arrives. So the counters may miss packets, but never count a
 * packet twice. A malicious server can send false replies. It cannot crash the caller, exhaust
 * memory, or delay the caller beyond timeout_ms. Calls block. Only one thread may use a store. The
 * first call blocks SIGPIPE in this thread forever.
 */
#ifndef SLUICE_SHARE_STORE_H
#define SLUICE_SHARE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "share/slots.h"

#define STORE_KEY 128 /* size of the longest key, with its NUL */

/* The value of a key in the store: a string of two 64-bit integers. */
struct store_fields {
	int64_t taken, asked;
};

/*
 * A key, and amounts that this node adds to it. store_round() sets the members from `answered` on.
 */
struct store_item {
	char key[STORE_KEY];	   /* keys with the same {hash tag} are on the same store node */
	struct store_fields delta; /* amounts to add; if both are 0, the key is only read */
	bool lasts;		   /* the key already has an expiry in the store */
	char block_key[STORE_KEY]; /* key that exists during a block; "": blocks are not shared */
	uint64_t block_ms;	   /* remaining ms of the block to report; 0: no block */

	bool answered;		   /* the store has returned both fields of `total` */
	bool expires;		   /* the store has set the expiry, or no expiry is needed */
	bool sent;		   /* `delta` may have been added: do not add it again */
	struct store_fields total; /* fields of the key after the addition; valid if `answered` */
	uint64_t blocked_ms;	   /* remaining ms of the block; 0: no block */
};

struct store_options {
	const char *address; /* HOST:PORT[,HOST:PORT...] of the store nodes to connect to first */
	const char *user;    /* user of the ACL; NULL: the default user */
	const char *password;
	const char *ca_file; /* CA of the store's certificate; NULL: no TLS */
	int timeout_ms;	     /* longest time that a function of this file may block, in ms */
};

struct store_counts {
	uint64_t commands;
	uint64_t lost;		     /* items that were sent but got no reply */
	uint64_t refusals[REFUSALS]; /* error replies of each kind */
	uint64_t refused;	     /* commands that got an error reply other than a redirect */
	uint64_t bad; /* replies that violate the protocol or do not fit their command */
	uint64_t connects;
	unsigned int nodes; /* number of known nodes of the store */
	bool is_cluster;    /* the store was a cluster when its slot map was last read */
};

struct store;

/* Returns whether an address is valid: 1 to 16 HOST:PORT, separated by commas. */
bool store_address_is_valid(const char *address);

/*
 * Makes a store with a copy of the options. Does not connect. On failure, returns NULL and sets
 * errno. EINVAL: the address is invalid, the timeout is 0, a user has no password, or ca_file
 * cannot be read. EOPNOTSUPP: ca_file is set, but this build has no TLS.
 */
struct store *store_open(const struct store_options *options);
void store_close(struct store *store);

/*
 * For each item, adds `delta` to the fields of its key, sets the key's expiry, and reads its total
 * and its block. Needs one round trip to all store nodes. Follows redirects. If a key has another
 * type, deletes it and retries. expire_s: expiry of a key in seconds after the last addition; not
 * 0. Returns 0, or a negative errno if no item got a reply.
 */
int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s);

/*
 * Adds `node` to a sorted set, with the time of the server that has the set, because the clocks of
 * nodes differ. Then counts the nodes that were added in the last alive_ms. Needs two round trips.
 * Sets ret_nodes to at least 1. Returns 0 or a negative errno.
 */
int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		unsigned int *ret_nodes);

const struct store_counts *store_counts(const struct store *store);

/* Returns the time of CLOCK_MONOTONIC in milliseconds. */
uint64_t store_now_ms(void);

/* Returns the text of the last failure, one line of printable ASCII, or "" without a failure. */
const char *store_error(const struct store *store);

#endif
