/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: an event is a change of a gate; for example, a source exceeds its limit. Processes
 * exchange an event as one line of JSON (FIELDS OF AN EVENT in sluice-events(8)). People read it as
 * one line of text.
 */
#ifndef SLUICE_EVENTS_EVENT_H
#define SLUICE_EVENTS_EVENT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/gate.h"
#include "rules/limit.h"
#include "rules/prefix.h"

#define EVENT_SCHEMA  "sluice-event"
#define EVENT_VERSION 1

enum event_kind {
	EVENT_SOURCE,	 /* a source is over a limit, so its packets are dropped */
	EVENT_BLOCK,	 /* a limit blocks a source */
	EVENT_ENTRY,	 /* the time of a runtime entry or a list is over */
	EVENT_FLOOD,	 /* a flood: new sources do not get a state at once */
	EVENT_BUDGET,	 /* a budget for new sources is exhausted */
	EVENT_TABLE,	 /* the table of states has too few entries */
	EVENT_CONTENDED, /* packets are dropped because CPUs contend for a state */
	EVENT_RULES,	 /* the rules were changed */
	EVENT_DEVICE,	 /* a device was attached, detached or lost */
	EVENT_GENERIC,	 /* a program fell back from native to generic XDP */
	EVENT_STORE,	 /* nodes do not share limits, although the rules require it */
	EVENT_TRIAL,	 /* a change of the rules is on trial */
	EVENT_LOST,	 /* some events were not reported, because there was no room */
	EVENT_KINDS,
};

enum event_phase {
	EVENT_BEGIN,
	EVENT_END, /* end of the event; the begin has the same id */
	EVENT_INSTANT,
	EVENT_PHASES,
};

extern const char *const event_kind_names[EVENT_KINDS];
extern const char *const event_phase_names[EVENT_PHASES];

#define EVENT_TEXT    160
#define EVENT_COMMAND 256

struct event {
	enum event_kind kind;
	enum event_phase phase;
	uint64_t watch;		 /* first part of the id: CLOCK_BOOTTIME when the watch began */
	uint64_t number;	 /* second part of the id: counts the events of the watch */
	uint64_t time_ns;	 /* CLOCK_REALTIME */
	uint64_t lasted_ns;	 /* EVENT_END: time since the begin */
	struct sl_prefix source; /* the source, or the prefix of a runtime entry; `bits` 0: none */
	bool has_policy;
	struct sl_prefix policy;
	char limit[LIMIT_LABEL]; /* "" if the event has no limit, or the limit is not known */
	char device[IF_NAMESIZE];
	bool is_counted;     /* whether `dropped` is known */
	uint64_t dropped;    /* packets dropped since the begin, for the reason of the event */
	uint64_t lost;	     /* EVENT_LOST: number of events that were not reported */
	uint32_t generation; /* EVENT_RULES: the new generation of the rules; otherwise 0 */
	bool has_user;	     /* whether `user` and `command` are known */
	uid_t user;	     /* EVENT_RULES: uid that changed the rules */
	char command[EVENT_COMMAND];
	char text[EVENT_TEXT]; /* text of the event for people */
};

/* --- Lines ---------------------------------------------------------------------------------- */

/*
 * Returns an event as a line of JSON, without a newline. The caller frees the line. Returns NULL if
 * there is no memory.
 */
char *event_json(const char *gate, const struct event *event);

/*
 * Parses a line that event_json() of another process has made. Returns 0 or -EINVAL. Adds no error
 * message. `ret_gate` has room for GATE_NAME + 1 bytes.
 */
int event_parse(const char *line, char *ret_gate, struct event *ret);

/* Formats an event as one line of text, without a newline. */
#define EVENT_LINE 640
const char *event_format(const char *gate, const struct event *event, char line[EVENT_LINE]);

/* Formats the id of an event. A begin and its end have the same id. */
#define EVENT_ID 48
const char *event_id(const struct event *event, char id[EVENT_ID]);

/* Formats the object of an event: a source, device or policy, or "". */
#define EVENT_OBJECT 64
const char *event_object(const struct event *event, char object[EVENT_OBJECT]);

/* Formats the time of an event in UTC, as in RFC 3339, with milliseconds. */
#define EVENT_TIME 40
const char *event_time(const struct event *event, char time[EVENT_TIME]);

/* --- Filters -------------------------------------------------------------------------------- */

/*
 * A filter accepts an event that satisfies all its conditions. A filter of zeros accepts all
 * events.
 */
struct event_filter {
	uint32_t kinds; /* a bit for each accepted kind; 0: all */
	/* accepts events of sources in this prefix, or of this address; `bits` 0: all */
	struct sl_prefix within;
	bool has_policy;
	struct sl_prefix policy; /* accepts events of this policy */
};

bool event_matches(const struct event_filter *filter, const struct event *event);

#endif
