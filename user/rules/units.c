// SPDX-License-Identifier: GPL-2.0
#include "rules/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#include "base/clock.h"

#define RATE_HINT   "write 500pps, 10kpps, 30/min, 5/h, 50mbit or 1gbit"
#define BURST_HINT  "write 2000 (packets), 64kB (of a bit rate) or 250ms"
#define AMOUNT_HINT "write 1000 (packets) or 10MB"
#define TIME_HINT   "write 250ms, 30s, 10min, 1h30m or 7d"

/*
 * 2 years. A block in ticks stays below SL_BURST_TICKS_MAX, and the end of a list within 32 bits.
 */
#define TIME_MAX_NS (730 * 86400000000000ULL)

struct unit {
	const char *name;
	uint64_t scale;
	unsigned int kind;
};

/* Of equal units the first is printed; the scales of a kind descend. */
static const struct unit rate_units[] = {
	{"mpps", 1000000, SL_RATE_PPS},
	{"kpps", 1000, SL_RATE_PPS},
	{"pps", 1, SL_RATE_PPS},
	{"/s", 1, SL_RATE_PPS},
	{"/min", 1, SL_RATE_PER_MIN},
	{"/h", 1, SL_RATE_PER_HOUR},
	{"gbit", 1000000000, SL_RATE_BITS},
	{"mbit", 1000000, SL_RATE_BITS},
	{"kbit", 1000, SL_RATE_BITS},
	{"bit", 1, SL_RATE_BITS},
	/* other spellings, which are never printed */
	{"/sec", 1, SL_RATE_PPS},
	{"/second", 1, SL_RATE_PPS},
	{"/minute", 1, SL_RATE_PER_MIN},
	{"/m", 1, SL_RATE_PER_MIN},
	{"/hour", 1, SL_RATE_PER_HOUR},
	{"gbit/s", 1000000000, SL_RATE_BITS},
	{"mbit/s", 1000000, SL_RATE_BITS},
	{"kbit/s", 1000, SL_RATE_BITS},
	{"bit/s", 1, SL_RATE_BITS},
	{0},
};

static const struct unit burst_units[] = {
	{"", 1, SL_BURST_PACKETS},
	{"TB", 1000000000000, SL_BURST_BYTES},
	{"GiB", 1 << 30, SL_BURST_BYTES},
	{"GB", 1000000000, SL_BURST_BYTES},
	{"MiB", 1 << 20, SL_BURST_BYTES},
	{"MB", 1000000, SL_BURST_BYTES},
	{"KiB", 1 << 10, SL_BURST_BYTES},
	{"kB", 1000, SL_BURST_BYTES},
	{"B", 1, SL_BURST_BYTES},
	{"h", 3600000000000, SL_BURST_NS},
	{"min", 60000000000, SL_BURST_NS},
	{"s", 1000000000, SL_BURST_NS},
	{"ms", 1000000, SL_BURST_NS},
	{"us", 1000, SL_BURST_NS},
	{"ns", 1, SL_BURST_NS},
	/* other spellings, which are never printed */
	{"packets", 1, SL_BURST_PACKETS},
	{"packet", 1, SL_BURST_PACKETS},
	{"bytes", 1, SL_BURST_BYTES},
	{"byte", 1, SL_BURST_BYTES},
	{0},
};

static const struct unit time_units[] = {
	{"d", 86400000000000, 0},
	{"h", 3600000000000, 0},
	{"min", 60000000000, 0},
	{"s", 1000000000, 0},
	{"ms", 1000000, 0},
	{"us", 1000, 0},
	{"ns", 1, 0},
	/* other spellings, which are never printed; µs twice: Go writes U+00B5, some U+03BC */
	{"weeks", 604800000000000, 0},
	{"week", 604800000000000, 0},
	{"w", 604800000000000, 0},
	{"days", 86400000000000, 0},
	{"day", 86400000000000, 0},
	{"hours", 3600000000000, 0},
	{"hour", 3600000000000, 0},
	{"hrs", 3600000000000, 0},
	{"hr", 3600000000000, 0},
	{"minutes", 60000000000, 0},
	{"minute", 60000000000, 0},
	{"mins", 60000000000, 0},
	{"m", 60000000000, 0},
	{"seconds", 1000000000, 0},
	{"second", 1000000000, 0},
	{"secs", 1000000000, 0},
	{"sec", 1000000000, 0},
	{"milliseconds", 1000000, 0},
	{"millisecond", 1000000, 0},
	{"msec", 1000000, 0},
	{"microseconds", 1000, 0},
	{"microsecond", 1000, 0},
	{"usec", 1000, 0},
	{"\xc2\xb5s", 1000, 0},
	{"\xce\xbcs", 1000, 0},
	{"nanoseconds", 1, 0},
	{"nanosecond", 1, 0},
	{"nsec", 1, 0},
	{0},
};

static const struct unit *unit_find(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

/*
 * Case matters only in units of few letters: 5M could be months, and B is byte, b is bit.
 */
static const struct unit *time_unit_find(const char *name, size_t length)
{
	for (const struct unit *unit = time_units; unit->name; unit++)
		if (strlen(unit->name) == length &&
		    !(length > 2 ? strncasecmp : strncmp)(unit->name, name, length))
			return unit;
	return NULL;
}

/*
 * In upper or lower case: 10Mbit can only mean 10mbit. "packets/s", "per second" and "packets per
 * second" are "/s".
 */
static const struct unit *rate_unit_find(const char *name)
{
	size_t packets = !strncasecmp(name, "packets", 7)  ? 7
			 : !strncasecmp(name, "packet", 6) ? 6
							   : 0;
	const char *per = name + packets + strspn(name + packets, " \t");
	const struct unit *unit = rate_units;
	size_t blanks = strncasecmp(per, "per", 3) ? 0 : strspn(per + 3, " \t");

	if (blanks)
		name = per + 3 + blanks;
	else if (packets && *per == '/')
		name = per;
	while (unit->name && (blanks ? *unit->name != '/' || strcasecmp(unit->name + 1, name)
				     : strcasecmp(unit->name, name)))
		unit++;
	return unit->name ? unit : NULL;
}

/* Finds the unit of a burst. A time of one letter but s and h could be a number of packets. */
static const struct unit *burst_unit_find(const char *name)
{
	const struct unit *unit = unit_find(burst_units, name), *time;

	if (unit)
		return unit;
	time = strlen(name) > 1 ? time_unit_find(name, strlen(name)) : NULL;
	if (!time)
		return NULL;
	for (unit = burst_units; unit->name; unit++)
		if (unit->kind == SL_BURST_NS && unit->scale == time->scale)
			return unit;
	return NULL;
}

bool unit_is_known(const char *word)
{
	return *word && (time_unit_find(word, strlen(word)) || rate_unit_find(word) ||
			 unit_find(burst_units, word));
}

/*
 * Splits "1.5gbit" or "1.5 gbit" into 15 / 10^1 and "gbit". False: it does not begin with a plain
 * decimal number, or the number has leading zeros or is too long for 64 bits.
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

static int refuse_number(const char *what, const char *text, const char *unit,
				 const char *hint)
{
	bool zeros = *text == '0' && isdigit((unsigned char)text[1]);

	return misuse("%s '%s' is not a positive number%s%s: %s", what, text,
		      zeros ? " without leading zeros" : "", unit, hint);
}

/* Computes digits / divisor x scale. False: the result is no whole number of 64 bits. */
static bool number_scale(uint64_t digits, uint64_t divisor, uint64_t scale, uint64_t *ret)
{
	unsigned __int128 product = (unsigned __int128)digits * scale;

	if (product % divisor || product / divisor > UINT64_MAX)
		return false;
	*ret = product / divisor;
	return true;
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

static const uint64_t rate_most[] = {
	[SL_RATE_PPS] = 200000000,
	[SL_RATE_PER_MIN] = 200000000ULL * 60,
	[SL_RATE_PER_HOUR] = 200000000ULL * 3600,
	[SL_RATE_BITS] = 400000000000,
};

static uint64_t rate_least(unsigned int unit)
{
	return unit == SL_RATE_BITS ? 1000 : 1;
}

bool rate_is_sound(const struct sl_limit_spec *spec)
{
	return spec->rate_unit < ARRAY_SIZE(rate_most) &&
	       spec->rate >= rate_least(spec->rate_unit) &&
	       spec->rate <= rate_most[spec->rate_unit];
}

/* Whether a unit is like "Mbps": megabits in most tools, and megabytes in tc. */
static bool is_bps(const char *name)
{
	name += *name && strchr("kKmMgG", *name);
	return !strcasecmp(name, "bps");
}

static int refuse_bps(const char *text, const char *name)
{
	char scale[2] = {tolower((unsigned char)*name)};

	if (*scale == 'b')
		*scale = '\0';
	return misuse("rate '%s': %s is bits to some and bytes to others: write %.*s%sbit, or "
		      "%.15g%sbit if it is bytes",
		      text, name, (int)(name - text), text, scale, 8 * strtod(text, NULL), scale);
}

int rate_parse(const char *text, struct sl_limit_spec *spec)
{
	uint64_t digits, divisor, rate;
	const struct unit *unit;
	const char *name;

	if (!number_split(text, &digits, &divisor, &name))
		return refuse_number("rate", text, " and a unit", RATE_HINT);
	if (!*name)
		return misuse("rate '%s' has no unit: " RATE_HINT, text);
	if (is_bps(name))
		return refuse_bps(text, name);
	unit = rate_unit_find(name);
	if (!unit)
		return misuse("rate '%s': there is no unit '%s': " RATE_HINT, text, name);
	if (!digits)
		return misuse("rate '%s' is zero: the lowest is 1/h, or 1kbit", text);
	if (!number_scale(digits, divisor, unit->scale, &rate))
		return misuse("rate '%s' is not a whole number of its smallest unit: " RATE_HINT,
			      text);
	if (rate < rate_least(unit->kind))
		return misuse("rate '%s' is too low: the lowest is 1/h, or 1kbit", text);
	if (rate > rate_most[unit->kind])
		return misuse("rate '%s' is too high: the highest is 200mpps, or 400gbit", text);
	spec->rate = rate;
	spec->rate_unit = unit->kind;
	return OK;
}

int burst_parse(const char *text, struct sl_limit_spec *spec)
{
	bool by_bytes = spec->rate_unit == SL_RATE_BITS;
	uint64_t digits, divisor, burst;
	const struct unit *unit;
	const char *name;

	if (!number_split(text, &digits, &divisor, &name))
		return refuse_number("burst", text, "", BURST_HINT);
	unit = burst_unit_find(name);
	if (!unit)
		return misuse("burst '%s': there is no unit '%s': " BURST_HINT, text, name);
	if (unit->kind == SL_BURST_PACKETS && by_bytes)
		return misuse("burst '%s' of a bit rate needs a unit: write 64kB or 250ms", text);
	if (unit->kind == SL_BURST_BYTES && !by_bytes)
		return misuse("burst '%s' of a packet rate: write 2000 (packets) or 250ms", text);
	if (!digits)
		return misuse("burst '%s' is zero: nothing would ever pass", text);
	if (!number_scale(digits, divisor, unit->scale, &burst))
		return misuse("burst '%s' is not a whole number of its smallest unit, or too large",
			      text);
	spec->burst = burst;
	spec->burst_unit = unit->kind;
	return OK;
}

int amount_parse(const char *what, const char *text, uint64_t *ret, uint8_t *ret_unit)
{
	uint64_t digits, divisor, amount;
	const struct unit *unit;
	const char *name;

	if (!number_split(text, &digits, &divisor, &name))
		return refuse_number(what, text, "", AMOUNT_HINT);
	unit = unit_find(burst_units, name);
	if (!unit || unit->kind == SL_BURST_NS)
		return misuse("%s '%s': there is no unit '%s': " AMOUNT_HINT, what, text, name);
	if (!digits)
		return misuse("%s '%s' is zero: nothing would ever pass", what, text);
	if (!number_scale(digits, divisor, unit->scale, &amount))
		return misuse("%s '%s' is not a whole number of its smallest unit, or too large",
			      what, text);
	*ret = amount;
	*ret_unit = unit->kind == SL_BURST_BYTES ? SL_RATE_BITS : SL_RATE_PPS;
	return OK;
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

/* Reads a number and a unit, "90 s", at *text, and moves it behind them and blanks. */
static int time_read_part(const char *what, const char *text, const char **rest,
				  uint64_t *ret_ns, uint64_t *ret_scale)
{
	uint64_t digits, divisor;
	const struct unit *unit;
	const char *name;
	size_t length;

	if (!number_split(*rest, &digits, &divisor, &name))
		return refuse_number(what, text, " and a unit", TIME_HINT);
	length = strcspn(name, "0123456789. \t");
	if (!length)
		return misuse("%s '%s' has no unit: " TIME_HINT, what, text);
	unit = time_unit_find(name, length);
	if (!unit)
		return misuse("%s '%s': there is no unit '%.*s': " TIME_HINT, what, text,
			      (int)length, name);
	if (!number_scale(digits, divisor, unit->scale, ret_ns))
		return misuse("%s '%s' is not a whole number of nanoseconds, or too long", what,
			      text);
	*ret_scale = unit->scale;
	*rest = name + length;
	if ((*rest)[strspn(*rest, " \t")])
		*rest += strspn(*rest, " \t");
	return OK;
}

int time_parse(const char *what, const char *text, uint64_t *ret_ns)
{
	uint64_t ns = 0, part = 0, scale = 0, last = UINT64_MAX;
	const char *rest = text;

	do {
		int status = time_read_part(what, text, &rest, &part, &scale);

		if (status)
			return status;
		if (scale >= last)
			return misuse("%s '%s': write large units first, and each once: " TIME_HINT,
				      what, text);
		if (__builtin_add_overflow(ns, part, &ns) || ns > TIME_MAX_NS)
			return misuse("%s '%s' is too long: the longest is 730d", what, text);
		last = scale;
	} while (*rest);
	if (!ns)
		return misuse("%s '%s' is zero: " TIME_HINT, what, text);
	*ret_ns = ns;
	return OK;
}

static const char *units_format(const struct unit *units, uint64_t value, unsigned int kind,
				char text[UNITS_TEXT])
{
	for (; units->name; units++) {
		if (units->kind != kind || value % units->scale)
			continue;
		snprintf(text, UNITS_TEXT, "%" PRIu64 "%s", value / units->scale, units->name);
		return text;
	}
	return "?"; /* a unit of another version: not reached, as every kind has a scale of 1 */
}

const char *rate_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT])
{
	return units_format(rate_units, spec->rate, spec->rate_unit, text);
}

const char *burst_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT])
{
	return units_format(burst_units, spec->burst, spec->burst_unit, text);
}

const char *amount_format(uint64_t amount, uint8_t unit, char text[UNITS_TEXT])
{
	return units_format(burst_units, amount,
			    unit == SL_RATE_BITS ? SL_BURST_BYTES : SL_BURST_PACKETS, text);
}

const char *time_format(uint64_t ns, char text[UNITS_TEXT])
{
	if (ns)
		return units_format(time_units, ns, 0, text);
	snprintf(text, UNITS_TEXT, "0s"); /* each unit divides 0 */
	return text;
}

const char *left_format(uint64_t ns, char text[UNITS_TEXT])
{
	uint64_t unit = ns < NS_PER_SEC ? NS_PER_MS : NS_PER_SEC;

	return time_format((ns + unit - 1) / unit * unit, text);
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
