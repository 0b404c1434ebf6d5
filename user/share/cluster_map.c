// SPDX-License-Identifier: GPL-2.0
/* The map of slots: what a node answers to CLUSTER SLOTS, and which node to ask when. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "share/cluster.h"

#define MAP_REST_MS  100 /* between two readings, and doubles while none succeeds */
#define MAP_REST_MAX 2000

/* --- The map -------------------------------------------------------------------------------- */

/* Takes one node of an answer to CLUSTER SLOTS: host, port, and more. */
static unsigned int map_node_read(struct slot_map *map, const redisReply *node,
				  const struct connection *from)
{
	struct endpoint at;
	const redisReply *host;

	if (node->type != REDIS_REPLY_ARRAY || node->elements < 2 ||
	    node->element[1]->type != REDIS_REPLY_INTEGER)
		return NODE_NONE;
	host = node->element[0];
	if (host->type != REDIS_REPLY_STRING && host->type != REDIS_REPLY_NIL)
		return NODE_NONE;
	if (!endpoint_set(host->str ? host->str : "", host->str ? host->len : 0,
			  node->element[1]->integer, &at))
		return NODE_NONE;
	if (!*at.host)
		strcpy(at.host, from->at.host);
	return slot_map_node(map, &at);
}

static bool map_range_read(struct slot_map *map, const redisReply *range,
			   const struct connection *from)
{
	if (range->type != REDIS_REPLY_ARRAY || range->elements < 3 ||
	    range->element[0]->type != REDIS_REPLY_INTEGER ||
	    range->element[1]->type != REDIS_REPLY_INTEGER)
		return false;
	return slot_map_give(map, range->element[0]->integer, range->element[1]->integer,
			     map_node_read(map, range->element[2], from));
}

/*
 * The map of a cluster: its masters, then, where there is room, its replicas. The places to begin
 * with come before both, so that no answer can take them away.
 */
static bool map_read_cluster(struct slot_map *map, const redisReply *answer,
			     const struct connection *from)
{
	bool has_slots = false;

	for (size_t i = 0; i < answer->elements; i++)
		has_slots |= map_range_read(map, answer->element[i], from);
	for (size_t i = 0; i < answer->elements; i++)
		for (size_t j = 3; answer->element[i]->type == REDIS_REPLY_ARRAY &&
				   j < answer->element[i]->elements;
		     j++)
			map_node_read(map, answer->element[i]->element[j], from);
	return has_slots;
}

static int node_find(const struct slot_map *map, const struct endpoint *at)
{
	for (unsigned int i = 0; i < map->nodes; i++)
		if (endpoint_equal(&map->node[i], at))
			return (int)i;
	return -1;
}

/*
 * Makes a map the present one. Connections to nodes that are in both go on. False: out of memory,
 * and all is as it was.
 */
static bool map_adopt(struct cluster *cluster, const struct slot_map *map)
{
	struct node *nodes[NODES_MAX] = {NULL};
	bool is_whole = true;

	for (unsigned int i = 0; i < map->nodes; i++)
		if (node_find(&cluster->map, &map->node[i]) < 0)
			is_whole &= (nodes[i] = node_new(&map->node[i])) != NULL;
	for (unsigned int i = 0; i < map->nodes; i++) {
		int before = node_find(&cluster->map, &map->node[i]);

		if (!is_whole) {
			node_free(nodes[i], &cluster->setup);
		} else if (before >= 0) {
			nodes[i] = cluster->node[before];
			cluster->node[before] = NULL;
		}
	}
	if (!is_whole)
		return false;
	for (unsigned int i = 0; i < cluster->map.nodes; i++)
		node_free(cluster->node[i], &cluster->setup);
	memcpy(cluster->node, nodes, sizeof(nodes));
	cluster->map = *map;
	return true;
}

/* Reads what a node answered to CLUSTER SLOTS. A store that is no cluster answers an error. */
static bool map_take(struct cluster *cluster, unsigned int number, const redisReply *answer)
{
	const struct connection *from = &cluster->node[number]->connection;
	struct slot_map *map = malloc(sizeof(*map));
	bool is_cluster = answer->type == REDIS_REPLY_ARRAY, is_taken = false;
	struct endpoint at = from->at;

	if (!map)
		return false;
	slot_map_clear(map);
	for (unsigned int i = 0; i < cluster->seeds; i++)
		slot_map_node(map, &cluster->seed[i]);
	if (is_cluster)
		is_taken = map_read_cluster(map, answer, from);
	else
		is_taken = slot_map_give(map, 0, SLOTS - 1, slot_map_node(map, &at));
	if (is_taken) {
		is_taken = map_adopt(cluster, map);
		cluster->setup.counts->is_cluster = is_cluster;
	} else {
		cluster->setup.counts->bad++;
		connection_fail(&cluster->setup, from, -EPROTO, "no slots in its map");
	}
	free(map);
	return is_taken;
}

/* Asks one node for the map. */
static bool map_ask(struct cluster *cluster, unsigned int number, uint64_t end_ms)
{
	struct command command = {.argv = {"CLUSTER", "SLOTS"},
				  .argc = 2,
				  .kind = ANSWER_ANY,
				  .node = number,
				  .due = 1};
	uint64_t call_end = cluster->end_ms;
	enum refusal refusal = REFUSAL_OTHER;
	const redisReply *answer;
	struct endpoint to;
	unsigned int slot;
	bool is_taken = false;

	cluster->end_ms = end_ms < call_end ? end_ms : call_end;
	cluster_exchange(cluster, &command, 1);
	cluster->end_ms = call_end;
	answer = command.whole;
	if (command.outcome != ANSWERED)
		return false;
	if (answer->type == REDIS_REPLY_ERROR)
		refusal = refusal_parse(answer->str, answer->len, &slot, &to);
	cluster->setup.counts->loading += refusal == REFUSAL_LOADING;
	if (refusal != REFUSAL_OTHER)
		connection_fail(&cluster->setup, &cluster->node[number]->connection,
				refusal == REFUSAL_RIGHT ? -EACCES : -EAGAIN, "CLUSTER SLOTS: %s",
				answer->str);
	else if (answer->type == REDIS_REPLY_ERROR || answer->type == REDIS_REPLY_ARRAY)
		is_taken = map_take(cluster, number, answer);
	else
		cluster->setup.counts->bad++;
	freeReplyObject(command.whole);
	return is_taken;
}

/* Which nodes are asked first: 0 those that are connected, 2 those that turned out as replicas. */
static unsigned int map_rank(const struct node *node)
{
	if (node->is_replica)
		return 2;
	return node->connection.state != CONNECTION_READY;
}

/* Asks one after the other by their ranks, and in turn within a rank, while there is time. */
static bool map_ask_all(struct cluster *cluster)
{
	uint64_t timeout = cluster->setup.timeout_ms, now = store_now_ms(), patience;
	/* What is known goes on to be used, and needs time too. */
	uint64_t end = cluster->map_is_known ? now + timeout / 2 : cluster->end_ms;
	unsigned int nodes = cluster->map.nodes, turn = cluster->map_turn++;
	unsigned int left = nodes;
	bool is_tried[NODES_MAX] = {false};

	for (unsigned int rank = 0; rank <= 2; rank++)
		for (unsigned int i = 0; i < nodes && now < end; i++, now = store_now_ms()) {
			unsigned int number = (i + turn) % nodes;
			const struct node *one = cluster->node[number];
			bool is_ready = one->connection.state == CONNECTION_READY;
			bool is_replica = one->is_replica;

			if (is_tried[number] || map_rank(one) != rank)
				continue;
			is_tried[number] = true;
			/* One that is not connected may never be; the last has all of the time. */
			patience = left-- > 3 ? timeout / 3 : (end - now) / (left + 1);
			if (!map_ask(cluster, number, is_ready ? end : now + patience + 1))
				continue;
			/* of a node that holds slots it is known now that it is no replica */
			for (unsigned int j = 0; j < cluster->map.nodes && !is_replica; j++)
				cluster->node[j]->is_replica = false;
			cluster->map_is_known = true;
			cluster->map_failures = 0;
			cluster->setup.counts->maps++;
			return true;
		}
	return false;
}

int cluster_refresh(struct cluster *cluster)
{
	uint64_t rest = MAP_REST_MS, now = store_now_ms();

	if (cluster->map_is_known && !cluster->map_is_stale)
		return 0;
	if (now < cluster->map_rest_ms)
		return cluster->map_is_known ? 0 : -EAGAIN;
	cluster->map_is_stale = false;
	if (!map_ask_all(cluster)) {
		cluster->map_is_stale = true;
		/* Nothing has failed: a connection is on its way, which the next call uses. */
		if (!cluster->setup.status)
			return cluster->map_is_known ? 0 : -EAGAIN;
		cluster->map_failures++;
	}
	for (unsigned int i = 1; i < cluster->map_failures && rest < MAP_REST_MAX; i++)
		rest *= 2;
	cluster->map_rest_ms = store_now_ms() + jitter(&cluster->setup, rest);
	return cluster->map_is_known ? 0 : cluster->setup.status;
}
