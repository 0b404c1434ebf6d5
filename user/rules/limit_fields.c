// SPDX-License-Identifier: GPL-2.0
#include "rules/limit_fields.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "block.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/value.h"
#include "window.h"

/* --- Names and defaults --------------------------------------------------------------------- */

#define BLOCK_MIN_NS NS_PER_MS

/*
 * The longest block of `escalate`, unless it is told: who forges an address keeps it blocked with
 * few packets.
 */
#define BLOCK_MAX_NS	(600 * NS_PER_SEC)
#define ESCALATE_MOST	16
#define WINDOW_MIN_NS	NS_PER_MS
#define GROUPS_DEFAULT	5
#define HORIZON_DEFAULT (200 * NS_PER_MS)
#define HORIZON_MIN_NS	NS_PER_MS

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

_Static_assert(SPEC_TEXT >= MATCH_TEXT && SPEC_TEXT >= UNITS_TEXT, "room for any field");

const struct limit limit_defaults = {
	.spec = {.name = "all",
		 .per = {[SL_IPV4] = 32, [SL_IPV6] = 64},
		 .groups = GROUPS_DEFAULT,
		 .span_ns = HORIZON_DEFAULT},
	.match = {.fact = SL_FACT_ANY},
};

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

/* --- Fields of kinds ------------------------------------------------------------------------ */

const enum spec_field kind_fields[SL_KINDS] = {
	[SL_TOKEN_BUCKET] = SPEC_RATE,
	[SL_WINDOW] = SPEC_WINDOW,
	[SL_SHAPE] = SPEC_SHAPE,
};

int field_kind(enum spec_field field)
{
	switch (field) {
	case SPEC_RATE:
	case SPEC_BURST:
		return SL_TOKEN_BUCKET;
	case SPEC_WINDOW:
	case SPEC_GROUPS:
		return SL_WINDOW;
	case SPEC_SHAPE:
	case SPEC_HORIZON:
		return SL_SHAPE;
	default:
		return -1;
	}
}

bool kind_has_field(enum sl_kind kind, enum spec_field field)
{
	int only = field_kind(field);

	if (kind == SL_SHAPE && (field == SPEC_ACTION || field == SPEC_START))
		return false;
	if (kind != SL_TOKEN_BUCKET && field == SPEC_SHARED)
		return false;
	return only < 0 || only == (int)kind;
}

/* --- Parsing -------------------------------------------------------------------------------- */

static int rate_read(const char *text, struct sl_limit_spec *spec)
{
	struct value_amount rate;
	int err = value_parse(&value_rate, "rate", text, &rate);

	if (err)
		return err;
	spec->rate = rate.number;
	spec->rate_unit = rate.unit;
	return 0;
}

/* The rate is in `spec` already: 2000 (packets) needs a packet rate, 64kB a bit rate. */
static int burst_read(const char *text, struct sl_limit_spec *spec)
{
	bool by_bytes = spec->rate_unit == SL_RATE_BITS;
	struct value_amount burst;
	int err = value_parse(&value_burst, "burst", text, &burst);

	if (err)
		return err;
	if (burst.unit == (by_bytes ? SL_BURST_PACKETS : SL_BURST_BYTES))
		return by_bytes ? misuse("burst '%s' of a bit rate needs a unit; write 64kB or "
					 "250ms",
					 text)
				: misuse("burst '%s' of a packet rate; write 2000 (packets) or "
					 "250ms",
					 text);
	spec->burst = burst.number;
	spec->burst_unit = burst.unit;
	return 0;
}

static int name_parse(const char *text, struct sl_limit_spec *spec)
{
	if (!limit_name_is_valid(text))
		return misuse("'%s' is not a name of a limit: letters, digits, - and _, at most "
			      "%zu, and no - first",
			      text, sizeof(spec->name) - 1);
	memset(spec->name, 0, sizeof(spec->name));
	strcpy(spec->name, text);
	return OK;
}

/* Parses one length: its family is the prefix's; on `default`, lengths above 32 are of IPv6. */
static int per_parse_one(const char *text, const struct sl_prefix *prefix, unsigned int length,
			 struct sl_limit_spec *spec)
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

static int per_parse_both(const char *text, const struct sl_prefix *prefix, unsigned int ipv4,
			  unsigned int ipv6, struct sl_limit_spec *spec)
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

static int per_parse(const char *text, const struct sl_prefix *prefix, struct sl_limit_spec *spec)
{
	unsigned int first, second;
	const char *end = number_read(text + (*text == '/'), 128, &first); /* /24 means 24 */

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

static int key_parse(const char *text, struct sl_limit_spec *spec)
{
	bool dst = !strcmp(text, "dst");

	if (!dst && strcmp(text, "src"))
		return misuse("key '%s': write src or dst", text);
	spec->key_dst = dst;
	return OK;
}

/* Whether a word belongs to the one before it: "kpps" to "10", and "30" to "1 hour" of a time. */
static bool word_goes_on(const char *last, const char *word, bool is_time)
{
	if (!isdigit((unsigned char)*last))
		return false;
	if (isdigit((unsigned char)last[strlen(last) - 1]))
		return unit_is_known(word);
	return is_time && isdigit((unsigned char)*word);
}

/*
 * Splits a copy of a text into words at blanks. A number and its unit are one word; with `is_time`
 * all numbers of a time are one word. Returns the number of words; most + 1: they are more, or
 * the text is too long.
 */
static unsigned int words_split(const char *text, char copy[SPEC_TEXT], char **words,
				unsigned int most, bool is_time)
{
	unsigned int count = 0;
	char *rest, *word;

	if ((size_t)snprintf(copy, SPEC_TEXT, "%s", text) >= SPEC_TEXT)
		return most + 1;
	for (word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		if (count && word_goes_on(words[count - 1], word, is_time)) {
			char *end = words[count - 1] + strlen(words[count - 1]);

			*end = ' ';
			memmove(end + 1, word, strlen(word) + 1);
			continue;
		}
		if (count == most)
			return most + 1;
		words[count++] = word;
	}
	return count;
}

/* A state counts only so many blocks in a row: with more of them the longest was never reached. */
static int escalate_check(const struct sl_limit_spec *spec)
{
	char most[UNITS_TEXT], reach[UNITS_TEXT];
	uint64_t length = spec->block_ns;

	if (limit_escalations(spec) <= BLOCK_STEPS_MAX)
		return OK;
	for (unsigned int step = 0; step < BLOCK_STEPS_MAX; step++)
		length *= spec->escalate;
	return misuse("escalate: the longest block, %s, is out of reach, as at most %llu blocks in "
		      "a row get longer: write max %s or less",
		      time_format(spec->block_max_ns, most), BLOCK_STEPS_MAX,
		      time_format(length, reach));
}

static int escalate_parse(char **words, unsigned int count, struct sl_limit_spec *spec)
{
	uint64_t most = BLOCK_MAX_NS;
	int status = OK;
	unsigned int factor;
	const char *end;

	if (!strcmp(words[count - 1], count == 1 ? "escalate" : "max") && count % 2)
		return misuse("action block: '%s' needs a value: write block 10s escalate 2 max 1h",
			      words[count - 1]);
	if (strcmp(words[0], "escalate") || (count != 2 && count != 4) ||
	    (count == 4 && strcmp(words[2], "max")))
		return misuse("action block: '%s' is unexpected behind its time: write block 10s "
			      "escalate 2 max 1h",
			      words[0]);
	end = number_read(words[1], ESCALATE_MOST, &factor);
	if (!end || *end || factor < 2)
		return misuse("escalate '%s' is not a whole number, 2 to %d: by what each block is "
			      "longer than the last",
			      words[1], ESCALATE_MOST);
	spec->escalate = factor;
	if (count == 4)
		status = value_parse(&value_time, "max", words[3], &most);
	spec->block_max_ns = most;
	if (!status && most <= spec->block_ns)
		return misuse("escalate: the longest block, %s, is not longer than the first: "
			      "write max and a longer time",
			      count == 4 ? words[3] : "10min");
	return status ? status : escalate_check(spec);
}

static int block_parse(char **words, unsigned int count, struct sl_limit_spec *spec)
{
	int status;
	uint64_t ns;

	if (!count)
		return misuse("action 'block' needs a time: write block 30s");
	status = value_parse(&value_time, "block", words[0], &ns);
	if (status)
		return status;
	if (ns < BLOCK_MIN_NS)
		return misuse("block '%s' is too short: the shortest is 1ms", words[0]);
	spec->block_ns = ns;
	spec->action = SL_ACTION_BLOCK;
	return count > 1 ? escalate_parse(words + 1, count - 1, spec) : OK;
}

static int action_parse(const char *text, struct sl_limit_spec *spec)
{
	char copy[SPEC_TEXT], *words[6];
	unsigned int count;

	count = words_split(text, copy, words, 6, true);
	if (count && count <= 6 && !strcmp(words[0], "block"))
		return block_parse(words + 1, count - 1, spec);
	if (count != 1 || (strcmp(words[0], "drop") && strcmp(words[0], "observe")))
		return misuse("action '%s': write drop, observe or block 30s", text);
	spec->action = *words[0] == 'd' ? SL_ACTION_DROP : SL_ACTION_OBSERVE;
	return OK;
}

static const char *const start_names[] = {
	[SL_START_FULL] = "full",
	[SL_START_EMPTY] = "empty",
	[SL_START_SHARE] = "share",
};

static const char *const shared_names[] = {
	[SL_SHARED_NO] = "no",
	[SL_SHARED_YES] = "yes",
	[SL_SHARED_BLOCK] = "block",
};

static int start_parse(const char *text, struct sl_limit_spec *spec)
{
	for (unsigned int start = 0; start < ARRAY_SIZE(start_names); start++)
		if (!strcmp(text, start_names[start])) {
			spec->start = start;
			return OK;
		}
	return misuse("start '%s': write full, empty or share", text);
}

static int shared_parse(const char *text, struct sl_limit_spec *spec)
{
	/* as YAML and JSON write them */
	const char *word = !strcmp(text, "true") ? "yes" : !strcmp(text, "false") ? "no" : text;

	for (unsigned int shared = 0; shared < ARRAY_SIZE(shared_names); shared++)
		if (!strcmp(word, shared_names[shared])) {
			spec->shared = shared;
			return OK;
		}
	return misuse("shared '%s': write yes, no or block", text);
}

/* Parses "10kpps", or a packet rate and a bit rate, "10kpps 100mbit". */
static int rates_parse(const char *text, struct limit *limit)
{
	struct sl_limit_spec first = {0}, second = {0};
	char copy[SPEC_TEXT], *words[2];
	int status;

	if (words_split(text, copy, words, 2, false) != 2 || !isdigit((unsigned char)*words[1]))
		return rate_read(text, &limit->spec);
	status = rate_read(words[0], &first) ?: rate_read(words[1], &second);
	if (status)
		return status;
	if (first.rate_unit == SL_RATE_BITS || second.rate_unit != SL_RATE_BITS)
		return misuse("rate '%s': two rates are one of packets and one of bits: write "
			      "10kpps 100mbit",
			      text);
	limit->spec.rate = first.rate;
	limit->spec.rate_unit = first.rate_unit;
	limit->second.rate = second.rate;
	return OK;
}

/* Parses "2500", or one burst for each of two rates, "2500 64kB". */
static int bursts_parse(const char *text, struct limit *limit)
{
	struct sl_limit_spec second = {.rate = limit->second.rate, .rate_unit = SL_RATE_BITS};
	char copy[SPEC_TEXT], *words[2];
	unsigned int count;
	int status;

	if (!limit->spec.rate) /* a wrong rate is refused already */
		return MISUSED;
	count = words_split(text, copy, words, 2, false);
	if (!second.rate && count > 1)
		return misuse("burst '%s': one rate has one burst: write 2500, 64kB or 250ms",
			      text);
	if (!second.rate)
		return burst_read(text, &limit->spec);
	if (count != 2)
		return misuse("burst '%s': two rates have two bursts: write 2500 64kB", text);
	status = burst_read(words[0], &limit->spec);
	if (!status)
		status = burst_read(words[1], &second);
	limit->second.burst = second.burst;
	limit->second.burst_unit = second.burst_unit;
	return status;
}

/* Parses the time of a window: "1min", or "minute" for one minute. */
static int span_parse(const char *text, uint64_t *ret_ns)
{
	bool is_unit = !isdigit((unsigned char)*text) && unit_is_known(text);
	char one[SPEC_TEXT + 1];

	snprintf(one, sizeof(one), "%s%s", is_unit ? "1" : "", text);
	return value_parse(&value_time, "window", one, ret_ns);
}

/* Parses "1000 per 1min", "1000 per minute" or "10MB per 1h". */
static int window_parse(const char *text, struct sl_limit_spec *spec)
{
	char copy[SPEC_TEXT], *words[3];
	struct value_amount amount;
	uint64_t ns;
	int status;

	if (words_split(text, copy, words, 3, true) != 3 || strcmp(words[1], "per"))
		return misuse("window '%s': write 1000 per 1min, or 10MB per 1h", text);
	status = value_parse(&value_amount, "window", words[0], &amount);
	if (!status)
		status = span_parse(words[2], &ns);
	if (status)
		return status;
	if (amount.number > WINDOW_MOST_MAX)
		return misuse("window '%s' is too large: the largest is 140TB", words[0]);
	if (ns < WINDOW_MIN_NS)
		return misuse("window '%s' is too short: the shortest is 1ms", words[2]);
	spec->rate = amount.number;
	spec->rate_unit = amount.unit == SL_BURST_BYTES ? SL_RATE_BITS : SL_RATE_PPS;
	spec->span_ns = ns;
	spec->kind = SL_WINDOW;
	return OK;
}

static int groups_parse(const char *text, struct sl_limit_spec *spec)
{
	unsigned int groups;
	const char *end = number_read(text, WINDOW_GROUPS_MAX, &groups);

	if (!end || *end || !groups)
		return misuse("groups '%s' is not a whole number, 1 to %d: into how many parts the "
			      "time of a window is cut",
			      text, WINDOW_GROUPS_MAX);
	spec->groups = groups;
	return OK;
}

static int horizon_parse(const char *text, struct sl_limit_spec *spec)
{
	uint64_t ns;
	int status = value_parse(&value_time, "horizon", text, &ns);

	if (!status && (ns < HORIZON_MIN_NS || ns > HORIZON_MAX_NS))
		status = misuse("horizon '%s' is too %s: it is 1ms to 10s", text,
				ns < HORIZON_MIN_NS ? "short" : "long");
	spec->span_ns = status ? 0 : ns; /* 0: is not compared with the rate */
	return status;
}

int field_parse(enum spec_field field, const char *text, const struct sl_prefix *prefix,
		struct limit *limit)
{
	switch (field) {
	case SPEC_NAME:
		return name_parse(text, &limit->spec);
	case SPEC_RATE:
		return rates_parse(text, limit);
	case SPEC_BURST:
		return bursts_parse(text, limit);
	case SPEC_WINDOW:
		return window_parse(text, &limit->spec);
	case SPEC_GROUPS:
		return groups_parse(text, &limit->spec);
	case SPEC_SHAPE:
		limit->spec.kind = SL_SHAPE;
		return rate_read(text, &limit->spec);
	case SPEC_HORIZON:
		return horizon_parse(text, &limit->spec);
	case SPEC_MATCH:
		return match_parse(text, &limit->match);
	case SPEC_PER:
		return per_parse(text, prefix, &limit->spec);
	case SPEC_KEY:
		return key_parse(text, &limit->spec);
	case SPEC_ACTION:
		return action_parse(text, &limit->spec);
	case SPEC_START:
		return start_parse(text, &limit->spec);
	default:
		return shared_parse(text, &limit->spec);
	}
}

/* --- Formatting ----------------------------------------------------------------------------- */

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

/* Formats a rate or a burst of each of two rates, or of one. */
static const char *pair_format(const struct limit *limit,
			       const char *(*format)(const struct sl_limit_spec *spec,
						     char text[UNITS_TEXT]),
			       char text[SPEC_TEXT])
{
	struct limit second = limit_second(limit);
	char first_text[UNITS_TEXT], second_text[UNITS_TEXT];

	format(&limit->spec, first_text);
	if (limit->second.rate)
		snprintf(text, SPEC_TEXT, "%s %s", first_text, format(&second.spec, second_text));
	else
		snprintf(text, SPEC_TEXT, "%s", first_text);
	return text;
}

static const char *window_format(const struct sl_limit_spec *spec, char text[SPEC_TEXT])
{
	char amount[UNITS_TEXT], time[UNITS_TEXT];

	snprintf(text, SPEC_TEXT, "%s per %s", amount_format(spec->rate, spec->rate_unit, amount),
		 time_format(spec->span_ns, time));
	return text;
}

const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT])
{
	const struct sl_limit_spec *spec = &limit->spec;

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
		return window_format(spec, text);
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
		return per_format(spec, prefix, text);
	case SPEC_KEY:
		return spec->key_dst ? "dst" : "src";
	case SPEC_ACTION:
		return action_format(spec, text);
	case SPEC_START:
		return start_names[spec->start];
	default:
		return shared_names[spec->shared];
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
