/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: counters that machines have in common, kept in Redis or Valkey, alone or as a cluster.
 *
 * What got no answer is never sent again: consumption may be missed, and is never counted twice.
 * The answers are hostile input: they can be wrong, and can neither crash a caller nor cost it
 * memory without bound, nor time beyond timeout_ms.
 *
 * A store blocks, and is one thread's. Its calls block SIGPIPE in that thread, for good.
 */
#ifndef SLUICE_SHARE_STORE_H
#define SLUICE_SHARE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_KEY 128 /* the longest key, and a NUL */

/* The fields of a key: integers of 64 bits, one after the other in a string. */
enum store_field {
	STORE_TAKEN, /* bytes 0 to 7 */
	STORE_ASKED, /* 8 to 15 */
	STORE_FIELDS
};

/*
 * One key, and what this node adds to its fields. Set by the caller: key, block_key, delta, lasts,
 * block_ms.
 */
struct store_item {
	char key[STORE_KEY];	     /* has a {hash tag}; keys of one tag are of one node */
	int64_t delta[STORE_FIELDS]; /* both 0: the key is only read, and not made */
	bool lasts;		     /* it has an expiry, which is left as it is */
	char block_key[STORE_KEY];   /* lives as long as a block does; "": none is shared */
	uint64_t block_ms;	     /* of a block that this node tells of; 0: of none */

	bool answered; /* by both fields */
	bool expires;  /* the store has said now that the key does; or it is only read, and none */
	bool sent;     /* bytes of it may have reached the store: must not be added again */
	int64_t total[STORE_FIELDS]; /* what the fields hold then, with the deltas; if `answered` */
	uint64_t blocked_ms;	     /* how long a block still lasts; 0: there is none */
};

struct store_options {
	const char *address; /* HOST:PORT, more by commas: where to begin */
	const char *user;    /* of an ACL; NULL: the default user */
	const char *password;
	const char *ca_file; /* TLS: of the authority of the store's certificate; NULL: no TLS */
	int timeout_ms;	     /* of each call, in all */
};

struct store_counts {
	uint64_t rounds;
	uint64_t commands; /* that were sent */
	uint64_t answered; /* items */
	uint64_t lost;	   /* items: sent, and no answer came */
	uint64_t unsent;   /* items that may be sent again */
	uint64_t moved, asked, try_again, down, loading;
	uint64_t refused;  /* commands: any other error */
	uint64_t bad;	   /* answers that are none of the protocol, or not of the command's kind */
	uint64_t connects; /* attempts */
	uint64_t broken;   /* connections that ended, or never began */
	uint64_t maps;	   /* times that the map of slots was read */
	unsigned int nodes; /* of the store that are known */
	bool is_cluster;    /* as the last map says */
};

struct store;

/* Whether an address of store_options parses: 16 of HOST:PORT at most. */
bool store_address_is_valid(const char *address);

/*
 * Makes no connection yet; the texts of the options are copied. NULL, and errno is set. EINVAL: the
 * address is not valid, there is no timeout, a user has no password, or ca_file cannot be read.
 * EOPNOTSUPP: ca_file, and this was built without TLS.
 */
struct store *store_open(const struct store_options *options);
void store_close(struct store *store);

/*
 * Adds to each item's fields, sets its expiry, and reads its totals and its block: pipelined to the
 * nodes that hold the slots, all at the same time. Follows the refusals of a cluster that changes.
 * A key of another type is deleted first.
 * Items keep their order, and need not differ. expire_s: a key that nobody adds to is forgotten
 * after this; not 0. Returns 0, or a negative errno: no item was answered.
 */
int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s);

/*
 * Reads the store's time, notes that this node is alive, and counts the nodes that did so within
 * alive_ms, at least 1. key: of a sorted set; the node that holds it tells the time, so that all
 * nodes go by one clock. Two round trips. Outputs are untouched on failure.
 */
int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		uint64_t *ret_time_ms, unsigned int *ret_nodes);

const struct store_counts *store_counts(const struct store *store);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t store_now_ms(void);

/* One line about the last failure, in printable ASCII; "": there was none. */
const char *store_error(const struct store *store);

#endif
