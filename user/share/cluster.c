// SPDX-License-Identifier: GPL-2.0
#include "share/cluster.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define TRIES_MAX      6   /* times that a command is sent: once, and again after each redirect */
#define BATCH	       128 /* commands that are written to a socket at once */
#define LOOKUP_POLL_MS 5   /* how often to check whether a name lookup has ended */
#define MAP_REST_MS    100 /* time between two reads of the slot map; doubles with each failure */
#define MAP_REST_MAX   2000

/* --- Queues --------------------------------------------------------------------------------- */

static void queue_put(struct queue *queue, struct store_command *command)
{
	command->next = NULL;
	if (queue->last)
		queue->last->next = command;
	else
		queue->first = command;
	queue->last = command;
}

static struct store_command *queue_take(struct queue *queue)
{
	struct store_command *command = queue->first;

	if (!command)
		return NULL;
	queue->first = command->next;
	if (!queue->first)
		queue->last = NULL;
	return command;
}

struct store_command command_make(const char *key, int values, const char *format, ...)
{
	struct store_command command = {.format = format,
					.values = values,
					.slot = slot_of_key(key),
					.node = NODE_NONE,
					.due = 1};
	va_list args;

	va_start(args, format);
	command.size = redisvFormatCommand(&command.text, format, args);
	va_end(args);
	if (command.size < 0)
		command.text = NULL;
	return command;
}

static void command_end(struct cluster *cluster, struct store_command *command,
			enum outcome outcome)
{
	redisFreeCommand(command->text);
	command->text = NULL;
	command->outcome = outcome;
	cluster->open--;
}

static void queue_end(struct cluster *cluster, struct queue *queue, enum outcome outcome)
{
	for (struct store_command *command; (command = queue_take(queue));)
		command_end(cluster, command, outcome);
}

/* --- Nodes ---------------------------------------------------------------------------------- */

unsigned int cluster_node(struct cluster *cluster, const struct endpoint *at)
{
	unsigned int before = cluster->map.nodes, number = slot_map_node(&cluster->map, at);

	if (number != NODE_NONE && number >= before)
		connection_reset(&cluster->node[number]->connection, at);
	return number;
}

/* Queues a command for the store node of its slot. If no node has the slot, the command fails. */
static void command_route(struct cluster *cluster, struct store_command *command)
{
	unsigned int number = command->node;

	if (number == NODE_NONE)
		number = cluster->map.of[command->slot];
	if (number != NODE_NONE) {
		queue_put(&cluster->node[number]->unsent, command);
		return;
	}
	cluster->map_is_stale = true;
	store_fail(&cluster->setup, NULL, -EAGAIN, "no node holds slot %u", command->slot);
	command_end(cluster, command, UNSENT);
}

/* --- Replies -------------------------------------------------------------------------------- */

/* Handles MOVED or ASK. The command fails after TRIES_MAX tries, or if a redirect is invalid. */
static void command_redirect(struct cluster *cluster, const struct store_node *from,
			     struct store_command *command, enum refusal refusal, unsigned int slot,
			     struct endpoint *to)
{
	unsigned int number = NODE_NONE;

	if (!*to->host)
		strcpy(to->host, from->connection.at.host);
	if (slot == command->slot)
		number = cluster_node(cluster, to);
	if (number == NODE_NONE) {
		cluster->setup.counts->bad++;
		store_fail(&cluster->setup, &from->connection.at, -EPROTO, "a bad redirect");
		command_end(cluster, command, UNSENT);
		return;
	}
	if (refusal == REFUSAL_MOVED) {
		cluster->map.of[slot] = number;
		cluster->map_is_stale = true;
	} else {
		command->node = number;
		command->due = 2;
	}
	if (++command->tries >= TRIES_MAX)
		command_end(cluster, command, UNSENT);
	else
		command_route(cluster, command);
}

static void command_refused(struct cluster *cluster, struct store_node *from,
			    struct store_command *command, const redisReply *reply)
{
	static const int errors[REFUSALS] = {
		[REFUSAL_LATER] = -EAGAIN,  [REFUSAL_ROLE] = -EROFS,	  [REFUSAL_RIGHT] = -EACCES,
		[REFUSAL_KEY] = -EREMOTEIO, [REFUSAL_OTHER] = -EREMOTEIO,
	};
	unsigned int slot = 0;
	struct endpoint to;
	enum refusal refusal = refusal_parse(reply->str, reply->len, &slot, &to);

	cluster->setup.counts->refusals[refusal]++;
	if (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK) {
		command_redirect(cluster, from, command, refusal, slot, &to);
		return;
	}
	store_fail(&cluster->setup, &from->connection.at, errors[refusal], "%.*s: %s",
		   (int)strcspn(command->format, " "), command->format, reply->str);
	cluster->map_is_stale |= refusal == REFUSAL_LATER || refusal == REFUSAL_ROLE;
	from->is_replica |= refusal == REFUSAL_ROLE;
	cluster->setup.counts->refused++;
	command_end(cluster, command, refusal == REFUSAL_KEY ? REFUSED : UNSENT);
}

/* Reads an integer, which is a string in a reply to TIME. Returns false if it is no integer. */
static bool number_read(const redisReply *reply, int64_t *ret)
{
	char *end;

	*ret = reply->integer;
	if (reply->type != REDIS_REPLY_STRING)
		return reply->type == REDIS_REPLY_INTEGER;
	errno = 0;
	*ret = strtoll(reply->str, &end, 10);
	return !errno && end == reply->str + reply->len && reply->len;
}

/* Reads the numbers of a reply. Returns false if the reply does not have the expected form. */
static bool values_read(const redisReply *reply, struct store_command *command)
{
	if (command->values == 0)
		return reply->type == REDIS_REPLY_STATUS;
	if (command->values == 1)
		return number_read(reply, &command->value[0]);
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       number_read(reply->element[0], &command->value[0]) &&
	       number_read(reply->element[1], &command->value[1]);
}

/*
 * Handles a reply to the oldest command that waits for a reply. Frees the reply, or stores it in
 * the command. Returns false if the reply has an unexpected form. Then the caller must close the
 * connection, because later replies cannot be matched to commands.
 */
static bool reply_handle(struct cluster *cluster, struct store_node *node, redisReply *reply)
{
	struct store_command *command = node->awaiting.first;
	bool is_error = reply->type == REDIS_REPLY_ERROR;

	if (command && command->values == REPLY_WHOLE) {
		/* Do not clear `has_failed`: even a master that hangs may reply to this command. */
		queue_take(&node->awaiting);
		command->whole = reply;
		command_end(cluster, command, REPLIED);
		return true;
	}
	if (!command || (command->due == 1 && !is_error && !values_read(reply, command))) {
		freeReplyObject(reply);
		return false;
	}
	if (command->due == 2) {
		command->due = 1; /* only the reply to ASKING has arrived */
	} else {
		queue_take(&node->awaiting);
		command->node = NODE_NONE;
		if (is_error)
			command_refused(cluster, node, command, reply);
		else
			command_end(cluster, command, REPLIED);
	}
	node->connection.attempts = 0;
	node->connection.has_failed = false;
	freeReplyObject(reply);
	return true;
}

/* If the connection to a store node has ended, marks its unanswered commands as LOST. */
static void node_settle(struct cluster *cluster, struct store_node *node)
{
	if (node->connection.state != CONNECTION_CLOSED)
		return;
	cluster->map_is_stale = true;
	queue_end(cluster, &node->awaiting, LOST);
}

static void cluster_node_read(struct cluster *cluster, struct store_node *node)
{
	struct connection *connection = &node->connection;
	redisReply *reply;

	if (!connection_read(connection))
		return;
	while ((reply = connection_reply(connection))) {
		if (connection->asked_ms) {
			connection->rtt_ms += (int64_t)(store_now_ms() - connection->asked_ms) / 4 -
					      (int64_t)connection->rtt_ms / 4;
			connection->asked_ms = 0;
		}
		if (reply_handle(cluster, node, reply))
			continue;
		cluster->setup.counts->bad++;
		connection_fail(connection, -EPROTO, "a reply to no command");
		return;
	}
}

/* --- Exchange ------------------------------------------------------------------------------- */

/*
 * Returns whether a command that is sent now can get its reply before the current call ends
 * (store.h). Always returns true in the first eighth of a call, because rtt_ms may be too large.
 */
static bool is_in_time(const struct cluster *cluster, const struct connection *connection)
{
	uint64_t now = store_now_ms(), early = (cluster->end_ms - cluster->begun_ms) / 8;

	return now <= cluster->begun_ms + early ||
	       now + connection->rtt_ms * 5 / 4 < cluster->end_ms;
}

/* Sends at most BATCH commands. Returns false if the connection is closed. */
static bool cluster_node_write(struct cluster *cluster, struct store_node *node)
{
	struct connection *connection = &node->connection;
	redisContext *context = connection->context;
	int status = REDIS_OK;
	struct store_command *command;

	for (int i = 0; !status && i < BATCH && (command = queue_take(&node->unsent)); i++) {
		if (!node->awaiting.first)
			connection->asked_ms = store_now_ms();
		queue_put(&node->awaiting, command);
		cluster->setup.counts->commands++;
		if (command->due == 2)
			status = redisAppendCommand(context, "ASKING");
		if (!status)
			status = redisAppendFormattedCommand(context, command->text, command->size);
	}
	connection->has_output = true;
	return status ? connection_fail(connection, -ENOMEM, "out of memory")
		      : connection_flush(connection);
}

/* Continues to connect to a store node. Sends its commands while the socket accepts them. */
static void node_advance(struct cluster *cluster, struct store_node *node)
{
	struct connection *connection = &node->connection;

	if (connection->state == CONNECTION_READY && !node->awaiting.first && node->unsent.first)
		connection_check(connection);
	if (!connection_advance(connection)) {
		queue_end(cluster, &node->unsent, UNSENT);
		return;
	}
	if (connection->state != CONNECTION_READY || !connection_flush(connection))
		return;
	while (node->unsent.first && !connection->has_output && is_in_time(cluster, connection))
		if (!cluster_node_write(cluster, node))
			return;
}

/* Returns whether a command of a store node can still get a reply during this call. */
static bool node_is_busy(const struct cluster *cluster, const struct store_node *node)
{
	const struct connection *connection = &node->connection;

	if (node->awaiting.first)
		return true;
	return node->unsent.first &&
	       (connection->state != CONNECTION_READY || is_in_time(cluster, connection));
}

/*
 * Returns the time until which to wait for replies, or 0 if no reply is awaited. Replies are used
 * only after the call, so one failed store node must not delay the replies of all others. If
 * another node works, a failed node that is connected gets only timeout/8 plus its round trip,
 * because a hung master may still accept a login. A failed node that is not connected gets no time,
 * because the next call continues to connect.
 */
static uint64_t replies_deadline(const struct cluster *cluster)
{
	bool one_is_sound = false, one_has_failed = false;
	uint64_t until = 0;

	for (unsigned int i = 0; i < cluster->map.nodes; i++) {
		const struct store_node *node = cluster->node[i];
		const struct connection *connection = &node->connection;
		bool is_ready = connection->state == CONNECTION_READY;
		uint64_t patience = cluster->setup.timeout_ms / 8 + connection->rtt_ms * 5 / 4;

		one_is_sound |= is_ready && !connection->has_failed;
		if (!node_is_busy(cluster, node))
			continue;
		if (!connection->has_failed)
			return cluster->end_ms;
		one_has_failed = true;
		if (is_ready && connection->asked_ms + patience > until)
			until = connection->asked_ms + patience;
	}
	if (one_has_failed && !one_is_sound)
		return cluster->end_ms;
	return until < cluster->end_ms ? until : cluster->end_ms;
}

/* Waits for replies until time `until`, and reads them. */
static void nodes_wait(struct cluster *cluster, uint64_t now, uint64_t until)
{
	struct pollfd ready[NODES_MAX];
	struct store_node *of[NODES_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < cluster->map.nodes; i++) {
		struct store_node *node = cluster->node[i];

		if (!node_is_busy(cluster, node))
			continue;
		of[count] = node;
		ready[count].fd = connection_fd(&node->connection, &ready[count].events);
		ready[count].revents = 0;
		if (ready[count].fd < 0 && until > now + LOOKUP_POLL_MS)
			until = now + LOOKUP_POLL_MS;
		count++;
	}
	if (poll(ready, count, (int)(until - now)) <= 0)
		return;
	for (unsigned int i = 0; i < count; i++)
		if (ready[i].revents & ~POLLOUT && of[i]->connection.state == CONNECTION_READY) {
			cluster_node_read(cluster, of[i]);
			node_settle(cluster, of[i]);
		}
}

void cluster_exchange(struct cluster *cluster, struct store_command *commands, size_t count)
{
	cluster->open = 0;
	for (size_t i = 0; i < count; i++) {
		if (!commands[i].text)
			continue;
		cluster->open++;
		command_route(cluster, &commands[i]);
	}
	while (cluster->open) {
		uint64_t now = store_now_ms(), until;

		for (unsigned int i = 0; i < cluster->map.nodes; i++) {
			struct store_node *node = cluster->node[i];

			if (!node->unsent.first && !node->awaiting.first)
				continue;
			node_advance(cluster, node);
			node_settle(cluster, node);
		}
		until = replies_deadline(cluster);
		if (until <= now)
			break;
		nodes_wait(cluster, now, until);
	}
	cluster->setup.counts->nodes = cluster->map.nodes;
	for (unsigned int i = 0; i < cluster->map.nodes; i++) {
		struct store_node *node = cluster->node[i];

		if (node->unsent.first && node->connection.state != CONNECTION_READY)
			node->connection.has_failed = true;
		queue_end(cluster, &node->unsent, UNSENT);
		if (!node->awaiting.first)
			continue;
		connection_fail(&node->connection, -ETIMEDOUT, "no answer in time");
		node_settle(cluster, node);
	}
}

/* --- The map of slots ------------------------------------------------------------------------ */

/* Adds a store node, [host, port, ...] in CLUSTER SLOTS. Returns its index, or NODE_NONE. */
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
 * Reads a reply to CLUSTER SLOTS: an array of [first slot, last slot, master, replica...]. Adds the
 * masters and their slots to the map. Returns whether any slot has a master.
 */
static bool cluster_map_read(struct slot_map *map, const redisReply *reply,
			     const struct connection *from)
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
	return has_slots;
}

/* Replaces the slot map. A store node in the old and the new map keeps its connection. */
static void map_adopt(struct cluster *cluster, const struct slot_map *map)
{
	struct store_node *nodes[NODES_MAX] = {NULL};

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

/*
 * Uses a reply to CLUSTER SLOTS as the slot map. If the reply is an error, the store is not a
 * cluster, so this node gets all slots. Returns whether the slot map is known now.
 */
static bool map_take(struct cluster *cluster, unsigned int number, const redisReply *reply)
{
	const struct connection *from = &cluster->node[number]->connection;
	_cleanup_free_ struct slot_map *map = malloc(sizeof(*map));
	bool is_cluster = reply->type == REDIS_REPLY_ARRAY, has_slots;

	if (!map)
		return false;
	slot_map_clear(map);
	/* add the addresses of the command line first, so that the map has room for them */
	for (unsigned int i = 0; i < cluster->seeds; i++)
		slot_map_node(map, &cluster->seed[i]);
	has_slots = is_cluster ? cluster_map_read(map, reply, from)
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

/* Requests the slot map from a store node until `end_ms`. Returns whether it is known now. */
static bool map_ask(struct cluster *cluster, unsigned int number, uint64_t end_ms)
{
	struct store_command command = command_make("", REPLY_WHOLE, "CLUSTER SLOTS");
	uint64_t call_end = cluster->end_ms;
	enum refusal refusal = REFUSAL_OTHER;
	const redisReply *reply;
	struct endpoint to;
	unsigned int slot;
	bool is_known = false;

	command.node = number;
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
 * Requests the slot map from one store node after another, until a node replies with the map or the
 * time is over. Tries connected nodes first, and replicas last. Each call begins with another node.
 * Returns whether the map is known.
 */
static bool map_ask_all(struct cluster *cluster)
{
	uint64_t timeout = cluster->setup.timeout_ms, now = store_now_ms(), patience;
	/*
	 * If a slot map is known, leave half of the time for commands, because they can use the
	 * known map.
	 */
	uint64_t end = cluster->map_is_known ? now + timeout / 2 : cluster->end_ms;
	unsigned int nodes = cluster->map.nodes, turn = cluster->map_turn++;
	unsigned int left = nodes;
	bool is_tried[NODES_MAX] = {false};

	for (unsigned int rank = 0; rank <= 2; rank++)
		for (unsigned int i = 0; i < nodes && now < end; i++, now = store_now_ms()) {
			unsigned int number = (i + turn) % nodes;
			const struct store_node *node = cluster->node[number];
			bool is_ready = node->connection.state == CONNECTION_READY;
			bool is_replica = node->is_replica;

			if (is_tried[number] || rank != (is_replica ? 2U : !is_ready))
				continue;
			is_tried[number] = true;
			/*
			 * a store node without a connection gets 1/3 of the timeout; each of the
			 * last three gets an equal part of the remaining time
			 */
			patience = left-- > 3 ? timeout / 3 : (end - now) / (left + 1);
			if (!map_ask(cluster, number, is_ready ? end : now + patience + 1))
				continue;
			/* former replicas may be masters after a failover */
			for (unsigned int j = 0; j < cluster->map.nodes && !is_replica; j++)
				cluster->node[j]->is_replica = false;
			cluster->map_is_known = true;
			cluster->map_failures = 0;
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
		/*
		 * A connection is still being made. This is not a failure, because the next call
		 * waits for it.
		 */
		if (!cluster->setup.err)
			return cluster->map_is_known ? 0 : -EAGAIN;
		cluster->map_failures++;
	}
	for (unsigned int i = 1; i < cluster->map_failures && rest < MAP_REST_MAX; i++)
		rest *= 2;
	cluster->map_rest_ms = store_now_ms() + jitter(rest);
	return cluster->map_is_known ? 0 : cluster->setup.err;
}
