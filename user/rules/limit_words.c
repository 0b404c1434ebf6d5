// SPDX-License-Identifier: GPL-2.0
#include "rules/limit_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "kinds.h"
#include "match.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "window.h"

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

const struct limit limit_defaults = {
	.spec = {.name = "all",
		 .per = {[SL_IPV4] = 32, [SL_IPV6] = 64},
		 .groups = 5,
		 .span_ns = 200 * NS_PER_MS},
	.match = {.fact = SL_FACT_ANY},
};

/*
 * Default of `max` in `escalate`. It is short, because forged packets can cause blocks of a source.
 */
#define BLOCK_MAX_NS (600 * NS_PER_SEC)

static const struct value_type value_span = VALUE_TIME(NS_PER_MS, TIME_MAX_NS);
static const struct value_type value_horizon = VALUE_TIME(NS_PER_MS, HORIZON_MAX_NS);
static const struct value_type value_groups =
	VALUE_NUMBER(1, WINDOW_GROUPS_MAX, "it is the number of sub-windows");
static const struct value_type value_factor =
	VALUE_NUMBER(2, 16, "each block is this many times as long as the block before");

static const char *const key_words[] = {"src", "dst"};
static const struct value_type value_key = VALUE_CHOICE("src|dst", key_words, 0);
static const char *const start_words[] = {
	[SL_START_FULL] = "full",
	[SL_START_EMPTY] = "empty",
	[SL_START_SHARE] = "share",
};
static const struct value_type value_start = VALUE_CHOICE("full|empty|share", start_words, 0);
static const char *const shared_words[] = {
	[SL_SHARED_NO] = "no",
	[SL_SHARED_YES] = "yes",
	[SL_SHARED_BLOCK] = "block",
};
static const struct value_type value_shared = VALUE_CHOICE("yes|no|block", shared_words, 0);

/* --- Words ---------------------------------------------------------------------------------- */

/*
 * Splits a copy of a text into words. A number and its unit are one word. If `is_time` is set, a
 * time such as "1 hour 30 minutes" is also one word. Returns the number of words. Returns most + 1
 * if there are more words, or if the text is too long.
 */
static unsigned int words_split(const char *text, char copy[SPEC_TEXT], char **words,
				unsigned int most, bool is_time)
{
	unsigned int count = 0;
	char *rest, *word;

	if ((size_t)snprintf(copy, SPEC_TEXT, "%s", text) >= SPEC_TEXT)
		return most + 1;
	for (word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		char *last = count ? words[count - 1] : "", *end = last + strlen(last);
		bool is_amount = isdigit((unsigned char)*last);

		/* join "10" and "mbit"; if `is_time` is set, join "1 hour" and "30" */
		if (is_amount &&
		    (isdigit((unsigned char)end[-1]) ? unit_is_known(word)
						     : is_time && isdigit((unsigned char)*word))) {
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

/* --- Fields --------------------------------------------------------------------------------- */

/* Parses a value by a type that stores an unsigned int, and stores it in *ret as one byte. */
static int byte_parse(const struct value_type *type, const char *what, const char *text,
		      uint8_t *ret)
{
	unsigned int number;
	int err = value_parse(type, what, text, &number);

	if (!err)
		*ret = number;
	return err;
}

static int name_parse(const char *text, struct limit *limit)
{
	char *name = limit->spec.name;

	if (!limit_name_is_valid(text))
		return error_misuse(
			"bad-name", object_of("name", text),
			"not a limit name; write at most %d letters, digits, - and _, but no - "
			"first",
			SL_NAME - 1);
	memset(name, 0, SL_NAME);
	strcpy(name, text);
	return 0;
}

/* Parses one or two amounts, such as "10kpps 100mbit". Sets an absent second amount to 0. */
static int pair_parse(const struct value_type *type, const char *what, const char *text,
		      struct value_amount ret[2])
{
	char copy[SPEC_TEXT], *words[2];

	ret[1] = (struct value_amount){0};
	if (words_split(text, copy, words, 2, false) != 2 || !isdigit((unsigned char)*words[1]))
		return value_parse(type, what, text, &ret[0]);
	return value_parse(type, what, words[0], &ret[0])
		       ?: value_parse(type, what, words[1], &ret[1]);
}

static int rates_parse(const char *text, struct limit *limit)
{
	struct value_amount rate[2];
	int err = pair_parse(&value_rate, "rate", text, rate);

	if (err)
		return err;
	if (rate[1].number && (rate[0].unit == SL_RATE_BITS || rate[1].unit != SL_RATE_BITS))
		return error_misuse("two-rates", object_of("rate", text),
				    "two rates must be a packet rate and a bit rate; write "
				    "10kpps 100mbit");
	limit->spec.rate = rate[0].number;
	limit->spec.rate_unit = rate[0].unit;
	limit->second.rate = rate[1].number;
	return 0;
}

static int bursts_parse(const char *text, struct limit *limit)
{
	struct value_amount burst[2];
	int err = pair_parse(&value_burst, "burst", text, burst);

	if (err)
		return err;
	limit->spec.burst = burst[0].number;
	limit->spec.burst_unit = burst[0].unit;
	limit->second.burst = burst[1].number;
	limit->second.burst_unit = burst[1].unit;
	return 0;
}

/* Parses "1000 per 1min", "1000 per minute" or "10MB per 1h". */
static int window_parse(const char *text, struct limit *limit)
{
	char copy[SPEC_TEXT], one[SPEC_TEXT + 1], *words[3];
	struct value_amount amount;
	uint64_t ns;
	int err;

	if (words_split(text, copy, words, 3, true) != 3 || strcmp(words[1], "per"))
		return error_misuse("bad-window", object_of("window", text),
				    "not an amount and a time; write 1000 per 1min, or 10MB per "
				    "1h");
	snprintf(one, sizeof(one), "%s%s", unit_is_known(words[2]) ? "1" : "", words[2]);
	err = value_parse(&value_amount, "window", words[0], &amount)
		      ?: value_parse(&value_span, "window", one, &ns);
	if (err)
		return err;
	if (amount.number > WINDOW_MOST_MAX)
		return error_misuse("out-of-range", object_of("window", words[0]),
				    "too large; the largest is 140TB");
	limit->spec.rate = amount.number;
	limit->spec.rate_unit = amount.unit == SL_BURST_BYTES ? SL_RATE_BITS : SL_RATE_PPS;
	limit->spec.span_ns = ns;
	return 0;
}

static int shape_parse(const char *text, struct limit *limit)
{
	struct value_amount rate;
	int err = value_parse(&value_rate, "shape", text, &rate);

	if (err)
		return err;
	limit->spec.rate = rate.number;
	limit->spec.rate_unit = rate.unit;
	return 0;
}

#define ONE_LENGTH 255 /* stored as the IPv6 length if only one length is given */

/*
 * Parses one or two lengths, such as "24" or "24/56". If the text has one length, stores ONE_LENGTH
 * as the second length.
 */
static int per_parse(const char *text, struct limit *limit)
{
	unsigned int first, second = ONE_LENGTH;
	const char *end = number_read(text + (*text == '/'), 128, &first); /* accept "/24" */
	bool is_one = end && !*end;

	if (end && *end == '/')
		end = number_read(end + 1, 128, &second);
	if (!end || *end || (!is_one && first > 32))
		return error_misuse("bad-length", object_of("per", text),
				    "not a key length; write 24 or 56, or for default an IPv4 and "
				    "an IPv6 length such as 24/56");
	limit->spec.per[0] = first;
	limit->spec.per[1] = second;
	return 0;
}

/* Parses "escalate N [max TIME]". A state can count at most BLOCK_STEPS_MAX escalations. */
static int escalate_parse(char **words, unsigned int count, struct sl_limit_spec *spec)
{
	char most[UNITS_TEXT], reach[UNITS_TEXT];
	uint64_t length = spec->block_ns;
	int err;

	if (strcmp(words[0], "escalate") || (count != 2 && count != 4) ||
	    (count == 4 && strcmp(words[2], "max")))
		return error_misuse("bad-action", object_of("action block", words[0]),
				    "after the time, write 'escalate' and a number, and then 'max' "
				    "and a time: block 10s escalate 2 max 1h");
	spec->block_max_ns = BLOCK_MAX_NS;
	err = byte_parse(&value_factor, "escalate", words[1], &spec->escalate);
	if (!err && count == 4)
		err = value_parse(&value_time, "max", words[3], &spec->block_max_ns);
	if (err)
		return err;
	time_format(spec->block_max_ns, most);
	if (spec->block_max_ns <= spec->block_ns)
		return error_misuse("bad-escalate", "escalate",
				    "the longest block is %s, not longer than the first; write max "
				    "and a longer time",
				    most);
	if (limit_escalations(spec) <= BLOCK_STEPS_MAX)
		return 0;
	for (unsigned int step = 0; step < BLOCK_STEPS_MAX; step++)
		length *= spec->escalate;
	return error_misuse("bad-escalate", "escalate",
			    "the longest block of %s is never reached, because a block escalates "
			    "at most %llu times; write max %s or less",
			    most, BLOCK_STEPS_MAX, time_format(length, reach));
}

static int action_parse(const char *text, struct limit *limit)
{
	char copy[SPEC_TEXT], *words[6];
	unsigned int count = words_split(text, copy, words, 6, true);
	struct sl_limit_spec *spec = &limit->spec;
	int err;

	spec->block_ns = spec->block_max_ns = spec->escalate = 0;
	if (!count || count > 6 || strcmp(words[0], "block")) {
		if (count != 1 || (strcmp(words[0], "drop") && strcmp(words[0], "observe")))
			return error_misuse("bad-action", object_of("action", text),
					    "no such action; write drop, observe or block 30s");
		spec->action = *words[0] == 'd' ? SL_ACTION_DROP : SL_ACTION_OBSERVE;
		return 0;
	}
	if (count == 1)
		return error_misuse("bad-action", object_of("action", text),
				    "block requires a time; write block 30s");
	spec->action = SL_ACTION_BLOCK;
	err = value_parse(&value_span, "block", words[1], &spec->block_ns);
	return err || count == 2 ? err : escalate_parse(words + 2, count - 2, spec);
}

#define ANY_KIND	   (1 << SL_TOKEN_BUCKET | 1 << SL_WINDOW | 1 << SL_SHAPE)
#define DROPS		   (1 << SL_TOKEN_BUCKET | 1 << SL_WINDOW)
#define BYTE(member, type) .byte = &(type), .offset = offsetof(struct limit, spec.member)

/*
 * Each field has function `parse`, or type `byte` if its value is one byte. part_parse() parses the
 * other fields.
 */
static const struct field {
	uint8_t kinds;	/* bit mask of the kinds of limits that accept this field */
	bool is_listed; /* the field accepts several values, separated by commas */
	int (*parse)(const char *text, struct limit *limit);
	const struct value_type *byte;
	size_t offset;
} fields[SPEC_FIELDS] = {
	[SPEC_NAME] = {.kinds = ANY_KIND, .parse = name_parse},
	[SPEC_RATE] = {.kinds = 1 << SL_TOKEN_BUCKET, .is_listed = true, .parse = rates_parse},
	[SPEC_BURST] = {.kinds = 1 << SL_TOKEN_BUCKET, .is_listed = true, .parse = bursts_parse},
	[SPEC_WINDOW] = {.kinds = 1 << SL_WINDOW, .is_listed = true, .parse = window_parse},
	[SPEC_GROUPS] = {.kinds = 1 << SL_WINDOW, BYTE(groups, value_groups)},
	[SPEC_SHAPE] = {.kinds = 1 << SL_SHAPE, .is_listed = true, .parse = shape_parse},
	[SPEC_HORIZON] = {.kinds = 1 << SL_SHAPE, .is_listed = true},
	[SPEC_MATCH] = {.kinds = ANY_KIND},
	[SPEC_PER] = {.kinds = ANY_KIND, .is_listed = true, .parse = per_parse},
	[SPEC_KEY] = {.kinds = ANY_KIND, BYTE(key_dst, value_key)},
	[SPEC_ACTION] = {.kinds = DROPS, .parse = action_parse},
	[SPEC_START] = {.kinds = DROPS, BYTE(start, value_start)},
	[SPEC_SHARED] = {.kinds = 1 << SL_TOKEN_BUCKET, BYTE(shared, value_shared)},
};

/* Parses one value of a field, and stores the value in a limit. */
static int part_parse(enum spec_field field, const char *text, struct limit *limit)
{
	const struct field *type = &fields[field];

	if (type->parse)
		return type->parse(text, limit);
	if (field == SPEC_MATCH)
		return match_parse(text, &limit->match);
	if (field == SPEC_HORIZON)
		return value_parse(&value_horizon, "horizon", text, &limit->spec.span_ns);
	if (field == SPEC_SHARED) /* accept the booleans of YAML and JSON, too */
		text = !strcmp(text, "true") ? "yes" : !strcmp(text, "false") ? "no" : text;
	return byte_parse(type->byte, spec_names[field], text, (uint8_t *)limit + type->offset);
}

int spec_field_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	enum spec_field field = type->least;
	unsigned int count = 1;
	struct spec *spec = ret;
	char part[SPEC_TEXT];

	for (const char *p = text; *p && fields[field].is_listed; p++)
		count += *p == ',';
	if (count > SL_LIMITS_MAX)
		return error_misuse("too-many-values", object_of(what, text),
				    "a prefix has at most %d limits", SL_LIMITS_MAX);
	if (count > 1 && strlen(text) >= SPEC_TEXT)
		return error_misuse("too-long", object_of(what, text), "longer than %d characters",
				    SPEC_TEXT - 1);
	for (unsigned int i = 0; i < (count > 1 ? count : SL_LIMITS_MAX); i++) {
		int err;

		if (count > 1) { /* copy the next value, up to the comma */
			const char *value = text + strspn(text, " \t");

			snprintf(part, SPEC_TEXT, "%.*s", (int)strcspn(value, ","), value);
			text = value + strcspn(value, ",") + 1;
		}
		err = part_parse(field, count > 1 ? part : text, &spec->limits[i]);
		if (err)
			return err;
	}
	spec->given |= 1U << field;
	spec->count[field] = count;
	return 0;
}

#define FIELD(field, ...) [field] = SPEC_TYPE(field, __VA_ARGS__)
#define WORDS(array)	  .words = (array), .word_count = ARRAY_SIZE(array)

const struct value_type spec_types[SPEC_FIELDS] = {
	FIELD(SPEC_NAME, "LIMIT", VALUE_WORD),
	FIELD(SPEC_RATE, "RATE [BITRATE]", VALUE_NUMBERS),
	FIELD(SPEC_BURST, "BURST [BURST]", VALUE_NUMBERS),
	FIELD(SPEC_WINDOW, "N per TIME", VALUE_NUMBERS),
	FIELD(SPEC_GROUPS, "N", VALUE_WORD),
	FIELD(SPEC_SHAPE, "RATE", VALUE_NUMBERS),
	FIELD(SPEC_HORIZON, "TIME", VALUE_NUMBERS),
	FIELD(SPEC_MATCH,
	      "any|tcp|udp|tcp-syn|icmp|fragment|quic-initial|tls-hello|dns-query|proto N|sport "
	      "N|port N|to PREFIX|flags FLAGS|"
	      "icmp-type TYPE|length N|dscp N|vlan N",
	      VALUE_WORDS),
	FIELD(SPEC_PER, "LEN[/LEN6][,...]", VALUE_WORD),
	FIELD(SPEC_KEY, "src|dst", VALUE_WORD, WORDS(key_words)),
	FIELD(SPEC_ACTION, "drop|observe|block TIME [escalate N [max TIME]]", VALUE_WORDS),
	FIELD(SPEC_START, "full|empty|share", VALUE_WORD, WORDS(start_words)),
	FIELD(SPEC_SHARED, "yes|no|block", VALUE_WORD, WORDS(shared_words)),
};

bool spec_accepts(const struct spec *spec, enum spec_field field)
{
	for (enum sl_kind kind = 0; kind < SL_KINDS; kind++)
		if (spec_has(spec, kind_fields[kind]) && !(fields[field].kinds >> kind & 1))
			return false;
	return !spec_has(spec, field);
}

/* --- Making limits -------------------------------------------------------------------------- */

/*
 * Computes the default name of a limit from its match. Joins the words with '-', omits "port" after
 * the kind, and writes any other character than a letter, a digit or '-' as '_'. If the limit
 * matches any packet, the name is "all". Appends `suffix`, such as "-24". If the name is too long,
 * cuts it and appends a hash, so that different matches have different names.
 */
static void name_default(const struct sl_match *match, const char *suffix, char name[SL_NAME])
{
	char text[MATCH_TEXT + SL_NAME], words[MATCH_TEXT], *to = text;
	const char *from = match_format(match, words);
	uint32_t digest = 2166136261U; /* 32-bit FNV-1a hash, which is folded to 16 bits below */

	if (!strcmp(from, "any"))
		from = "all";
	for (; *from; from++) {
		if (!strncmp(from, " port ", 6))
			from += 5;
		*to++ = *from == ' '					? '-'
			: isalnum((unsigned char)*from) || *from == '-' ? *from
									: '_';
	}
	strcpy(to, suffix);
	memset(name, 0, SL_NAME);
	if (strlen(text) < SL_NAME) {
		strcpy(name, text);
		return;
	}
	for (const char *p = text; *p; p++)
		digest = (digest ^ (unsigned char)*p) * 16777619U;
	snprintf(name, SL_NAME, "%.*s-%04x", SL_NAME - 6, text, (digest ^ digest >> 16) & 0xffff);
}

void burst_default(struct sl_limit_spec *spec)
{
	if (spec->rate_unit == SL_RATE_BITS) {
		spec->burst = spec->rate / 8 > 256000 ? spec->rate / 8 : 256000;
		spec->burst_unit = SL_BURST_BYTES;
	} else {
		spec->burst = rate_per_second(spec) > 64 ? rate_per_second(spec) : 64;
		spec->burst_unit = SL_BURST_PACKETS;
	}
}

/* Adds an error, stores in *at which field is wrong, and returns -EINVAL. */
#define refuse(at, field, id, ...) (*(at) = (field), error_misuse(id, __VA_ARGS__))

/*
 * Checks whether the given fields are valid together, and stores the limit's kind. Exactly one of
 * `rate`, `window` and `shape` must be given, because it determines the kind. Each field must have
 * one value, or one value for each length of `per`.
 */
static int fields_check(const struct spec *spec, unsigned int lengths, enum sl_kind *ret,
			enum spec_field *at)
{
	unsigned int count = 0;

	for (enum sl_kind kind = 0; kind < SL_KINDS; kind++) {
		if (!spec_has(spec, kind_fields[kind]))
			continue;
		*ret = kind;
		*at = kind_fields[kind];
		count++;
	}
	if (!count)
		return error_misuse("no-rate", NULL,
				    "a limit needs a rate; write 'rate 10kpps' or 'rate 50mbit', "
				    "'window 1000 per 1min', or 'shape 10mbit'");
	if (count > 1)
		return error_misuse("two-kinds", spec_names[*at],
				    "a limit has only one of rate, window and shape; write two "
				    "limits with different names");
	for (enum spec_field field = 0; field < SPEC_FIELDS; field++)
		if (spec_has(spec, field) && !(fields[field].kinds >> *ret & 1))
			return refuse(at, field, "other-kind", spec_names[field],
				      "a limit with '%s' has no '%s'; remove it",
				      spec_names[kind_fields[*ret]], spec_names[field]);
	for (enum spec_field field = 0; field < SPEC_FIELDS; field++)
		if (spec_has(spec, field) && spec->count[field] != 1 &&
		    spec->count[field] != lengths)
			return refuse(
				at, field, "wrong-count", spec_names[field],
				"%u values for %u %s after 'per'; write a value for each length, "
				"or one value for all",
				spec->count[field], lengths, plural(lengths, "length", "lengths"));
	return 0;
}

/* Sets the key lengths of the limit that the spec makes for length number `index` of `per`. */
static int per_set(const struct spec *spec, unsigned int index, const struct sl_prefix *prefix,
		   struct limit *limit)
{
	const uint8_t *given = spec->limits[index].spec.per;
	unsigned int bits = given[0];
	bool is_ipv4 = prefix_is_ipv4(prefix), is_one = given[1] == ONE_LENGTH;
	char name[PREFIX_TEXT], text[16];

	memcpy(limit->spec.per, limit_defaults.spec.per, sizeof(limit->spec.per));
	if (!spec_has(spec, SPEC_PER))
		return 0;
	snprintf(text, sizeof(text), is_one ? "%u" : "%u/%u", given[0], given[1]);
	if (prefix->bits && !is_one)
		return error_misuse("bad-length", object_of("per", text),
				    "two lengths for %s, which is %s; write one length",
				    prefix_format(prefix, name), is_ipv4 ? "IPv4" : "IPv6");
	if (is_ipv4 && bits > 32)
		return error_misuse("bad-length", object_of("per", text),
				    "%s is IPv4; write a length from 0 to 32",
				    prefix_format(prefix, name));
	if (!prefix->bits && is_one && spec->count[SPEC_PER] > 1) {
		if (bits > 32)
			return error_misuse("bad-length", object_of("per", text),
					    "several lengths on default are IPv4 lengths, 0 to 32; "
					    "to also choose IPv6 lengths, write 24/56");
		limit->spec.per[SL_IPV4] = bits;
		/* length 0: all addresses of the family have one key */
		limit->spec.per[SL_IPV6] = bits ? bits + 32 : 0;
	} else if (!is_one) {
		memcpy(limit->spec.per, given, sizeof(limit->spec.per));
	} else {
		limit->spec.per[is_ipv4 || (!prefix->bits && bits <= 32) ? SL_IPV4 : SL_IPV6] =
			bits;
	}
	return 0;
}

/*
 * Sets the name of limit number `index`, such as "all" for index 0, and "all-24" for another index.
 */
static int name_set(const struct spec *spec, unsigned int index, struct limit *limit)
{
	char suffix[8] = "", whole[SL_NAME + sizeof(suffix)];

	if (index)
		snprintf(suffix, sizeof(suffix), "-%u", spec->limits[index].spec.per[0]);
	if (!spec_has(spec, SPEC_NAME)) {
		name_default(&limit->match, suffix, limit->spec.name);
		return 0;
	}
	snprintf(whole, sizeof(whole), "%s%s", limit->spec.name, suffix);
	if (strlen(whole) >= SL_NAME)
		return error_misuse("bad-name", object_of("name", limit->spec.name),
				    "each length after 'per' makes a limit; the name '%s' would be "
				    "longer than %d characters",
				    whole, SL_NAME - 1);
	strcpy(limit->spec.name, whole);
	return 0;
}

static int burst_unit_check(const struct sl_limit_spec *spec)
{
	bool by_bytes = spec->rate_unit == SL_RATE_BITS;
	char text[UNITS_TEXT];

	if (spec->burst_unit != (by_bytes ? SL_BURST_PACKETS : SL_BURST_BYTES))
		return 0;
	burst_format(spec, text);
	if (by_bytes)
		return error_misuse("burst-unit", object_of("burst", text),
				    "the burst of a bit rate needs a unit; write 64kB or 250ms");
	return error_misuse(
		"burst-unit", object_of("burst", text),
		"the burst of a packet rate is not in bytes; write 2000 (packets) or 250ms");
}

/* Sets the default burst of each token bucket. If a user specified bursts, checks their units. */
static int bursts_set(const struct spec *spec, struct limit *limit)
{
	struct limit second = limit_second(limit);
	bool is_pair = limit->second.rate;
	struct sl_prefix everything = {0};
	char text[SPEC_TEXT];

	if (!spec_has(spec, SPEC_BURST)) {
		burst_default(&limit->spec);
		burst_default(&second.spec);
		if (is_pair) {
			limit->second.burst = second.spec.burst;
			limit->second.burst_unit = second.spec.burst_unit;
		}
		return 0;
	}
	if (is_pair == !limit->second.burst)
		return error_misuse(
			"two-bursts",
			object_of("burst", spec_format_whole(limit, &everything, SPEC_BURST, text)),
			is_pair ? "two rates have two bursts; write 2500 64kB"
				: "one rate has one burst; write 2500, 64kB or 250ms");
	return burst_unit_check(&limit->spec) ?: (is_pair ? burst_unit_check(&second.spec) : 0);
}

/* Sets absent fields of a limit to their defaults. Checks that all fields fit each other. */
static int parts_set(const struct spec *spec, struct limit *limit, enum spec_field *at)
{
	enum sl_kind kind = limit->spec.kind;
	struct limit second = {0};
	int err;

	if (!spec_has(spec, SPEC_MATCH))
		limit->match = limit_defaults.match;
	if (kind == SL_WINDOW && !spec_has(spec, SPEC_GROUPS))
		limit->spec.groups = limit_defaults.spec.groups;
	if (kind == SL_SHAPE && !spec_has(spec, SPEC_HORIZON))
		limit->spec.span_ns = limit_defaults.spec.span_ns;
	if (!limit->spec.shared && limit->spec.start == SL_START_SHARE)
		return refuse(
			at, spec_has(spec, SPEC_SHARED) ? SPEC_SHARED : SPEC_START, "not-shared",
			"start 'share'",
			"each machine gives a new source its share of the burst, which requires "
			"a shared limit; write shared yes");
	if (limit->spec.shared == SL_SHARED_BLOCK && limit->spec.action != SL_ACTION_BLOCK)
		return refuse(
			at, SPEC_SHARED, "no-block", "shared 'block'",
			"the limit never blocks, so no block can be shared; write 'action block "
			"30s'");
	*at = spec_has(spec, SPEC_BURST)     ? SPEC_BURST
	      : spec_has(spec, SPEC_HORIZON) ? SPEC_HORIZON
					     : kind_fields[kind];
	err = kind == SL_TOKEN_BUCKET ? bursts_set(spec, limit) : 0;
	err = err ?: limit_check(&limit->spec);
	if (err || !limit->second.rate)
		return err;
	second = limit_second(limit);
	return limit_check(&second.spec);
}

int spec_make(const struct spec *spec, const struct sl_prefix *prefix, struct limits *ret,
	      enum spec_field *ret_field)
{
	struct limits limits = {.count = spec_has(spec, SPEC_PER) ? spec->count[SPEC_PER] : 1};
	enum sl_kind kind = SL_TOKEN_BUCKET;
	int err;

	*ret_field = SPEC_FIELDS;
	err = fields_check(spec, limits.count, &kind, ret_field);
	for (unsigned int i = 0; !err && i < limits.count; i++) {
		struct limit *limit = &limits.list[i];
		bool wider = false, narrower = false;

		*limit = spec->limits[i];
		limit->spec.kind = kind;
		err = parts_set(spec, limit, ret_field);
		if (err)
			return err;
		*ret_field = SPEC_NAME;
		err = name_set(spec, i, limit);
		if (err)
			return err;
		*ret_field = SPEC_PER;
		err = per_set(spec, i, prefix, limit);
		for (int family = 0; !err && i && family < SL_FAMILIES; family++) {
			wider |= limit->spec.per[family] < limit[-1].spec.per[family];
			narrower |= limit->spec.per[family] > limit[-1].spec.per[family];
		}
		if (!err && i && (!wider || narrower))
			err = error_misuse("wrong-order", "per",
					   "the lengths do not descend; write 32,24,16");
	}
	if (!err)
		*ret = limits;
	return err;
}

int spec_make_budget(const struct spec *spec, struct limit *ret, enum spec_field *ret_field)
{
	const struct sl_prefix everything = {0};
	struct limits limits;
	int err = spec_make(spec, &everything, &limits, ret_field);

	if (!err && limits.list[0].second.rate)
		err = refuse(ret_field, SPEC_RATE, "two-rates", spec_names[SPEC_RATE],
			     "a budget has one rate; write 10kpps or 100mbit");
	if (err)
		return err;
	*ret = limits.list[0];
	strcpy(ret->spec.name, "newcomers");
	return 0;
}

/* --- Formats -------------------------------------------------------------------------------- */

_Static_assert(SPEC_TEXT >= MATCH_TEXT && SPEC_TEXT >= UNITS_TEXT, "room for any field");

typedef const char *format_fn(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);

/* Formats the rates or the bursts of a limit. format: rate_format() or burst_format(). */
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
	const struct field *type = &fields[field];
	char amount[UNITS_TEXT], time[UNITS_TEXT];
	uint8_t byte = *((const uint8_t *)limit + type->offset);

	if (!(type->kinds >> spec->kind & 1))
		return NULL;
	if (type->byte && type->byte->words)
		return type->byte->words[byte];
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
	case SPEC_SHAPE:
		return rate_format(spec, text);
	case SPEC_HORIZON:
		return time_format(spec->span_ns, text);
	case SPEC_MATCH:
		return match_format(&limit->match, text);
	case SPEC_PER:
		if (prefix->bits)
			snprintf(text, SPEC_TEXT, "%u", spec->per[prefix_family(prefix)]);
		else
			snprintf(text, SPEC_TEXT, "%u/%u", spec->per[SL_IPV4], spec->per[SL_IPV6]);
		return text;
	case SPEC_ACTION:
		return action_format(spec, text);
	default:
		snprintf(text, SPEC_TEXT, "%u", byte);
		return text;
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
	if (field == SPEC_NAME && match_is_deep(&limit->match))
		return words;
	usual.spec.kind = limit->spec.kind;
	return strcmp(words, spec_format_whole(&usual, prefix, field, usual_text)) ? words : NULL;
}

const char *limit_format(const struct limit *limit, const struct sl_prefix *prefix,
			 char text[LIMIT_TEXT])
{
	char value[SPEC_TEXT];
	size_t length = 0;

	for (enum spec_field field = 0; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(limit, prefix, field, value);

		if (words)
			length += snprintf(text + length, LIMIT_TEXT - length, " %s %s",
					   spec_names[field], words);
	}
	return text;
}
