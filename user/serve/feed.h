/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the events of gates for streams of server-sent events. If `sluice events` runs for a gate,
 * its events are read from its socket. Otherwise the gate is watched as that command does, but
 * without the ring buffer of crossings, which needs a right that a reader does not have. A gate is
 * watched while a client has a stream. The last events are kept for clients that come later.
 */
#ifndef SLUICE_FEED_H
#define SLUICE_FEED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"

#define FEEDS_MAX 4   /* gates whose events are known at a time */
#define FEED_KEPT 512 /* events that are kept for a gate */

struct feed;

struct feeds {
	pthread_mutex_t lock; /* protects the list of streams, and the kept events */
	struct feed *feed[FEEDS_MAX];
	struct event_stream *streams;
	bool stops;
};

/* A client of a feed. */
struct event_stream {
	struct event_stream *next;
	struct feeds *feeds;
	char gate[GATE_NAME + 1];
	uint64_t sent;		      /* number of the last event that was sent */
	uint64_t sent_at;	      /* uptime, in ns */
	bool knows_origin, from_unit; /* origin of the events that was sent last */
	char *pending;		      /* a text that did not fit, from `offset` on */
	size_t offset, length;
	bool ends;  /* the client has left */
	bool waits; /* wake() is called when there is more to send */
	void (*sleep)(void *data);
	void (*wake)(void *data);
	void *data;
};

void feeds_begin(struct feeds *feeds);

/* Adds a stream, whose members `gate`, `sent`, `sleep`, `wake` and `data` are set. */
void feeds_join(struct feeds *feeds, struct event_stream *stream);
void feeds_leave(struct event_stream *stream);

/*
 * Writes the next events as text/event-stream. Returns the number of bytes, -1 if the stream ends,
 * or 0 after it has called stream->sleep().
 */
ssize_t stream_write(struct event_stream *stream, char *buffer, size_t room);

/* Ends a stream whose client has left. */
void stream_abandon(struct event_stream *stream);

/* Wakes streams that have sent nothing for a while. Called once a second. */
void feeds_refresh(struct feeds *feeds);

/* Ends all streams. */
void feeds_stop(struct feeds *feeds);

/*
 * Reads the events of all gates that have a stream. Called by the thread that reads gates,
 * again after the returned time, in ns, or later if it is UINT64_MAX.
 */
uint64_t feeds_step(struct feeds *feeds);
void feeds_end(struct feeds *feeds);

#endif
