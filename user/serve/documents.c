// SPDX-License-Identifier: GPL-2.0
#include "serve/documents.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "serve/read.h"

#define SLOTS	   64		     /* largest number of documents in memory */
#define FIXED_MAX  4		     /* number of documents of RANK_FIXED; /metrics has 2 formats */
#define BYTES_MAX  (64 << 20)	     /* total size above which RANK_VARIED is refused */
#define FRESH_NS   (900 * NS_PER_MS) /* clients ask once a second, so use less than 1 s */
#define REST	   10		     /* keep a document for 10 times the CPU time of reading it */
#define WAIT_NS	   (20 * NS_PER_SEC) /* longest wait of a client */
#define KEEP_NS	   (60 * NS_PER_SEC) /* free a document if no client asked for it in this time */
#define IDLE_SLEEP 5		     /* free old documents every 5 s */

/* The slot of a document that a client has asked for. `route.id` is ROUTES if the slot is free. */
struct slot {
	struct route route;
	struct answer *answer; /* NULL: not read yet */
	uint64_t read_at, fresh_until, asked_at;
	uint64_t queued; /* number in the queue; 0: not in the queue */
	struct asker *askers;
};

struct documents {
	struct gates_reader reader;
	struct feeds feeds;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t work;
	struct slot slots[SLOTS];
	uint64_t places; /* last number that the queue has given */
	bool stops, kicked;
	uint64_t reading_since;
	const struct slot *reading; /* slot that the thread reads at present, or NULL */
};

/* --- Slots ---------------------------------------------------------------------------------- */

/*
 * Gives an answer to the clients that wait for a slot. If `answer` is NULL, closes their
 * connections. Called with the lock.
 */
static void askers_answer(struct slot *slot, struct answer *answer)
{
	struct asker *next;

	for (struct asker *asker = slot->askers; asker; asker = next) {
		next = asker->next;
		asker->answer = answer;
		if (answer)
			answer_take(answer);
		asker->ready(asker);
	}
	slot->askers = NULL;
}

static void slot_free(struct slot *slot)
{
	answer_drop(slot->answer);
	*slot = (struct slot){.route.id = ROUTES};
}

/*
 * Documents of a lower rank are read first. A client can ask for any number of documents of
 * RANK_GATE and RANK_VARIED, such as documents of gates that do not exist. Other clients get the
 * documents of RANK_FIXED nevertheless, because FIXED_MAX slots are left for them.
 */
enum rank {
	RANK_FIXED,  /* the metrics, the health and the list of gates, without parameters */
	RANK_GATE,   /* documents of a gate */
	RANK_VARIED, /* documents of a gate with many parameters */
};

/* Largest number of documents of a rank or of higher ranks that wait. */
static const unsigned int waiting_max[] = {
	[RANK_FIXED] = SLOTS,
	[RANK_GATE] = SLOTS - FIXED_MAX,
	[RANK_VARIED] = SLOTS / 2,
};

static enum rank rank_of(const struct route *route)
{
	switch (route->id) {
	case ROUTE_HEALTH:
	case ROUTE_METRICS:
	case ROUTE_GATES:
		return RANK_FIXED;
	case ROUTE_SOURCES:
	case ROUTE_CHECK:
		return RANK_VARIED;
	default:
		return RANK_GATE;
	}
}

/*
 * Returns whether there is memory for one more document of RANK_VARIED. Drops old documents first.
 * If a client still reads a document, its memory is not free yet.
 */
static bool bytes_fit(struct documents *documents)
{
	for (int i = 0; i < SLOTS && answers_bytes() > BYTES_MAX; i++) {
		struct slot *slot = &documents->slots[i];

		if (!slot->queued && rank_of(&slot->route) == RANK_VARIED)
			slot_free(slot);
	}
	return answers_bytes() <= BYTES_MAX;
}

/*
 * Returns the slot of a route. If the route has no slot, gives it the slot with the oldest request.
 * Returns NULL if waiting_max documents wait, or if there is no memory for the document.
 */
static struct slot *slot_find(struct documents *documents, const struct route *route)
{
	enum rank rank = rank_of(route);
	struct slot *oldest = NULL;
	unsigned int waiting = 0;

	if (rank == RANK_VARIED && !bytes_fit(documents))
		return NULL;
	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &documents->slots[i];

		if (!memcmp(&slot->route, route, sizeof(*route)))
			return slot;
		if (!slot->queued && (!oldest || slot->asked_at < oldest->asked_at))
			oldest = slot;
		waiting += slot->queued && rank_of(&slot->route) >= rank;
	}
	if (!oldest || waiting >= waiting_max[rank])
		return NULL;
	slot_free(oldest);
	memcpy(&oldest->route, route, sizeof(*route));
	return oldest;
}

bool documents_ask(struct documents *documents, const struct route *route, struct asker *asker,
		   bool waits)
{
	uint64_t now = uptime_ns();
	struct slot *slot;
	bool is_answered = false;

	pthread_mutex_lock(&documents->lock);
	slot = documents->stops ? NULL : slot_find(documents, route);
	if (!slot) {
		asker->answer =
			answer_refusal(503, "busy", "too many different requests; try again");
		is_answered = true;
	} else if (slot->answer && now < slot->fresh_until) {
		slot->asked_at = now;
		asker->answer = slot->answer;
		answer_take(slot->answer);
		is_answered = true;
	} else if (waits) {
		slot->asked_at = asker->asked_at = now;
		asker->next = slot->askers;
		slot->askers = asker;
		if (!slot->queued)
			slot->queued = ++documents->places;
		pthread_cond_signal(&documents->work);
	}
	pthread_mutex_unlock(&documents->lock);
	return is_answered;
}

bool documents_cancel(struct documents *documents, const struct asker *asker)
{
	bool found = false;

	pthread_mutex_lock(&documents->lock);
	for (int i = 0; i < SLOTS && !found; i++) {
		struct slot *slot = &documents->slots[i];
		struct asker **link = &slot->askers;

		while (*link && *link != asker)
			link = &(*link)->next;
		found = *link;
		if (found)
			*link = asker->next;
		if (found && !slot->askers && slot != documents->reading)
			slot->queued = 0;
	}
	pthread_mutex_unlock(&documents->lock);
	return found;
}

void documents_expire(struct documents *documents)
{
	uint64_t now = uptime_ns();

	pthread_mutex_lock(&documents->lock);
	for (int i = 0; i < SLOTS; i++) {
		struct asker **link = &documents->slots[i].askers;

		while (*link) {
			struct asker *asker = *link;

			if (now < asker->asked_at + WAIT_NS) {
				link = &asker->next;
				continue;
			}
			*link = asker->next;
			asker->answer = answer_refusal(503, "slow", "the gate is read too slowly");
			asker->ready(asker);
		}
	}
	pthread_mutex_unlock(&documents->lock);
}

uint64_t documents_busy_ns(struct documents *documents)
{
	uint64_t since;

	pthread_mutex_lock(&documents->lock);
	since = documents->reading_since;
	pthread_mutex_unlock(&documents->lock);
	return since ? uptime_ns() - since : 0;
}

/* --- The thread ----------------------------------------------------------------------------- */

/*
 * Returns the slot to read next: the slot with the lowest rank, and of equal slots the slot that
 * has waited for longest. Returns NULL if no slot waits.
 */
static struct slot *slot_next(struct documents *documents)
{
	struct slot *next = NULL;

	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &documents->slots[i];
		int later;

		if (!slot->queued)
			continue;
		later = next ? (int)rank_of(&slot->route) - (int)rank_of(&next->route) : -1;
		if (later < 0 || (!later && slot->queued < next->queued))
			next = slot;
	}
	return next;
}

/* Frees documents that no client has asked for within KEEP_NS. Called with the lock. */
static void slots_forget(struct documents *documents)
{
	uint64_t now = uptime_ns();

	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &documents->slots[i];

		if (slot->route.id != ROUTES && !slot->queued && now > slot->asked_at + KEEP_NS)
			slot_free(slot);
	}
}

/*
 * Waits until a client asks for a document, until the events are due, or for IDLE_SLEEP. Called
 * with the lock.
 */
static void work_wait(struct documents *documents, uint64_t due_in_ns)
{
	uint64_t wait = IDLE_SLEEP * NS_PER_SEC;
	struct timespec until;

	wait = due_in_ns < wait ? due_in_ns : wait;
	clock_gettime(CLOCK_MONOTONIC, &until);
	wait += until.tv_nsec;
	until.tv_sec += wait / NS_PER_SEC;
	until.tv_nsec = wait % NS_PER_SEC;
	if (!documents->kicked)
		pthread_cond_timedwait(&documents->work, &documents->lock, &until);
	documents->kicked = false;
}

/*
 * Reads a document. Called with the lock, and releases it during the read. The route of the slot
 * does not change meanwhile, because the slot is in the queue.
 */
static void slot_read(struct documents *documents, struct slot *slot)
{
	uint64_t begun = clock_read(CLOCK_THREAD_CPUTIME_ID), least, rest;
	struct answer *answer;

	documents->reading_since = uptime_ns();
	documents->reading = slot;
	pthread_mutex_unlock(&documents->lock);
	answer = document_read(&documents->reader, &slot->route, &least);
	rest = (clock_read(CLOCK_THREAD_CPUTIME_ID) - begun) * REST;
	if (answer)
		answer_count(answer);
	pthread_mutex_lock(&documents->lock);
	documents->reading_since = 0;
	documents->reading = NULL;
	answer_drop(slot->answer);
	slot->answer = answer;
	slot->read_at = uptime_ns();
	least = least > FRESH_NS ? least : FRESH_NS;
	slot->fresh_until = slot->read_at + (rest > least ? rest : least);
	slot->queued = 0;
	askers_answer(slot, answer);
}

static void *documents_thread(void *data)
{
	struct documents *documents = data;

	pthread_mutex_lock(&documents->lock);
	while (!documents->stops) {
		struct slot *slot;
		uint64_t due_in_ns;

		pthread_mutex_unlock(&documents->lock);
		due_in_ns = feeds_step(&documents->feeds);
		pthread_mutex_lock(&documents->lock);
		slot = slot_next(documents);
		if (slot) {
			slot_read(documents, slot);
			continue;
		}
		slots_forget(documents);
		reader_rest(&documents->reader);
		if (!documents->stops)
			work_wait(documents, due_in_ns);
	}
	for (int i = 0; i < SLOTS; i++)
		askers_answer(&documents->slots[i], NULL);
	pthread_mutex_unlock(&documents->lock);
	feeds_end(&documents->feeds);
	reader_close(&documents->reader);
	error_drop(0);
	return NULL;
}

int documents_open(const struct serve_scope *scope, struct documents **ret)
{
	struct documents *documents = calloc(1, sizeof(*documents));
	pthread_condattr_t attributes;
	int err;

	if (!documents)
		return error_add(ENOMEM, "no-memory", NULL, "cannot start: %s", why(ENOMEM));
	documents->reader.scope = *scope;
	feeds_begin(&documents->feeds);
	for (int i = 0; i < SLOTS; i++)
		documents->slots[i].route.id = ROUTES;
	pthread_mutex_init(&documents->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&documents->work, &attributes);
	err = pthread_create(&documents->thread, NULL, documents_thread, documents);
	if (err) {
		free(documents);
		return error_add(err, "no-thread", NULL, "cannot start a thread: %s",
				 strerror(err));
	}
	*ret = documents;
	return 0;
}

struct feeds *documents_feeds(struct documents *documents)
{
	return &documents->feeds;
}

void documents_kick(struct documents *documents)
{
	pthread_mutex_lock(&documents->lock);
	documents->kicked = true;
	pthread_cond_signal(&documents->work);
	pthread_mutex_unlock(&documents->lock);
}

void documents_stop(struct documents *documents)
{
	feeds_stop(&documents->feeds);
	pthread_mutex_lock(&documents->lock);
	documents->stops = true;
	pthread_cond_signal(&documents->work);
	pthread_mutex_unlock(&documents->lock);
	pthread_join(documents->thread, NULL);
}

void documents_close(struct documents *documents)
{
	if (!documents)
		return;
	for (int i = 0; i < SLOTS; i++)
		slot_free(&documents->slots[i]);
	free(documents);
}
