// SPDX-License-Identifier: GPL-2.0
#include "rules/limit_words.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "rules/value.h"

/* The words of one limit, and the arguments of spec_parse() with which they are parsed. */
struct words {
	const char *const *text; /* by field */
	const struct sl_prefix *prefix;
	void (*place)(void *data, enum spec_field field);
	void *data;
};

static void place_at(const struct words *words, enum spec_field field)
{
	if (words->place)
		words->place(words->data, field);
}

/* --- One limit ------------------------------------------------------------------------------ */

/* Whether exactly one field says the kind. */
static int kind_check(const struct words *words)
{
	enum spec_field last = SPEC_RATE;
	unsigned int count = 0;

	for (size_t kind = 0; kind < SL_KINDS; kind++) {
		if (!words->text[kind_fields[kind]])
			continue;
		last = kind_fields[kind];
		count++;
	}
	place_at(words, last);
	if (!count)
		return misuse("a limit needs a rate: write 'rate 10kpps' or 'rate 50mbit', 'window "
			      "1000 per 1min', or 'shape 10mbit'");
	if (count > 1)
		return misuse("a limit has one of rate, window and shape: give the other a name of "
			      "its own");
	return OK;
}

/* Whether the fields that are given are those of the limit's kind. */
static int fields_check(const struct words *words)
{
	const char *const *text = words->text;

	for (int field = 0; field < SPEC_FIELDS; field++) {
		int kind = field_kind(field);

		if (!text[field])
			continue;
		place_at(words, field);
		if (kind >= 0 && !text[kind_fields[kind]])
			return misuse("%s '%s' is a part of '%s': this limit has none",
				      spec_names[field], text[field],
				      spec_names[kind_fields[kind]]);
		if (field == SPEC_SHARED && !text[SPEC_RATE])
			return misuse("shared '%s': only a limit with a rate can be shared",
				      text[field]);
		if (text[SPEC_SHAPE] && !kind_has_field(SL_SHAPE, field))
			return misuse("%s '%s': a limit that shapes has none: it drops what would "
				      "wait longer than its horizon",
				      spec_names[field], text[field]);
	}
	return OK;
}

/* Returns the fields that are refused, as bits. They stay at their defaults. */
static uint32_t fields_parse(const struct words *words, struct limit *limit)
{
	uint32_t refused = 0;

	for (int field = 0; field < SPEC_FIELDS; field++) {
		if (!words->text[field])
			continue;
		place_at(words, field);
		if (field_parse(field, words->text[field], words->prefix, limit))
			refused |= 1U << field;
	}
	return refused;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
	return value > least ? value : least;
}

void burst_default(struct sl_limit_spec *spec)
{
	if (spec->rate_unit == SL_RATE_BITS) {
		spec->burst = at_least(spec->rate / 8, 256000);
		spec->burst_unit = SL_BURST_BYTES;
	} else {
		spec->burst = at_least(rate_per_second(spec), 64);
		spec->burst_unit = SL_BURST_PACKETS;
	}
}

static void bursts_default(struct limit *limit)
{
	struct limit second = limit_second(limit);

	burst_default(&limit->spec);
	if (!limit->second.rate)
		return;
	burst_default(&second.spec);
	limit->second.burst = second.spec.burst;
	limit->second.burst_unit = second.spec.burst_unit;
}

/*
 * Completes a limit by the defaults of its kind, and checks that its parts fit each other. What is
 * wrong alone is refused already.
 */
static int parts_fit(const struct words *words, struct limit *limit)
{
	struct sl_limit_spec *spec = &limit->spec;
	struct limit second;

	if (spec->kind == SL_TOKEN_BUCKET && spec->rate && !words->text[SPEC_BURST])
		bursts_default(limit);
	if (spec->kind == SL_TOKEN_BUCKET)
		spec->span_ns = 0;
	if (spec->kind != SL_WINDOW)
		spec->groups = 0;
	if (!spec->rate || (spec->kind == SL_TOKEN_BUCKET ? !spec->burst : !spec->span_ns))
		return MISUSED;
	place_at(words, words->text[SPEC_BURST]	    ? SPEC_BURST
			: words->text[SPEC_HORIZON] ? SPEC_HORIZON
						    : kind_fields[spec->kind]);
	second = limit_second(limit);
	if (limit_check(limit) || (limit->second.burst && limit_check(&second)))
		return MISUSED;
	return OK;
}

/* Whether the words of sharing fit each other: of one that is refused that is not known. */
static int shared_fits(const struct words *words, uint32_t refused, const struct limit *limit)
{
	if (refused & (1U << SPEC_SHARED | 1U << SPEC_START | 1U << SPEC_ACTION))
		return OK;
	place_at(words, limit->spec.shared ? SPEC_SHARED : SPEC_START);
	return limit_check_shared(&limit->spec);
}

/* Parses the words of one limit. */
static int one_parse(const struct words *words, struct limit *ret)
{
	struct limit limit = limit_defaults;
	uint32_t refused = fields_parse(words, &limit);

	if (!words->text[SPEC_NAME])
		name_default(&limit.match, "", limit.spec.name);
	if (kind_check(words) || fields_check(words) || shared_fits(words, refused, &limit) ||
	    parts_fit(words, &limit) || refused)
		return MISUSED;
	*ret = limit;
	return OK;
}

/* --- Several lengths of a key --------------------------------------------------------------- */

/* The fields that have a value for each length of `per`. */
static const enum spec_field listed_fields[] = {SPEC_PER,    SPEC_RATE,	 SPEC_BURST,
						SPEC_WINDOW, SPEC_SHAPE, SPEC_HORIZON};

static unsigned int parts_count(const char *text)
{
	unsigned int count = 1;

	for (; *text; text++)
		count += *text == ',';
	return count;
}

/* Copies one of the parts of a text between commas, which blanks may follow. NULL: too long. */
static const char *part_copy(const char *text, unsigned int index, char part[SPEC_TEXT])
{
	while (index--)
		text = strchr(text, ',') + 1;
	text += strspn(text, " \t");
	return snprintf(part, SPEC_TEXT, "%.*s", (int)strcspn(text, ","), text) < SPEC_TEXT ? part
											    : NULL;
}

/* The key lengths of one of several limits. On `default` one length is that of both families. */
static int part_per(const struct sl_prefix *prefix, char part[SPEC_TEXT])
{
	unsigned int bits;
	const char *end = number_read(part + (*part == '/'), 128, &bits); /* /24 means 24 */

	if (!end || *end)
		return OK;
	if (prefix->bits) {
		snprintf(part, SPEC_TEXT, "%u", bits);
		return OK;
	}
	if (bits > 32)
		return misuse("per '%s': of several lengths on default each is IPv4's, 0 to 32, "
			      "and IPv6's is 32 longer; or write both, 24/56",
			      part);
	snprintf(part, SPEC_TEXT, "%u/%u", bits, bits ? bits + 32 : 0); /* 0: one key for all */
	return OK;
}

/* Appends the length to the name of a limit that is not the first: "all-24". */
static int part_name(const struct words *words, const char *per, struct limit *limit)
{
	const char *name = words->text[SPEC_NAME];
	char suffix[SL_NAME], whole[2 * SL_NAME];

	snprintf(suffix, sizeof(suffix), "-%.*s", (int)strcspn(per, "/"), per);
	if (!name) {
		name_default(&limit->match, suffix, limit->spec.name);
		return OK;
	}
	place_at(words, SPEC_NAME);
	if (snprintf(whole, sizeof(whole), "%s%s", name, suffix) >= SL_NAME)
		return misuse("name '%s': each length of a key makes a limit with a name such as "
			      "'%s', of at most %d characters",
			      name, whole, SL_NAME - 1);
	strcpy(limit->spec.name, whole);
	return OK;
}

/* Makes the words of one of several limits, with its part of each value. part: memory for them. */
static int part_make(const struct words *all, unsigned int index, char part[SPEC_FIELDS][SPEC_TEXT],
		     struct spec *ret)
{
	memcpy(ret->text, all->text, sizeof(ret->text));
	for (size_t i = 0; i < ARRAY_SIZE(listed_fields); i++) {
		enum spec_field field = listed_fields[i];
		const char *text = all->text[field];

		if (text && parts_count(text) > 1)
			ret->text[field] = part_copy(text, index, part[field]);
		if (text && !ret->text[field])
			return misuse("%s '%s' is too long", spec_names[field], text);
	}
	place_at(all, SPEC_PER);
	return part_per(all->prefix, part[SPEC_PER]);
}

/* Whether each field that has several values has as many as `per`. */
static int parts_check(const struct words *words, unsigned int count)
{
	const char *per = words->text[SPEC_PER];

	for (size_t i = 0; i < ARRAY_SIZE(listed_fields); i++) {
		enum spec_field field = listed_fields[i];
		const char *text = words->text[field];
		unsigned int values = text ? parts_count(text) : 1;

		if (values == 1 || values == count)
			continue;
		place_at(words, field);
		if (count == 1)
			return misuse("%s '%s' has %u values: write as many lengths, such as per "
				      "32,24",
				      spec_names[field], text, values);
		return misuse("%s '%s' has %u values, and per '%s' has %u: write one for each, or "
			      "one for all",
			      spec_names[field], text, values, per, count);
	}
	if (count <= SL_LIMITS_MAX)
		return OK;
	place_at(words, SPEC_PER);
	return misuse("per '%s': a prefix has %d limits at most", per, SL_LIMITS_MAX);
}

/* Whether the keys of a limit are wider than those of the one before it: narrow first. */
static int wider_check(const struct words *words, const struct limits *limits, unsigned int index)
{
	const uint8_t *last = limits->list[index - 1].spec.per, *per = limits->list[index].spec.per;
	bool wider = false, narrower = false;

	for (int family = 0; family < SL_FAMILIES; family++) {
		wider |= per[family] < last[family];
		narrower |= per[family] > last[family];
	}
	if (wider && !narrower)
		return OK;
	place_at(words, SPEC_PER);
	return misuse("per '%s': each length is shorter than the one before it: write 32,24,16",
		      words->text[SPEC_PER]);
}

/* Parses the words of several limits, one for each length after `per`. */
static int parts_parse(const struct words *words, unsigned int count, struct limits *ret)
{
	char part[SPEC_FIELDS][SPEC_TEXT];
	struct words words_one = *words;
	int status = OK;
	struct spec one;

	words_one.text = one.text;
	for (unsigned int i = 0; !status && i < count; i++) {
		status = part_make(words, i, part, &one);
		if (!status)
			status = one_parse(&words_one, &ret->list[i]);
		if (!status && i)
			status = part_name(words, part[SPEC_PER], &ret->list[i])
					 ?: wider_check(words, ret, i);
	}
	ret->count = count;
	return status;
}

/* --- What is written ------------------------------------------------------------------------ */

int spec_parse(const struct spec *spec, const struct sl_prefix *prefix,
	       void (*place)(void *data, enum spec_field field), void *data, struct limits *ret)
{
	unsigned int count = spec->text[SPEC_PER] ? parts_count(spec->text[SPEC_PER]) : 1;
	const struct words words = {spec->text, prefix, place, data};
	struct limits limits = {.count = count};
	int status = parts_check(&words, count);

	if (!status && count == 1)
		status = one_parse(&words, &limits.list[0]);
	else if (!status)
		status = parts_parse(&words, count, &limits);
	if (!status)
		*ret = limits;
	return status;
}

int spec_parse_budget(const char *rate, const char *burst,
		      void (*place)(void *data, enum spec_field field), void *data,
		      struct limit *ret)
{
	const struct sl_prefix everything = {0};
	const char *const text[SPEC_FIELDS] = {
		[SPEC_NAME] = "newcomers", [SPEC_RATE] = rate, [SPEC_BURST] = burst};
	const struct words words = {text, &everything, place, data};
	struct limit limit;
	int status = one_parse(&words, &limit);

	if (status)
		return status;
	if (limit.second.rate) {
		place_at(&words, SPEC_RATE);
		return misuse("rate '%s': a budget has one rate: write 10kpps or 100mbit", rate);
	}
	*ret = limit;
	return OK;
}
