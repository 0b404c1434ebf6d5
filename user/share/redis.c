// SPDX-License-Identifier: GPL-2.0
/*
 * Implements store.h: makes the commands of a call, executes them (cluster.h), and reads the
 * replies.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "share/cluster.h"
#include "share/store.h"

#define NODE_LIVES 10		  /* remove a node after NODE_LIVES * alive_ms without a report */
#define TIME_MAX_S 100000000000LL /* a reply to TIME beyond some 3,000 years is refused */

struct store {
	struct cluster cluster;
	struct store_counts counts;
};

static void call_begin(struct store *store)
{
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	store->cluster.begun_ms = store_now_ms();
	store->cluster.end_ms = store->cluster.begun_ms + store->cluster.setup.timeout_ms;
	store->cluster.setup.err = 0;
}

/* Returns the negative errno of a call whose reply was missing or invalid. */
static int call_error(const struct store *store)
{
	return store->cluster.setup.err ?: -EAGAIN;
}

/* Deletes a key by EXPIRE, because the ACL of the user already allows EXPIRE, but not DEL. */
#define KEY_CLEAR "EXPIRE %s 0"

/* --- Rounds --------------------------------------------------------------------------------- */

/* Commands for a store_item, in the order of sending. */
enum item_command {
	ITEM_CLEAR,   /* deletes a key that has the wrong type */
	ITEM_COUNT,   /* adds amounts to both fields of the key; or reads both fields */
	ITEM_EXPIRY,  /* sets the expiry of the key */
	ITEM_BLOCK,   /* reports a block */
	ITEM_BLOCKED, /* reads the remaining time of the block */
	ITEM_COMMANDS
};

static bool item_is_read(const struct store_item *item)
{
	return !item->delta.taken && !item->delta.asked;
}

static void item_write(const struct store_item *item, unsigned int expire_s,
		       struct store_command commands[ITEM_COMMANDS])
{
	const char *key = item->key, *block = item->block_key;

	/*
	 * BITFIELD wraps a counter that overflows. Nodes use only differences of totals, so a wrap
	 * is harmless.
	 */
	commands[ITEM_COUNT] =
		item_is_read(item) ? command_make(key, 2, "BITFIELD %s GET i64 #0 GET i64 #1", key)
				   : command_make(key, 2,
						  "BITFIELD %s INCRBY i64 #0 %" PRId64
						  " INCRBY i64 #1 %" PRId64,
						  key, item->delta.taken, item->delta.asked);
	if (!item->lasts)
		commands[ITEM_EXPIRY] = command_make(key, 1, "EXPIRE %s %u", key, expire_s);
	/* The key expires when the block ends. So nodes need no common clock. */
	if (*block && item->block_ms)
		commands[ITEM_BLOCK] =
			command_make(block, 0, "PSETEX %s %" PRIu64 " 1", block, item->block_ms);
	if (*block)
		commands[ITEM_BLOCKED] = command_make(block, 1, "PTTL %s", block);
}

static void item_read(struct store_item *item, const struct store_command commands[ITEM_COMMANDS])
{
	const struct store_command *count = &commands[ITEM_COUNT];
	const struct store_command *expiry = &commands[ITEM_EXPIRY];
	const struct store_command *blocked = &commands[ITEM_BLOCKED];
	bool is_read = item_is_read(item);

	item->answered = count->outcome == REPLIED;
	/* a GET adds nothing, so its loss is harmless */
	item->sent = item->answered || (!is_read && count->outcome == LOST);
	/* EXPIRE returns 0 if the key does not exist yet, because INCRBY was redirected. */
	item->expires = expiry->outcome == REPLIED && (expiry->value[0] == 1 || is_read);
	/* PTTL is negative if the block's key does not exist or has no expiry */
	item->blocked_ms =
		blocked->outcome == REPLIED && blocked->value[0] > 0 ? blocked->value[0] : 0;
	item->total = (struct store_fields){count->value[0], count->value[1]};
}

/*
 * Executes the commands of all items. If only_refused is set, handles only items whose key in the
 * store has the wrong type, because another client has written it: deletes the key, and executes
 * the commands again. Otherwise the key would get an error in every round.
 */
static void items_exchange(struct store *store, struct store_item *items, size_t count,
			   unsigned int expire_s, struct store_command (*commands)[ITEM_COMMANDS],
			   bool only_refused)
{
	bool is_any = false;

	for (size_t i = 0; i < count; i++) {
		bool is_refused = only_refused && commands[i][ITEM_COUNT].outcome == REFUSED;

		memset(commands[i], 0, sizeof(commands[i]));
		if (only_refused && !is_refused)
			continue;
		items[i].lasts &= !is_refused;
		item_write(&items[i], expire_s, commands[i]);
		if (is_refused)
			commands[i][ITEM_CLEAR] =
				command_make(items[i].key, 1, KEY_CLEAR, items[i].key);
		is_any = true;
	}
	if (!is_any)
		return;
	cluster_exchange(&store->cluster, commands[0], count * ITEM_COMMANDS);
	for (size_t i = 0; i < count; i++)
		if (commands[i][ITEM_COUNT].format)
			item_read(&items[i], commands[i]);
}

int store_round(struct store *store, struct store_item *items, size_t count, unsigned int expire_s)
{
	_cleanup_free_ struct store_command(*commands)[ITEM_COMMANDS] =
		calloc(count ?: 1, sizeof(*commands));
	bool is_answered = false;
	int err;

	for (size_t i = 0; i < count; i++)
		items[i].answered = items[i].expires = items[i].sent = false;
	call_begin(store);
	err = commands ? cluster_refresh(&store->cluster) : -ENOMEM;
	if (err)
		return err;
	items_exchange(store, items, count, expire_s, commands, false);
	items_exchange(store, items, count, expire_s, commands, true);
	for (size_t i = 0; i < count; i++) {
		is_answered |= items[i].answered;
		store->counts.lost += items[i].sent && !items[i].answered;
	}
	return is_answered || !count ? 0 : call_error(store);
}

/* --- Nodes that share ----------------------------------------------------------------------- */

/* Reads the clock of the store node that has the slot of `key`. Returns 0 or a negative errno. */
static int time_read(struct store *store, const char *key, uint64_t *ret_ms)
{
	struct store_command time = command_make(key, 2, "TIME");

	cluster_exchange(&store->cluster, &time, 1);
	if (time.outcome != REPLIED)
		return call_error(store);
	if (time.value[0] <= 0 || time.value[0] > TIME_MAX_S || time.value[1] < 0 ||
	    time.value[1] > 999999) {
		store->counts.bad++;
		return store_fail(&store->cluster.setup, NULL, -EPROTO, "TIME is none");
	}
	*ret_ms = (uint64_t)time.value[0] * 1000 + (uint64_t)time.value[1] / 1000;
	return 0;
}

int store_nodes(struct store *store, const char *key, const char *node, unsigned int alive_ms,
		unsigned int *ret_nodes)
{
	struct store_command commands[4];
	uint64_t now = 0, lives = (uint64_t)NODE_LIVES * alive_ms;
	int64_t nodes;
	int err;

	call_begin(store);
	err = cluster_refresh(&store->cluster) ?: time_read(store, key, &now);
	if (err)
		return err;
	commands[0] = command_make(key, 1, "ZADD %s %" PRIu64 " %s", key, now, node);
	commands[1] = command_make(key, 1, "ZREMRANGEBYSCORE %s -inf %" PRId64, key,
				   (int64_t)(now - lives));
	/* ignore reports from the future, which were made before the clock was set back */
	commands[2] = command_make(key, 1, "ZCOUNT %s (%" PRId64 " %" PRIu64, key,
				   (int64_t)now - alive_ms, now + alive_ms);
	commands[3] = command_make(key, 1, "PEXPIRE %s %" PRIu64, key, lives);
	cluster_exchange(&store->cluster, commands, ARRAY_SIZE(commands));
	if (commands[0].outcome == REFUSED) {
		commands[0] = command_make(key, 1, KEY_CLEAR, key);
		cluster_exchange(&store->cluster, commands, 1);
		return call_error(store);
	}
	if (commands[0].outcome != REPLIED || commands[2].outcome != REPLIED)
		return call_error(store);
	nodes = commands[2].value[0];
	*ret_nodes = nodes < 1 ? 1 : nodes > UINT32_MAX ? UINT32_MAX : (unsigned int)nodes;
	return 0;
}

/* --- Opening and closing -------------------------------------------------------------------- */

/* Parses addresses separated by commas. Returns false if an address is invalid. */
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

/* Copies the options into `store`. Returns 0, or a positive errno. */
static int options_read(struct store *store, const struct store_options *options)
{
	struct cluster *cluster = &store->cluster;
	struct connection_setup *setup = &cluster->setup;

	if (options->timeout_ms <= 0 || !options->address ||
	    (options->user && !options->password) ||
	    !seeds_parse(options->address, cluster->seed, &cluster->seeds))
		return EINVAL;
	setup->timeout_ms = options->timeout_ms;
	setup->counts = &store->counts;
	for (unsigned int i = 0; i < cluster->seeds; i++)
		cluster_node(cluster, &cluster->seed[i]);
	if ((options->user && !(setup->user = strdup(options->user))) ||
	    (options->password && !(setup->password = strdup(options->password))))
		return ENOMEM;
	return options->ca_file && !(setup->tls = tls_open(options->ca_file)) ? errno : 0;
}

struct store *store_open(const struct store_options *options)
{
	struct store *store = calloc(1, sizeof(*store));
	int err;

	if (!store)
		return NULL;
	slot_map_clear(&store->cluster.map);
	for (unsigned int i = 0; i < NODES_MAX; i++) {
		store->cluster.node[i] = &store->cluster.pool[i];
		store->cluster.pool[i].connection.setup = &store->cluster.setup;
	}
	err = options_read(store, options);
	if (!err)
		return store;
	store_close(store);
	errno = err;
	return NULL;
}

void store_close(struct store *store)
{
	struct connection_setup *setup;

	if (!store)
		return;
	setup = &store->cluster.setup;
	for (unsigned int i = 0; i < NODES_MAX; i++)
		connection_reset(&store->cluster.pool[i].connection, NULL);
	if (setup->tls)
		tls_close(setup->tls);
	free(setup->user);
	if (setup->password)
		explicit_bzero(setup->password, strlen(setup->password));
	free(setup->password);
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
