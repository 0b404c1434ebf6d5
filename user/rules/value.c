// SPDX-License-Identifier: GPL-2.0
#include "rules/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

/* --- Units ---------------------------------------------------------------------------------- */

/*
 * A unit and its spellings, separated by '|'. The first spelling is printed. Units of a kind are in
 * descending order, because a value is printed in the first unit that divides it.
 */
struct unit {
	const char *names;
	uint64_t scale;
	unsigned int kind;
};

static const struct unit rate_units[] = {
	{"mpps", 1000000, SL_RATE_PPS},		 {"kpps", 1000, SL_RATE_PPS},
	{"pps|/s|/sec|/second", 1, SL_RATE_PPS}, {"/min|/m|/minute", 1, SL_RATE_PER_MIN},
	{"/h|/hour", 1, SL_RATE_PER_HOUR},	 {"gbit|gbit/s", 1000000000, SL_RATE_BITS},
	{"mbit|mbit/s", 1000000, SL_RATE_BITS},	 {"kbit|kbit/s", 1000, SL_RATE_BITS},
	{"bit|bit/s", 1, SL_RATE_BITS},		 {0},
};

static const struct unit burst_units[] = {
	{"|packets|packet", 1, SL_BURST_PACKETS}, {"TB", 1000000000000, SL_BURST_BYTES},
	{"GiB", 1 << 30, SL_BURST_BYTES},	  {"GB", 1000000000, SL_BURST_BYTES},
	{"MiB", 1 << 20, SL_BURST_BYTES},	  {"MB", 1000000, SL_BURST_BYTES},
	{"KiB", 1 << 10, SL_BURST_BYTES},	  {"kB", 1000, SL_BURST_BYTES},
	{"B|bytes|byte", 1, SL_BURST_BYTES},	  {0},
};

/*
 * Go writes µ as U+00B5. Other programs write U+03BC. Weeks are last, so that no time is printed in
 * weeks.
 */
static const struct unit time_units[] = {
	{"d|day|days", 86400000000000, SL_BURST_NS},
	{"h|hour|hours|hr|hrs", 3600000000000, SL_BURST_NS},
	{"min|m|minute|minutes|mins", 60000000000, SL_BURST_NS},
	{"s|second|seconds|sec|secs", 1000000000, SL_BURST_NS},
	{"ms|millisecond|milliseconds|msec", 1000000, SL_BURST_NS},
	{"us|microsecond|microseconds|usec|\xc2\xb5s|\xce\xbcs", 1000, SL_BURST_NS},
	{"ns|nanosecond|nanoseconds|nsec", 1, SL_BURST_NS},
	{"w|week|weeks", 604800000000000, SL_BURST_NS},
	{0},
};

static const struct unit *unit_find(const struct unit *units, const char *name, size_t length,
				    int compare(const char *a, const char *b, size_t length))
{
	for (; units->names; units++)
		for (const char *word = units->names;; word++) {
			size_t letters = strcspn(word, "|");

			if (letters == length && !compare(word, name, length))
				return units;
			word += letters;
			if (!*word)
				break;
		}
	return NULL;
}

/*
 * Finds a unit of time. Names of one or two letters are case-sensitive, because 5M could be months.
 */
static const struct unit *time_unit_find(const char *name, size_t length)
{
	return unit_find(time_units, name, length, length > 2 ? strncasecmp : strncmp);
}

/*
 * Finds a unit of a rate. Ignores case, because 10Mbit can only mean 10mbit. Also accepts
 * "packets/s", "per second" and "packets per second" for "/s".
 */
static const struct unit *rate_unit_find(const char *name)
{
	const char *per = strncasecmp(name, "packet", 6) ? name : name + 6;
	size_t blanks;
	char unit[16];

	per += per > name && tolower((unsigned char)*per) == 's';
	if (per > name)
		per += strspn(per, " \t");
	blanks = strncasecmp(per, "per", 3) ? 0 : strspn(per + 3, " \t");
	if (blanks) {
		snprintf(unit, sizeof(unit), "/%s", per + 3 + blanks);
		name = unit;
	} else if (*per == '/') {
		name = per;
	}
	return unit_find(rate_units, name, strlen(name), strncasecmp);
}

static const struct unit *amount_unit_find(const char *name)
{
	return unit_find(burst_units, name, strlen(name), strncmp);
}

/*
 * Finds a unit of packets, of bytes, or of a time up to hours. Of the times of one letter, finds
 * only s and h, because 5m could also mean 5 million packets.
 */
static const struct unit *burst_unit_find(const char *name)
{
	const struct unit *unit = amount_unit_find(name);

	if (unit || !*name || (!name[1] && !strchr("sh", *name)))
		return unit;
	unit = time_unit_find(name, strlen(name));
	return unit && unit->scale <= time_units[1].scale ? unit : NULL;
}

bool unit_is_known(const char *word)
{
	size_t length = strlen(word);

	return length &&
	       (time_unit_find(word, length) || rate_unit_find(word) || amount_unit_find(word));
}

static const char *units_format(const struct unit *units, uint64_t value, unsigned int kind,
				char text[UNITS_TEXT])
{
	for (; units->names; units++) {
		if (units->kind != kind || value % units->scale)
			continue;
		snprintf(text, UNITS_TEXT, "%" PRIu64 "%.*s", value / units->scale,
			 (int)strcspn(units->names, "|"), units->names);
		return text;
	}
	/* this kind is from a later version, because every known kind has a unit of scale 1 */
	return "?";
}

/* --- Errors --------------------------------------------------------------------------------- */

const char *text_cut(const char *text, size_t length, char cut[TEXT_CUT])
{
	size_t whole = strnlen(text, length), end = whole < 120 ? whole : 120;

	while (end && end < whole && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	snprintf(cut, TEXT_CUT, "%.*s%s", (int)end, text, end < whole ? "..." : "");
	return cut;
}

const char *value_object(char object[VALUE_OBJECT], const char *what, const char *text)
{
	char cut[TEXT_CUT];

	snprintf(object, VALUE_OBJECT, "%s%s'%s'", what ?: "", what ? " " : "",
		 text_cut(text, SIZE_MAX, cut));
	return object;
}

int value_refuse(const struct value_type *type, const char *id, const char *what, const char *text,
		 const char *problem)
{
	if (!type->expected)
		return error_misuse(id, object_of(what, text), "%s", problem);
	return error_misuse(id, object_of(what, text), "%s; %s", problem, type->expected);
}

const char *words_join(const char *const words[], unsigned int count, char text[WORDS_TEXT])
{
	size_t length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < count && length < WORDS_TEXT; i++)
		length += snprintf(text + length, WORDS_TEXT - length, "%s%s",
				   !i		    ? ""
				   : i + 1 == count ? " or "
						    : ", ",
				   words[i]);
	return text;
}

/* --- Numbers -------------------------------------------------------------------------------- */

/*
 * Splits "1.5gbit" or "1.5 gbit" into digits (15), divisor (10) and unit ("gbit"). Returns false if
 * the text does not begin with a decimal number. Also returns false if the number has leading zeros
 * or exceeds 64 bits.
 */
static bool number_split(const char *text, uint64_t *ret_digits, uint64_t *ret_divisor,
			 const char **ret_unit)
{
	uint64_t digits = 0, divisor = 1;
	bool fraction = false;
	const char *p = text;

	for (; isdigit((unsigned char)*p) || (*p == '.' && !fraction && p != text); p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		if (__builtin_mul_overflow(digits, 10, &digits) ||
		    __builtin_add_overflow(digits, *p - '0', &digits))
			return false;
		if (fraction && __builtin_mul_overflow(divisor, 10, &divisor))
			return false;
	}
	if (p == text || p[-1] == '.' || (*text == '0' && isdigit((unsigned char)text[1])))
		return false;
	*ret_digits = digits;
	*ret_divisor = divisor;
	*ret_unit = p[strspn(p, " \t")] ? p + strspn(p, " \t") : p;
	return true;
}

/* Adds the error that `number` (a part of the text) is not a valid number. */
static int refuse_number(const struct value_type *type, const char *what, const char *text,
			 const char *number)
{
	bool has_zeros = *number == '0' && isdigit((unsigned char)number[1]);

	if (!has_zeros &&
	    strspn(number, "0123456789.") > 19) /* a number of up to 19 digits fits into 64 bits */
		return value_refuse(type, "out-of-range", what, text, "too many digits");
	return value_refuse(type, "not-a-number", what, text,
			    has_zeros ? "a number has no leading zeros" : "not a positive number");
}

/*
 * Computes digits / divisor * scale. Returns 0, or -ERANGE if the result exceeds 64 bits, or -EDOM
 * if it is not an integer.
 */
static int number_scale(uint64_t digits, uint64_t divisor, uint64_t scale, uint64_t *ret)
{
	unsigned __int128 product = (unsigned __int128)digits * scale;

	*ret = product / divisor;
	return product / divisor > UINT64_MAX ? -ERANGE : product % divisor ? -EDOM : 0;
}

const char *number_read(const char *text, unsigned int most, unsigned int *ret)
{
	const char *p = text;
	uint64_t number = 0;

	for (; isdigit((unsigned char)*p) && number <= most; p++)
		number = number * 10 + (*p - '0');
	if (p == text || number > most || (*text == '0' && p > text + 1))
		return NULL;
	*ret = number;
	return p;
}

int number_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	unsigned int number;
	const char *end = number_read(text, type->most, &number);
	char problem[64];

	if (!end || *end || number < type->least) {
		snprintf(problem, sizeof(problem),
			 "not a whole number from %" PRIu64 " to %" PRIu64, type->least,
			 type->most);
		return value_refuse(type, "bad-number", what, text, problem);
	}
	*(unsigned int *)ret = number;
	return 0;
}

static int size_value_parse(const struct value_type *type, const char *what, const char *text,
			    void *ret)
{
	unsigned int number, shift = 0;
	const char *end = number_read(text, SIZE_MAX_ENTRIES, &number);

	if (end && (*end == 'k' || *end == 'm'))
		shift = *end++ == 'k' ? 10 : 20;
	if (!end || *end || !number || number > SIZE_MAX_ENTRIES >> shift)
		return value_refuse(type, "bad-size", what, text, "not a size");
	*(uint32_t *)ret = number << shift;
	return 0;
}

const struct value_type value_size = {.name = "N",
				      .parse = size_value_parse,
				      .expected = "write 65536, 64k or 4m, from 1 to 64m"};

const char *size_format(uint32_t size, char text[SIZE_TEXT])
{
	unsigned int shift = !(size % (1U << 20)) ? 20 : !(size % (1U << 10)) ? 10 : 0;

	snprintf(text, SIZE_TEXT, "%u%s", size >> shift,
		 shift == 20   ? "m"
		 : shift == 10 ? "k"
			       : "");
	return text;
}

/* --- Rates ---------------------------------------------------------------------------------- */

static const struct {
	uint64_t least, most;
} rate_ranges[] = {
	[SL_RATE_PPS] = {1, RATE_PPS_MAX},
	[SL_RATE_PER_MIN] = {1, RATE_PPS_MAX * 60},
	[SL_RATE_PER_HOUR] = {1, RATE_PPS_MAX * 3600},
	[SL_RATE_BITS] = {1000, 400000000000},
};

bool rate_is_sound(const struct sl_limit_spec *spec)
{
	return spec->rate_unit < ARRAY_SIZE(rate_ranges) &&
	       spec->rate >= rate_ranges[spec->rate_unit].least &&
	       spec->rate <= rate_ranges[spec->rate_unit].most;
}

/*
 * Refuses an ambiguous unit such as "Mbps". It means megabits in most tools, but megabytes in tc.
 */
static int refuse_bps(const char *what, const char *text, const char *name)
{
	char scale[2] = {tolower((unsigned char)*name)};

	if (*scale == 'b')
		*scale = '\0';
	return error_misuse("ambiguous-unit", object_of(what, text),
			    "%s is bits to some and bytes to others; write %.*s%sbit, or "
			    "%.15g%sbit if it is bytes",
			    name, (int)(name - text), text, scale, 8 * strtod(text, NULL), scale);
}

/* Refuses a fraction such as 0.5pps. If the rate per minute or per hour is whole, suggests it. */
static int refuse_fraction(const struct value_type *type, const char *what, const char *text,
			   uint64_t digits, uint64_t divisor, const struct unit *unit)
{
	static const struct {
		const char *name;
		unsigned int kind, seconds;
	} longer[] = {{"min", SL_RATE_PER_MIN, 60}, {"h", SL_RATE_PER_HOUR, 3600}};
	bool is_pps = type == &value_rate && unit->kind == SL_RATE_PPS;
	uint64_t number;

	for (size_t i = 0; is_pps && i < ARRAY_SIZE(longer); i++)
		if (!number_scale(digits, divisor, unit->scale * longer[i].seconds, &number) &&
		    number <= rate_ranges[longer[i].kind].most)
			return error_misuse("not-whole", object_of(what, text),
					    "a fraction of 1pps; write %" PRIu64 "/%s", number,
					    longer[i].name);
	return value_refuse(type, "not-whole", what, text, "a fraction of its smallest unit");
}

/* Parses a number with its unit. find: returns the unit with this name, or NULL. */
static int scaled_parse(const struct value_type *type, const char *what, const char *text,
			const struct unit *find(const char *name), struct value_amount *ret)
{
	uint64_t digits, divisor, number;
	const struct unit *unit;
	const char *name;
	int err;

	if (!number_split(text, &digits, &divisor, &name))
		return refuse_number(type, what, text, text);
	unit = find(name);
	if (!unit && !*name)
		return value_refuse(type, "no-unit", what, text, "no unit");
	if (!unit && type == &value_rate &&
	    !strcasecmp(name + (strchr("kKmMgG", *name) != NULL), "bps"))
		return refuse_bps(what, text, name);
	if (!unit)
		return value_refuse(type, "bad-unit", what, text, "no such unit here");
	err = number_scale(digits, divisor, unit->scale, &number);
	if (err == -ERANGE)
		return value_refuse(type, "out-of-range", what, text, "too large");
	if (err)
		return refuse_fraction(type, what, text, digits, divisor, unit);
	*ret = (struct value_amount){number, unit->kind};
	return 0;
}

static int rate_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	struct value_amount rate;
	int err = scaled_parse(type, what, text, rate_unit_find, &rate);

	if (err)
		return err;
	if (rate.number < rate_ranges[rate.unit].least)
		return error_misuse("out-of-range", object_of(what, text),
				    "too low; the lowest is 1/h, or 1kbit");
	if (rate.number > rate_ranges[rate.unit].most)
		return error_misuse("out-of-range", object_of(what, text),
				    "too high; the highest is 200mpps, or 400gbit");
	*(struct value_amount *)ret = rate;
	return 0;
}

const struct value_type value_rate = {
	.name = "RATE",
	.parse = rate_parse,
	.expected = "write 500pps, 10kpps, 30/min, 5/h, 50mbit or 1gbit",
	.extent = VALUE_NUMBERS,
};

const char *rate_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT])
{
	return units_format(rate_units, spec->rate, spec->rate_unit, text);
}

double rate_per_second(const struct sl_limit_spec *spec)
{
	if (spec->kind == SL_WINDOW)
		return (double)spec->rate * (spec->rate_unit == SL_RATE_BITS ? 8 : 1) * NS_PER_SEC /
		       spec->span_ns;
	switch (spec->rate_unit) {
	case SL_RATE_PER_MIN:
		return spec->rate / 60.0;
	case SL_RATE_PER_HOUR:
		return spec->rate / 3600.0;
	default:
		return spec->rate;
	}
}

/* --- Bursts and amounts --------------------------------------------------------------------- */

static int burst_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	struct value_amount burst;
	int err = scaled_parse(type, what, text,
			       type == &value_amount ? amount_unit_find : burst_unit_find, &burst);

	if (err)
		return err;
	if (!burst.number)
		return error_misuse("out-of-range", object_of(what, text),
				    "no packet would ever pass; write more than zero");
	*(struct value_amount *)ret = burst;
	return 0;
}

const struct value_type value_burst = {
	.name = "BURST",
	.parse = burst_parse,
	.expected = "write 2000 (packets), 64kB (of a bit rate) or 250ms",
	.extent = VALUE_NUMBERS,
};

const struct value_type value_amount = {
	.name = "N",
	.parse = burst_parse,
	.expected = "write 1000 (packets) or 10MB",
	.extent = VALUE_NUMBERS,
};

const char *burst_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT])
{
	return units_format(spec->burst_unit == SL_BURST_NS ? &time_units[1] : burst_units,
			    spec->burst, spec->burst_unit, text);
}

const char *amount_format(uint64_t amount, uint8_t rate_unit, char text[UNITS_TEXT])
{
	return units_format(burst_units, amount,
			    rate_unit == SL_RATE_BITS ? SL_BURST_BYTES : SL_BURST_PACKETS, text);
}

/* --- Times ---------------------------------------------------------------------------------- */

/* Parses a time such as 1h30m. The unit of each part must be smaller than the unit before it. */
int time_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	char least[UNITS_TEXT], most[UNITS_TEXT];
	uint64_t ns = 0, last = UINT64_MAX;

	for (const char *p = text; p == text || *p;) {
		uint64_t digits, divisor, part;
		const struct unit *unit;
		const char *name;
		size_t length;
		int err;

		if (!number_split(p, &digits, &divisor, &name))
			return refuse_number(type, what, text, p);
		length = strcspn(name, "0123456789. \t");
		if (!length)
			return value_refuse(type, "no-unit", what, text, "no unit");
		unit = time_unit_find(name, length);
		if (!unit)
			return value_refuse(type, "bad-unit", what, text, "not a unit of time");
		if (unit->scale >= last)
			return value_refuse(type, "bad-time", what, text,
					    "each unit may occur once, the largest first");
		err = number_scale(digits, divisor, unit->scale, &part);
		if (err == -EDOM)
			return error_misuse("not-whole", object_of(what, text),
					    "a fraction of 1ns; write a whole number of ns");
		if (err || __builtin_add_overflow(ns, part, &ns) || ns > TIME_MAX_NS) {
			ns = UINT64_MAX; /* too long for any type, so it is refused */
			break;
		}
		last = unit->scale;
		p = name + length;
		if (p[strspn(p, " \t")])
			p += strspn(p, " \t");
	}
	if (ns < type->least || ns > type->most)
		return error_misuse("out-of-range", object_of(what, text), "too %s; write %s to %s",
				    ns < type->least ? "short" : "long",
				    time_format(type->least, least), time_format(type->most, most));
	*(uint64_t *)ret = ns;
	return 0;
}

const struct value_type value_time = VALUE_TIME(1, TIME_MAX_NS);

const char *time_format(uint64_t ns, char text[UNITS_TEXT])
{
	if (ns)
		return units_format(time_units, ns, SL_BURST_NS, text);
	snprintf(text, UNITS_TEXT, "0s"); /* "0s", because "0d" would be odd */
	return text;
}

const char *left_format(uint64_t ns, char text[UNITS_TEXT])
{
	uint64_t unit = ns < NS_PER_SEC ? NS_PER_MS : NS_PER_SEC;

	return time_format((ns + unit - 1) / unit * unit, text);
}

static int moment_value_parse(const struct value_type *type, const char *what, const char *text,
			      void *ret)
{
	struct value_end *end = ret;

	(void)type;
	(void)what;
	return until_parse(text, &end->until, &end->has_passed);
}

const struct value_type value_moment = {.name = "MOMENT", .parse = moment_value_parse};

/* --- Texts and choices ---------------------------------------------------------------------- */

int raw_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	(void)type;
	(void)what;
	*(const char **)ret = text;
	return 0;
}

int choice_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	int found = word_find(type->words, type->word_count, text);
	const char *nearly;
	char words[WORDS_TEXT];

	if (found >= 0) {
		*(unsigned int *)ret = type->least + found;
		return 0;
	}
	nearly = nearly_find(text, type->words, type->word_count);
	if (nearly)
		return error_misuse("bad-choice", object_of(what, text),
				    "no such word; did you mean '%s'?", nearly);
	return error_misuse("bad-choice", object_of(what, text), "no such word; write %s",
			    words_join(type->words, type->word_count, words));
}

static int flag_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	static const char *const words[] = {"no", "yes", "false", "true"};
	int found = word_find(words, ARRAY_SIZE(words), text);

	if (found < 0)
		return value_refuse(type, "bad-choice", what, text, "no such word");
	*(bool *)ret = found & 1;
	return 0;
}

const struct value_type value_flag = {
	.name = "yes|no", .parse = flag_parse, .expected = "write yes or no, true or false"};
