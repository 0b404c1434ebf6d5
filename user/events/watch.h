/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: compares successive facts about a gate, and reports what has changed as events. Uses no
 * system call, and its only clocks are the times in the facts.
 *
 * Each begin has an end with the same id, because events_watch_end() ends all open events. If a
 * condition is true again within EVENTS_HOLD_NS, its event continues. Memory is bounded: at most
 * EVENTS_OPEN_MAX events are open. If more events begin, they are not reported, and an event `lost`
 * is open.
 */
#ifndef SLUICE_EVENTS_WATCH_H
#define SLUICE_EVENTS_WATCH_H

#include "attach/attachment.h"
#include "events/event.h"
#include "gate/changed.h"

#define EVENTS_OPEN_MAX	   1024
#define EVENTS_BUDGETS_MAX 256	 /* largest number of policies whose budgets are compared */
#define EVENTS_ENTRIES_MAX 65536 /* watch at most this many entries for expiry; about 3 MB */

/*
 * An event ends when its condition has been false for 2 s. The event of a source ends when visits
 * of the source have found no dropped packet for 2 s.
 */
#define EVENTS_HOLD_NS 2000000000ULL

/* Facts about a source that was visited in this step. */
struct source_fact {
	struct sl_prefix source;
	bool is_gone; /* the source has no bucket or no limits, so ignore the members below */
	bool has_policy;
	struct sl_prefix policy;
	char limit[LIMIT_LABEL]; /* limit that refuses packets of the source; "" if not known */
	uint64_t dropped_before; /* dropped packets at the previous visit */
	uint64_t dropped;	 /* dropped packets at this visit; fewer if the counter was reset */
	bool has_blocks;	 /* all blocks of the source were read */
	uint64_t blocked_until;	 /* uptime in ns when the block ends; 0: no known block */
	char blocked_by[LIMIT_LABEL];
};

/* The budget for new sources of a policy. */
struct budget_fact {
	struct sl_prefix policy;
	uint64_t dropped; /* packets that the budget has dropped since the gate was made */
};

/* A runtime entry or a list that expires. */
struct entry_fact {
	struct sl_prefix prefix; /* prefix of the entry; `bits` is 0 for a list */
	uint8_t access;		 /* enum sl_access */
	uint32_t until;		 /* expiry, in the unit of until_at() */
	uint8_t list;		 /* index of the list, also in `list_names` */
	bool is_listed;		 /* `prefix` is an entry of list `list`; false: a runtime entry */
};

struct entry_facts {
	struct entry_fact *items;
	unsigned int count;
	char list_names[SL_LIST_PLACES][64]; /* element i: name of list i of the gate */
};

/* Facts about a gate at one moment. Counters count from the time when the gate was made. */
struct events_facts {
	uint64_t now;	  /* uptime, in ns */
	uint64_t time_ns; /* CLOCK_REALTIME */
	const struct source_fact *sources;
	unsigned int source_count;
	/* sources over a limit that have no fact, or whose fact may lack a block */
	unsigned int sources_left_out;
	uint64_t contended;	 /* packets dropped because CPUs contended for their state */
	uint64_t crossings_lost; /* crossings of which the packet path made no record */
	uint64_t table_lost;	 /* number of states that were evicted too early or not inserted */
	uint32_t table_sources;
	unsigned int cpus_flooded, cpus;
	bool flood_has_policy; /* the policy of most packets of the flood is known */
	struct sl_prefix flood_policy;
	bool flood_passes; /* `flood_policy` has no budget, so packets of the flood pass */
	const struct budget_fact *budgets;
	unsigned int budget_count;
	uint64_t budget_dropped; /* packets that all budgets have dropped */
	uint32_t generation;
	struct gate_change change; /* the last change of the rules; valid if it made `generation` */
	uint32_t trial;		   /* number of the open trial; 0 if no trial is open */
	uint64_t trial_until;	   /* uptime at which the change on trial is undone, in ns */
	bool has_attachments;	   /* whether the attachments are known */
	const struct attachment *attachments;
	unsigned int attachment_count;
	/* returns whether the device of an attachment exists; if NULL, all devices exist */
	bool (*device_exists)(const struct attachment *attachment);
	bool has_store;		   /* whether `store_trouble` was read in this step */
	const char *store_trouble; /* why limits are not shared; NULL if there is no trouble */
	const struct entry_facts *entries; /* entries with an end; NULL if not read yet */
};

/* A source that has exceeded a limit, as reported by the packet path. */
struct source_crossing {
	uint64_t at;		 /* uptime, in ns */
	uint64_t time_ns;	 /* CLOCK_REALTIME */
	struct source_fact fact; /* `dropped` and `dropped_before` are equal */
};

typedef void events_call(void *data, const struct event *event);

struct open_event;

struct events_watch {
	uint64_t began; /* CLOCK_BOOTTIME at the start; first part of each event's id */
	uint64_t number;
	events_call *call; /* called for each event */
	void *data;
	struct open_event *open; /* sorted by kind, source and object */
	unsigned int open_count, open_max;
	unsigned int left_out; /* number of events that had no room in this step */
	uint64_t now, time_ns; /* times of the current step or crossing */

	/* facts of the previous step */
	bool has_before;
	uint64_t stepped_at; /* uptime of the previous step, in ns */
	uint64_t contended, table_lost, crossings_lost;
	struct budget_fact *budgets;
	unsigned int budget_count;
	uint32_t generation;
	uint32_t trial_generation; /* generation of the rules when the open trial was last seen */
	bool is_undoing;	   /* the rules changed after the end of the trial */
	bool knows_attachments;
	struct attachment *attachments;
	unsigned int attachment_count;
};

/*
 * Begins a watch. At most `open_max` events are open at once. The caller calls events_watch_free().
 * Returns 0 or -ENOMEM. Adds no error message.
 */
int events_watch_begin(struct events_watch *watch, uint64_t began, unsigned int open_max,
		       events_call *call, void *data);
void events_watch_free(struct events_watch *watch);

/*
 * Compares facts with the facts of the previous step, and reports events. The first step reports
 * only events that have a duration.
 */
void events_watch_step(struct events_watch *watch, const struct events_facts *facts);

/* Begins the event of a source that has just exceeded its limit, if no such event is open. */
void events_watch_cross(struct events_watch *watch, const struct source_crossing *crossing);

/*
 * Ends all open events, when the watch ends or the gate is gone. reason: for the texts of the ends.
 */
void events_watch_end(struct events_watch *watch, uint64_t now, uint64_t time_ns,
		      const char *reason);

/*
 * Stores the source of the next open event after position *at, and moves *at. Begin with *at = 0.
 * Returns false if no source is left. A source with two open events may be stored twice.
 */
bool events_watch_source(const struct events_watch *watch, unsigned int *at, struct sl_prefix *ret);

/* Returns whether an event of this kind is open for a source. */
bool events_watch_has(const struct events_watch *watch, enum event_kind kind,
		      const struct sl_prefix *source);

#endif
