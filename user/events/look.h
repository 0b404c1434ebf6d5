/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: reads the facts about a gate that events/watch.h compares. What is cheap is read in each
 * step. Entries, attachments and the state of sharing are read at most so often that they use 1/200
 * of a CPU each.
 */
#ifndef SLUICE_EVENTS_LOOK_H
#define SLUICE_EVENTS_LOOK_H

#include "events/watch.h"
#include "live/live.h"

#define EVENTS_STEP_NS 1000000000ULL /* time between two steps */

#define EVENTS_FACTS_MAX 4096 /* sources of which a step has facts */
#define EVENTS_READS_MAX 256  /* sources whose limits a step reads */

#define EVENTS_TROUBLE 256

struct events_look {
	struct live live;
	uint64_t directory; /* inode of the gate's directory; another inode is another gate */
	struct events_facts facts;
	struct source_fact *sources;
	bool all_were_read; /* a source that is not known had no bucket at the last step */
	unsigned int reads; /* sources whose limits this step has read */
	struct budget_fact budgets[EVENTS_BUDGETS_MAX];
	struct entry_facts entries;
	uint32_t entries_generation;	 /* generation of `entries`; 0: not yet read */
	uint64_t entries_due, store_due; /* uptime, in ns */
	uint64_t attachments_due;	 /* when live reads the attachments again */
	char store_trouble[EVENTS_TROUBLE];
	unsigned int first_watched; /* position of the open event that is watched first */
};

/* Opens a gate to read. The caller calls events_look_close(), after an error as well. */
int events_look_open(struct events_look *look, const char *gate);
void events_look_close(struct events_look *look);

/*
 * Reads the gate and compares it with the previous step. If the gate was removed and made again,
 * first ends all events. Returns 0, or a negative errno with an error, for example if the gate was
 * removed.
 */
int events_look_step(struct events_look *look, struct events_watch *watch);

/* Begins the events of a crossing that the packet path has recorded. */
void events_look_cross(struct events_look *look, struct events_watch *watch,
		       const struct sl_crossing *crossing);

/*
 * Stores the policy that decided about the packet of a record, and the limit that refused it, or ""
 * if the limit is not known.
 */
void record_name(const struct gate *gate, const struct sl_record *record, struct source_fact *ret);

#endif
