/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: the nodes of a store, and the commands that are under way to them. A command is in one
 * queue, of a node or of the delayed, until it has an outcome. Only an explicit refusal puts a
 * command that was sent into a queue again.
 *
 * A store that is no cluster is one of a single node.
 */
#ifndef SLUICE_SHARE_CLUSTER_H
#define SLUICE_SHARE_CLUSTER_H

#include "share/connection.h"
#include "share/slots.h"

#define SEEDS_MAX 16

enum outcome {
	WAITS, /* it is in a queue */
	ANSWERED,
	UNSENT,	 /* it has not been run, for sure */
	REFUSED, /* nor has it been run: what the key holds cannot be counted */
	LOST,	 /* it may have been run */
};

enum answer_kind {
	ANSWER_INTEGER,
	ANSWER_TEXTS,  /* two numbers as text */
	ANSWER_COUNTS, /* two integers */
	ANSWER_DONE,   /* a status: OK */
	ANSWER_ANY,    /* kept whole, errors too */
};

struct command {
	const char *argv[10];
	int argc; /* 0: no command */
	char number[2][24];
	enum answer_kind kind;
	unsigned int slot;
	unsigned int node; /* where it has to go, or NODE_NONE: to who has the slot */
	unsigned int tries;
	unsigned int due; /* answers: 2 with ASKING before it */
	uint64_t not_before_ms;
	enum outcome outcome;
	int64_t value[2];
	redisReply *whole;
	struct command *next;
};

struct queue {
	struct command *first, *last;
};

struct node {
	struct connection connection;
	struct queue unsent, awaiting;
	bool is_replica; /* it said so: READONLY */
};

struct cluster {
	struct connection_setup setup;
	struct endpoint seed[SEEDS_MAX]; /* where to begin */
	unsigned int seeds;

	struct slot_map map;
	struct node *node[NODES_MAX]; /* as numbered in the map */
	bool map_is_known, map_is_stale;
	unsigned int map_failures, map_turn;
	uint64_t map_rest_ms; /* no reading before this */

	/* Of the present call. */
	uint64_t begun_ms, end_ms;
	size_t open; /* commands without an outcome */
	struct queue delayed;
};

struct node *node_new(const struct endpoint *at);
void node_free(struct node *node, struct connection_setup *setup);

/* The number of the node at a place, which may be new. NODE_NONE: there are too many. */
unsigned int cluster_node(struct cluster *cluster, const struct endpoint *at);

/* Runs commands until each has an outcome, or until cluster->end_ms. Those of no words are none. */
void cluster_exchange(struct cluster *cluster, struct command *commands, size_t count);

/* 0: there is a map. Else a negative errno. */
int cluster_refresh(struct cluster *cluster);

#endif
