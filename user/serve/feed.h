/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the events of gates, for streams of server-sent events. If `sluice events` runs for a
 * gate, its socket provides the events. Otherwise this process watches the gate itself, without the
 * ring buffer of crossings, because a reader does not have the right to read it. It watches a gate
 * while a client has a stream. It keeps the last events for later clients.
 */
#ifndef SLUICE_FEED_H
#define SLUICE_FEED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"

#define FEEDS_MAX 4   /* largest number of gates whose events are read */
#define FEED_KEPT 512 /* number of last events that are kept for each gate */

struct feed;

struct feeds {
	pthread_mutex_t lock; /* protects the list of streams and the kept events */
	struct feed *feed[FEEDS_MAX];
	struct event_stream *streams;
	bool stops;
};

/* A client that receives the events of a gate. */
struct event_stream {
	struct event_stream *next;
	struct feeds *feeds;
	char gate[GATE_NAME + 1];
	uint64_t sent;		      /* number of the last event that was sent to the client */
	uint64_t sent_at;	      /* uptime, in ns */
	bool knows_origin, from_unit; /* whether the client knows `from_unit`, and its value */
	char *pending;		      /* text of which only the first `offset` bytes were sent */
	size_t offset, length;
	bool ends;  /* the client has disconnected */
	bool waits; /* the stream waits for wake() */
	void (*sleep)(void *data);
	void (*wake)(void *data);
	void *data;
};

void feeds_begin(struct feeds *feeds);

/* Adds a stream. The caller has set `gate`, `sent`, `sleep`, `wake` and `data`. */
void feeds_join(struct feeds *feeds, struct event_stream *stream);
void feeds_leave(struct event_stream *stream);

/*
 * Writes the next events as text/event-stream. Returns the number of bytes, or -1 if the stream
 * ends. If there is nothing to send, calls stream->sleep() and returns 0.
 */
ssize_t stream_write(struct event_stream *stream, char *buffer, size_t room);

/* Ends a stream after its client has disconnected. */
void stream_abandon(struct event_stream *stream);

/* Wakes streams that have sent nothing for 15 s. Called once a second. */
void feeds_refresh(struct feeds *feeds);

/* Ends all streams, because the server stops. */
void feeds_stop(struct feeds *feeds);

/*
 * Reads the events of all gates that have a stream. Called by the thread that reads gates. Returns
 * the time until the next call, in ns. UINT64_MAX: no call is due.
 */
uint64_t feeds_step(struct feeds *feeds);
void feeds_end(struct feeds *feeds);

#endif
