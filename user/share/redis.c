// SPDX-License-Identifier: GPL-2.0
/*
 * The commands that count, and how they find their nodes. A call makes one command for each field
 * and lets exchange() run them: each is in one queue, of a node or of the delayed, until it has an
 * outcome. Only an explicit refusal puts a command that was sent into a queue again.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "share/connection.h"
#include "share/store.h"

#define SEEDS_MAX      16
#define TRIES_MAX      6   /* of a command in a call; each but the first follows a refusal */
#define BATCH	       128 /* commands that are given to a socket at once */
#define DELAY_FIRST    2   /* ms until a node is asked again that said "later"; doubles */
#define MAP_REST_MS    100 /* between two readings of the map, and doubles while none succeeds */
#define MAP_REST_MAX   2000
#define LOOKUP_POLL_MS 5
#define NODE_LIVES     10 /* a node that was not seen for so many alive_ms is forgotten */

enum outcome {
	WAITS, /* it is in a queue */
	ANSWERED,
	UNSENT, /* it has not been run, for sure */
	LOST,	/* it may have been run */
};

enum answer_kind {
	ANSWER_INTEGER,
	ANSWER_PAIR, /* two numbers as text, or nil for 0 */
	ANSWER_ANY,  /* kept whole, errors too */
};

struct command {
	const char *argv[4];
	int argc; /* 0: no command */
	char number[24];
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
};

struct store {
	struct connection_setup setup;
	unsigned int expire_s;
	struct endpoint seed[SEEDS_MAX];
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
	struct command *commands;
	size_t room;

	struct store_counts counts;
};

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

static void command_end(struct store *store, struct command *command, enum outcome outcome)
{
	command->outcome = outcome;
	store->open--;
}

static void queue_end(struct store *store, struct queue *queue, enum outcome outcome)
{
	for (struct command *command; (command = queue_take(queue));)
		command_end(store, command, outcome);
}

/* --- Nodes ---------------------------------------------------------------------------------- */

static struct node *node_new(const struct endpoint *at)
{
	struct node *node = calloc(1, sizeof(*node));

	if (node)
		node->connection.at = *at;
	return node;
}

static void node_free(struct node *node)
{
	if (node)
		connection_close(&node->connection);
	free(node);
}

/* The node at a place, which may be new. NODE_NONE: there are too many. */
static unsigned int node_at(struct store *store, const struct endpoint *at)
{
	unsigned int number = slot_map_node(&store->map, at);

	if (number == NODE_NONE || store->node[number])
		return number;
	store->node[number] = node_new(at);
	if (store->node[number])
		return number;
	store->map.nodes--;
	return NODE_NONE;
}

/* Puts a command into the queue of its node. */
static void command_route(struct store *store, struct command *command)
{
	unsigned int number = command->node;

	if (number == NODE_NONE)
		number = store->map.of[command->slot];
	if (number != NODE_NONE) {
		queue_put(&store->node[number]->unsent, command);
		return;
	}
	store->map_is_stale = true;
	connection_fail(&store->setup, NULL, -EAGAIN, "no node holds slot %u", command->slot);
	command_end(store, command, UNSENT);
}

/* --- Answers -------------------------------------------------------------------------------- */

/* Puts a command that was refused into a queue again, at most TRIES_MAX times. */
static void command_again(struct store *store, struct command *command, bool later)
{
	if (++command->tries >= TRIES_MAX) {
		command_end(store, command, UNSENT);
		return;
	}
	if (!later) {
		command_route(store, command);
		return;
	}
	command->not_before_ms = store_now_ms() + (DELAY_FIRST << command->tries);
	queue_put(&store->delayed, command);
}

/* Follows MOVED or ASK. A redirect of another slot than the command's is none. */
static void command_redirect(struct store *store, const struct node *from, struct command *command,
			     enum refusal refusal, unsigned int slot, struct endpoint *to)
{
	unsigned int number = NODE_NONE;

	if (!*to->host)
		strcpy(to->host, from->connection.at.host);
	if (slot == command->slot)
		number = node_at(store, to);
	if (number == NODE_NONE) {
		store->counts.bad++;
		connection_fail(&store->setup, &from->connection, -EPROTO, "a bad redirect");
		command_end(store, command, UNSENT);
		return;
	}
	if (refusal == REFUSAL_MOVED) {
		store->map.of[slot] = number;
		store->map_is_stale = true;
	} else {
		command->node = number;
		command->due = 2;
	}
	command_again(store, command, false);
}

static void command_refused(struct store *store, const struct node *from, struct command *command,
			    const redisReply *answer)
{
	struct store_counts *counts = &store->counts;
	unsigned int slot = 0;
	struct endpoint to;
	enum refusal refusal = refusal_parse(answer->str, answer->len, &slot, &to);
	uint64_t *count[] = {
		[REFUSAL_MOVED] = &counts->moved,     [REFUSAL_ASK] = &counts->asked,
		[REFUSAL_TRY] = &counts->try_again,   [REFUSAL_DOWN] = &counts->down,
		[REFUSAL_LOADING] = &counts->loading, [REFUSAL_ROLE] = &counts->refused,
		[REFUSAL_RIGHT] = &counts->refused,   [REFUSAL_OTHER] = &counts->refused,
	};
	static const int status[] = {
		[REFUSAL_TRY] = -EAGAIN, [REFUSAL_DOWN] = -EAGAIN,  [REFUSAL_LOADING] = -EAGAIN,
		[REFUSAL_ROLE] = -EROFS, [REFUSAL_RIGHT] = -EACCES, [REFUSAL_OTHER] = -EREMOTEIO,
	};

	++*count[refusal];
	if (refusal == REFUSAL_MOVED || refusal == REFUSAL_ASK) {
		command_redirect(store, from, command, refusal, slot, &to);
		return;
	}
	connection_fail(&store->setup, &from->connection, status[refusal], "%s: %s",
			command->argv[0], answer->str);
	store->map_is_stale |= refusal == REFUSAL_DOWN || refusal == REFUSAL_ROLE;
	if (refusal == REFUSAL_TRY || refusal == REFUSAL_DOWN || refusal == REFUSAL_LOADING)
		command_again(store, command, true);
	else
		command_end(store, command, UNSENT);
}

/* Reads one number of a pair; nil is 0. */
static bool number_read(const redisReply *answer, int64_t *ret)
{
	char *end;

	*ret = 0;
	if (answer->type == REDIS_REPLY_NIL)
		return true;
	if (answer->type != REDIS_REPLY_STRING || !answer->len ||
	    strlen(answer->str) != answer->len)
		return false;
	errno = 0;
	*ret = strtoll(answer->str, &end, 10);
	return !errno && !*end;
}

static bool values_read(const redisReply *answer, struct command *command)
{
	if (command->kind == ANSWER_INTEGER) {
		command->value[0] = answer->integer;
		return answer->type == REDIS_REPLY_INTEGER;
	}
	return answer->type == REDIS_REPLY_ARRAY && answer->elements == 2 &&
	       number_read(answer->element[0], &command->value[0]) &&
	       number_read(answer->element[1], &command->value[1]);
}

/*
 * Takes the answer to the first command that awaits one. False: it is none that the command can
 * have, and what follows belongs to nothing. The answer is freed, or is the command's.
 */
static bool answer_take(struct store *store, struct node *node, redisReply *answer)
{
	struct command *command = node->awaiting.first;
	bool is_sound = command;

	if (command && command->due == 2) {
		command->due = 1; /* this was ASKING's; the next one tells whether it helped */
	} else if (command && command->kind == ANSWER_ANY) {
		queue_take(&node->awaiting);
		command->whole = answer;
		command_end(store, command, ANSWERED);
		return true;
	} else if (command && answer->type == REDIS_REPLY_ERROR) {
		queue_take(&node->awaiting);
		command->node = NODE_NONE;
		command_refused(store, node, command, answer);
	} else if (command && values_read(answer, command)) {
		queue_take(&node->awaiting);
		command_end(store, command, ANSWERED);
	} else {
		is_sound = false;
	}
	freeReplyObject(answer);
	return is_sound;
}

/* What a node was sent, and did not answer, is lost when its connection ends. */
static void node_lose(struct store *store, struct node *node)
{
	store->map_is_stale = true;
	queue_end(store, &node->awaiting, LOST);
}

static void node_read(struct store *store, struct node *node)
{
	struct connection *connection = &node->connection;
	redisReply *answer;

	if (!connection_read(connection, &store->setup)) {
		node_lose(store, node);
		return;
	}
	while ((answer = connection_answer(connection, &store->setup))) {
		if (connection->asked_ms) {
			connection->rtt_ms += (int64_t)(store_now_ms() - connection->asked_ms) / 4 -
					      (int64_t)connection->rtt_ms / 4;
			connection->asked_ms = 0;
		}
		if (answer_take(store, node, answer))
			continue;
		store->counts.bad++;
		connection_fail(&store->setup, connection, -EPROTO, "an answer that fits nothing");
		connection_break(connection, &store->setup);
		break;
	}
	if (connection->state == CONNECTION_CLOSED)
		node_lose(store, node);
}

/* --- Exchange ------------------------------------------------------------------------------- */

/* Whether what is sent to a node now can be answered in time. At the start of a call it is tried. */
static bool is_in_time(const struct store *store, const struct connection *connection)
{
	uint64_t now = store_now_ms(), early = (store->end_ms - store->begun_ms) / 8;

	return now <= store->begun_ms + early || now + connection->rtt_ms * 5 / 4 < store->end_ms;
}

/* Moves commands to the socket, a batch at a time: what is not in a batch is not sent. */
static bool node_write(struct store *store, struct node *node)
{
	struct connection *connection = &node->connection;
	const char *asking[] = {"ASKING"};
	struct command *command;
	bool added = true;

	for (int i = 0; added && i < BATCH && (command = queue_take(&node->unsent)); i++) {
		if (!node->awaiting.first)
			connection->asked_ms = store_now_ms();
		queue_put(&node->awaiting, command);
		store->counts.commands++;
		if (command->due == 2)
			added = connection_add(connection, 1, asking);
		added = added && connection_add(connection, command->argc, command->argv);
	}
	if (added && connection_flush(connection, &store->setup))
		return true;
	if (!added)
		connection_break(connection, &store->setup);
	node_lose(store, node);
	return false;
}

/* Goes on with a node as far as it goes now. */
static void node_advance(struct store *store, struct node *node)
{
	struct connection *connection = &node->connection;

	if (connection->state == CONNECTION_READY && !node->awaiting.first && node->unsent.first)
		connection_check(connection, &store->setup);
	if (!connection_advance(connection, &store->setup)) {
		node_lose(store, node);
		queue_end(store, &node->unsent, UNSENT);
		return;
	}
	if (connection->state != CONNECTION_READY)
		return;
	if (!connection_flush(connection, &store->setup)) {
		node_lose(store, node);
		return;
	}
	while (node->unsent.first && !connection->has_output && is_in_time(store, connection))
		if (!node_write(store, node))
			return;
}

/* Whether a node has something to wait for. */
static bool node_is_busy(const struct store *store, const struct node *node)
{
	const struct connection *connection = &node->connection;

	if (node->awaiting.first)
		return true;
	return node->unsent.first &&
	       (connection->state != CONNECTION_READY || is_in_time(store, connection));
}

/* Puts the delayed whose time has come into the queues of their nodes. Returns the next time. */
static uint64_t delayed_advance(struct store *store, uint64_t now)
{
	struct queue delayed = store->delayed;
	uint64_t next = store->end_ms;

	store->delayed = (struct queue){NULL, NULL};
	for (struct command *command; (command = queue_take(&delayed));) {
		if (command->not_before_ms <= now) {
			command_route(store, command);
			continue;
		}
		queue_put(&store->delayed, command);
		if (command->not_before_ms < next)
			next = command->not_before_ms;
	}
	return next;
}

/* Waits until a node has something to say, or the next time has come, and hears it. */
static void nodes_wait(struct store *store, uint64_t now, uint64_t next)
{
	struct pollfd ready[NODES_MAX];
	struct node *of[NODES_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < store->map.nodes; i++) {
		struct node *node = store->node[i];

		if (!node_is_busy(store, node))
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
			node_read(store, of[i]);
}

/* Runs commands until each has an outcome, or until store->end_ms. */
static void exchange(struct store *store, struct command *commands, size_t count)
{
	store->open = 0;
	for (size_t i = 0; i < count; i++) {
		if (!commands[i].argc)
			continue;
		store->open++;
		command_route(store, &commands[i]);
	}
	while (store->open) {
		uint64_t now = store_now_ms(), next = delayed_advance(store, now);
		bool is_busy = store->delayed.first;

		for (unsigned int i = 0; i < store->map.nodes; i++) {
			struct node *node = store->node[i];

			if (node->unsent.first || node->awaiting.first)
				node_advance(store, node);
			is_busy |= node_is_busy(store, node);
		}
		if (!is_busy || now >= store->end_ms)
			break;
		nodes_wait(store, now, next);
	}
	store->counts.nodes = store->map.nodes;
	queue_end(store, &store->delayed, UNSENT);
	for (unsigned int i = 0; i < store->map.nodes; i++) {
		struct node *node = store->node[i];

		queue_end(store, &node->unsent, UNSENT);
		if (!node->awaiting.first)
			continue;
		connection_fail(&store->setup, &node->connection, -ETIMEDOUT, "no answer in time");
		connection_break(&node->connection, &store->setup);
		node_lose(store, node);
	}
}

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
static bool map_adopt(struct store *store, const struct slot_map *map)
{
	struct node *nodes[NODES_MAX] = {NULL};
	bool is_whole = true;

	for (unsigned int i = 0; i < map->nodes; i++)
		if (node_find(&store->map, &map->node[i]) < 0)
			is_whole &= (nodes[i] = node_new(&map->node[i])) != NULL;
	for (unsigned int i = 0; i < map->nodes; i++) {
		int before = node_find(&store->map, &map->node[i]);

		if (!is_whole) {
			node_free(nodes[i]);
		} else if (before >= 0) {
			nodes[i] = store->node[before];
			store->node[before] = NULL;
		}
	}
	if (!is_whole)
		return false;
	for (unsigned int i = 0; i < store->map.nodes; i++)
		node_free(store->node[i]);
	memcpy(store->node, nodes, sizeof(nodes));
	store->map = *map;
	return true;
}

/* Reads what a node answered to CLUSTER SLOTS. A store that is no cluster answers an error. */
static bool map_take(struct store *store, unsigned int number, const redisReply *answer)
{
	const struct connection *from = &store->node[number]->connection;
	struct slot_map *map = malloc(sizeof(*map));
	bool is_cluster = answer->type == REDIS_REPLY_ARRAY, is_taken = false;
	struct endpoint at = from->at;

	if (!map)
		return false;
	slot_map_clear(map);
	for (unsigned int i = 0; i < store->seeds; i++)
		slot_map_node(map, &store->seed[i]);
	if (is_cluster)
		is_taken = map_read_cluster(map, answer, from);
	else
		is_taken = slot_map_give(map, 0, SLOTS - 1, slot_map_node(map, &at));
	if (is_taken) {
		is_taken = map_adopt(store, map);
		store->counts.is_cluster = is_cluster;
	} else {
		store->counts.bad++;
		connection_fail(&store->setup, from, -EPROTO, "no slots in its map");
	}
	free(map);
	return is_taken;
}

/* Asks one node for the map. */
static bool map_ask(struct store *store, unsigned int number, uint64_t end_ms)
{
	struct command command = {.argv = {"CLUSTER", "SLOTS"},
				  .argc = 2,
				  .kind = ANSWER_ANY,
				  .node = number,
				  .due = 1};
	uint64_t call_end = store->end_ms;
	enum refusal refusal = REFUSAL_OTHER;
	const redisReply *answer;
	struct endpoint to;
	unsigned int slot;
	bool is_taken = false;

	store->end_ms = end_ms < call_end ? end_ms : call_end;
	exchange(store, &command, 1);
	store->end_ms = call_end;
	answer = command.whole;
	if (command.outcome != ANSWERED)
		return false;
	if (answer->type == REDIS_REPLY_ERROR)
		refusal = refusal_parse(answer->str, answer->len, &slot, &to);
	store->counts.loading += refusal == REFUSAL_LOADING;
	if (refusal != REFUSAL_OTHER)
		connection_fail(&store->setup, &store->node[number]->connection,
				refusal == REFUSAL_RIGHT ? -EACCES : -EAGAIN, "CLUSTER SLOTS: %s",
				answer->str);
	else if (answer->type == REDIS_REPLY_ERROR || answer->type == REDIS_REPLY_ARRAY)
		is_taken = map_take(store, number, answer);
	else
		store->counts.bad++;
	freeReplyObject(command.whole);
	return is_taken;
}

/* Asks those that are connected, then those that may be; each in its turn, while there is time. */
static bool map_ask_all(struct store *store)
{
	uint64_t timeout = store->setup.timeout_ms, now = store_now_ms();
	/* What is known goes on to be used, and needs time too. */
	uint64_t end = store->map_is_known ? now + timeout / 2 : store->end_ms;
	unsigned int nodes = store->map.nodes, turn = store->map_turn++;
	bool is_tried[NODES_MAX] = {false};

	for (int connected = 1; connected >= 0; connected--)
		for (unsigned int i = 0; i < nodes && now < end; i++, now = store_now_ms()) {
			unsigned int number = (i + turn) % nodes;
			const struct connection *one = &store->node[number]->connection;
			bool is_ready = one->state == CONNECTION_READY;

			if (is_tried[number] || is_ready != connected)
				continue;
			is_tried[number] = true;
			if (map_ask(store, number, is_ready ? end : now + timeout / 3 + 1))
				return true;
		}
	return false;
}

/* Reads the map where there is none or a newer one. 0: there is one. */
static int map_refresh(struct store *store)
{
	uint64_t rest = MAP_REST_MS, now = store_now_ms();

	if (store->map_is_known && !store->map_is_stale)
		return 0;
	if (now < store->map_rest_ms)
		return store->map_is_known ? 0 : -EAGAIN;
	store->map_is_stale = false;
	if (map_ask_all(store)) {
		store->map_is_known = true;
		store->map_failures = 0;
		store->counts.maps++;
	} else {
		store->map_is_stale = true;
		store->map_failures++;
	}
	for (unsigned int i = 1; i < store->map_failures && rest < MAP_REST_MAX; i++)
		rest *= 2;
	store->map_rest_ms = store_now_ms() + jitter(&store->setup, rest);
	return store->map_is_known ? 0 : store->setup.status;
}

/* --- Calls ---------------------------------------------------------------------------------- */

static void call_begin(struct store *store)
{
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	store->begun_ms = store_now_ms();
	store->end_ms = store->begun_ms + store->setup.timeout_ms;
	store->setup.status = 0;
}

/* The status of a call of which nothing was answered. */
static int call_status(const struct store *store)
{
	return store->setup.status ? store->setup.status : -EAGAIN;
}

static struct command command_of(const char *key, const char *word, const char *field,
				 const char *last, enum answer_kind kind)
{
	struct command command = {.argv = {word, key, field, last},
				  .kind = kind,
				  .slot = slot_of_key(key),
				  .node = NODE_NONE,
				  .due = 1};

	while (command.argc < 4 && command.argv[command.argc])
		command.argc++;
	return command;
}

/* --- Rounds --------------------------------------------------------------------------------- */

#define ITEM_COMMANDS 3

static bool item_is_read(const struct store_item *item)
{
	return !item->delta[STORE_TAKEN] && !item->delta[STORE_ASKED];
}

static void item_write(const struct store *store, const struct store_item *item,
		       struct command commands[ITEM_COMMANDS])
{
	static const char *const field[STORE_FIELDS] = {"t", "a"};

	memset(commands, 0, ITEM_COMMANDS * sizeof(*commands));
	if (item_is_read(item)) {
		commands[0] = command_of(item->key, "HMGET", field[0], field[1], ANSWER_PAIR);
		return;
	}
	for (int i = 0; i < STORE_FIELDS; i++) {
		commands[i] = command_of(item->key, "HINCRBY", field[i], "", ANSWER_INTEGER);
		snprintf(commands[i].number, sizeof(commands[i].number), "%" PRId64,
			 item->delta[i]);
		commands[i].argv[3] = commands[i].number;
	}
	if (item->lasts)
		return;
	commands[STORE_FIELDS] = command_of(item->key, "EXPIRE", "", NULL, ANSWER_INTEGER);
	snprintf(commands[STORE_FIELDS].number, sizeof(commands[STORE_FIELDS].number), "%u",
		 store->expire_s);
	commands[STORE_FIELDS].argv[2] = commands[STORE_FIELDS].number;
}

/* A reading leaves nothing behind; of two additions, one is enough to be sent. */
static void item_read(struct store_item *item, const struct command commands[ITEM_COMMANDS])
{
	const struct command *taken = &commands[STORE_TAKEN], *asked = &commands[STORE_ASKED];

	item->answered = taken->outcome == ANSWERED;
	item->total[STORE_TAKEN] = taken->value[0];
	item->total[STORE_ASKED] = taken->value[1];
	if (item_is_read(item)) {
		item->sent = item->answered;
		return;
	}
	item->sent = taken->outcome != UNSENT || asked->outcome != UNSENT;
	item->answered &= asked->outcome == ANSWERED;
	item->total[STORE_ASKED] = asked->value[0];
}

static bool commands_reserve(struct store *store, size_t items)
{
	struct command *commands;

	if (items <= store->room)
		return true;
	commands = reallocarray(store->commands, items, ITEM_COMMANDS * sizeof(*commands));
	if (!commands)
		return false;
	store->commands = commands;
	store->room = items;
	return true;
}

int store_round(struct store *store, struct store_item *items, size_t count)
{
	size_t answered = 0;
	int status;

	for (size_t i = 0; i < count; i++)
		items[i].answered = items[i].sent = false;
	store->counts.rounds++;
	call_begin(store);
	status = commands_reserve(store, count) ? map_refresh(store) : -ENOMEM;
	if (status) {
		store->counts.unsent += count;
		return status;
	}
	for (size_t i = 0; i < count; i++)
		item_write(store, &items[i], store->commands + i * ITEM_COMMANDS);
	exchange(store, store->commands, count * ITEM_COMMANDS);
	for (size_t i = 0; i < count; i++) {
		item_read(&items[i], store->commands + i * ITEM_COMMANDS);
		answered += items[i].answered;
		store->counts.lost += items[i].sent && !items[i].answered;
		store->counts.unsent += !items[i].sent;
	}
	store->counts.answered += answered;
	return answered || !count ? 0 : call_status(store);
}

/* --- Nodes that share ----------------------------------------------------------------------- */

#define TIME_MAX_S 100000000000LL /* some 3,000 years */

static int time_read(struct store *store, const char *key, uint64_t *ret_ms)
{
	struct command time = command_of(key, "TIME", NULL, NULL, ANSWER_PAIR);

	time.argc = 1; /* the key only says which node */
	exchange(store, &time, 1);
	if (time.outcome != ANSWERED)
		return call_status(store);
	if (time.value[0] <= 0 || time.value[0] > TIME_MAX_S || time.value[1] < 0 ||
	    time.value[1] > 999999) {
		store->counts.bad++;
		return connection_fail(&store->setup, NULL, -EPROTO, "TIME is none");
	}
	*ret_ms = (uint64_t)time.value[0] * 1000 + (uint64_t)time.value[1] / 1000;
	return 0;
}

int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		uint64_t *ret_time_ms, unsigned int *ret_nodes)
{
	char since[24], dead[24], life[24], moment[24];
	uint64_t now = 0, lives = (uint64_t)NODE_LIVES * alive_ms;
	struct command commands[4];
	int64_t nodes;
	int status;

	call_begin(store);
	status = map_refresh(store);
	if (!status)
		status = time_read(store, key, &now);
	if (status)
		return status;
	snprintf(moment, sizeof(moment), "%" PRIu64, now);
	snprintf(since, sizeof(since), "(%" PRId64, (int64_t)now - alive_ms);
	snprintf(dead, sizeof(dead), "%" PRId64, (int64_t)(now - lives));
	snprintf(life, sizeof(life), "%" PRIu64, lives);
	commands[0] = command_of(key, "ZADD", moment, node, ANSWER_INTEGER);
	commands[1] = command_of(key, "ZREMRANGEBYSCORE", "-inf", dead, ANSWER_INTEGER);
	commands[2] = command_of(key, "ZCOUNT", since, "+inf", ANSWER_INTEGER);
	commands[3] = command_of(key, "PEXPIRE", life, NULL, ANSWER_INTEGER);
	exchange(store, commands, ARRAY_SIZE(commands));
	if (commands[0].outcome != ANSWERED || commands[2].outcome != ANSWERED)
		return call_status(store);
	nodes = commands[2].value[0];
	*ret_nodes = nodes < 1 ? 1 : nodes > UINT32_MAX ? UINT32_MAX : (unsigned int)nodes;
	*ret_time_ms = now;
	return 0;
}

/* --- Beginning and end ---------------------------------------------------------------------- */

/* Takes the addresses to begin with, which are separated by commas. */
static bool seeds_read(struct store *store, const char *address)
{
	for (;;) {
		size_t size = strcspn(address, ",");
		struct endpoint at;

		if (store->seeds == SEEDS_MAX || !endpoint_parse(address, size, &at) || !*at.host)
			return false;
		store->seed[store->seeds++] = at;
		if (node_at(store, &at) == NODE_NONE)
			return false;
		if (!address[size])
			return true;
		address += size + 1;
	}
}

/* Copies what the store keeps of its options. False: errno is set. */
static bool options_read(struct store *store, const struct store_options *options)
{
	struct connection_setup *setup = &store->setup;

	errno = EINVAL;
	if (options->timeout_ms <= 0 || !options->expire_s || !options->address ||
	    (options->user && !options->password) || !seeds_read(store, options->address))
		return false;
	setup->timeout_ms = options->timeout_ms;
	store->expire_s = options->expire_s;
	errno = ENOMEM;
	if (options->user && !(setup->user = strdup(options->user)))
		return false;
	if (options->password && !(setup->password = strdup(options->password)))
		return false;
	return !options->tls || (setup->tls = tls_open(options->ca_file));
}

struct store *store_open(const struct store_options *options)
{
	struct store *store = calloc(1, sizeof(*store));
	int error;

	if (!store)
		return NULL;
	slot_map_clear(&store->map);
	store->setup.counts = &store->counts;
	if (getrandom(&store->setup.random, sizeof(store->setup.random), 0) < 0)
		store->setup.random = store_now_ms();
	if (options_read(store, options))
		return store;
	error = errno;
	store_close(store);
	errno = error;
	return NULL;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	for (unsigned int i = 0; i < store->map.nodes; i++)
		node_free(store->node[i]);
	tls_close(store->setup.tls);
	free(store->setup.user);
	if (store->setup.password)
		explicit_bzero(store->setup.password, strlen(store->setup.password));
	free(store->setup.password);
	free(store->commands);
	free(store);
}

const struct store_counts *store_counts(const struct store *store)
{
	return &store->counts;
}

const char *store_error(const struct store *store)
{
	return store->setup.error;
}
