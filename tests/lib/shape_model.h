/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two reference models for include/shape.h: a list of all departures, and a queue without refunds.
 */
#ifndef SLUICE_TEST_SHAPE_MODEL_H
#define SLUICE_TEST_SHAPE_MODEL_H

#include <stddef.h>
#include <stdlib.h>
#include "bucket_model.h"

struct shape_entry {
	true_time arrival; /* arrival time, by the clock of the CPU that received the packet */
	true_time departure;
	__u64 cost;
};

struct shape_log {
	struct shape_entry *entries; /* every packet that passed, sorted by departure */
	size_t count, room;
	true_time given_back; /* sum of the costs of all refunded packets */
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
 * Checks the departures of all packets. Returns a text about the first fault, or NULL. Departures
 * may overlap by `given_back` in total, because the limit gives the time of a refunded packet to a
 * later packet.
 */
static inline const char *shape_log_fault(const struct shape_log *log, true_time horizon)
{
	true_time overlap = 0, end = log->count ? log->entries->departure : 0;

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

/* A plain queue that sends packets at the limit's rate. */
struct shape_plain {
	true_time ready; /* earliest departure of the next packet */
	true_time horizon;
};

/* Queues a packet. Returns its departure time, or -1 if this time is beyond `horizon`. */
static inline true_time shape_plain_depart(struct shape_plain *plain, true_time arrival, __u64 cost)
{
	true_time departure = arrival > plain->ready ? arrival : plain->ready;

	if (departure > arrival + plain->horizon)
		return -1;
	plain->ready = departure + cost;
	return departure;
}

#endif
