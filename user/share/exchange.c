// SPDX-License-Identifier: GPL-2.0
#include "share/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gate/gate.h"
#include "share/flow.h"
#include "share/shared_limits.h"

#define NODES_EVERY_MS 1000 /* how often this process counts the nodes */
#define NODES_ALIVE_MS 5000 /* how long a node is counted after its last report */

/*
 * A node reports its limits and its process every ALIKE_EVERY_MS. A report is valid for ALIKE_MS.
 */
#define ALIKE_EVERY_MS (10 * NODES_EVERY_MS)
#define ALIKE_MS       (5 * ALIKE_EVERY_MS / 2)

/*
 * Report nodes with different limits only if they are seen for this long. After a flush of the
 * store, the limits of all nodes seem different for a short time.
 */
#define UNLIKE_LASTS_MS (3 * ALIKE_EVERY_MS / 2)

/*
 * Report a process with the same name only after this time, because a process that has ended still
 * counts for ALIKE_MS.
 */
#define SAME_NODE_LASTS_MS (ALIKE_MS + NODES_EVERY_MS)

/*
 * Nodes with different limits, or processes with this node's name. Times are from store_now_ms().
 */
struct difference {
	uint64_t counted_at; /* time of the last count; 0: the next count is due now */
	uint64_t since;	     /* time of the first count that was not 0; 0: the last count was 0 */
	unsigned int count;  /* size of the difference; 0 until it has lasted for long enough */
};

struct exchange {
	struct store *store;
	pthread_t thread;
	const char *name;
	const char *node;
	char key[STORE_KEY];	     /* key of the set of all nodes in the store */
	char process_key[STORE_KEY]; /* key of the set of processes with this node's name */
	char nonce[17];		     /* random id of this process in the set of processes */
	sem_t begun;		     /* posted to begin a round, or to end the thread */
	int ended;		     /* eventfd that is written when a round has ended */
	bool is_closing;

	/* During a round, only the thread uses the members below. Times are from store_now_ms(). */
	struct round round;
	uint64_t counted_at;  /* when the nodes were last counted; 0: never */
	bool is_counted;      /* whether the store replied to the last count of nodes */
	unsigned int lost;    /* consecutive rounds in which no key got a reply */
	uint64_t fewer_since; /* time of the first count below `round.nodes`; 0: none */
	uint64_t alike;	      /* `round.meaning` in this node's last report of its limits */
	struct difference unlike, same_node;
};

/*
 * Sets the number of nodes. A larger number takes effect immediately. A smaller number takes effect
 * after NODES_ALIVE_MS, because nodes register one by one after a flush of the store.
 */
static void nodes_set(struct exchange *exchange, unsigned int nodes, uint64_t now)
{
	struct round *round = &exchange->round;

	nodes = nodes < FLOW_NODES_MAX ? nodes : FLOW_NODES_MAX;
	if (nodes < round->nodes && !exchange->fewer_since)
		exchange->fewer_since = now;
	if (nodes < round->nodes && now < exchange->fewer_since + NODES_ALIVE_MS)
		return;
	exchange->fewer_since = 0;
	round->nodes = nodes;
}

/*
 * Adds `member` to the set `key` in the store, and counts the members of the set. Does this every
 * ALIKE_EVERY_MS, and in each call while a difference is new. The difference is the number of
 * members that are missing to `least` or too many for `most`; 0: no bound. If the difference has
 * lasted for `lasts` ms, stores it in difference->count, otherwise 0. Returns whether the members
 * were counted.
 */
static bool difference_count(struct exchange *exchange, struct difference *difference,
			     const char *key, const char *member, unsigned int least,
			     unsigned int most, uint64_t lasts)
{
	bool is_pending = difference->since && !difference->count;
	uint64_t now = store_now_ms();
	unsigned int count;

	if (difference->counted_at && !is_pending && now < difference->counted_at + ALIKE_EVERY_MS)
		return false;
	if (store_nodes(exchange->store, key, member, ALIKE_MS, &count))
		return false;
	difference->counted_at = now;
	count = least && count < least ? least - count : most && count > most ? count - most : 0;
	if (!count)
		difference->since = 0;
	else if (!difference->since)
		difference->since = now;
	if (!count || now >= difference->since + lasts)
		difference->count = count;
	return true;
}

/*
 * Counts nodes whose shared limits differ from this node's limits. Nodes with equal limits are in
 * one set. A node that changes its limits stays in its old set for ALIKE_MS. Also counts other
 * processes with the name of this node, because nodes with one name count only once.
 */
static void differences_count(struct exchange *exchange)
{
	struct round *round = &exchange->round;
	char key[STORE_KEY];

	if (exchange->alike != round->meaning)
		exchange->unlike.counted_at = 0;
	snprintf(key, sizeof(key), "sluice:{%.*s}:limits:%016" PRIx64, GATE_NAME, exchange->name,
		 round->meaning);
	if (difference_count(exchange, &exchange->unlike, key, exchange->node, round->nodes, 0,
			     UNLIKE_LASTS_MS))
		exchange->alike = round->meaning;
	difference_count(exchange, &exchange->same_node, exchange->process_key, exchange->nonce, 0,
			 1, SAME_NODE_LASTS_MS);
	round->unlike = exchange->unlike.count;
	round->same_node = exchange->same_node.count;
}

/*
 * Counts the nodes if the last count is older than NODES_EVERY_MS. Returns whether the number of
 * nodes is known.
 */
static bool nodes_count(struct exchange *exchange)
{
	uint64_t now = store_now_ms();
	unsigned int nodes;

	if (exchange->is_counted && now < exchange->counted_at + NODES_EVERY_MS)
		return true;
	exchange->is_counted = !store_nodes(exchange->store, exchange->key, exchange->node,
					    NODES_ALIVE_MS, &nodes);
	exchange->counted_at = now;
	if (exchange->is_counted) {
		nodes_set(exchange, nodes, now);
		differences_count(exchange);
	} else { /* the store may have lost data, so forget since when the nodes differ */
		exchange->unlike.since = exchange->same_node.since = 0;
	}
	return exchange->is_counted;
}

/*
 * Runs a round. Returns whether the store replied.
 *
 * If the number of nodes is known, exchanges keys first, because the set of nodes may be on a
 * failed master. During the first FLOW_LOST rounds without a reply, does not count nodes, because
 * this would delay the detection of the loss. Later rounds count nodes again, so that other nodes
 * still count this node. After a count that failed, the next count is later than usual.
 */
static bool round_run(struct exchange *exchange)
{
	struct round *round = &exchange->round;
	unsigned int every = NODES_EVERY_MS;

	if (!round->nodes || !round->count)
		return nodes_count(exchange) &&
		       (!round->count ||
			!store_round(exchange->store, round->items, round->count, round->expire_s));
	exchange->lost = store_round(exchange->store, round->items, round->count, round->expire_s)
				 ? exchange->lost + 1
				 : 0;
	if (exchange->lost && exchange->lost <= FLOW_LOST)
		return false;
	if (exchange->lost && !exchange->is_counted)
		every = NODES_ALIVE_MS / 2;
	if (store_now_ms() >= exchange->counted_at + every)
		nodes_count(exchange);
	return !exchange->lost;
}

static void *exchange_run(void *data)
{
	struct exchange *exchange = data;
	struct round *round = &exchange->round;

	for (;;) {
		uint64_t begun;

		while (sem_wait(&exchange->begun)) /* retry after EINTR */
			;
		if (__atomic_load_n(&exchange->is_closing, __ATOMIC_SEQ_CST))
			return NULL;
		begun = store_now_ms();
		round->is_answered = round_run(exchange);
		round->took_ms = store_now_ms() - begun;
		round->counts = *store_counts(exchange->store);
		snprintf(round->error, sizeof(round->error), "%s", store_error(exchange->store));
		eventfd_write(exchange->ended, 1);
	}
}

static void exchange_free(struct exchange **exchange)
{
	if (!*exchange)
		return;
	if ((*exchange)->store)
		store_close((*exchange)->store);
	close_fd(&(*exchange)->ended);
	sem_destroy(&(*exchange)->begun);
	free(*exchange);
}

static int open_error(const struct store_options *options, int err)
{
	if (err == EINVAL) /* share_prepare() has checked the other options */
		return error_add(err, "bad-certificate", options->ca_file,
				 "no CA certificate can be read from it");
	if (err == EOPNOTSUPP)
		return error_add(err, "no-tls", NULL,
				 "TLS: this sluice was built without hiredis_ssl");
	return error_add(err, "cannot-share", NULL, "cannot share: %s", strerror(err));
}

int exchange_open(const struct store_options *options, const char *name, const char *node,
		  struct exchange **ret)
{
	_cleanup_(exchange_free) struct exchange *exchange = calloc(1, sizeof(*exchange));
	sigset_t all, before;
	uint64_t nonce;
	int err;

	if (!exchange)
		return open_error(options, ENOMEM);
	sem_init(&exchange->begun, 0, 0);
	exchange->name = name;
	exchange->node = node;
	snprintf(exchange->key, sizeof(exchange->key), "sluice:{%s}:nodes", name);
	snprintf(exchange->process_key, sizeof(exchange->process_key),
		 "sluice:{%.*s}:node:%016" PRIx64, GATE_NAME, name, shared_hash(node));
	if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce))
		nonce = (uint64_t)getpid() << 32 | store_now_ms();
	snprintf(exchange->nonce, sizeof(exchange->nonce), "%016" PRIx64, nonce);
	exchange->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (exchange->ended < 0)
		return open_error(options, errno);
	exchange->store = store_open(options);
	if (!exchange->store)
		return open_error(options, errno);
	/* block signals in the new thread, because the main thread handles them */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&exchange->thread, NULL, exchange_run, exchange);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return open_error(options, err);
	*ret = steal_pointer(&exchange);
	return 0;
}

void exchange_close(struct exchange *exchange)
{
	if (!exchange)
		return;
	__atomic_store_n(&exchange->is_closing, true, __ATOMIC_SEQ_CST);
	sem_post(&exchange->begun);
	pthread_join(exchange->thread, NULL);
	exchange_free(&exchange);
}

void exchange_begin(struct exchange *exchange, struct store_item *items, unsigned int count,
		    unsigned int expire_s, uint64_t meaning)
{
	exchange->round.items = items;
	exchange->round.count = count;
	exchange->round.expire_s = expire_s;
	exchange->round.meaning = meaning;
	sem_post(&exchange->begun);
}

int exchange_fd(const struct exchange *exchange)
{
	return exchange->ended;
}

const struct round *exchange_end(struct exchange *exchange)
{
	eventfd_t count;

	return eventfd_read(exchange->ended, &count) ? NULL : &exchange->round;
}
