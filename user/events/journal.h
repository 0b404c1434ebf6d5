/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: writes events to the systemd journal, and reads the events that the unit
 * sluice-events@GATE.service has written there. An entry has the fields MESSAGE, SLUICE_GATE,
 * SLUICE_EVENT (the kind), SLUICE_PHASE, SLUICE_ID, SLUICE_SOURCE, SLUICE_POLICY, SLUICE_LIMIT,
 * SLUICE_DEVICE, SLUICE_DROPPED and SLUICE_JSON; fields without a value are omitted.
 */
#ifndef SLUICE_EVENTS_JOURNAL_H
#define SLUICE_EVENTS_JOURNAL_H

#include "events/event.h"

/* MESSAGE_ID of the journal entries of all events. */
#define JOURNAL_MESSAGE_ID "8f2c1e7ab3d64d0d9a55c0f4e2b7716b"

/* Writes an event to the journal. Returns 0 or a negative errno. Adds no error message. */
int event_journal(const char *gate, const struct event *event);

typedef void journal_call(void *data, const char *gate, const struct event *event,
			  const char *json);

/*
 * Calls `call` for each event of a gate since a time, in s since 1970. Reads only entries of the
 * gate's unit, because any user can write to the journal. Returns 0, or a negative errno with an
 * error.
 */
int events_journal_read(const char *gate, time_t since, journal_call *call, void *data);

#endif
