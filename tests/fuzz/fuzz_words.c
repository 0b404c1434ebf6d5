// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the parsers of rates, bursts, times, prefixes, matches and whole limits. An accepted value
 * must be in its range, and must not change when it is printed and parsed. A refused text must
 * change nothing.
 *
 * The input consists of lines. The first byte of a line selects the parser. Each later byte below
 * 128 is a character. Each other byte selects a word of the grammar.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/prefix.h"
#include "rules/value.h"
#include "spec_first.h"

#define TEXT_MAX 1024

#define TIME_MAX (730 * 86400000000000ULL)
#define VLAN_MAX 4094

static void expect(bool truth)
{
	if (!truth)
		abort();
}

static bool taken(int err)
{
	expect(!err || err == -EINVAL);
	return !err;
}

/* --- Single words --------------------------------------------------------------------------- */

static void fuzz_rate(const char *text)
{
	struct value_amount rate, again;
	struct sl_limit_spec spec = {0};
	char printed[UNITS_TEXT];

	if (!taken(value_parse(&value_rate, "rate", text, &rate)))
		return;
	spec.rate = rate.number;
	spec.rate_unit = rate.unit;
	expect(rate.number && rate_per_second(&spec) <= 400e9 && rate_is_sound(&spec));
	expect(!value_parse(&value_rate, "rate", rate_format(&spec, printed), &again));
	expect(again.number == rate.number && again.unit == rate.unit);
}

static void fuzz_burst(const char *text)
{
	struct value_amount burst, again;
	struct sl_limit_spec spec = {0};
	char printed[UNITS_TEXT];

	if (!taken(value_parse(&value_burst, "burst", text, &burst)))
		return;
	spec.burst = burst.number;
	spec.burst_unit = burst.unit;
	expect(burst.number);
	expect(!value_parse(&value_burst, "burst", burst_format(&spec, printed), &again));
	expect(again.number == burst.number && again.unit == burst.unit);
}

static void fuzz_time(const char *text)
{
	char printed[UNITS_TEXT];
	uint64_t ns = 0, again = 0;

	if (!taken(value_parse(&value_time, "for", text, &ns))) {
		expect(!ns);
		return;
	}
	expect(ns && ns <= TIME_MAX);
	expect(!value_parse(&value_time, "for", time_format(ns, printed), &again));
	expect(ns == again);
}

/* Checks that ranges of ports are valid and do not overlap. */
static void check_ports(const struct sl_range *ports, unsigned int count)
{
	expect(count <= SL_PORTS_MAX);
	for (unsigned int i = 0; i < count; i++) {
		expect(ports[i].first <= ports[i].last);
		for (unsigned int j = 0; j < i; j++)
			expect(ports[i].last < ports[j].first || ports[i].first > ports[j].last);
	}
}

static void fuzz_match(const char *text)
{
	struct sl_match match = {0}, again = {0};
	char printed[MATCH_TEXT];

	if (!taken(match_parse(text, &match)))
		return;
	expect(match.vlan <= VLAN_MAX && match.dscp < 64);
	expect((!match.ports && !match.sports) ||
	       match.fact &
		       (SL_FACT_ANY | SL_FACT_TCP | SL_FACT_UDP | SL_FACT_SYN | SL_FACT_PAYLOAD));
	expect(!match.proto || match.fact == SL_FACT_PROTO);
	expect(!(match.fields & SL_FIELD_FLAGS) ||
	       match.fact & (SL_FACT_TCP | SL_FACT_SYN | SL_FACT_TLS));
	expect(!(match.fields & SL_FIELD_ICMP) || match.fact == SL_FACT_ICMP);
	check_ports(match.port, match.ports);
	check_ports(match.sport, match.sports);
	expect(match_is_sound(&match));
	expect(match_parse(match_format(&match, printed), &again) == 0);
	expect(!memcmp(&match, &again, sizeof(match)));
}

/* Parses a prefix. Returns the prefix `default` if the text is invalid. */
static struct sl_prefix fuzz_prefix(const char *text)
{
	struct sl_prefix prefix = {0}, again;
	char printed[PREFIX_TEXT];

	if (!taken(prefix_parse(text, &prefix)))
		return (struct sl_prefix){0};
	expect(prefix_parse(prefix_format(&prefix, printed), &again) == 0);
	expect(prefix_equal(&prefix, &again));
	expect(prefix_is_sound(&prefix));
	return prefix;
}

/* --- Limits --------------------------------------------------------------------------------- */

static void check_compiled(const struct limit *limit)
{
	static const struct machine machine = {.cpus = 64, .jiffy_ns = 4000000};

	expect(limit->spec.per[SL_IPV4] <= 32 && limit->spec.per[SL_IPV6] <= 128);
	expect(limit_is_sound(&limit->spec) && limit_name_is_valid(limit->spec.name));
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_limit compiled = limit_compile(limit, family, &machine);

		expect(compiled.cost && compiled.burst && compiled.burst <= SL_BURST_TICKS_MAX);
		expect(compiled.refill <= compiled.burst && compiled.block <= SL_BURST_TICKS_MAX);
	}
}

static void fuzz_limit(const struct spec_texts *spec, const struct sl_prefix *prefix)
{
	char text[SPEC_FIELDS][SPEC_TEXT];
	struct limit limit, again;
	struct spec_texts back;

	memset(&limit, 7, sizeof(limit));
	memcpy(&again, &limit, sizeof(limit));
	if (!taken(spec_parse_first(spec, prefix, &limit))) {
		expect(!memcmp(&limit, &again, sizeof(limit)));
		return;
	}
	check_compiled(&limit);
	if (limit.second.rate) {
		struct limit second = limit_second(&limit);

		check_compiled(&second);
	}
	for (int field = 0; field < SPEC_FIELDS; field++)
		back.text[field] = spec_format(&limit, prefix, field, text[field]);
	expect(spec_parse_first(&back, prefix, &again) == 0);
	expect(!memcmp(&limit, &again, sizeof(limit)));
}

/* --- Input ---------------------------------------------------------------------------------- */

static const char *const grammar[] = {
	"default",
	"192.0.2.0/24",
	"2001:db8::/32",
	"any",
	"tcp",
	"udp",
	"icmp",
	"tcp-syn",
	"fragment",
	"proto ",
	" port ",
	" vlan ",
	"port ",
	"vlan ",
	"block ",
	"drop",
	"observe",
	"src",
	"dst",
	"full",
	"empty",
	"pps",
	"kpps",
	"mpps",
	"/min",
	"/h",
	"mbit",
	"gbit",
	"kB",
	"MiB",
	"ns",
	"us",
	"ms",
	"s",
	"min",
	"h",
	"d",
	"65535",
	"4094",
	"255",
	"100",
	"1",
	"8",
	"24",
	"64",
	"128",
	"24/56",
	"80,443",
	"1-9,",
	"syn",
	"dns",
	" sport ",
	" to ",
	" flags ",
	"!ack",
	" icmp-type ",
	"echo-request",
	"quic-initial ",
	"tls-hello ",
	"dns-query ",
	" length ",
	" dscp ",
	"fin,",
};

/* Converts a line of the input to words. Returns the offset of the next line. */
static size_t entry_write(const uint8_t *data, size_t size, char text[TEXT_MAX])
{
	size_t length = 0, i = 0;

	for (; i < size && data[i] != '\n' && length < TEXT_MAX - 16; i++) {
		const char *word = grammar[data[i] % ARRAY_SIZE(grammar)];

		if (data[i] < 128)
			text[length++] = data[i] ?: ' ';
		else
			length += sprintf(text + length, "%s", word);
	}
	text[length] = '\0';
	return i < size ? i + 1 : i;
}

static void fuzz_word(const char *text)
{
	fuzz_rate(text);
	fuzz_burst(text);
	fuzz_time(text);
	fuzz_match(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_texts spec = {.text = {[SPEC_RATE] = "1kpps"}};
	char text[SPEC_FIELDS + 1][TEXT_MAX];
	struct sl_prefix prefix = {0};

	while (size) {
		unsigned int field = *data++ % (SPEC_FIELDS + 1);
		size_t used = entry_write(data, --size, text[field]);

		data += used;
		size -= used;
		fuzz_word(text[field]);
		if (field == SPEC_FIELDS)
			prefix = fuzz_prefix(text[field]);
		else
			spec.text[field] = text[field];
	}
	fuzz_limit(&spec, &prefix);
	return 0;
}
