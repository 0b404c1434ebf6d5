// SPDX-License-Identifier: GPL-2.0
#include "keep/status_line.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "keep/notify.h"

/* Adds to a text as much as there is room for. */
static size_t text_add(char text[STATUS_TEXT], size_t length, const char *more)
{
	if (length < STATUS_TEXT)
		length += snprintf(text + length, STATUS_TEXT - length, "%s", more);
	return length < STATUS_TEXT ? length : STATUS_TEXT;
}

/* "; waiting for eth0, eth1": the devices that are not there. */
static size_t missing_add(const struct keep *keep, char text[STATUS_TEXT], size_t length)
{
	const struct places *places = &keep->config.places;
	const char *lead = "; waiting for ";

	for (unsigned int i = 0; keep->missing && i < places->count; i++) {
		if (!keep->missing[i])
			continue;
		length = text_add(text, length, lead);
		length = text_add(text, length, name_shown(places->list[i].device));
		lead = ", ";
	}
	return length;
}

void status_say(struct keep *keep)
{
	const struct {
		bool is_so;
		const char *text;
	} more[] = {
		{keep->mark.on_trial, "; on trial, whose end is waited for"},
		{keep->is_hidden, "; hidden by another mount, see the log"},
		{keep->file_is_bad, "; the file is not applied, see the log"},
		{keep->lists_are_bad, "; a list is not as its file, see the log"},
		{keep->state_is_bad, "; the state is not saved, see the log"},
		{keep->watch.lacking, "; not all changes are heard of, see the log"},
		{keep->failed, "; not all can be attached, see the log"},
	};
	unsigned int attached = keep->attached;
	char text[STATUS_TEXT];
	size_t length;

	length = snprintf(text, sizeof(text), "gate '%s': generation %u, %u %s", keep->args->gate,
			  keep->mark.generation, attached,
			  plural(attached, "attachment", "attachments"));
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].is_so)
			length = text_add(text, length, more[i].text);
	missing_add(keep, text, length);
	if (!keep->is_ready || !strcmp(text, keep->status))
		return;
	memcpy(keep->status, text, sizeof(text));
	notify_status(text);
}
