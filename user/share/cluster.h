/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the nodes of a store and their commands. Each node has a queue of commands that have no
 * outcome. A command is sent once, and again only after a redirect. A server without cluster mode
 * counts as a cluster of one node, which has all slots.
 */
#ifndef SLUICE_SHARE_CLUSTER_H
#define SLUICE_SHARE_CLUSTER_H

#include "share/connection.h"
#include "share/slots.h"

#define SEEDS_MAX 16

enum outcome {
	WAITS,	 /* in a queue, or sent but without a reply */
	REPLIED, /* executed, and the reply is valid */
	UNSENT,	 /* not executed */
	REFUSED, /* not executed, because the key has the wrong type */
	LOST,	 /* sent but without a reply, so perhaps executed */
};

struct store_command {
	const char *format; /* for redisFormatCommand(); begins with the name of the command */
	char *text;	    /* encoded command; NULL after its outcome, or if there was no memory */
	int size;	    /* length of `text` in bytes */
	int values; /* how many numbers the reply must have; 0: a status; REPLY_WHOLE: any reply */
	unsigned int slot; /* cluster slot of the key */
	unsigned int node; /* index of the node to send to; NODE_NONE: the node that has the slot */
	unsigned int tries; /* number of redirects so far */
	unsigned int due;   /* number of awaited replies: 1; 2 if ASKING was sent first */
	enum outcome outcome;
	int64_t value[2];  /* numbers in the reply */
	redisReply *whole; /* reply to a command with REPLY_WHOLE; the caller frees it */
	struct store_command *next;
};

#define REPLY_WHOLE (-1)

struct queue {
	struct store_command *first, *last;
};

struct store_node {
	struct connection connection;
	struct queue unsent, awaiting;
	bool is_replica; /* the node has refused a write, because it is a replica */
};

struct cluster {
	struct connection_setup setup;
	struct endpoint seed[SEEDS_MAX]; /* addresses on the command line */
	unsigned int seeds;

	struct slot_map map;
	struct store_node *node[NODES_MAX]; /* nodes, at the same indexes as in `map` */
	struct store_node pool[NODES_MAX];  /* memory of the nodes in `node` */
	bool map_is_known, map_is_stale;
	unsigned int map_failures; /* consecutive reads of the map that failed */
	unsigned int map_turn;	   /* index of the first node of the next read of the slot map */
	uint64_t map_rest_ms;	   /* earliest time at which to read the slot map again */

	/* start and end of the current call of a function in store.h */
	uint64_t begun_ms, end_ms;
	size_t open; /* number of commands without an outcome */
};

/*
 * Returns the index of a store node. Adds the node if it is not known. Returns NODE_NONE if there
 * is no room.
 */
unsigned int cluster_node(struct cluster *cluster, const struct endpoint *at);

/*
 * Returns a command with the format and arguments of redisFormatCommand(). values: see struct
 * store_command. If there is no memory, `text` is NULL, and cluster_exchange() ignores the command.
 */
struct store_command command_make(const char *key, int values, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Executes commands. Returns when each command has an outcome, at the latest at cluster->end_ms. */
void cluster_exchange(struct cluster *cluster, struct store_command *commands, size_t count);

/* Reads the slot map, unless the known map is current. Returns 0 if a map is known, or -errno. */
int cluster_refresh(struct cluster *cluster);

#endif
