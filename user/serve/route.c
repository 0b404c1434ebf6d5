// SPDX-License-Identifier: GPL-2.0
#include "serve/route.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "rules/devices.h"
#include "rules/prefix.h"
#include "rules/value.h"

#define VALUE_TEXT_MAX 128 /* longest decoded value in bytes; an IPv6 prefix has 43 */

/* A parameter of a query. type: NULL for a flag, which needs no value. */
struct parameter {
	const char *name;
	const struct value_type *type;
	size_t field; /* offset of the member in struct route */
	bool is_required;
};

struct path {
	const char *path;
	const struct parameter *parameters;
	unsigned int count;
};

/* --- Types ---------------------------------------------------------------------------------- */

static int name_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	if (!*text || strlen(text) > GATE_NAME)
		return value_refuse(type, "bad-name", what, text, "not the name of a gate");
	strcpy(ret, text);
	return 0;
}

static int since_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	uint64_t number = 0;

	for (const char *c = text; *c; c++) {
		if (!isdigit((unsigned char)*c) || c - text >= 18)
			return value_refuse(type, "bad-number", what, text, "not a number");
		number = 10 * number + *c - '0';
	}
	*(uint64_t *)ret = number;
	return 0;
}

static const char *const live_orders[] = {"source", "passed", "dropped", "observed", "all"};

static const struct value_type gate_name = {.name = "GATE", .parse = name_parse},
			       event_number = {.name = "N", .parse = since_parse},
			       page_size = VALUE_NUMBER(1, ROUTE_SOURCES_MAX, NULL),
			       live_size = VALUE_NUMBER(1, ROUTE_LIVE_MAX, NULL),
			       live_order = VALUE_CHOICE("source|passed|dropped|observed|all",
							 live_orders, LIVE_BY_SOURCE);

/* --- Paths ---------------------------------------------------------------------------------- */

#define FIELD(member) offsetof(struct route, member)
#define GATE_PARAMETER                                                                             \
	{                                                                                          \
		"gate", &gate_name, FIELD(gate), false                                             \
	}

static const struct parameter of_gate[] = {GATE_PARAMETER};

static const struct parameter of_sources[] = {
	GATE_PARAMETER,
	{"within", &value_prefix, FIELD(sources.within), false},
	{"top", &page_size, FIELD(sources.top), false},
	{"skip", &value_skip, FIELD(sources.skip), false},
	{"sort", &value_order, FIELD(sources.order), false},
};

static const struct parameter of_check[] = {
	GATE_PARAMETER,
	{"address", &value_address, FIELD(check.source), true},
	{"proto", &value_proto, FIELD(check.proto), false},
	{"port", &value_port, FIELD(check.port), false},
	{"sport", &value_port, FIELD(check.sport), false},
	{"flags", &value_flags, FIELD(check.flags), false},
	{"icmp-type", &value_icmp_type, FIELD(check.icmp), false},
	{"syn", NULL, FIELD(check.syn), false},
	{"quic-initial", NULL, FIELD(check.quic_initial), false},
	{"tls-hello", NULL, FIELD(check.tls_hello), false},
	{"dns-query", NULL, FIELD(check.dns_query), false},
	{"unread", NULL, FIELD(check.unread), false},
	{"fragment", &value_fragment, FIELD(check.fragment), false},
	{"vlan", &value_vlan, FIELD(check.vlan), false},
	{"size", &value_frame, FIELD(check.bytes), false},
	{"length", &value_length, FIELD(check.length), false},
	{"dscp", &value_dscp, FIELD(check.dscp), false},
	{"to", &value_address, FIELD(check.to), false},
	{"hook", &value_given_hook, FIELD(check.hook), false},
};

static const struct parameter of_live[] = {
	GATE_PARAMETER,
	{"within", &value_prefix, FIELD(live.within), false},
	{"top", &live_size, FIELD(live.top), false},
	{"sort", &live_order, FIELD(live.order), false},
};

static const struct parameter of_events[] = {
	GATE_PARAMETER,
	{"since", &event_number, FIELD(since), false},
};

#define WITH(table) .parameters = (table), .count = ARRAY_SIZE(table)

static const struct path paths[ROUTES] = {
	[ROUTE_PAGE] = {.path = "/"},
	[ROUTE_SCRIPT] = {.path = "/page.js"},
	[ROUTE_STYLE] = {.path = "/page.css"},
	[ROUTE_OPENAPI] = {.path = "/openapi.json"},
	[ROUTE_HEALTH] = {.path = "/healthz"},
	[ROUTE_METRICS] = {.path = "/metrics"},
	[ROUTE_GATES] = {.path = "/api/v1/gates"},
	[ROUTE_STATUS] = {.path = "/api/v1/status", WITH(of_gate)},
	[ROUTE_STATS] = {.path = "/api/v1/stats", WITH(of_gate)},
	[ROUTE_SOURCES] = {.path = "/api/v1/sources", WITH(of_sources)},
	[ROUTE_CHECK] = {.path = "/api/v1/check", WITH(of_check)},
	[ROUTE_LIMITS] = {.path = "/api/v1/limits", WITH(of_gate)},
	[ROUTE_LISTS] = {.path = "/api/v1/lists", WITH(of_gate)},
	[ROUTE_DOCTOR] = {.path = "/api/v1/doctor", WITH(of_gate)},
	[ROUTE_LIVE] = {.path = "/api/v1/live", WITH(of_live)},
	[ROUTE_EVENTS] = {.path = "/api/v1/events", WITH(of_events)},
};

/* --- Parsing -------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *found;

	found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
	return found ? (int)(found - digits) : -1;
}

/*
 * Decodes escapes such as "%3A" and "+" in a value of `length` bytes. Returns 0, or -EINVAL with an
 * error.
 */
static int value_decode(const char *name, const char *coded, size_t length,
			char ret[VALUE_TEXT_MAX + 1])
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++) {
		int high, low;
		char c = coded[i] == '+' ? ' ' : coded[i];

		if (c == '%') {
			high = i + 2 < length ? hex_digit(coded[i + 1]) : -1;
			low = i + 2 < length ? hex_digit(coded[i + 2]) : -1;
			if (high < 0 || low < 0)
				return error_misuse("bad-escape", name,
						    "%% needs two hexadecimal digits");
			c = high << 4 | low;
			i += 2;
		}
		if (!c || count == VALUE_TEXT_MAX)
			return error_misuse("bad-value", name,
					    "the value is too long, or has a NUL byte");
		ret[count++] = c;
	}
	ret[count] = '\0';
	return 0;
}

/* Parses "name=value" of `length` bytes. *seen: bit i is set if parameter i was already given. */
static int parameter_parse(const struct path *path, const char *text, size_t length, uint32_t *seen,
			   struct route *route)
{
	const char *equals = memchr(text, '=', length);
	size_t name = equals ? (size_t)(equals - text) : length;
	char value[VALUE_TEXT_MAX + 1] = "yes", cut[TEXT_CUT];
	const struct parameter *found = NULL;
	void *field;
	int err = 0;

	for (unsigned int i = 0; i < path->count && !found; i++)
		if (strlen(path->parameters[i].name) == name &&
		    !memcmp(path->parameters[i].name, text, name))
			found = &path->parameters[i];
	if (!found)
		return error_misuse("no-parameter", text_cut(text, name, cut),
				    "%s has no parameter of this name", path->path);
	if (*seen & 1U << (found - path->parameters))
		return error_misuse("given-twice", found->name, "it is given twice");
	*seen |= 1U << (found - path->parameters);
	field = (char *)route + found->field;
	if (equals)
		err = value_decode(found->name, equals + 1, length - name - 1, value);
	else if (found->type)
		return error_misuse("no-value", found->name, "it needs a value");
	return err ?: value_parse(found->type ?: &value_flag, found->name, value, field);
}

int route_parse(const char *target, struct route *ret)
{
	size_t length = strcspn(target, "?"), part;
	const struct path *path = NULL;
	uint32_t seen = 0;
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	ret->live.order = LIVE_BY_DROPPED;
	for (unsigned int i = 0; i < ROUTES && !path; i++) {
		if (strlen(paths[i].path) == length && !memcmp(paths[i].path, target, length)) {
			path = &paths[i];
			ret->id = i;
		}
	}
	if (!path) {
		char cut[TEXT_CUT];

		error_misuse("no-path", text_cut(target, length, cut), "there is no such path");
		return -ENOENT;
	}
	for (const char *text = target + length; !err && *text; text += part) {
		text++; /* skip '?' or '&' */
		part = strcspn(text, "&");
		if (part)
			err = parameter_parse(path, text, part, &seen, ret);
	}
	for (unsigned int i = 0; !err && i < path->count; i++)
		if (path->parameters[i].is_required && !(seen & 1U << i))
			err = error_misuse("no-value", path->parameters[i].name, "it is required");
	if (ret->id == ROUTE_SOURCES && !ret->sources.top)
		ret->sources.top = ROUTE_SOURCES_TOP;
	if (ret->id == ROUTE_LIVE && !ret->live.top)
		ret->live.top = ROUTE_LIVE_TOP;
	return err;
}
