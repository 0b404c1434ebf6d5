/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: compares successive facts about a gate, and reports what has changed as events. Uses no
 * system call, and its only clocks are the times in the facts.
 *
 * Each begin has an end with the same id, because events_watch_end() ends all open events. A
 * condition that is true again within its hold time, such as a source that is over its limit again,
 * belongs to the same event. Memory is bounded: at most EVENTS_OPEN_MAX events are open. While that
 * many are open, further begins are left out, and an event `lost` is open.
 */
#ifndef SLUICE_EVENTS_WATCH_H
#define SLUICE_EVENTS_WATCH_H

#include "attach/attachment.h"
#include "events/event.h"
#include "gate/changed.h"

#define EVENTS_OPEN_MAX	   1024
#define EVENTS_BUDGETS_MAX 256	 /* policies whose budgets are compared */
#define EVENTS_ENTRIES_MAX 65536 /* entries whose end is reported, about 3 MB */

/*
 * Time without the condition after which an event ends. The event of a source ends when a visit of
 * the source has found no dropped packet for this time.
 */
#define EVENTS_HOLD_NS 2000000000ULL

/* A source that was visited since the last facts. */
struct source_fact {
	struct sl_prefix source;
	bool is_gone; /* the source has no bucket, or no limits; ignore the members below */
	bool has_policy;
	struct sl_prefix policy;
	char limit[LIMIT_LABEL]; /* limit that refuses its packets; "" if not known */
	uint64_t dropped_before; /* dropped packets at the previous visit */
	uint64_t dropped; /* dropped packets at this visit; smaller if the count began again */
	uint64_t blocked_until; /* uptime, in ns; 0 if no limit blocks the source */
	char blocked_by[LIMIT_LABEL];
};

/* A budget, by the policy that specifies it. */
struct budget_fact {
	struct sl_prefix policy;
	uint64_t dropped; /* packets that the budget has dropped, in total */
};

/* A runtime entry or a list that has an end. */
struct entry_fact {
	struct sl_prefix prefix; /* `bits` 0 if it is a list */
	uint8_t access;		 /* enum sl_access */
	uint32_t until;		 /* end, as from until_at() */
	uint8_t list;		 /* index of the list in `lists` of the gate */
};

struct entry_facts {
	struct entry_fact *items;
	unsigned int count;
	char list_names[SL_LIST_PLACES][64]; /* by index of the list */
};

/* Facts about a gate at one moment. Counters are totals since the gate was made. */
struct events_facts {
	uint64_t now;	  /* uptime, in ns */
	uint64_t time_ns; /* CLOCK_REALTIME */
	const struct source_fact *sources;
	unsigned int source_count;
	unsigned int sources_left_out; /* sources over a limit that are not in `sources` */
	uint64_t contended;	       /* packets dropped because they were contended */
	uint64_t crossings_lost;       /* crossings that the packet path did not record */
	uint64_t table_lost; /* states that were evicted before they were full, or got no room */
	uint32_t table_sources;
	unsigned int cpus_flooded, cpus;
	bool flood_has_policy; /* the policy over which most of the flood comes is known */
	struct sl_prefix flood_policy;
	bool flood_passes; /* the policy has no budget, so the flood passes */
	const struct budget_fact *budgets;
	unsigned int budget_count;
	uint64_t budget_dropped; /* packets that all budgets have dropped */
	uint32_t generation;
	struct gate_change change; /* the last change; used if it has this generation */
	uint32_t trial;		   /* number of the trial; 0 if no trial is open */
	uint64_t trial_until;	   /* uptime when the trial is undone, in ns */
	bool has_attachments;	   /* whether the attachments are known */
	const struct attachment *attachments;
	unsigned int attachment_count;
	/* returns whether the device of an attachment still exists; NULL: they all do */
	bool (*device_exists)(const struct attachment *attachment);
	bool has_store;		   /* whether `store_trouble` is known */
	const char *store_trouble; /* why limits are not shared; NULL if they are, or need not be */
	const struct entry_facts *entries; /* entries of this generation; NULL if not yet read */
};

/* A transition that the packet path reported. The dropped packets are counted by the next step. */
struct source_crossing {
	uint64_t at;		 /* uptime, in ns */
	uint64_t time_ns;	 /* CLOCK_REALTIME */
	struct source_fact fact; /* `dropped` equals `dropped_before` */
};

typedef void events_call(void *data, const struct event *event);

struct open_event;

struct events_watch {
	uint64_t began; /* CLOCK_BOOTTIME, the first part of each id */
	uint64_t number;
	events_call *call; /* is called for each event */
	void *data;
	struct open_event *open; /* sorted by kind, source and text of the key */
	unsigned int open_count, open_max;
	unsigned int left_out; /* begins that were left out in this step */
	uint64_t now, time_ns; /* of the present step or crossing */

	/* the previous facts */
	bool has_before;
	uint64_t stepped_at; /* uptime, in ns */
	uint64_t contended, table_lost, crossings_lost;
	struct budget_fact *budgets;
	unsigned int budget_count;
	uint32_t generation;
	uint32_t trial_generation; /* generation when the trial was last seen open */
	bool is_undoing;	   /* the rules were changed after the time of the trial */
	bool knows_attachments;
	struct attachment *attachments;
	unsigned int attachment_count;
};

/*
 * Begins a watch with at most `open_max` open events. The caller calls events_watch_free(). Returns
 * 0, or -ENOMEM without an error.
 */
int events_watch_begin(struct events_watch *watch, uint64_t began, unsigned int open_max,
		       events_call *call, void *data);
void events_watch_free(struct events_watch *watch);

/* Compares facts with the previous facts. The first facts cause only begins, and no instants. */
void events_watch_step(struct events_watch *watch, const struct events_facts *facts);

/* Begins the event of a source that has just exceeded its limit, unless it is open. */
void events_watch_cross(struct events_watch *watch, const struct source_crossing *crossing);

/* Ends all open events, because the watch ends or the gate is gone. */
void events_watch_end(struct events_watch *watch, uint64_t now, uint64_t time_ns,
		      const char *reason);

/*
 * Stores the open events of sources, from position *at on, which begins at 0. Returns false after
 * the last source. A source with two open events may be stored twice.
 */
bool events_watch_source(const struct events_watch *watch, unsigned int *at, struct sl_prefix *ret);

/* Returns whether an event of this kind is open for a source. */
bool events_watch_has(const struct events_watch *watch, enum event_kind kind,
		      const struct sl_prefix *source);

#endif
