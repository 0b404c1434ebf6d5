// SPDX-License-Identifier: GPL-2.0
#include "events/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <syslog.h>
/* without this, the journal's macros add a source file and line to each entry */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define FIELDS	   16
#define FIELD_TEXT (EVENT_LINE + 32)

struct journal_fields {
	char text[FIELDS][FIELD_TEXT];
	struct iovec vector[FIELDS + 1]; /* all fields and SLUICE_JSON */
	int count;
};

static void __attribute__((format(printf, 2, 3)))
field_add(struct journal_fields *fields, const char *format, ...)
{
	char *text = fields->text[fields->count];
	va_list args;

	va_start(args, format);
	vsnprintf(text, FIELD_TEXT, format, args);
	va_end(args);
	fields->vector[fields->count++] = (struct iovec){text, strlen(text)};
}

static void fields_set(const char *gate, const struct event *event, struct journal_fields *fields)
{
	char line[EVENT_LINE], id[EVENT_ID], prefix[PREFIX_TEXT];

	event_format(gate, event, line);
	/* leave out the time, because the journal stores the time of each entry */
	field_add(fields, "MESSAGE=%s", line + sizeof("2026-11-26 14:03:04"));
	field_add(fields, "MESSAGE_ID=" JOURNAL_MESSAGE_ID);
	field_add(fields, "PRIORITY=%d",
		  event->phase == EVENT_BEGIN || event->kind == EVENT_LOST ? LOG_NOTICE : LOG_INFO);
	field_add(fields, "SLUICE_GATE=%s", gate);
	field_add(fields, "SLUICE_EVENT=%s", event_kind_names[event->kind]);
	field_add(fields, "SLUICE_PHASE=%s", event_phase_names[event->phase]);
	field_add(fields, "SLUICE_ID=%s", event_id(event, id));
	if (event->source.bits)
		field_add(fields, "SLUICE_SOURCE=%s", prefix_format(&event->source, prefix));
	if (event->has_policy)
		field_add(fields, "SLUICE_POLICY=%s", prefix_format(&event->policy, prefix));
	if (*event->limit)
		field_add(fields, "SLUICE_LIMIT=%s", event->limit);
	if (*event->device)
		field_add(fields, "SLUICE_DEVICE=%s", event->device);
	if (event->is_counted)
		field_add(fields, "SLUICE_DROPPED=%" PRIu64, event->dropped);
}

int event_journal(const char *gate, const struct event *event)
{
	_cleanup_free_ char *json = event_json(gate, event), *field = NULL;
	struct journal_fields fields = {0};

	if (!json || asprintf(&field, "SLUICE_JSON=%s", json) < 0)
		return -ENOMEM;
	fields_set(gate, event, &fields);
	fields.vector[fields.count++] = (struct iovec){field, strlen(field)};
	return sd_journal_sendv(fields.vector, fields.count);
}

/* --- Reading -------------------------------------------------------------------------------- */

static int match_add(sd_journal *journal, const char *field, const char *value)
{
	_cleanup_free_ char *match = NULL;

	if (asprintf(&match, "%s=%s", field, value) < 0)
		return -ENOMEM;
	return sd_journal_add_match(journal, match, 0);
}

/*
 * Selects the entries of unit sluice-events@GATE.service. Names of gates need no escapes in unit
 * names.
 */
static int matches_add(sd_journal *journal, const char *gate)
{
	char unit[GATE_NAME + 32];

	snprintf(unit, sizeof(unit), "sluice-events@%s.service", gate);
	return match_add(journal, "MESSAGE_ID", JOURNAL_MESSAGE_ID)
		       ?: match_add(journal, "_SYSTEMD_UNIT", unit);
}

/* Calls `call` if the current entry is an event of the gate. */
static void entry_call(sd_journal *journal, const char *gate, journal_call *call, void *data)
{
	static const char name[] = "SLUICE_JSON=";
	char found[GATE_NAME + 1];
	_cleanup_free_ char *json = NULL;
	struct event event;
	const void *field;
	size_t size;

	if (sd_journal_get_data(journal, "SLUICE_JSON", &field, &size) || size < sizeof(name) - 1)
		return;
	json = strndup((const char *)field + sizeof(name) - 1, size - (sizeof(name) - 1));
	if (json && !event_parse(json, found, &event) && !strcmp(found, gate))
		call(data, gate, &event, json);
}

int events_journal_read(const char *gate, time_t since, journal_call *call, void *data)
{
	sd_journal *journal = NULL;
	int err = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);

	if (err >= 0)
		err = matches_add(journal, gate);
	if (err >= 0)
		err = sd_journal_seek_realtime_usec(journal, (uint64_t)since * 1000000);
	while (err >= 0 && (err = sd_journal_next(journal)) > 0)
		entry_call(journal, gate, call, data);
	sd_journal_close(journal);
	return err < 0 ? error_add(err, "journal", NULL, "cannot read the journal: %s",
				   strerror(-err))
		       : 0;
}
