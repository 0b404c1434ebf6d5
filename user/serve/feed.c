// SPDX-License-Identifier: GPL-2.0
#include "serve/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "events/event.h"
#include "events/look.h"
#include "events/stream.h"
#include "events/watch.h"

#define KEEP_NS	     (30 * NS_PER_SEC) /* watch a gate for 30 s after its last stream has ended */
#define CONNECT_NS   (10 * NS_PER_SEC) /* time between attempts to connect to `sluice events` */
#define SILENCE_NS   (15 * NS_PER_SEC) /* after 15 s without an event, send a comment */
#define UNIT_STEP_NS (250 * NS_PER_MS)

struct feed {
	char gate[GATE_NAME + 1];
	struct feeds *feeds;
	uint64_t wanted_at; /* uptime at which the gate last had a stream, in ns */
	uint64_t due;	    /* uptime of the next step, in ns */
	uint64_t connect_due;
	bool has_begun; /* the first step is complete, so the origin of events is known */
	int unit;	/* socket of `sluice events`; -1: this process watches the gate */
	bool watches;
	struct events_look look;
	struct events_watch watch;
	/* the last events as JSON; event n is in kept[n % FEED_KEPT] */
	char *kept[FEED_KEPT];
	uint64_t first, last; /* first and last number in `kept`; last < first: no event */
};

/* --- Streams -------------------------------------------------------------------------------- */

void feeds_begin(struct feeds *feeds)
{
	*feeds = (struct feeds){0};
	pthread_mutex_init(&feeds->lock, NULL);
}

void feeds_join(struct feeds *feeds, struct event_stream *stream)
{
	stream->feeds = feeds;
	stream->sent_at = uptime_ns();
	pthread_mutex_lock(&feeds->lock);
	stream->next = feeds->streams;
	feeds->streams = stream;
	pthread_mutex_unlock(&feeds->lock);
}

void feeds_leave(struct event_stream *stream)
{
	struct feeds *feeds = stream->feeds;

	pthread_mutex_lock(&feeds->lock);
	for (struct event_stream **link = &feeds->streams; *link; link = &(*link)->next) {
		if (*link == stream) {
			*link = stream->next;
			break;
		}
	}
	pthread_mutex_unlock(&feeds->lock);
	free(stream->pending);
}

/* Wakes a stream if it waits. Called with the lock. */
static void stream_wake(struct event_stream *stream)
{
	if (!stream->waits)
		return;
	stream->waits = false;
	stream->wake(stream->data);
}

/* Wakes all streams that wait. Called with the lock. */
static void streams_wake(struct feeds *feeds)
{
	for (struct event_stream *stream = feeds->streams; stream; stream = stream->next)
		stream_wake(stream);
}

static struct feed *feed_find(const struct feeds *feeds, const char *gate)
{
	for (int i = 0; i < FEEDS_MAX; i++)
		if (feeds->feed[i] && !strcmp(feeds->feed[i]->gate, gate))
			return feeds->feed[i];
	return NULL;
}

/*
 * Formats the next text for a client. Returns NULL if there is nothing to send. Called with the
 * lock.
 */
static char *stream_next(struct event_stream *stream)
{
	const struct feed *feed = feed_find(stream->feeds, stream->gate);
	uint64_t number = stream->sent + 1;
	char *text = NULL;
	int length;

	if (feed && !feed->has_begun)
		feed = NULL;
	if (feed && (!stream->knows_origin || stream->from_unit != (feed->unit >= 0))) {
		stream->knows_origin = true;
		stream->from_unit = feed->unit >= 0;
		length = asprintf(&text, "event: origin\ndata: {\"origin\": \"%s\"}\n\n",
				  stream->from_unit ? "unit" : "maps");
	} else if (feed && stream->sent && number < feed->first && feed->last >= feed->first) {
		stream->sent = feed->first - 1;
		length = asprintf(&text, "event: gap\ndata: {}\n\n");
	} else if (feed && feed->last >= feed->first && number <= feed->last) {
		number = number < feed->first ? feed->first : number;
		stream->sent = number;
		length = asprintf(&text, "id: %" PRIu64 "\ndata: %s\n\n", number,
				  feed->kept[number % FEED_KEPT]);
	} else if (uptime_ns() > stream->sent_at + SILENCE_NS) {
		length = asprintf(&text, ": no event\n\n");
	} else {
		return NULL;
	}
	return length < 0 ? NULL : text;
}

ssize_t stream_write(struct event_stream *stream, char *buffer, size_t room)
{
	struct feeds *feeds = stream->feeds;
	ssize_t count = 0;

	pthread_mutex_lock(&feeds->lock);
	if (!stream->pending) {
		stream->pending = feeds->stops || stream->ends ? NULL : stream_next(stream);
		stream->length = stream->pending ? strlen(stream->pending) : 0;
		stream->offset = 0;
	}
	if (feeds->stops || stream->ends) {
		count = -1;
	} else if (!stream->pending) {
		stream->waits = true;
		stream->sleep(stream->data);
	} else {
		count = stream->length - stream->offset;
		count = (size_t)count > room ? (ssize_t)room : count;
		memcpy(buffer, stream->pending + stream->offset, count);
		stream->offset += count;
		stream->sent_at = uptime_ns();
		if (stream->offset == stream->length) {
			free(stream->pending);
			stream->pending = NULL;
		}
	}
	pthread_mutex_unlock(&feeds->lock);
	return count;
}

void stream_abandon(struct event_stream *stream)
{
	struct feeds *feeds = stream->feeds;

	pthread_mutex_lock(&feeds->lock);
	stream->ends = true;
	stream_wake(stream);
	pthread_mutex_unlock(&feeds->lock);
}

void feeds_refresh(struct feeds *feeds)
{
	uint64_t now = uptime_ns();

	pthread_mutex_lock(&feeds->lock);
	for (struct event_stream *stream = feeds->streams; stream; stream = stream->next)
		if (now > stream->sent_at + SILENCE_NS)
			stream_wake(stream);
	pthread_mutex_unlock(&feeds->lock);
}

void feeds_stop(struct feeds *feeds)
{
	pthread_mutex_lock(&feeds->lock);
	feeds->stops = true;
	streams_wake(feeds);
	pthread_mutex_unlock(&feeds->lock);
}

/* --- Events --------------------------------------------------------------------------------- */

/*
 * Stores an event in place of the oldest event, and wakes the streams. The feed then owns `json`.
 */
static void feed_add(struct feed *feed, char *json)
{
	struct feeds *feeds = feed->feeds;
	char **place;

	if (!json)
		return;
	pthread_mutex_lock(&feeds->lock);
	place = &feed->kept[++feed->last % FEED_KEPT];
	if (feed->last >= feed->first + FEED_KEPT)
		feed->first++;
	free(*place);
	*place = json;
	for (struct event_stream *stream = feeds->streams; stream; stream = stream->next)
		if (!strcmp(stream->gate, feed->gate))
			stream_wake(stream);
	pthread_mutex_unlock(&feeds->lock);
}

/* Called by the watch for each event. */
static void on_event(void *data, const struct event *event)
{
	struct feed *feed = data;

	feed_add(feed, event_json(feed->gate, event));
}

static void watch_end(struct feed *feed, const char *reason)
{
	if (!feed->watches)
		return;
	events_watch_end(&feed->watch, uptime_ns(), clock_read(CLOCK_REALTIME), reason);
	events_watch_free(&feed->watch);
	events_look_close(&feed->look);
	feed->watches = false;
}

static int watch_begin(struct feed *feed)
{
	int err = events_look_open(&feed->look, feed->gate);

	if (!err && events_watch_begin(&feed->watch, clock_read(CLOCK_BOOTTIME), EVENTS_OPEN_MAX,
				       on_event, feed))
		err = -ENOMEM;
	if (err)
		events_look_close(&feed->look);
	feed->watches = !err;
	return err;
}

/* Reads all events that `sluice events` has sent. Returns false if the connection has ended. */
static bool unit_read(struct feed *feed)
{
	char line[STREAM_LINE], gate[GATE_NAME + 1];
	struct event event;
	ssize_t got;

	while ((got = events_receive(feed->unit, line)) > 0)
		if (!event_parse(line, gate, &event)) /* skip invalid lines */
			feed_add(feed, event_json(gate, &event));
	return got == -EAGAIN;
}

/*
 * Sets the socket of `sluice events`. Takes the lock, because streams report the origin of events.
 */
static void unit_set(struct feed *feed, int fd)
{
	struct feeds *feeds = feed->feeds;

	pthread_mutex_lock(&feeds->lock);
	feed->unit = fd;
	streams_wake(feeds);
	pthread_mutex_unlock(&feeds->lock);
}

/*
 * Makes the streams send the origin of events. If they sent it before the first step, a client
 * could miss an event that began between the origin and that step.
 */
static void feed_begin(struct feed *feed)
{
	pthread_mutex_lock(&feed->feeds->lock);
	feed->has_begun = true;
	streams_wake(feed->feeds);
	pthread_mutex_unlock(&feed->feeds->lock);
}

/* Connects to `sluice events` if it runs. Otherwise watches the gate in this process. */
static void feed_step(struct feed *feed)
{
	unsigned int mark = error_count();
	uint64_t now = uptime_ns();

	if (feed->unit < 0 && now >= feed->connect_due) {
		int fd = events_connect(feed->gate);

		feed->connect_due = now + CONNECT_NS;
		if (fd >= 0) {
			watch_end(feed, "'sluice events' watches the gate");
			unit_set(feed, fd);
		}
	}
	if (feed->unit >= 0 && !unit_read(feed)) {
		close(feed->unit);
		unit_set(feed, -1);
	}
	if (feed->unit < 0 &&
	    ((!feed->watches && watch_begin(feed)) || events_look_step(&feed->look, &feed->watch)))
		watch_end(feed, "the gate was removed, or cannot be read");
	error_drop(mark);
	if (!feed->has_begun)
		feed_begin(feed);
	feed->due = now + (feed->unit >= 0 ? UNIT_STEP_NS : EVENTS_STEP_NS);
}

/* --- Feeds ---------------------------------------------------------------------------------- */

static void feed_free(struct feed *feed)
{
	watch_end(feed, "the watch has ended");
	if (feed->unit >= 0)
		close(feed->unit);
	for (int i = 0; i < FEED_KEPT; i++)
		free(feed->kept[i]);
	free(feed);
}

/*
 * Returns the feed of a gate. If the gate has no feed, begins a feed. Returns NULL if there is no
 * room. Called with the lock.
 */
static struct feed *feed_of(struct feeds *feeds, const char *gate)
{
	struct feed *feed = feed_find(feeds, gate);

	for (int i = 0; i < FEEDS_MAX && !feed; i++) {
		if (feeds->feed[i])
			continue;
		feed = feeds->feed[i] = calloc(1, sizeof(*feed));
		if (!feed)
			return NULL;
		strcpy(feed->gate, gate);
		feed->feeds = feeds;
		feed->unit = -1;
		feed->look.live.gate = GATE_CLOSED;
		/*
		 * The first id is 1000 x time. So ids are larger after a restart, unless there were
		 * more than 1000 events per second.
		 */
		feed->last = (uint64_t)time(NULL) * 1000;
		feed->first = feed->last + 1;
	}
	return feed;
}

uint64_t feeds_step(struct feeds *feeds)
{
	uint64_t now = uptime_ns(), next = UINT64_MAX;

	pthread_mutex_lock(&feeds->lock);
	for (struct event_stream *stream = feeds->streams; stream; stream = stream->next) {
		struct feed *feed = feed_of(feeds, stream->gate);

		if (feed)
			feed->wanted_at = now;
	}
	pthread_mutex_unlock(&feeds->lock);
	for (int i = 0; i < FEEDS_MAX; i++) {
		struct feed *feed = feeds->feed[i];

		if (feed && now > feed->wanted_at + KEEP_NS) {
			pthread_mutex_lock(&feeds->lock);
			feeds->feed[i] = NULL;
			pthread_mutex_unlock(&feeds->lock);
			feed_free(feed);
		} else if (feed) {
			if (now >= feed->due)
				feed_step(feed);
			next = feed->due < next ? feed->due : next;
		}
	}
	now = uptime_ns();
	return next == UINT64_MAX ? next : next > now ? next - now : 0;
}

void feeds_end(struct feeds *feeds)
{
	for (int i = 0; i < FEEDS_MAX; i++) {
		if (feeds->feed[i])
			feed_free(feeds->feed[i]);
		feeds->feed[i] = NULL;
	}
}
