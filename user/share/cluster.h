/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the nodes of a store, and the commands in progress. A command is in a queue of a node
 * until it has an outcome. A command that was sent is sent again only after a redirect. A server
 * without cluster mode is treated as a cluster of one node that has all slots.
 */
#ifndef SLUICE_SHARE_CLUSTER_H
#define SLUICE_SHARE_CLUSTER_H

#include "share/connection.h"
#include "share/slots.h"

#define SEEDS_MAX 16

enum outcome {
	WAITS,	 /* the command is still in a queue */
	REPLIED, /* the command was executed, and its reply is valid */
	UNSENT,	 /* the command was certainly not executed */
	REFUSED, /* the command was not executed, because the key has another type */
	LOST,	 /* perhaps executed */
};

struct store_command {
	const char *format; /* format of the command, which begins with its name */
	char *text;	    /* encoded command, freed at the outcome; NULL if memory was short */
	int size;	    /* size of `text` in bytes */
	int values;	    /* count of numbers in the reply; 0: a status; REPLY_WHOLE: any reply */
	unsigned int slot;  /* slot of the key */
	unsigned int node;  /* index of the node to ask; NODE_NONE: the node that has the slot */
	unsigned int tries; /* number of redirects that the command has followed */
	unsigned int due;   /* pending replies: 2 if ASKING is sent before the command */
	enum outcome outcome;
	int64_t value[2];  /* numbers of the reply */
	redisReply *whole; /* with REPLY_WHOLE: the reply, which the caller must free */
	struct store_command *next;
};

#define REPLY_WHOLE (-1)

struct queue {
	struct store_command *first, *last;
};

struct store_node {
	struct connection connection;
	struct queue unsent, awaiting;
	bool is_replica; /* the node has replied READONLY */
};

struct cluster {
	struct connection_setup setup;
	struct endpoint seed[SEEDS_MAX]; /* addresses that the command line specifies */
	unsigned int seeds;

	struct slot_map map;
	struct store_node *node[NODES_MAX]; /* nodes, at the same indexes as in `map` */
	struct store_node pool[NODES_MAX];  /* the nodes to which `node` points */
	bool map_is_known, map_is_stale;
	unsigned int map_failures; /* how often in a row reading the map has failed */
	unsigned int map_turn;	   /* rotates the order in which nodes are asked for the map */
	uint64_t map_rest_ms;	   /* do not read the map before this time */

	/* the current call of store.h */
	uint64_t begun_ms, end_ms;
	size_t open; /* number of commands without an outcome */
};

/* Returns the index of a node, which is added if it is new, or NODE_NONE if there is no room. */
unsigned int cluster_node(struct cluster *cluster, const struct endpoint *at);

/*
 * Returns a command. format: as for redisFormatCommand(). values: as in struct store_command. If
 * memory is short, `text` of the result is NULL, and cluster_exchange() ignores it.
 */
struct store_command command_make(const char *key, int values, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Runs commands. On return each has an outcome, at the latest at cluster->end_ms. */
void cluster_exchange(struct cluster *cluster, struct store_command *commands, size_t count);

/* Reads the map of slots if needed. Returns 0 if the map is known, or a negative errno. */
int cluster_refresh(struct cluster *cluster);

#endif
