// SPDX-License-Identifier: GPL-2.0
/* Tests user/rules/value.h, which parses and prints values of each type. */
#include "test.h"
#include "errors.h"
#include "rates.h"
#include <errno.h>
#include "base/text.h"
#include "rules/value.h"

#define HOUR_NS (3600 * SEC_NS)

/* --- Rates, bursts and amounts -------------------------------------------------------------- */

TEST(test_rates_are_read_and_written_back)
{
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct value_amount rate, again;
		struct sl_limit_spec spec = {0};
		char text[UNITS_TEXT];

		assert_int_equal(value_parse(&value_rate, "rate", rates[i].text, &rate), 0);
		spec.rate = rate.number;
		spec.rate_unit = rate.unit;
		assert_int_equal(rate.number, rates[i].rate);
		assert_int_equal(rate.unit, rates[i].unit);
		assert_true(rate_per_second(&spec) == rates[i].per_second);
		assert_string_equal(rate_format(&spec, text), rates[i].printed ?: rates[i].text);
		assert_int_equal(value_parse(&value_rate, "rate", text, &again), 0);
		assert_true(again.number == rate.number && again.unit == rate.unit);
	}
}

static const struct {
	const char *text;
	uint64_t number;
	uint32_t unit;
	const char *printed; /* printed text; NULL: same as `text` */
} bursts[] = {
	{"1", 1, SL_BURST_PACKETS, NULL},
	{"18446744073709551615", UINT64_MAX, SL_BURST_PACKETS, NULL},
	{"2000 packets", 2000, SL_BURST_PACKETS, "2000"},
	{"250ms", 250000000, SL_BURST_NS, NULL},
	{"1000ms", 1000000000, SL_BURST_NS, "1s"},
	{"60min", 3600000000000, SL_BURST_NS, "1h"},
	{"25h", 90000000000000, SL_BURST_NS, NULL},
	{"5ns", 5, SL_BURST_NS, NULL},
	{"250 msec", 250000000, SL_BURST_NS, "250ms"},
	{"2 Seconds", 2000000000, SL_BURST_NS, "2s"},
	{"1514B", 1514, SL_BURST_BYTES, NULL},
	{"64kB", 64000, SL_BURST_BYTES, NULL},
	{"64 kB", 64000, SL_BURST_BYTES, "64kB"},
	{"64KiB", 65536, SL_BURST_BYTES, NULL},
	{"65536B", 65536, SL_BURST_BYTES, "64KiB"},
	{"1.5MB", 1500000, SL_BURST_BYTES, "1500kB"},
	{"3GB", 3000000000, SL_BURST_BYTES, NULL},
	{"1GiB", 1073741824, SL_BURST_BYTES, NULL},
	{"140TB", 140000000000000, SL_BURST_BYTES, NULL},
};

/* An amount has the units of a burst, except for units of time. */
TEST(test_bursts_and_amounts_are_read_and_written_back)
{
	for (size_t i = 0; i < ARRAY_SIZE(bursts); i++) {
		const char *printed = bursts[i].printed ?: bursts[i].text;
		struct value_amount burst, amount;
		struct sl_limit_spec spec = {0};
		char text[UNITS_TEXT];

		assert_int_equal(value_parse(&value_burst, "burst", bursts[i].text, &burst), 0);
		assert_int_equal(burst.number, bursts[i].number);
		assert_int_equal(burst.unit, bursts[i].unit);
		spec.burst = burst.number;
		spec.burst_unit = burst.unit;
		assert_string_equal(burst_format(&spec, text), printed);
		if (value_parse(&value_amount, "window", bursts[i].text, &amount)) {
			assert_int_equal(burst.unit, SL_BURST_NS);
			assert_one_error("bad-unit", bursts[i].text);
			continue;
		}
		assert_true(amount.number == burst.number && amount.unit == burst.unit);
		assert_string_equal(
			amount_format(amount.number,
				      amount.unit == SL_BURST_BYTES ? SL_RATE_BITS : SL_RATE_PPS,
				      text),
			printed);
	}
}

/* --- Times ---------------------------------------------------------------------------------- */

TEST(test_times_are_read_and_written_back)
{
	static const struct {
		const char *text;
		uint64_t ns;
		const char *printed; /* printed text; NULL: same as `text` */
	} cases[] = {
		{"1ns", 1, NULL},
		{"1000us", 1000000, "1ms"},
		{"0.25s", 250000000, "250ms"},
		{"1.0000s", 1000000000, "1s"},
		{"60s", 60000000000, "1min"},
		{"3540s", 3540000000000, "59min"},
		{"25h", 90000000000000, NULL},
		{"1.5d", 129600000000000, "36h"},
		{"7d", 604800000000000, NULL},
		{"730d", 63072000000000000, NULL},
		{"63072000000000000ns", 63072000000000000, "730d"},
		{"5m", 300000000000, "5min"},
		{"1 Minute", 60000000000, "1min"},
		{"90 s", 90000000000, "90s"},
		{"90sec", 90000000000, "90s"},
		{"1 DAY", 86400000000000, "1d"},
		{"2 weeks", 1209600000000000, "14d"},
		{"1w", 604800000000000, "7d"},
		{"2hrs", 7200000000000, "2h"},
		{"1h30m", 5400000000000, "90min"},
		{"1h 30min", 5400000000000, "90min"},
		{"1 hour 30 minutes", 5400000000000, "90min"},
		{"1d2h3m4s5ms6us7ns", 93784005006007, "93784005006007ns"},
		/* durations in the format of Go */
		{"3h59m58s", 14398000000000, "14398s"},
		{"1h0m0s", 3600000000000, "1h"},
		{"3h59m58.876543s", 14398876543000, "14398876543us"},
		{"250\xc2\xb5s", 250000, "250us"},
		{"250\xce\xbcs", 250000, "250us"},
	};

	char unit[UNITS_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[UNITS_TEXT];
		uint64_t ns = 0;

		assert_int_equal(value_parse(&value_time, "for", cases[i].text, &ns), 0);
		assert_int_equal(ns, cases[i].ns);
		assert_string_equal(time_format(ns, text), cases[i].printed ?: cases[i].text);
		assert_int_equal(value_parse(&value_time, "for", text, &ns), 0);
		assert_int_equal(ns, cases[i].ns);
	}
	assert_string_equal(time_format(0, unit), "0s");
}

/* --- What is refused ------------------------------------------------------------------------ */

static const char *const access_texts[] = {"allow", "deny"};
static const struct value_type value_groups = VALUE_NUMBER(1, 10, NULL);
static const struct value_type value_round = VALUE_TIME(SEC_NS, 24 * HOUR_NS);
static const struct value_type value_access = VALUE_CHOICE("allow|deny", access_texts, 5);

TEST(test_wrong_values_are_refused_by_name)
{
	static const struct {
		const struct value_type *type;
		const char *id, *texts;
	} cases[] = {
		{&value_rate, "not-a-number",
		 "| |pps|/h|bit|007pps|00.5kpps|-5pps|+5pps| 5pps|nan|nanpps|NaN|inf|infinity|"
		 "infpps|.5kpps|5.pps|5.kpps|.pps|\xff"},
		{&value_rate, "no-unit", "500|0"},
		{&value_rate, "ambiguous-unit", "10bps|10kbps|10Mbps|1 gbps"},
		{&value_rate, "bad-unit",
		 "5pps |5 packets|5 per|5 permin|5 per mbit|5 per day|5 packets mbit|"
		 "5 packetspps|5 pps |1e3pps|0x10pps|5mb|5MB|5MB/s|5/d|5/M5|5//h|5pps/s|"
		 "1.2.3kpps|1,5kpps|1_000pps|5pps\n|5\xffpps"},
		{&value_rate, "not-whole", "1.5pps|0.5pps|0.0001kpps|0.5/h"},
		{&value_rate, "out-of-range",
		 "18446744073709551616pps|99999999999999999999999999999999999pps|"
		 "0.00000000000000000000000000000000001gbit|18446744073709551615gbit|0pps|0.0kpps|"
		 "0/h|0mbit|1bit|999bit|0.999kbit|200000001pps|201mpps|"
		 "200.000001mpps|12000000001/min|720000000001/h|401gbit|400000000001bit"},
		{&value_burst, "not-a-number", "|-1|+1| 1|nan|inf|010|ms|\xff"},
		{&value_burst, "bad-unit",
		 "1 |1e3|10p|1d|1m|10MS|1 day|1w|1h30m|64kb|64K|64KB|64kbit"},
		{&value_burst, "out-of-range",
		 "0|0ms|0B|18446744073709551616|18446744073709551615us|18446744073709551615kB|"
		 "99999999999TB"},
		{&value_burst, "not-whole", "1.5|0.5ns|1.5B|1.0001kB"},
		{&value_amount, "bad-unit", "1ms|1h|1pps|1 x|1mbit"},
		{&value_time, "not-a-number",
		 "| |s|-1s|+1s| 1s|010s|1h010m|00s|1s |1 s |h30m|nan|inf|infs|.5s|5.s|"
		 "1 hour and 30 minutes|\xff"},
		{&value_time, "no-unit", "30|0|1h30|1h 30"},
		{&value_time, "bad-unit", "1S|1M|1MS|1mo|1y|1h,30m|1e3s|0x1s|1s\n"},
		{&value_time, "bad-time", "30m1h|30m30m|1m30min"},
		{&value_time, "not-whole", "1.5ns|0.0000000001s"},
		{&value_time, "out-of-range",
		 "0s|0.0h|0h0m0s|729d24h1ns|731d|17521h|63072000000000001ns|"
		 "18446744073709551615d|18446744073709551616ns|1h99999999999999999999999999s"},
		{&value_round, "out-of-range", "999ms|1d 1s"},
		{&value_groups, "bad-number", "|0|11|5x|05|-1"},
		{&value_size, "bad-size",
		 "|0|0k|64K|65m|67108865|1.5m|016k|1kk|-1|99999999999999999999"},
		{&value_access, "bad-choice", "|Allow|den|allow "},
		{&value_flag, "bad-choice", "|maybe|1|True"},
	};
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (const char *rest = cases[i].texts; part_next(&rest, text);) {
			uint64_t untouched[2] = {7, 7};
			char named[160];

			if (!value_parse(cases[i].type, "word", text, untouched))
				fail_msg("%s '%s' is accepted", cases[i].type->name, text);
			snprintf(named, sizeof(named), "word '%s'", text);
			text_make_printable(named);
			assert_one_error(cases[i].id, named);
			assert_true(untouched[0] == 7 && untouched[1] == 7);
		}
}

TEST(test_what_was_meant_is_the_hint)
{
	static const struct {
		const struct value_type *type;
		const char *text, *hint;
	} cases[] = {
		{&value_rate, "10Mbps", "10mbit, or 80mbit"},
		{&value_rate, "1.5kbps", "1.5kbit, or 12kbit"},
		{&value_rate, "500bps", "500bit, or 4000bit"},
		{&value_round, "1ms", "1s to 1d"},
		{&value_access, "alow", "'allow'"},
		{&value_access, "x", "allow or deny"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(value_parse(cases[i].type, NULL, cases[i].text, NULL), -EINVAL);
		assert_non_null(strstr(error_last(0)->hint, cases[i].hint));
		error_drop(0);
	}
}

TEST(test_choices_flags_and_sizes_are_read)
{
	static const char *const flags[] = {"no", "yes", "false", "true"};
	unsigned int choice;
	uint32_t size;
	bool flag;

	assert_int_equal(value_parse(&value_access, "word", "deny", &choice), 0);
	assert_int_equal(choice, 6);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		assert_int_equal(value_parse(&value_flag, "word", flags[i], &flag), 0);
		assert_int_equal(flag, i % 2);
	}
	assert_int_equal(value_parse(&value_size, "word", "64k", &size), 0);
	assert_int_equal(size, 65536);
	assert_int_equal(value_parse(&value_size, "word", "64m", &size), 0);
	assert_int_equal(size, SIZE_MAX_ENTRIES);
}

TEST(test_sizes_are_written_as_users_do)
{
	static const struct {
		uint32_t size;
		const char *text;
	} cases[] = {{1, "1"},	      {1000, "1000"},	     {1024, "1k"},
		     {1536, "1536"},  {16384, "16k"},	     {1 << 20, "1m"},
		     {3 << 20, "3m"}, {1025 << 10, "1025k"}, {1 << 26, "64m"}};
	char text[SIZE_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(size_format(cases[i].size, text), cases[i].text);
}

TEST(test_numbers_are_read_up_to_their_most)
{
	static const struct {
		const char *text;
		unsigned int most;
		int number; /* parsed number; -1: refused */
		const char *rest;
	} cases[] = {
		{"0", 0, 0, ""},
		{"1", 0, -1, NULL},
		{"24", 32, 24, ""},
		{"32/64", 32, 32, "/64"},
		{"007x", 7, -1, NULL},
		{"0x", 7, 0, "x"},
		{"65536", 65535, -1, NULL},
		{"", 9, -1, NULL},
		{"-1", 9, -1, NULL},
		{" 1", 9, -1, NULL},
		{"99999999999999999999999", 0x7fffffff, -1, NULL},
		{"18446744073709551640", 32, -1, NULL}, /* 2^64 + 24, too large for 64 bits */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int number = 7777;
		const char *rest = number_read(cases[i].text, cases[i].most, &number);

		if (cases[i].rest)
			assert_string_equal(rest, cases[i].rest);
		else
			assert_null(rest);
		assert_int_equal(number, cases[i].rest ? cases[i].number : 7777);
	}
}

TESTS(NULL, NULL)
