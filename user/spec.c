// SPDX-License-Identifier: GPL-2.0
#include "spec.h"

#include <stdio.h>
#include <string.h>

#include "matches.h"
#include "prefix.h"
#include "units.h"

#define BLOCK_MIN_NS 1000000

const char *const spec_names[SPEC_FIELDS] = {
	[SPEC_NAME] = "name",	  [SPEC_RATE] = "rate",	  [SPEC_BURST] = "burst",
	[SPEC_MATCH] = "match",	  [SPEC_PER] = "per",	  [SPEC_KEY] = "key",
	[SPEC_ACTION] = "action", [SPEC_START] = "start",
};

_Static_assert(SPEC_TEXT >= MATCH_TEXT && SPEC_TEXT >= UNITS_TEXT, "room for any field");

/* Of a limit that says no more than its rate. */
static const struct limit usual = {
	.spec = {.name = "all", .per = {[SL_IPV4] = 32, [SL_IPV6] = 64}},
	.match = {.fact = SL_FACT_ANY},
};

/* --- To numbers ----------------------------------------------------------------------------- */

static enum status name_parse(const char *text, struct sl_limit_spec *spec)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";
	size_t length = strlen(text);

	/* one that begins with - would be an option where `show` says it */
	if (!length || length >= sizeof(spec->name) || *text == '-' || text[strspn(text, allowed)])
		return misuse("'%s' is not a name of a limit: letters, digits, - and _, at most "
			      "%zu, and no - first",
			      text, sizeof(spec->name) - 1);
	memset(spec->name, 0, sizeof(spec->name));
	memcpy(spec->name, text, length);
	return OK;
}

/* Which family a length is of, and whether the prefix has that family. */
static enum status per_parse_one(const char *text, const struct sl_prefix *prefix,
				 unsigned int length, struct sl_limit_spec *spec)
{
	enum sl_family family = length > 32 ? SL_IPV6 : SL_IPV4;
	char name[PREFIX_TEXT];

	if (prefix->bits && !prefix_is_ipv4(prefix))
		family = SL_IPV6;
	if (prefix_is_ipv4(prefix) && family == SL_IPV6)
		return misuse("per '%s': %s is IPv4: a key there has 0 to 32 bits", text,
			      prefix_format(prefix, name));
	spec->per[family] = length;
	return OK;
}

static enum status per_parse_both(const char *text, const struct sl_prefix *prefix,
				  unsigned int ipv4, unsigned int ipv6, struct sl_limit_spec *spec)
{
	char name[PREFIX_TEXT];

	if (prefix->bits)
		return misuse("per '%s': %s is %s alone: write one length", text,
			      prefix_format(prefix, name),
			      prefix_is_ipv4(prefix) ? "IPv4" : "IPv6");
	if (ipv4 > 32)
		return misuse("per '%s': the first length is IPv4's, 0 to 32", text);
	spec->per[SL_IPV4] = ipv4;
	spec->per[SL_IPV6] = ipv6;
	return OK;
}

static enum status per_parse(const char *text, const struct sl_prefix *prefix,
			     struct sl_limit_spec *spec)
{
	unsigned int first, second;
	const char *end = number_read(text + (*text == '/'), 128, &first); /* /24 is 24 */

	if (end && !*end)
		return per_parse_one(text, prefix, first, spec);
	if (end && *end == '/')
		end = number_read(end + 1, 128, &second);
	else
		end = NULL;
	if (!end || *end)
		return misuse("per '%s' is not the length of a key: write 24, or 56, or for "
			      "default 24/56",
			      text);
	return per_parse_both(text, prefix, first, second, spec);
}

static enum status key_parse(const char *text, struct sl_limit_spec *spec)
{
	bool dst = !strcmp(text, "dst");

	if (!dst && strcmp(text, "src"))
		return misuse("key '%s': write src or dst", text);
	spec->key_dst = dst;
	return OK;
}

static enum status block_parse(const char *text, const char *time, struct sl_limit_spec *spec)
{
	enum status status;
	uint64_t ns;

	if (!*time)
		return misuse("action '%s' needs a time: write block 30s", text);
	status = time_parse("block", time, &ns);
	if (status)
		return status;
	if (ns < BLOCK_MIN_NS)
		return misuse("block '%s' is too short: the shortest is 1ms", time);
	spec->action = SL_ACTION_BLOCK;
	spec->block_ns = ns;
	return OK;
}

static enum status action_parse(const char *text, struct sl_limit_spec *spec)
{
	size_t verb = strcspn(text, " \t");
	const char *rest = text + verb + strspn(text + verb, " \t");

	if (verb == strlen("block") && !strncmp(text, "block", verb))
		return block_parse(text, rest, spec);
	if (strcmp(text, "drop") && strcmp(text, "observe"))
		return misuse("action '%s': write drop, observe or block 30s", text);
	spec->action = *text == 'd' ? SL_ACTION_DROP : SL_ACTION_OBSERVE;
	return OK;
}

static enum status start_parse(const char *text, struct sl_limit_spec *spec)
{
	bool empty = !strcmp(text, "empty");

	if (!empty && strcmp(text, "full"))
		return misuse("start '%s': write full or empty", text);
	spec->start_empty = empty;
	return OK;
}

static enum status field_parse(enum spec_field field, const char *text,
			       const struct sl_prefix *prefix, struct limit *limit)
{
	switch (field) {
	case SPEC_NAME:
		return name_parse(text, &limit->spec);
	case SPEC_RATE:
		return rate_parse(text, &limit->spec);
	case SPEC_BURST: /* its unit depends on the rate's; a wrong rate is refused already */
		return limit->spec.rate ? burst_parse(text, &limit->spec) : MISUSED;
	case SPEC_MATCH:
		return match_parse(text, &limit->match);
	case SPEC_PER:
		return per_parse(text, prefix, &limit->spec);
	case SPEC_KEY:
		return key_parse(text, &limit->spec);
	case SPEC_ACTION:
		return action_parse(text, &limit->spec);
	default:
		return start_parse(text, &limit->spec);
	}
}

static enum status fields_parse(const struct spec *spec, const struct sl_prefix *prefix,
				void (*place)(void *data, enum spec_field field), void *data,
				struct limit *limit)
{
	enum status status = OK;

	for (int field = 0; field < SPEC_FIELDS; field++) {
		if (!spec->text[field])
			continue;
		if (place)
			place(data, field);
		if (field_parse(field, spec->text[field], prefix, limit))
			status = MISUSED;
	}
	return status;
}

enum status spec_parse(const struct spec *spec, const struct sl_prefix *prefix,
		       void (*place)(void *data, enum spec_field field), void *data,
		       struct limit *ret)
{
	struct limit limit = usual;
	enum status status = fields_parse(spec, prefix, place, data, &limit);

	if (place) /* of what is said below, about the rate and the burst together */
		place(data, limit.spec.burst ? SPEC_BURST : SPEC_RATE);
	if (!spec->text[SPEC_RATE])
		return misuse("a limit needs a rate: write 'rate 10kpps' or 'rate 50mbit'");
	if (limit.spec.rate && !spec->text[SPEC_BURST])
		burst_default(&limit.spec);
	if (limit.spec.burst && limit_check(&limit))
		return MISUSED;
	if (status)
		return status;
	*ret = limit;
	return OK;
}

enum status spec_parse_budget(const char *rate, const char *burst,
			      void (*place)(void *data, enum spec_field field), void *data,
			      struct limit *ret)
{
	const struct sl_prefix everything = {0};
	const struct spec spec = {
		.text = {[SPEC_NAME] = "newcomers", [SPEC_RATE] = rate, [SPEC_BURST] = burst},
	};

	return spec_parse(&spec, &everything, place, data, ret);
}

/* --- To words ------------------------------------------------------------------------------- */

static const char *per_format(const struct sl_limit_spec *spec, const struct sl_prefix *prefix,
			      char text[SPEC_TEXT])
{
	enum sl_family family = prefix_is_ipv4(prefix) ? SL_IPV4 : SL_IPV6;

	if (prefix->bits)
		snprintf(text, SPEC_TEXT, "%u", spec->per[family]);
	else
		snprintf(text, SPEC_TEXT, "%u/%u", spec->per[SL_IPV4], spec->per[SL_IPV6]);
	return text;
}

static const char *action_format(const struct sl_limit_spec *spec, char text[SPEC_TEXT])
{
	char time[UNITS_TEXT];

	if (spec->action != SL_ACTION_BLOCK)
		return spec->action == SL_ACTION_DROP ? "drop" : "observe";
	snprintf(text, SPEC_TEXT, "block %s", time_format(spec->block_ns, time));
	return text;
}

const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT])
{
	const struct sl_limit_spec *spec = &limit->spec;

	switch (field) {
	case SPEC_NAME:
		snprintf(text, SPEC_TEXT, "%.*s", SL_NAME - 1, spec->name);
		return text;
	case SPEC_RATE:
		return rate_format(spec, text);
	case SPEC_BURST:
		return burst_format(spec, text);
	case SPEC_MATCH:
		return match_format(&limit->match, text);
	case SPEC_PER:
		return per_format(spec, prefix, text);
	case SPEC_KEY:
		return spec->key_dst ? "dst" : "src";
	case SPEC_ACTION:
		return action_format(spec, text);
	default:
		return spec->start_empty ? "empty" : "full";
	}
}

const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT])
{
	const char *words = spec_format_whole(limit, prefix, field, text);
	char usual_text[SPEC_TEXT];

	if (field == SPEC_RATE || field == SPEC_BURST ||
	    strcmp(words, spec_format_whole(&usual, prefix, field, usual_text)))
		return words;
	return NULL;
}
