/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: a change of a gate, such as a source that exceeds its limit, as a value. An event is
 * exchanged as one line of JSON (FIELDS OF AN EVENT in sluice-events(8)), and printed as one line
 * of text.
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
	EVENT_SOURCE,	 /* packets of a source are dropped because it is over a limit */
	EVENT_BLOCK,	 /* a limit blocks a source */
	EVENT_ENTRY,	 /* a runtime entry or a list has ended */
	EVENT_FLOOD,	 /* new sources wait for a state */
	EVENT_BUDGET,	 /* a budget for new sources is exhausted */
	EVENT_TABLE,	 /* the table of states is too small */
	EVENT_CONTENDED, /* packets are dropped because CPUs contend for a state */
	EVENT_RULES,	 /* the rules were changed */
	EVENT_DEVICE,	 /* a device was attached or detached, or is lost */
	EVENT_GENERIC,	 /* a program fell back from native to generic XDP */
	EVENT_STORE,	 /* limits are not shared, although the rules require it */
	EVENT_TRIAL,	 /* a change is on trial */
	EVENT_LOST,	 /* events were left out */
	EVENT_KINDS,
};

enum event_phase {
	EVENT_BEGIN,
	EVENT_END, /* the event with the same id ends */
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
	uint64_t number;	 /* second part of the id: number of the event in its watch */
	uint64_t time_ns;	 /* CLOCK_REALTIME */
	uint64_t lasted_ns;	 /* for EVENT_END: time since the begin */
	struct sl_prefix source; /* the source, or the prefix of an entry; `bits` 0: none */
	bool has_policy;
	struct sl_prefix policy;
	char limit[LIMIT_LABEL]; /* "" if the event is not about a limit, or it is not known */
	char device[IF_NAMESIZE];
	bool is_counted;     /* whether `dropped` is known */
	uint64_t dropped;    /* packets that were dropped since the begin because of the event */
	uint64_t lost;	     /* for EVENT_LOST: number of events that were left out */
	uint32_t generation; /* for EVENT_RULES: the new generation; otherwise 0 */
	bool has_user;	     /* whether `user` and `command` are known */
	uid_t user;	     /* for EVENT_RULES: user that changed the rules */
	char command[EVENT_COMMAND];
	char text[EVENT_TEXT]; /* what has happened, for a person */
};

/* --- Lines ---------------------------------------------------------------------------------- */

/*
 * Returns an event as one line of JSON, without a newline. The caller frees it. Returns NULL if
 * there is no memory.
 */
char *event_json(const char *gate, const struct event *event);

/*
 * Parses a line of event_json(), which another process has written. Returns 0, or -EINVAL without
 * adding an error. `ret_gate` has room for GATE_NAME + 1 bytes.
 */
int event_parse(const char *line, char *ret_gate, struct event *ret);

/* Formats an event as one line of text, without a newline. */
#define EVENT_LINE 640
const char *event_format(const char *gate, const struct event *event, char line[EVENT_LINE]);

/* Formats the id of an event. A begin and its end have the same id. */
#define EVENT_ID 48
const char *event_id(const struct event *event, char id[EVENT_ID]);

/* Formats what an event is about: a source, device or policy, or "". */
#define EVENT_OBJECT 64
const char *event_object(const struct event *event, char object[EVENT_OBJECT]);

/* Formats the time of an event as in RFC 3339, in UTC with milliseconds. */
#define EVENT_TIME 40
const char *event_time(const struct event *event, char time[EVENT_TIME]);

/* --- Filters -------------------------------------------------------------------------------- */

/* Accepts an event if it satisfies all conditions. A filter of zeros accepts all events. */
struct event_filter {
	uint32_t kinds;		 /* a bit for each accepted kind; 0: all */
	struct sl_prefix within; /* the event's source is within this prefix; `bits` 0: any */
	bool has_policy;
	struct sl_prefix policy; /* the event is about this policy */
};

bool event_matches(const struct event_filter *filter, const struct event *event);

#endif
