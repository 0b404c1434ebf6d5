// SPDX-License-Identifier: GPL-2.0
#include "events/event.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

const char *const event_kind_names[EVENT_KINDS] = {
	[EVENT_SOURCE] = "source",   [EVENT_BLOCK] = "block",	      [EVENT_ENTRY] = "entry",
	[EVENT_FLOOD] = "flood",     [EVENT_BUDGET] = "budget",	      [EVENT_TABLE] = "table",
	[EVENT_RULES] = "rules",     [EVENT_CONTENDED] = "contended", [EVENT_DEVICE] = "device",
	[EVENT_GENERIC] = "generic", [EVENT_STORE] = "store",	      [EVENT_TRIAL] = "trial",
	[EVENT_LOST] = "lost",
};

const char *const event_phase_names[EVENT_PHASES] = {
	[EVENT_BEGIN] = "begin", [EVENT_END] = "end", [EVENT_INSTANT] = "instant"};

const char *event_id(const struct event *event, char id[EVENT_ID])
{
	snprintf(id, EVENT_ID, "%" PRIx64 "-%" PRIu64, event->watch, event->number);
	return id;
}

const char *event_time(const struct event *event, char text[EVENT_TIME])
{
	char second[MOMENT_TEXT];

	moment_format(event->time_ns / NS_PER_SEC, second);
	snprintf(text, EVENT_TIME, "%.19s.%03uZ", second,
		 (unsigned int)(event->time_ns % NS_PER_SEC / NS_PER_MS));
	return text;
}

const char *event_object(const struct event *event, char object[EVENT_OBJECT])
{
	char text[PREFIX_TEXT];

	*object = '\0';
	if (event->source.bits)
		snprintf(object, EVENT_OBJECT, "%s", prefix_format(&event->source, text));
	else if (*event->device)
		snprintf(object, EVENT_OBJECT, "%s", name_shown(event->device));
	else if (event->has_policy)
		snprintf(object, EVENT_OBJECT, "%s", prefix_format(&event->policy, text));
	return object;
}

const char *event_format(const char *gate, const struct event *event, char line[EVENT_LINE])
{
	char object[EVENT_OBJECT], time[EVENT_TIME];

	event_object(event, object);
	snprintf(line, EVENT_LINE, "%.19s %s %s%s%s%s%s: %s", event_time(event, time), gate,
		 event_kind_names[event->kind], event->phase == EVENT_INSTANT ? "" : " ",
		 event->phase == EVENT_INSTANT ? "" : event_phase_names[event->phase],
		 *object ? " " : "", object, event->text);
	line[10] = ' '; /* a space replaces the T of RFC 3339 */
	text_make_printable(line);
	return line;
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Returns a JSON string, or a JSON null if the text is "" or not UTF-8. */
static json_t *text_json(const char *text)
{
	return (*text ? json_string(text) : NULL) ?: json_null();
}

static json_t *number_json(bool is_known, uint64_t value)
{
	return is_known ? json_integer((json_int_t)value) : json_null();
}

static json_t *prefix_json(bool is_known, const struct sl_prefix *prefix)
{
	char text[PREFIX_TEXT];

	return is_known ? json_string(prefix_format(prefix, text)) : json_null();
}

char *event_json(const char *gate, const struct event *event)
{
	bool ends = event->phase == EVENT_END;
	char id[EVENT_ID], time[EVENT_TIME];
	json_t *object = json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:s}",
		"schema", EVENT_SCHEMA, "version", EVENT_VERSION, "gate", gate, "id",
		event_id(event, id), "time", event_time(event, time), "kind",
		event_kind_names[event->kind], "phase", event_phase_names[event->phase], "source",
		prefix_json(event->source.bits, &event->source), "policy",
		prefix_json(event->has_policy, &event->policy), "limit", text_json(event->limit),
		"device", text_json(event->device), "dropped",
		number_json(event->is_counted, event->dropped), "duration_ms",
		number_json(ends, event->lasted_ns / NS_PER_MS), "lost",
		number_json(event->kind == EVENT_LOST, event->lost), "generation",
		number_json(event->generation, event->generation), "uid",
		number_json(event->has_user, event->user), "command", text_json(event->command),
		"text", event->text);
	char *line = object ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(object);
	return line;
}

/* Parses a prefix or a JSON null. Returns false if the value is something else. */
static bool prefix_unpack(json_t *object, const char *key, bool *ret_is_known,
			  struct sl_prefix *ret)
{
	json_t *value = json_object_get(object, key);

	if (ret_is_known)
		*ret_is_known = json_is_string(value);
	return json_is_null(value) ||
	       (json_is_string(value) && !prefix_parse(json_string_value(value), ret));
}

static uint64_t number_unpack(json_t *object, const char *key, bool *ret_is_known)
{
	json_t *value = json_object_get(object, key);
	bool is_known = json_is_integer(value) && json_integer_value(value) >= 0;

	if (ret_is_known)
		*ret_is_known = is_known;
	return is_known ? json_integer_value(value) : 0;
}

/* Copies a JSON string, or "" for null. Returns false if the value is something else. */
static bool text_unpack(json_t *object, const char *key, char *ret, size_t room)
{
	json_t *value = json_object_get(object, key);

	snprintf(ret, room, "%s", json_string_value(value) ?: "");
	return json_is_string(value) || json_is_null(value);
}

static int object_unpack(json_t *object, char *ret_gate, struct event *ret)
{
	const char *schema, *gate, *id, *time, *kind, *phase;
	unsigned int millis = 0;
	int version, kind_found, phase_found;
	time_t second;

	if (json_unpack(object, "{s:s, s:i, s:s, s:s, s:s, s:s, s:s}", "schema", &schema, "version",
			&version, "gate", &gate, "id", &id, "time", &time, "kind", &kind, "phase",
			&phase) ||
	    strcmp(schema, EVENT_SCHEMA) || version != EVENT_VERSION || !gate_name_is_valid(gate))
		return -EINVAL;
	kind_found = word_find(event_kind_names, EVENT_KINDS, kind);
	phase_found = word_find(event_phase_names, EVENT_PHASES, phase);
	if (kind_found < 0 || phase_found < 0 || strlen(time) < 20 || moment_parse(time, &second) ||
	    sscanf(time + 19, ".%3u", &millis) != 1 ||
	    sscanf(id, "%" SCNx64 "-%" SCNu64, &ret->watch, &ret->number) != 2 ||
	    !prefix_unpack(object, "source", NULL, &ret->source) ||
	    !prefix_unpack(object, "policy", &ret->has_policy, &ret->policy) ||
	    !text_unpack(object, "limit", ret->limit, sizeof(ret->limit)) ||
	    !text_unpack(object, "device", ret->device, sizeof(ret->device)) ||
	    !text_unpack(object, "command", ret->command, sizeof(ret->command)) ||
	    !text_unpack(object, "text", ret->text, sizeof(ret->text)))
		return -EINVAL;
	ret->kind = kind_found;
	ret->phase = phase_found;
	ret->time_ns = second * NS_PER_SEC + millis * NS_PER_MS;
	snprintf(ret_gate, GATE_NAME + 1, "%s", gate);
	return 0;
}

int event_parse(const char *line, char *ret_gate, struct event *ret)
{
	json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	unsigned int mark = error_count();
	int err;

	*ret = (struct event){0};
	err = object ? object_unpack(object, ret_gate, ret) : -EINVAL;
	error_drop(mark);
	if (!err) {
		ret->dropped = number_unpack(object, "dropped", &ret->is_counted);
		ret->lasted_ns = number_unpack(object, "duration_ms", NULL) * NS_PER_MS;
		ret->lost = number_unpack(object, "lost", NULL);
		ret->generation = number_unpack(object, "generation", NULL);
		ret->user = number_unpack(object, "uid", &ret->has_user);
	}
	json_decref(object);
	return err;
}

/* --- Filters -------------------------------------------------------------------------------- */

/* Returns whether a prefix contains a source, or is an address that belongs to the source. */
static bool source_is_within(const struct sl_prefix *source, const struct sl_prefix *within)
{
	struct sl_prefix whole = prefix_source(within);

	return source->bits && (prefix_covers(within, source) || prefix_equal(&whole, source));
}

bool event_matches(const struct event_filter *filter, const struct event *event)
{
	if (filter->kinds && !(filter->kinds & 1U << event->kind))
		return false;
	if (filter->within.bits && !source_is_within(&event->source, &filter->within))
		return false;
	return !filter->has_policy ||
	       (event->has_policy && prefix_equal(&filter->policy, &event->policy));
}
