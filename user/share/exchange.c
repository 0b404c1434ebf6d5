// SPDX-License-Identifier: GPL-2.0
#include "share/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "gate/gate.h"
#include "share/flow.h"
#include "share/shared_limits.h"

/* How often a node says that it is there, and counts the others. */
#define NODES_EVERY_MS 1000

/* How often a node says which limits it shares, and how long the others take its word for it. */
#define ALIKE_EVERY_MS (10 * NODES_EVERY_MS)
#define ALIKE_MS       (5 * ALIKE_EVERY_MS / 2)

/*
 * How long a node must be missing among those of the same limits until it is told: in a store that
 * lost its data each of them is missing until it says so again.
 */
#define UNLIKE_LASTS_MS (3 * ALIKE_EVERY_MS / 2)

/*
 * Report another process of this node's name only after this time, because after a restart the
 * previous process still counts for ALIKE_MS.
 */
#define SAME_NODE_LASTS_MS (ALIKE_MS + NODES_EVERY_MS)

struct exchange {
	struct store *store;
	pthread_t thread;
	const char *name;
	char key[STORE_KEY]; /* of the set of nodes */
	char *node;
	unsigned int alive_ms;
	int ended; /* eventfd: a round has ended */

	pthread_mutex_t mutex;
	pthread_cond_t begun;
	bool is_begun, is_closing;
	struct round round;	  /* the thread's while is_begun */
	unsigned int expire_s;	  /* of the keys of the round; the thread's while is_begun, too */
	uint64_t meaning;	  /* of the limits; likewise */
	uint64_t asked_at_ms;	  /* for the nodes; 0: never */
	bool is_told;		  /* of them, then */
	unsigned int lost;	  /* rounds in a row in which no key was answered */
	uint64_t fewer_since_ms;  /* since when fewer nodes are there; 0: they are not */
	uint64_t alike_at_ms;	  /* when it was told which limits are shared; 0: never */
	uint64_t alike;		  /* the meaning that was told */
	uint64_t unlike_since_ms; /* since when nodes are missing there; 0: they are not */
	char process_key[STORE_KEY]; /* of the set of processes of this node's name */
	char nonce[17];		     /* of this process, there */
	uint64_t process_at_ms;	     /* when it was noted there; 0: never */
	uint64_t same_node_since_ms; /* since when there is another process; 0: there is none */
};

/*
 * More nodes count at once, up to those that are told apart: a store may tell of any number. Fewer
 * count when that has lasted for as long as a node counts that is silent: a store that lost its
 * data has them again one by one.
 */
static void nodes_take(struct exchange *exchange, unsigned int nodes, uint64_t now)
{
	struct round *round = &exchange->round;

	nodes = nodes < FLOW_NODES_MAX ? nodes : FLOW_NODES_MAX;
	if (nodes < round->nodes && !exchange->fewer_since_ms)
		exchange->fewer_since_ms = now;
	if (nodes < round->nodes && now < exchange->fewer_since_ms + exchange->alive_ms)
		return;
	exchange->fewer_since_ms = 0;
	round->nodes = nodes;
}

/* What is missing in the set of nodes of the same limits counts once it has been so for a while. */
static void unlike_take(struct exchange *exchange, unsigned int alike, uint64_t now)
{
	struct round *round = &exchange->round;
	unsigned int unlike = alike < round->nodes ? round->nodes - alike : 0;

	if (!unlike)
		exchange->unlike_since_ms = 0;
	else if (!exchange->unlike_since_ms)
		exchange->unlike_since_ms = now;
	if (!unlike || now >= exchange->unlike_since_ms + UNLIKE_LASTS_MS)
		round->unlike = unlike;
}

/*
 * Counts the nodes whose limits have another meaning, and so other keys: what they take is not
 * added up. Nodes of one meaning are members of one set, and of a former one for a while. While
 * some are missing, and this is not told yet, they are counted each time.
 */
static void unlike_count(struct exchange *exchange, uint64_t now)
{
	bool is_pending = exchange->unlike_since_ms && !exchange->round.unlike;
	char key[STORE_KEY];
	unsigned int alike;
	uint64_t time_ms;

	if (exchange->alike_at_ms && exchange->alike == exchange->meaning && !is_pending &&
	    now < exchange->alike_at_ms + ALIKE_EVERY_MS)
		return;
	snprintf(key, sizeof(key), "sluice:{%.*s}:limits:%016" PRIx64, GATE_NAME, exchange->name,
		 exchange->meaning);
	if (store_nodes(exchange->store, key, exchange->node, ALIKE_MS, &time_ms, &alike))
		return;
	exchange->alike_at_ms = now;
	exchange->alike = exchange->meaning;
	unlike_take(exchange, alike, now);
}

/*
 * Counts the processes that share under the name of this node, which all count as one node. Counts
 * them in each round while there are others that were not reported yet.
 */
static void processes_count(struct exchange *exchange, uint64_t now)
{
	struct round *round = &exchange->round;
	bool is_pending = exchange->same_node_since_ms && !round->same_node;
	unsigned int processes;
	uint64_t time_ms;

	if (exchange->process_at_ms && !is_pending &&
	    now < exchange->process_at_ms + ALIKE_EVERY_MS)
		return;
	if (store_nodes(exchange->store, exchange->process_key, exchange->nonce, ALIKE_MS, &time_ms,
			&processes))
		return;
	exchange->process_at_ms = now;
	if (processes < 2)
		exchange->same_node_since_ms = round->same_node = 0;
	else if (!exchange->same_node_since_ms)
		exchange->same_node_since_ms = now;
	else if (now >= exchange->same_node_since_ms + SAME_NODE_LASTS_MS)
		round->same_node = processes - 1;
}

/* Counts the nodes that share, now and then. False: the store did not answer. */
static bool nodes_count(struct exchange *exchange)
{
	uint64_t now = store_now_ms(), time_ms;
	unsigned int nodes;

	if (exchange->is_told && now < exchange->asked_at_ms + NODES_EVERY_MS)
		return true;
	exchange->is_told = !store_nodes(exchange->store, exchange->key, exchange->node,
					 exchange->alive_ms, &time_ms, &nodes);
	exchange->asked_at_ms = now;
	if (exchange->is_told) {
		nodes_take(exchange, nodes, now);
		unlike_count(exchange, now);
		processes_count(exchange, now);
	} else {
		exchange->unlike_since_ms = 0; /* it may lose its data meanwhile */
		exchange->same_node_since_ms = 0;
	}
	return exchange->is_told;
}

static int keys_tell(struct exchange *exchange)
{
	struct round *round = &exchange->round;

	return store_round(exchange->store, round->items, round->count, exchange->expire_s);
}

/*
 * Where nodes are known already the keys come first: the part of the store that has the nodes may
 * be away alone, and is then asked for them no more often than else. So may the part that has the
 * keys: the others miss this node else. Not before that counts as a loss, which would take longer;
 * and where the nodes seem to be away, too, as rarely as keeps this node among them.
 */
static bool round_ask(struct exchange *exchange)
{
	struct round *round = &exchange->round;
	unsigned int every = NODES_EVERY_MS;

	if (!round->nodes || !round->count)
		return nodes_count(exchange) && (!round->count || !keys_tell(exchange));
	exchange->lost = keys_tell(exchange) ? exchange->lost + 1 : 0;
	if (exchange->lost && exchange->lost <= FLOW_LOST)
		return false;
	if (exchange->lost && !exchange->is_told)
		every = exchange->alive_ms / 2;
	if (store_now_ms() >= exchange->asked_at_ms + every)
		nodes_count(exchange);
	return !exchange->lost;
}

static void *exchange_run(void *data)
{
	struct exchange *exchange = data;
	struct round *round = &exchange->round;
	uint64_t begun;

	pthread_mutex_lock(&exchange->mutex);
	while (!exchange->is_closing) {
		if (!exchange->is_begun) {
			pthread_cond_wait(&exchange->begun, &exchange->mutex);
			continue;
		}
		pthread_mutex_unlock(&exchange->mutex);
		begun = store_now_ms();
		round->is_answered = round_ask(exchange);
		round->took_ms = store_now_ms() - begun;
		round->counts = *store_counts(exchange->store);
		snprintf(round->error, sizeof(round->error), "%s", store_error(exchange->store));
		pthread_mutex_lock(&exchange->mutex);
		exchange->is_begun = false;
		eventfd_write(exchange->ended, 1);
	}
	pthread_mutex_unlock(&exchange->mutex);
	return NULL;
}

/* Signals are the main thread's. */
static int thread_start(struct exchange *exchange)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&exchange->thread, NULL, exchange_run, exchange);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static void exchange_free(struct exchange *exchange)
{
	store_close(exchange->store);
	if (exchange->ended >= 0)
		close(exchange->ended);
	pthread_cond_destroy(&exchange->begun);
	pthread_mutex_destroy(&exchange->mutex);
	free(exchange->node);
	free(exchange);
}

static int refuse(const struct store_options *options, int err)
{
	switch (err) {
	case EINVAL: /* all else is checked where options are read */
		return failure("%s: no certificate of an authority can be read from it",
			       options->ca_file);
	case EOPNOTSUPP:
		return failure("TLS: this sluice was built without hiredis_ssl");
	default:
		return failure("cannot share: %s", strerror(err));
	}
}

int exchange_open(const struct store_options *options, const char *name, const char *node,
		  unsigned int alive_ms, struct exchange **ret)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	int err = ENOMEM;
	uint64_t nonce;

	if (!exchange)
		return refuse(options, err);
	pthread_mutex_init(&exchange->mutex, NULL);
	pthread_cond_init(&exchange->begun, NULL);
	exchange->name = name;
	snprintf(exchange->key, sizeof(exchange->key), "sluice:{%s}:nodes", name);
	snprintf(exchange->process_key, sizeof(exchange->process_key),
		 "sluice:{%.*s}:node:%016" PRIx64, GATE_NAME, name, shared_hash(node));
	if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce))
		nonce = (uint64_t)getpid() << 32 | store_now_ms();
	snprintf(exchange->nonce, sizeof(exchange->nonce), "%016" PRIx64, nonce);
	exchange->alive_ms = alive_ms;
	exchange->node = strdup(node);
	exchange->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	exchange->store = store_open(options);
	if (!exchange->store)
		err = errno;
	else if (exchange->node && exchange->ended >= 0)
		err = thread_start(exchange);
	if (err) {
		exchange_free(exchange);
		return refuse(options, err);
	}
	*ret = exchange;
	return OK;
}

void exchange_close(struct exchange *exchange)
{
	if (!exchange)
		return;
	pthread_mutex_lock(&exchange->mutex);
	exchange->is_closing = true;
	pthread_cond_signal(&exchange->begun);
	pthread_mutex_unlock(&exchange->mutex);
	pthread_join(exchange->thread, NULL);
	exchange_free(exchange);
}

void exchange_begin(struct exchange *exchange, struct store_item *items, unsigned int count,
		    unsigned int expire_s, uint64_t meaning)
{
	pthread_mutex_lock(&exchange->mutex);
	exchange->round.items = items;
	exchange->round.count = count;
	exchange->expire_s = expire_s;
	exchange->meaning = meaning;
	exchange->is_begun = true;
	pthread_cond_signal(&exchange->begun);
	pthread_mutex_unlock(&exchange->mutex);
}

int exchange_fd(const struct exchange *exchange)
{
	return exchange->ended;
}

bool exchange_end(struct exchange *exchange, struct round *ret)
{
	bool has_ended;
	eventfd_t count;

	pthread_mutex_lock(&exchange->mutex);
	has_ended = !exchange->is_begun && !eventfd_read(exchange->ended, &count);
	if (has_ended)
		*ret = exchange->round;
	pthread_mutex_unlock(&exchange->mutex);
	return has_ended;
}
