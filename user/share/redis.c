// SPDX-License-Identifier: GPL-2.0
/* The commands that count. A call makes one for each field, and lets the cluster run them. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "share/cluster.h"
#include "share/store.h"

#define NODE_LIVES 10 /* a node that was not seen for so many alive_ms is forgotten */

struct store {
	struct cluster cluster;
	struct command *commands;
	size_t room;
	struct store_counts counts;
};

/* --- Calls ---------------------------------------------------------------------------------- */

static void call_begin(struct store *store)
{
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	store->cluster.begun_ms = store_now_ms();
	store->cluster.end_ms = store->cluster.begun_ms + store->cluster.setup.timeout_ms;
	store->cluster.setup.status = 0;
}

/* The status of a call of which nothing was answered. */
static int call_status(const struct store *store)
{
	return store->cluster.setup.status ? store->cluster.setup.status : -EAGAIN;
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

/* Of an item, in the order in which they are sent. */
enum item_command {
	ITEM_CLEAR, /* deletes a key that cannot be counted: items_clear() */
	ITEM_COUNT, /* adds to both fields, or reads them */
	ITEM_EXPIRY,
	ITEM_BLOCK,   /* reports a block */
	ITEM_BLOCKED, /* reads it */
	ITEM_COMMANDS
};

static bool item_is_read(const struct store_item *item)
{
	return !item->delta[STORE_TAKEN] && !item->delta[STORE_ASKED];
}

/* Writes a number into one of the two places of a command. */
static const char *number_write(struct command *command, int place, int64_t number)
{
	snprintf(command->number[place], sizeof(command->number[place]), "%" PRId64, number);
	return command->number[place];
}

/* A block is a key that the store forgets when the block ends: so no clock but its own counts. */
static void block_write(const struct store_item *item, struct command commands[ITEM_COMMANDS])
{
	struct command *block = &commands[ITEM_BLOCK];

	if (!*item->block_key)
		return;
	if (item->block_ms) {
		*block = command_of(item->block_key, "PSETEX", "", "1", ANSWER_DONE);
		block->argv[2] = number_write(block, 0, (int64_t)item->block_ms);
	}
	commands[ITEM_BLOCKED] = command_of(item->block_key, "PTTL", NULL, NULL, ANSWER_INTEGER);
}

/*
 * Both fields in one command: two integers of 64 bits in a string. A sum that overflows wraps, and
 * so does the difference of two totals.
 */
static struct command count_write(const struct store_item *item, struct command *place)
{
	static const char *const field[STORE_FIELDS] = {"#0", "#1"};
	struct command command = command_of(item->key, "BITFIELD", NULL, NULL, ANSWER_COUNTS);
	bool is_read = item_is_read(item);

	for (int i = 0; i < STORE_FIELDS; i++) {
		command.argv[command.argc++] = is_read ? "GET" : "INCRBY";
		command.argv[command.argc++] = "i64";
		command.argv[command.argc++] = field[i];
		if (!is_read)
			command.argv[command.argc++] = number_write(place, i, item->delta[i]);
	}
	memcpy(command.number, place->number, sizeof(command.number));
	return command;
}

static void counters_write(const struct store_item *item, unsigned int expire_s,
			   struct command commands[ITEM_COMMANDS])
{
	struct command *expiry = &commands[ITEM_EXPIRY];

	commands[ITEM_COUNT] = count_write(item, &commands[ITEM_COUNT]);
	if (item->lasts)
		return;
	*expiry = command_of(item->key, "EXPIRE", "", NULL, ANSWER_INTEGER);
	expiry->argv[2] = number_write(expiry, 0, expire_s);
}

static void item_write(const struct store_item *item, unsigned int expire_s,
		       struct command commands[ITEM_COMMANDS])
{
	memset(commands, 0, ITEM_COMMANDS * sizeof(*commands));
	counters_write(item, expire_s, commands);
	block_write(item, commands);
}

static bool command_may_have_run(const struct command *command)
{
	return command->outcome == ANSWERED || command->outcome == LOST;
}

static void item_read(struct store_item *item, const struct command commands[ITEM_COMMANDS])
{
	const struct command *count = &commands[ITEM_COUNT];
	const struct command *expiry = &commands[ITEM_EXPIRY];
	const struct command *blocked = &commands[ITEM_BLOCKED];

	/* a key that is not there, or that has no end, has a negative time to live */
	item->blocked_ms =
		blocked->outcome == ANSWERED && blocked->value[0] > 0 ? blocked->value[0] : 0;
	/* 0: there was no key, which an addition may have made behind it */
	item->expires =
		expiry->outcome == ANSWERED && (expiry->value[0] == 1 || item_is_read(item));
	item->answered = count->outcome == ANSWERED;
	/* a reading leaves nothing behind */
	item->sent = item_is_read(item) ? item->answered : command_may_have_run(count);
	for (int i = 0; i < STORE_FIELDS; i++)
		item->total[i] = count->value[i];
}

/* Deletes a key: a time to live that has passed needs no right that is not needed anyway. */
static struct command key_clear(const char *key)
{
	return command_of(key, "EXPIRE", "0", NULL, ANSWER_INTEGER);
}

/*
 * Anyone with the right to write one key can have made it one that cannot be counted. It would be
 * without an answer in each round, as if a part of the store were away: so it begins anew.
 */
static void items_clear(struct store *store, struct store_item *items, size_t count,
			unsigned int expire_s)
{
	struct command *commands = store->commands;
	bool is_any = false;

	for (size_t i = 0; i < count; i++, commands += ITEM_COMMANDS) {
		bool is_refused = commands[ITEM_COUNT].outcome == REFUSED;

		memset(commands, 0, ITEM_COMMANDS * sizeof(*commands));
		if (!is_refused)
			continue;
		items[i].lasts = false;
		item_write(&items[i], expire_s, commands);
		commands[ITEM_CLEAR] = key_clear(items[i].key);
		is_any = true;
	}
	if (!is_any)
		return;
	cluster_exchange(&store->cluster, store->commands, count * ITEM_COMMANDS);
	commands = store->commands;
	for (size_t i = 0; i < count; i++, commands += ITEM_COMMANDS)
		if (commands[ITEM_CLEAR].argc)
			item_read(&items[i], commands);
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

int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s)
{
	size_t answered = 0;
	int status;

	for (size_t i = 0; i < count; i++)
		items[i].answered = items[i].expires = items[i].sent = false;
	store->counts.rounds++;
	call_begin(store);
	status = commands_reserve(store, count) ? cluster_refresh(&store->cluster) : -ENOMEM;
	if (status) {
		store->counts.unsent += count;
		return status;
	}
	for (size_t i = 0; i < count; i++)
		item_write(&items[i], expire_s, store->commands + i * ITEM_COMMANDS);
	cluster_exchange(&store->cluster, store->commands, count * ITEM_COMMANDS);
	for (size_t i = 0; i < count; i++)
		item_read(&items[i], store->commands + i * ITEM_COMMANDS);
	items_clear(store, items, count, expire_s);
	for (size_t i = 0; i < count; i++) {
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
	struct command time = command_of(key, "TIME", NULL, NULL, ANSWER_TEXTS);

	time.argc = 1; /* the key only says which node */
	cluster_exchange(&store->cluster, &time, 1);
	if (time.outcome != ANSWERED)
		return call_status(store);
	if (time.value[0] <= 0 || time.value[0] > TIME_MAX_S || time.value[1] < 0 ||
	    time.value[1] > 999999) {
		store->counts.bad++;
		return connection_fail(&store->cluster.setup, NULL, -EPROTO, "TIME is none");
	}
	*ret_ms = (uint64_t)time.value[0] * 1000 + (uint64_t)time.value[1] / 1000;
	return 0;
}

int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		uint64_t *ret_time_ms, unsigned int *ret_nodes)
{
	char since[24], until[24], dead[24], life[24], moment[24];
	uint64_t now = 0, lives = (uint64_t)NODE_LIVES * alive_ms;
	struct command commands[4];
	int64_t nodes;
	int status;

	call_begin(store);
	status = cluster_refresh(&store->cluster);
	if (!status)
		status = time_read(store, key, &now);
	if (status)
		return status;
	snprintf(moment, sizeof(moment), "%" PRIu64, now);
	snprintf(since, sizeof(since), "(%" PRId64, (int64_t)now - alive_ms);
	/* not later: of before the store's clock was set back */
	snprintf(until, sizeof(until), "%" PRIu64, now + alive_ms);
	snprintf(dead, sizeof(dead), "%" PRId64, (int64_t)(now - lives));
	snprintf(life, sizeof(life), "%" PRIu64, lives);
	commands[0] = command_of(key, "ZADD", moment, node, ANSWER_INTEGER);
	commands[1] = command_of(key, "ZREMRANGEBYSCORE", "-inf", dead, ANSWER_INTEGER);
	commands[2] = command_of(key, "ZCOUNT", since, until, ANSWER_INTEGER);
	commands[3] = command_of(key, "PEXPIRE", life, NULL, ANSWER_INTEGER);
	cluster_exchange(&store->cluster, commands, ARRAY_SIZE(commands));
	if (commands[0].outcome == REFUSED) {
		commands[0] = key_clear(key);
		cluster_exchange(&store->cluster, commands, 1);
		return call_status(store);
	}
	if (commands[0].outcome != ANSWERED || commands[2].outcome != ANSWERED)
		return call_status(store);
	nodes = commands[2].value[0];
	*ret_nodes = nodes < 1 ? 1 : nodes > UINT32_MAX ? UINT32_MAX : (unsigned int)nodes;
	*ret_time_ms = now;
	return 0;
}

/* --- Beginning and end ---------------------------------------------------------------------- */

/* Takes the addresses to begin with, which are separated by commas. */
static bool seeds_parse(const char *address, struct endpoint seed[SEEDS_MAX], unsigned int *ret)
{
	for (*ret = 0; *ret < SEEDS_MAX; address++) {
		size_t size = strcspn(address, ",");

		if (!endpoint_parse(address, size, &seed[*ret]) || !*seed[*ret].host)
			return false;
		++*ret;
		address += size;
		if (!*address)
			return true;
	}
	return false;
}

bool store_address_is_valid(const char *address)
{
	struct endpoint seed[SEEDS_MAX];
	unsigned int seeds;

	return seeds_parse(address, seed, &seeds);
}

static bool seeds_read(struct cluster *cluster, const char *address)
{
	if (!seeds_parse(address, cluster->seed, &cluster->seeds))
		return false;
	for (unsigned int i = 0; i < cluster->seeds; i++)
		if (cluster_node(cluster, &cluster->seed[i]) == NODE_NONE)
			return false;
	return true;
}

/* Copies what the store keeps of its options. False: errno is set. */
static bool options_read(struct store *store, const struct store_options *options)
{
	struct connection_setup *setup = &store->cluster.setup;

	errno = EINVAL;
	if (options->timeout_ms <= 0 || !options->address ||
	    (options->user && !options->password) || !seeds_read(&store->cluster, options->address))
		return false;
	setup->timeout_ms = options->timeout_ms;
	errno = ENOMEM;
	if (options->user && !(setup->user = strdup(options->user)))
		return false;
	if (options->password && !(setup->password = strdup(options->password)))
		return false;
	return !options->ca_file || (setup->tls = tls_open(options->ca_file));
}

struct store *store_open(const struct store_options *options)
{
	struct store *store = calloc(1, sizeof(*store));
	int error;

	if (!store)
		return NULL;
	slot_map_clear(&store->cluster.map);
	store->cluster.setup.counts = &store->counts;
	if (getrandom(&store->cluster.setup.random, sizeof(store->cluster.setup.random), 0) < 0)
		store->cluster.setup.random = store_now_ms();
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
	for (unsigned int i = 0; i < store->cluster.map.nodes; i++)
		node_free(store->cluster.node[i], &store->cluster.setup);
	tls_close(store->cluster.setup.tls);
	free(store->cluster.setup.user);
	if (store->cluster.setup.password)
		explicit_bzero(store->cluster.setup.password,
			       strlen(store->cluster.setup.password));
	free(store->cluster.setup.password);
	free(store->commands);
	free(store);
}

const struct store_counts *store_counts(const struct store *store)
{
	return &store->counts;
}

const char *store_error(const struct store *store)
{
	return store->cluster.setup.error;
}
