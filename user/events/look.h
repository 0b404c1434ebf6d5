/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: reads facts about a gate. events/watch.h compares these facts. Most facts are read in
 * each step. Entries, attachments and the state of sharing cost more. So they are read less often:
 * the reads of each kind use at most 1/200 of a CPU.
 */
#ifndef SLUICE_EVENTS_LOOK_H
#define SLUICE_EVENTS_LOOK_H

#include "events/watch.h"
#include "live/live.h"

#define EVENTS_STEP_NS 1000000000ULL /* time between two steps of the watch */

#define EVENTS_FACTS_MAX 4096 /* largest number of sources of which a step has facts */
#define EVENTS_READS_MAX 256  /* largest number of sources whose limits a step reads */

#define EVENTS_TROUBLE 256

struct events_look {
	struct live live;
	uint64_t directory; /* inode of the gate's directory; differs if the gate was remade */
	struct events_facts facts;
	struct source_fact *sources;
	bool all_were_read; /* the last step read every source, so an unknown source is new */
	unsigned int reads; /* number of sources whose limits this step has read */
	struct budget_fact budgets[EVENTS_BUDGETS_MAX];
	struct entry_facts entries;
	uint32_t entries_generation;	 /* generation of the rules in `entries`; 0: not read yet */
	uint64_t entries_due, store_due; /* uptime, in ns */
	uint64_t attachments_due;	 /* time at which live reads the attachments again */
	char store_trouble[EVENTS_TROUBLE];
	unsigned int first_watched; /* position of the open event that the next step visits first */
};

/*
 * Opens a gate to read. The caller calls events_look_close(), even after an error. Returns 0, or a
 * negative errno with an error.
 */
int events_look_open(struct events_look *look, const char *gate);
void events_look_close(struct events_look *look);

/*
 * Reads the gate and compares it with the previous step. If the gate was removed and made again,
 * first ends all events. Returns 0, or a negative errno with an error, for example if the gate was
 * removed.
 */
int events_look_step(struct events_look *look, struct events_watch *watch);

/*
 * Begins the events of a source that has exceeded a limit. crossing: a record of the packet path.
 */
void events_look_cross(struct events_look *look, struct events_watch *watch,
		       const struct sl_crossing *crossing);

/*
 * Stores the policy that decided about the packet of a record. Stores the limit that refused the
 * packet, or "" if the limit is not known.
 */
void record_name(const struct gate *gate, const struct sl_record *record, struct source_fact *ret);

#endif
