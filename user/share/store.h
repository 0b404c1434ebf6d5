/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: counters that several machines share in a store: a Redis or Valkey server, or a cluster.
 *
 * A command without a reply is never sent again, so consumption may be missed, but is never counted
 * twice. Replies are hostile input: they may be false, but they cannot crash the caller, and cannot
 * use unbounded memory or more time than timeout_ms. Calls block, and only one thread may use a
 * store. The first call blocks SIGPIPE in that thread forever.
 */
#ifndef SLUICE_SHARE_STORE_H
#define SLUICE_SHARE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "share/slots.h"

#define STORE_KEY 128 /* size of the longest key, including the NUL */

/* The value of a key: a string of two 64-bit integers. */
struct store_fields {
	int64_t taken, asked;
};

/* A key, and what this node adds to it. store_round() sets the members from `answered` on. */
struct store_item {
	char key[STORE_KEY];	   /* key with a {hash tag}: keys of one tag are on one node */
	struct store_fields delta; /* amounts to add; if both are 0, the key is only read */
	bool lasts;		   /* the key already has an expiry, so do not set it again */
	char block_key[STORE_KEY]; /* key that exists during a block; "" if blocks are not shared */
	uint64_t block_ms;	   /* length of the block that this node reports; 0: no block */

	bool answered;		   /* the store returned both fields */
	bool expires;		   /* the expiry was set, or `delta` was 0, so the key needs none */
	bool sent;		   /* the store may have added `delta`, so do not add it again */
	struct store_fields total; /* fields after the addition, valid if `answered` */
	uint64_t blocked_ms;	   /* remaining time of the block; 0: no block */
};

struct store_options {
	const char *address; /* HOST:PORT[,HOST:PORT...]: the nodes to which it connects first */
	const char *user;    /* ACL user; NULL: the default user */
	const char *password;
	const char *ca_file; /* CA that signed the certificate of the store; NULL: no TLS */
	int timeout_ms;	     /* longest time that a call may block */
};

struct store_counts {
	uint64_t commands;	     /* commands sent */
	uint64_t lost;		     /* number of items that were sent and got no reply */
	uint64_t refusals[REFUSALS]; /* number of error replies of each kind */
	uint64_t refused;	     /* number of commands that failed by an error reply */
	uint64_t bad; /* number of replies that violate the protocol or do not fit the command */
	uint64_t connects;  /* number of attempts to connect */
	unsigned int nodes; /* number of known nodes of the store */
	bool is_cluster;    /* the store was a cluster when its slots were last read */
};

struct store;

/* Returns whether an address is valid for store_options: 1 to 16 HOST:PORT, with commas between. */
bool store_address_is_valid(const char *address);

/*
 * Creates a store, without connecting. Copies the options. Returns NULL and sets errno on failure:
 * EINVAL if the address is invalid, if there is no timeout, if a user has no password, or if
 * ca_file cannot be read; EOPNOTSUPP if ca_file is set, but this build has no TLS.
 */
struct store *store_open(const struct store_options *options);
void store_close(struct store *store);

/*
 * Adds to the fields of all items, sets their expiry, and reads their totals and blocks, in one
 * round trip to all nodes of the store. Follows redirects of a cluster. If a key has another type,
 * deletes it and tries again. expire_s: the expiry of a key after its last addition, in seconds;
 * must not be 0. Returns 0, or a negative errno if no item was answered.
 */
int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s);

/*
 * Adds this node to a sorted set with the present time, and counts the nodes that did so within the
 * last alive_ms. The time is the clock of the server that has the key, so all nodes use one clock.
 * Takes two round trips. Sets ret_nodes to at least 1. Returns 0 or a negative errno.
 */
int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		unsigned int *ret_nodes);

const struct store_counts *store_counts(const struct store *store);

/* Returns CLOCK_MONOTONIC in milliseconds. */
uint64_t store_now_ms(void);

/* Returns the last failure as a line of printable ASCII, or "" if nothing has failed. */
const char *store_error(const struct store *store);

#endif
