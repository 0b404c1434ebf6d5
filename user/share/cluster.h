/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the nodes of a store, and the commands that are in progress. A command is in the queue of
 * a node until it has an outcome. Only a redirect puts a command that was sent into a queue again.
 * A store that is no cluster is a cluster of one node.
 */
#ifndef SLUICE_SHARE_CLUSTER_H
#define SLUICE_SHARE_CLUSTER_H

#include "share/connection.h"
#include "share/slots.h"

#define SEEDS_MAX 16

enum outcome {
	WAITS, /* it is in a queue */
	REPLIED,
	UNSENT,	 /* it was certainly not executed */
	REFUSED, /* nor was this: what the key holds cannot be counted */
	LOST,	 /* it may have been executed */
};

struct command {
	const char *format; /* begins with the word of the command */
	char *text;	    /* in the protocol, until there is an outcome; NULL: no command */
	int size;
	int values;	   /* numbers of the reply; 0: a status; REPLY_WHOLE: any reply */
	unsigned int slot; /* of the key */
	unsigned int node; /* NODE_NONE: the node that has the slot */
	unsigned int tries;
	unsigned int due; /* replies: 2 with ASKING before the command */
	enum outcome outcome;
	int64_t value[2];
	redisReply *whole;
	struct command *next;
};

#define REPLY_WHOLE (-1)

struct queue {
	struct command *first, *last;
};

struct node {
	struct connection connection;
	struct queue unsent, awaiting;
	bool is_replica; /* it replied so: READONLY */
};

struct cluster {
	struct connection_setup setup;
	struct endpoint seed[SEEDS_MAX]; /* the first nodes to ask */
	unsigned int seeds;

	struct slot_map map;
	struct node *node[NODES_MAX]; /* as numbered in the map; the rest are closed */
	struct node pool[NODES_MAX];
	bool map_is_known, map_is_stale;
	unsigned int map_failures, map_turn;
	uint64_t map_rest_ms; /* the map is not read before this */

	/* of the present call */
	uint64_t begun_ms, end_ms;
	size_t open; /* commands without an outcome */
};

/* Returns the number of the node at a place, which may be new; NODE_NONE: there are too many. */
unsigned int cluster_node(struct cluster *cluster, const struct endpoint *at);

/* Returns a command by a format of redisFormatCommand(). Without memory it is no command. */
struct command command_make(const char *key, int values, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Runs commands until each has an outcome, or until cluster->end_ms. */
void cluster_exchange(struct cluster *cluster, struct command *commands, size_t count);

/* Reads the map if necessary. Returns 0 if there is a map, or a negative errno. */
int cluster_refresh(struct cluster *cluster);

#endif
