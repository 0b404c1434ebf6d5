// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "share/cluster.h"

#define TRIES_MAX      6   /* of a command in a call; each but the first follows a refusal */
#define BATCH	       128 /* commands that are given to a socket at once */
#define DELAY_FIRST_MS 2   /* until a node is asked again that said "later"; doubles */
#define LOOKUP_POLL_MS 5

/* --- Queues --------------------------------------------------------------------------------- */

static void queue_put(struct queue *queue, struct command *command)
{
	command->next = NULL;
	if (queue->last)
		queue->last->next = command;
	else
		queue->first = command;
	queue->last = command;
}

static struct command *queue_take(struct queue *queue)
{
	struct command *command = queue->first;

	if (!command)
		return NULL;
	queue->first = command->next;
	if (!queue->first)
		queue->last = NULL;
	return command;
}

static void command_end(struct cluster *cluster, struct command *command, enum outcome outcome)
{
	command->outcome = outcome;
	cluster->open--;
}

static void queue_end(struct cluster *cluster, struct queue *queue, enum outcome outcome)
{
	for (struct command *command; (command = queue_take(queue));)
		command_end(cluster, command, outcome);
}

/* --- Nodes ---------------------------------------------------------------------------------- */

struct node *node_new(const struct endpoint *at)
{
	struct node *node = calloc(1, sizeof(*node));

	if (node)
		node->connection.at = *at;
	return node;
}

void node_free(struct node *node, struct connection_setup *setup)
{
	if (node)
		connection_close(&node->connection, setup);
	free(node);
}

unsigned int cluster_node(struct cluster *cluster, const struct endpoint *at)
{
	unsigned int number = slot_map_node(&cluster->map, at);

	if (number == NODE_NONE || cluster->node[number])
		return number;
	cluster->node[number] = node_new(at);
	if (cluster->node[number])
		return number;
	cluster->map.nodes--;
	return NODE_NONE;
}

/* Puts a command into the queue of its node. */
static void command_route(struct cluster *cluster, struct command *command)
{
	unsigned int number = command->node;

	if (number == NODE_NONE)
		number = cluster->map.of[command->slot];
	if (number != NODE_NONE) {
		queue_put(&cluster->node[number]->unsent, command);
		return;
	}
	cluster->map_is_stale = true;
	connection_fail(&cluster->setup, NULL, -EAGAIN, "no node holds slot %u", command->slot);
	command_end(cluster, command, UNSENT);
}

/* --- Answers -------------------------------------------------------------------------------- */

/* Puts a command that was refused into a queue again, at most TRIES_MAX times. */
static void command_again(struct cluster *cluster, struct command *command, bool later)
{
	if (++command->tries >= TRIES_MAX) {
		command_end(cluster, command, UNSENT);
		return;
	}
	if (!later) {
		command_route(cluster, command);
		return;
	}
	command->not_before_ms = store_now_ms() + (DELAY_FIRST_MS << command->tries);
	queue_put(&cluster->delayed, command);
}

/* Follows MOVED or ASK. A redirect of another slot than the command's is none. */
static void command_redirect(struct cluster *cluster, const struct node *from,
			     struct command *command, enum refusal refusal, unsigned int slot,
			     struct endpoint *to)
{
	unsigned int number = NODE_NONE;

	if (!*to->host)
		strcpy(to->host, from->connection.at.host);
	if (slot == command->slot)
		number = cluster_node(cluster, to);
	if (number == NODE_NONE) {
		cluster->setup.counts->bad++;
		connection_fail(&cluster->setup, &from->connection, -EPROTO, "a bad redirect");
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
	command_again(cluster, command, false);
}

static void command_refused(struct cluster *cluster, struct node *from, struct command *command,
			    const redisReply *answer)
{
	struct store_counts *counts = cluster->setup.counts;
	unsigned int slot = 0;
	struct endpoint to;
	enum refusal refusal = refusal_parse(answer->str, answer->len, &slot, &to);
	uint64_t *count[] = {
		[REFUSAL_MOVED] = &counts->moved,     [REFUSAL_ASK] = &counts->asked,
		[REFUSAL_TRY] = &counts->try_again,   [REFUSAL_DOWN] = &counts->down,
		[REFUSAL_LOADING] = &counts->loading, [REFUSAL_ROLE] = &counts->refused,
		[REFUSAL_RIGHT] = &counts->refused,   [REFUSAL_KEY] = &counts->refused,
		[REFUSAL_OTHER] = &counts->refused,
	};
	static const int status[] = {
		[REFUSAL_TRY] = -EAGAIN,      [REFUSAL_DOWN] = -EAGAIN,
		[REFUSAL_LOADING] = -EAGAIN,  [REFUSAL_ROLE] = -EROFS,
		[REFUSAL_RIGHT] = -EACCES,    [REFUSAL_KEY] = -EREMOTEIO,
		[REFUSAL_OTHER] = -EREMOTEIO,
	};

	++*count[refusal];
	if (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK) {
		command_redirect(cluster, from, command, refusal, slot, &to);
		return;
	}
	connection_fail(&cluster->setup, &from->connection, status[refusal], "%s: %s",
			command->argv[0], answer->str);
	cluster->map_is_stale |= refusal == REFUSAL_DOWN || refusal == REFUSAL_ROLE;
	from->is_replica |= refusal == REFUSAL_ROLE;
	if (refusal == REFUSAL_TRY || refusal == REFUSAL_DOWN || refusal == REFUSAL_LOADING)
		command_again(cluster, command, true);
	else
		command_end(cluster, command, refusal == REFUSAL_KEY ? REFUSED : UNSENT);
}

static bool number_read(const redisReply *answer, int type, int64_t *ret)
{
	char *end;

	*ret = answer->integer;
	if (answer->type != type || type == REDIS_REPLY_INTEGER)
		return answer->type == type;
	errno = 0;
	*ret = strtoll(answer->str, &end, 10);
	return !errno && end == answer->str + answer->len && answer->len;
}

/* Reads the values of an answer. False: it is not of the command's kind. */
static bool values_read(const redisReply *answer, struct command *command)
{
	int type = command->kind == ANSWER_TEXTS ? REDIS_REPLY_STRING : REDIS_REPLY_INTEGER;

	if (command->kind == ANSWER_INTEGER)
		return number_read(answer, type, &command->value[0]);
	if (command->kind == ANSWER_DONE)
		return answer->type == REDIS_REPLY_STATUS;
	return answer->type == REDIS_REPLY_ARRAY && answer->elements == 2 &&
	       number_read(answer->element[0], type, &command->value[0]) &&
	       number_read(answer->element[1], type, &command->value[1]);
}

/*
 * Takes the answer to the first command that awaits one. False: it is none that the command can
 * have, and what follows belongs to nothing. The answer is freed, or is the command's.
 */
static bool answer_take(struct cluster *cluster, struct node *node, redisReply *answer)
{
	struct command *command = node->awaiting.first;
	bool is_sound = command;

	if (command && command->due == 2) {
		command->due = 1; /* this was ASKING's; the next one tells whether it helped */
	} else if (command && command->kind == ANSWER_ANY) {
		queue_take(&node->awaiting); /* a master that hangs may tell the map: no proof */
		command->whole = answer;
		command_end(cluster, command, ANSWERED);
		return true;
	} else if (command && answer->type == REDIS_REPLY_ERROR) {
		queue_take(&node->awaiting);
		command->node = NODE_NONE;
		command_refused(cluster, node, command, answer);
	} else if (command && values_read(answer, command)) {
		queue_take(&node->awaiting);
		command_end(cluster, command, ANSWERED);
	} else {
		is_sound = false;
	}
	if (is_sound)
		connection_proves_sound(&node->connection);
	freeReplyObject(answer);
	return is_sound;
}

/* What a node was sent, and did not answer, is lost when its connection ends. */
static void node_lose(struct cluster *cluster, struct node *node)
{
	cluster->map_is_stale = true;
	queue_end(cluster, &node->awaiting, LOST);
}

static void node_read(struct cluster *cluster, struct node *node)
{
	struct connection *connection = &node->connection;
	redisReply *answer;

	if (!connection_read(connection, &cluster->setup)) {
		node_lose(cluster, node);
		return;
	}
	while ((answer = connection_answer(connection, &cluster->setup))) {
		if (connection->asked_ms) {
			connection->rtt_ms += (int64_t)(store_now_ms() - connection->asked_ms) / 4 -
					      (int64_t)connection->rtt_ms / 4;
			connection->asked_ms = 0;
		}
		if (answer_take(cluster, node, answer))
			continue;
		cluster->setup.counts->bad++;
		connection_fail(&cluster->setup, connection, -EPROTO,
				"an answer that fits nothing");
		connection_break(connection, &cluster->setup);
		break;
	}
	if (connection->state == CONNECTION_CLOSED)
		node_lose(cluster, node);
}

/* --- Exchange ------------------------------------------------------------------------------- */

/* Whether an answer to what is sent now can come in time. Early in a call it is always tried. */
static bool is_in_time(const struct cluster *cluster, const struct connection *connection)
{
	uint64_t now = store_now_ms(), early = (cluster->end_ms - cluster->begun_ms) / 8;

	return now <= cluster->begun_ms + early ||
	       now + connection->rtt_ms * 5 / 4 < cluster->end_ms;
}

/* Moves commands to the socket, a batch at a time: what is not in a batch is not sent. */
static bool node_write(struct cluster *cluster, struct node *node)
{
	struct connection *connection = &node->connection;
	const char *asking[] = {"ASKING"};
	struct command *command;
	bool added = true;

	for (int i = 0; added && i < BATCH && (command = queue_take(&node->unsent)); i++) {
		if (!node->awaiting.first)
			connection->asked_ms = store_now_ms();
		queue_put(&node->awaiting, command);
		cluster->setup.counts->commands++;
		if (command->due == 2)
			added = connection_add(connection, 1, asking);
		added = added && connection_add(connection, command->argc, command->argv);
	}
	if (added && connection_flush(connection, &cluster->setup))
		return true;
	if (!added)
		connection_break(connection, &cluster->setup);
	node_lose(cluster, node);
	return false;
}

/* Goes on with a node as far as it goes now. */
static void node_advance(struct cluster *cluster, struct node *node)
{
	struct connection *connection = &node->connection;

	if (connection->state == CONNECTION_READY && !node->awaiting.first && node->unsent.first)
		connection_check(connection, &cluster->setup);
	if (!connection_advance(connection, &cluster->setup)) {
		node_lose(cluster, node);
		queue_end(cluster, &node->unsent, UNSENT);
		return;
	}
	if (connection->state != CONNECTION_READY)
		return;
	if (!connection_flush(connection, &cluster->setup)) {
		node_lose(cluster, node);
		return;
	}
	while (node->unsent.first && !connection->has_output && is_in_time(cluster, connection))
		if (!node_write(cluster, node))
			return;
}

/* Whether a node has something to wait for. */
static bool node_is_busy(const struct cluster *cluster, const struct node *node)
{
	const struct connection *connection = &node->connection;

	if (node->awaiting.first)
		return true;
	return node->unsent.first &&
	       (connection->state != CONNECTION_READY || is_in_time(cluster, connection));
}

/*
 * Until when the call goes on for what nodes have to say; 0: no longer. Where another node is there
 * the answers of that one come to no use before the call ends. So it goes on for a node that has
 * failed only for an eighth of its time, and for as long as the way to the node takes: a master
 * that hangs may greet. For one that connects it does not go on at all, as the connection does in
 * the next call.
 */
static uint64_t nodes_busy_until(const struct cluster *cluster)
{
	bool one_is_there = false, one_has_failed = false;
	uint64_t until = 0;

	for (unsigned int i = 0; i < cluster->map.nodes; i++) {
		const struct node *node = cluster->node[i];
		const struct connection *connection = &node->connection;
		bool is_ready = connection->state == CONNECTION_READY;
		uint64_t patience = cluster->setup.timeout_ms / 8 + connection->rtt_ms * 5 / 4;

		one_is_there |= is_ready && !connection->has_failed;
		if (!node_is_busy(cluster, node))
			continue;
		if (!connection->has_failed)
			return cluster->end_ms;
		one_has_failed = true;
		if (is_ready && connection->asked_ms + patience > until)
			until = connection->asked_ms + patience;
	}
	if (one_has_failed && !one_is_there)
		return cluster->end_ms;
	return until < cluster->end_ms ? until : cluster->end_ms;
}

/* Puts the delayed whose time has come into the queues of their nodes. Returns the next time. */
static uint64_t delayed_advance(struct cluster *cluster, uint64_t now)
{
	struct queue delayed = cluster->delayed;
	uint64_t next = cluster->end_ms;

	cluster->delayed = (struct queue){NULL, NULL};
	for (struct command *command; (command = queue_take(&delayed));) {
		if (command->not_before_ms <= now) {
			command_route(cluster, command);
			continue;
		}
		queue_put(&cluster->delayed, command);
		if (command->not_before_ms < next)
			next = command->not_before_ms;
	}
	return next;
}

/* Waits until a node has something to say, or the next time has come, and hears it. */
static void nodes_wait(struct cluster *cluster, uint64_t now, uint64_t next)
{
	struct pollfd ready[NODES_MAX];
	struct node *of[NODES_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < cluster->map.nodes; i++) {
		struct node *node = cluster->node[i];

		if (!node_is_busy(cluster, node))
			continue;
		of[count] = node;
		ready[count].fd = connection_fd(&node->connection, &ready[count].events);
		ready[count].revents = 0;
		if (ready[count].fd < 0 && next > now + LOOKUP_POLL_MS)
			next = now + LOOKUP_POLL_MS;
		count++;
	}
	if (poll(ready, count, next > now ? (int)(next - now) : 0) <= 0)
		return;
	for (unsigned int i = 0; i < count; i++)
		if (ready[i].revents & ~POLLOUT && of[i]->connection.state == CONNECTION_READY)
			node_read(cluster, of[i]);
}

void cluster_exchange(struct cluster *cluster, struct command *commands, size_t count)
{
	cluster->open = 0;
	for (size_t i = 0; i < count; i++) {
		if (!commands[i].argc)
			continue;
		cluster->open++;
		command_route(cluster, &commands[i]);
	}
	while (cluster->open) {
		uint64_t now = store_now_ms(), next = delayed_advance(cluster, now), until;

		for (unsigned int i = 0; i < cluster->map.nodes; i++) {
			struct node *node = cluster->node[i];

			if (node->unsent.first || node->awaiting.first)
				node_advance(cluster, node);
		}
		until = nodes_busy_until(cluster);
		if ((!cluster->delayed.first && until <= now) || now >= cluster->end_ms)
			break;
		nodes_wait(cluster, now, until > now && until < next ? until : next);
	}
	cluster->setup.counts->nodes = cluster->map.nodes;
	queue_end(cluster, &cluster->delayed, UNSENT);
	for (unsigned int i = 0; i < cluster->map.nodes; i++) {
		struct node *node = cluster->node[i];

		if (node->unsent.first && node->connection.state != CONNECTION_READY)
			node->connection.has_failed = true;
		queue_end(cluster, &node->unsent, UNSENT);
		if (!node->awaiting.first)
			continue;
		connection_fail(&cluster->setup, &node->connection, -ETIMEDOUT,
				"no answer in time");
		connection_break(&node->connection, &cluster->setup);
		node_lose(cluster, node);
	}
}
