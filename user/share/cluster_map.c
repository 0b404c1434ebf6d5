// SPDX-License-Identifier: GPL-2.0
/* The map of slots: the reply to CLUSTER SLOTS, and which node to ask for it when. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "share/cluster.h"

#define MAP_REST_MS  100 /* between two readings; doubles while none succeeds */
#define MAP_REST_MAX 2000

/* Adds a node of the reply: [host, port, ...]. Returns its number, or NODE_NONE. */
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

/*
 * Reads the map of a cluster, an array of [first slot, last slot, master, replica...]. Adds masters
 * first, then replicas while there is room. Returns whether a node has a slot.
 */
static bool map_read(struct slot_map *map, const redisReply *reply, const struct connection *from)
{
	bool has_slots = false;

	for (size_t i = 0; i < reply->elements; i++) {
		const redisReply *range = reply->element[i];

		if (range->type == REDIS_REPLY_ARRAY && range->elements >= 3 &&
		    range->element[0]->type == REDIS_REPLY_INTEGER &&
		    range->element[1]->type == REDIS_REPLY_INTEGER)
			has_slots |= slot_map_give(map, range->element[0]->integer,
						   range->element[1]->integer,
						   map_node_read(map, range->element[2], from));
	}
	for (size_t i = 0; i < reply->elements; i++)
		for (size_t j = 3; reply->element[i]->type == REDIS_REPLY_ARRAY &&
				   j < reply->element[i]->elements;
		     j++)
			map_node_read(map, reply->element[i]->element[j], from);
	return has_slots;
}

/* Replaces the map of the cluster. Nodes that are in both keep their connections. */
static void map_adopt(struct cluster *cluster, const struct slot_map *map)
{
	struct node *nodes[NODES_MAX] = {NULL};

	for (unsigned int i = 0; i < map->nodes; i++)
		for (unsigned int j = 0; j < cluster->map.nodes; j++)
			if (endpoint_equal(&map->node[i], &cluster->map.node[j])) {
				nodes[i] = cluster->node[j];
				cluster->node[j] = NULL;
			}
	for (unsigned int i = 0, j = 0; i < NODES_MAX; i++) {
		if (nodes[i])
			continue;
		while (!cluster->node[j])
			j++;
		nodes[i] = cluster->node[j++];
		connection_reset(&nodes[i]->connection, i < map->nodes ? &map->node[i] : NULL);
		nodes[i]->is_replica = false;
	}
	memcpy(cluster->node, nodes, sizeof(nodes));
	cluster->map = *map;
}

/* Reads the reply of a node to CLUSTER SLOTS: an error if the store is no cluster. */
static bool map_take(struct cluster *cluster, unsigned int number, const redisReply *reply)
{
	const struct connection *from = &cluster->node[number]->connection;
	_cleanup_free_ struct slot_map *map = malloc(sizeof(*map));
	bool is_cluster = reply->type == REDIS_REPLY_ARRAY, has_slots;

	if (!map)
		return false;
	slot_map_clear(map);
	/* the seeds come first, so that no reply can take them away */
	for (unsigned int i = 0; i < cluster->seeds; i++)
		slot_map_node(map, &cluster->seed[i]);
	has_slots = is_cluster ? map_read(map, reply, from)
			       : slot_map_give(map, 0, SLOTS - 1, slot_map_node(map, &from->at));
	if (!has_slots) {
		cluster->setup.counts->bad++;
		store_fail(&cluster->setup, &from->at, -EPROTO, "no slots in its map");
		return false;
	}
	cluster->setup.counts->is_cluster = is_cluster;
	map_adopt(cluster, map);
	return true;
}

/* Asks one node for the map, until a moment. Returns whether the map is known then. */
static bool map_ask(struct cluster *cluster, unsigned int number, uint64_t end_ms)
{
	struct command command = {.argv = {"CLUSTER", "SLOTS"},
				  .argc = 2,
				  .kind = REPLY_ANY,
				  .node = number,
				  .due = 1};
	uint64_t call_end = cluster->end_ms;
	enum refusal refusal = REFUSAL_OTHER;
	const redisReply *reply;
	struct endpoint to;
	unsigned int slot;
	bool is_known = false;

	cluster->end_ms = end_ms < call_end ? end_ms : call_end;
	cluster_exchange(cluster, &command, 1);
	cluster->end_ms = call_end;
	if (command.outcome != REPLIED)
		return false;
	reply = command.whole;
	if (reply->type == REDIS_REPLY_ERROR)
		refusal = refusal_parse(reply->str, reply->len, &slot, &to);
	cluster->setup.counts->refusals[REFUSAL_LATER] += refusal == REFUSAL_LATER;
	if (refusal != REFUSAL_OTHER)
		store_fail(&cluster->setup, &cluster->node[number]->connection.at,
			   refusal == REFUSAL_RIGHT ? -EACCES : -EAGAIN, "CLUSTER SLOTS: %s",
			   reply->str);
	else if (reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_ARRAY)
		is_known = map_take(cluster, number, reply);
	else
		cluster->setup.counts->bad++;
	freeReplyObject(command.whole);
	return is_known;
}

/*
 * Asks one node after the other while there is time: connected nodes first, replicas last, and in
 * turn among those.
 */
static bool map_ask_all(struct cluster *cluster)
{
	uint64_t timeout = cluster->setup.timeout_ms, now = store_now_ms(), patience;
	/* a known map continues to be used, and the commands need time, too */
	uint64_t end = cluster->map_is_known ? now + timeout / 2 : cluster->end_ms;
	unsigned int nodes = cluster->map.nodes, turn = cluster->map_turn++;
	unsigned int left = nodes;
	bool is_tried[NODES_MAX] = {false};

	for (unsigned int rank = 0; rank <= 2; rank++)
		for (unsigned int i = 0; i < nodes && now < end; i++, now = store_now_ms()) {
			unsigned int number = (i + turn) % nodes;
			const struct node *node = cluster->node[number];
			bool is_ready = node->connection.state == CONNECTION_READY;
			bool is_replica = node->is_replica;

			if (is_tried[number] || rank != (is_replica ? 2U : !is_ready))
				continue;
			is_tried[number] = true;
			/* a node may never connect; the last has all of the time */
			patience = left-- > 3 ? timeout / 3 : (end - now) / (left + 1);
			if (!map_ask(cluster, number, is_ready ? end : now + patience + 1))
				continue;
			/* a node that holds slots is no replica any more */
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
		/* nothing has failed: the next call uses a connection that is being made */
		if (!cluster->setup.err)
			return cluster->map_is_known ? 0 : -EAGAIN;
		cluster->map_failures++;
	}
	for (unsigned int i = 1; i < cluster->map_failures && rest < MAP_REST_MAX; i++)
		rest *= 2;
	cluster->map_rest_ms = store_now_ms() + jitter(&cluster->setup, rest);
	return cluster->map_is_known ? 0 : cluster->setup.err;
}
