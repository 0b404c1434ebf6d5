// SPDX-License-Identifier: GPL-2.0
/* Limits to words: names, defaults and formats. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/prefix.h"

const char *const spec_names[SPEC_FIELDS] = {
	[SPEC_NAME] = "name",	    [SPEC_RATE] = "rate",     [SPEC_BURST] = "burst",
	[SPEC_WINDOW] = "window",   [SPEC_GROUPS] = "groups", [SPEC_SHAPE] = "shape",
	[SPEC_HORIZON] = "horizon", [SPEC_MATCH] = "match",   [SPEC_PER] = "per",
	[SPEC_KEY] = "key",	    [SPEC_ACTION] = "action", [SPEC_START] = "start",
	[SPEC_SHARED] = "shared",
};

const char *const kind_names[SL_KINDS] = {
	[SL_TOKEN_BUCKET] = "bucket",
	[SL_WINDOW] = "window",
	[SL_SHAPE] = "shape",
};

const enum spec_field kind_fields[SL_KINDS] = {
	[SL_TOKEN_BUCKET] = SPEC_RATE,
	[SL_WINDOW] = SPEC_WINDOW,
	[SL_SHAPE] = SPEC_SHAPE,
};

_Static_assert(SPEC_TEXT >= MATCH_TEXT && SPEC_TEXT >= UNITS_TEXT, "room for any field");

const struct limit limit_defaults = {
	.spec = {.name = "all",
		 .per = {[SL_IPV4] = 32, [SL_IPV6] = 64},
		 .groups = 5,
		 .span_ns = 200 * NS_PER_MS},
	.match = {.fact = SL_FACT_ANY},
};

bool kind_has_field(enum sl_kind kind, enum spec_field field)
{
	switch (field) {
	case SPEC_RATE:
	case SPEC_BURST:
	case SPEC_SHARED:
		return kind == SL_TOKEN_BUCKET;
	case SPEC_WINDOW:
	case SPEC_GROUPS:
		return kind == SL_WINDOW;
	case SPEC_SHAPE:
	case SPEC_HORIZON:
		return kind == SL_SHAPE;
	case SPEC_ACTION:
	case SPEC_START:
		return kind != SL_SHAPE;
	default:
		return true;
	}
}

/* FNV-1a, folded to 16 bits. */
static unsigned int text_digest(const char *text)
{
	uint32_t digest = 2166136261U;

	for (; *text; text++)
		digest = (digest ^ (unsigned char)*text) * 16777619U;
	return (digest ^ digest >> 16) & 0xffff;
}

void name_default(const struct sl_match *match, const char *suffix, char name[SL_NAME])
{
	char text[MATCH_TEXT + SL_NAME], words[MATCH_TEXT];
	const char *from = match_format(match, words);
	char *to = text;

	if (!strcmp(from, "any"))
		from = "all";
	for (; *from; from++) {
		if (!strncmp(from, "port ", 5))
			from += 5;
		*to++ = *from == ' ' ? '-' : *from == ',' ? '_' : *from;
	}
	strcpy(to, suffix);
	memset(name, 0, SL_NAME);
	if (strlen(text) < SL_NAME)
		strcpy(name, text);
	else
		snprintf(name, SL_NAME, "%.*s-%04x", SL_NAME - 6, text, text_digest(text));
}

typedef const char *format_fn(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);

/* Formats a rate or a burst, or two of them. */
static const char *pair_format(const struct limit *limit, format_fn *format, char text[SPEC_TEXT])
{
	struct limit second = limit_second(limit);
	char first_text[UNITS_TEXT], second_text[UNITS_TEXT];
	bool is_pair = format == rate_format ? limit->second.rate : limit->second.burst;

	snprintf(text, SPEC_TEXT, "%s%s%s", format(&limit->spec, first_text), is_pair ? " " : "",
		 is_pair ? format(&second.spec, second_text) : "");
	return text;
}

static const char *action_format(const struct sl_limit_spec *spec, char text[SPEC_TEXT])
{
	char time[UNITS_TEXT], max[UNITS_TEXT];

	if (spec->action != SL_ACTION_BLOCK)
		return spec->action == SL_ACTION_DROP ? "drop" : "observe";
	if (!spec->escalate)
		snprintf(text, SPEC_TEXT, "block %s", time_format(spec->block_ns, time));
	else
		snprintf(text, SPEC_TEXT, "block %s escalate %u max %s",
			 time_format(spec->block_ns, time), spec->escalate,
			 time_format(spec->block_max_ns, max));
	return text;
}

const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT])
{
	const struct sl_limit_spec *spec = &limit->spec;
	char amount[UNITS_TEXT], time[UNITS_TEXT];

	if (!kind_has_field(spec->kind, field))
		return NULL;
	switch (field) {
	case SPEC_NAME:
		snprintf(text, SPEC_TEXT, "%.*s", SL_NAME - 1, spec->name);
		return text;
	case SPEC_RATE:
		return pair_format(limit, rate_format, text);
	case SPEC_BURST:
		return pair_format(limit, burst_format, text);
	case SPEC_WINDOW:
		snprintf(text, SPEC_TEXT, "%s per %s",
			 amount_format(spec->rate, spec->rate_unit, amount),
			 time_format(spec->span_ns, time));
		return text;
	case SPEC_GROUPS:
		snprintf(text, SPEC_TEXT, "%u", spec->groups);
		return text;
	case SPEC_SHAPE:
		return rate_format(spec, text);
	case SPEC_HORIZON:
		return time_format(spec->span_ns, text);
	case SPEC_MATCH:
		return match_format(&limit->match, text);
	case SPEC_PER:
		if (prefix->bits)
			snprintf(text, SPEC_TEXT, "%u",
				 spec->per[prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6]);
		else
			snprintf(text, SPEC_TEXT, "%u/%u", spec->per[SL_IPV4], spec->per[SL_IPV6]);
		return text;
	case SPEC_KEY:
		return spec->key_dst ? "dst" : "src";
	case SPEC_ACTION:
		return action_format(spec, text);
	default:
		return spec_types[field].words[field == SPEC_START ? spec->start : spec->shared];
	}
}

const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT])
{
	const char *words = spec_format_whole(limit, prefix, field, text);
	struct limit usual = limit_defaults;
	char usual_text[SPEC_TEXT];

	if (!words || field == SPEC_BURST || field == kind_fields[limit->spec.kind])
		return words;
	if (field == SPEC_NAME && (limit->match.fact != SL_FACT_ANY || limit->match.vlan))
		return words;
	usual.spec.kind = limit->spec.kind;
	return strcmp(words, spec_format_whole(&usual, prefix, field, usual_text)) ? words : NULL;
}
