/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reference for include/shape.h: the list of all departures, in time that neither wraps nor runs
 * backwards.
 */
#ifndef SLUICE_TEST_SHAPE_MODEL_H
#define SLUICE_TEST_SHAPE_MODEL_H

#include <stddef.h>
#include <stdlib.h>
#include "bucket_model.h"

struct shape_entry {
	true_time arrival; /* by the clock of its CPU */
	true_time departure;
	__u64 cost;
};

struct shape_log {
	struct shape_entry *entries; /* by departure */
	size_t count, room;
	true_time given_back; /* the length of all slots that later packets may have taken again */
};

static inline void shape_log_add(struct shape_log *log, const struct shape_entry *entry)
{
	size_t i = log->count++;

	if (log->count > log->room) {
		log->room = 2 * log->count + 64;
		log->entries = realloc(log->entries, log->room * sizeof(*log->entries));
		if (!log->entries)
			abort();
	}
	for (; i && log->entries[i - 1].departure > entry->departure; i--)
		log->entries[i] = log->entries[i - 1];
	log->entries[i] = *entry;
}

/*
 * What is wrong with the list; NULL: nothing. Slots overlap by no more than what was given back: a
 * slot that is free again is taken beside the next one.
 */
static inline const char *shape_log_fault(const struct shape_log *log, true_time horizon)
{
	true_time overlap = 0, end = log->count ? log->entries->departure : 0; /* of all slots */

	for (size_t i = 0; i < log->count; i++) {
		const struct shape_entry *entry = &log->entries[i];
		true_time until = entry->departure + entry->cost;

		if (entry->departure < entry->arrival)
			return "a packet departs before it came";
		if (entry->departure > entry->arrival + horizon)
			return "a packet waits longer than the horizon";
		if (entry->departure < end)
			overlap += (until < end ? until : end) - entry->departure;
		end = end > until ? end : until;
		if (overlap > log->given_back)
			return "a packet departs too soon after the one before";
	}
	return NULL;
}

static inline void shape_log_end(struct shape_log *log)
{
	free(log->entries);
	*log = (struct shape_log){0};
}

/* One queue, served at the rate: when the next packet may depart. */
struct shape_plain {
	true_time ready;
	true_time horizon;
};

/* The departure of a packet, which takes its place; or -1: it would wait too long. */
static inline true_time shape_plain_depart(struct shape_plain *plain, true_time arrival, __u64 cost)
{
	true_time departure = arrival > plain->ready ? arrival : plain->ready;

	if (departure > arrival + plain->horizon)
		return -1;
	plain->ready = departure + cost;
	return departure;
}

#endif
