// SPDX-License-Identifier: GPL-2.0
/* user/rules/units.h: rates, bursts, times and numbers from words, and back. */
#include "test.h"
#include "capture.h"
#include "rates.h"
#include "rules/limit.h"
#include "rules/units.h"

/* One message names the text, as far as that can be printed. */
static void assert_named(struct capture *capture, const char *text)
{
	char named[64];
	int length = 0;

	while (text[length] >= ' ' && text[length] <= '~')
		length++;
	snprintf(named, sizeof(named), " %.*s", length, text);
	assert_messages(capture_end(capture), "", named);
}

/* --- Rates ---------------------------------------------------------------------------------- */

static void test_rates_are_read_and_written_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct sl_limit_spec spec = {0}, again = {0};
		char text[UNITS_TEXT];

		assert_int_equal(rate_parse(rates[i].text, &spec), OK);
		assert_int_equal(spec.rate, rates[i].rate);
		assert_int_equal(spec.rate_unit, rates[i].unit);
		assert_true(rate_per_second(&spec) == rates[i].per_second);
		assert_string_equal(rate_format(&spec, text),
				    rates[i].printed ? rates[i].printed : rates[i].text);
		assert_int_equal(rate_parse(text, &again), OK);
		assert_memory_equal(&spec, &again, sizeof(spec));
	}
}

static void test_wrong_rates_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"500",
		"0",
		"pps",
		"/h",
		"bit",
		"10bps",
		"10kbps",
		"007pps",
		"00.5kpps",
		"0pps",
		"0.0kpps",
		"0/h",
		"0mbit",
		"-5pps",
		"+5pps",
		" 5pps",
		"5pps ",
		"5 packets",
		"5 per",
		"5 permin",
		"5 per mbit",
		"5 per day",
		"5 packets mbit",
		"5 packetspps",
		"5 pps ",
		"nan",
		"nanpps",
		"NaN",
		"inf",
		"infinity",
		"infpps",
		"1e3pps",
		"0x10pps",
		"5mb",
		"5MB",
		"5MB/s",
		"10Mbps",
		"5/d",
		"5/M5",
		"5//h",
		"5pps/s",
		".5kpps",
		"5.pps",
		"5.kpps",
		".pps",
		"1.2.3kpps",
		"1,5kpps",
		"1_000pps",
		"1.5pps",
		"0.5pps",
		"0.0001kpps",
		"0.5/h",
		"1bit",
		"999bit",
		"0.999kbit",
		"200000001pps",
		"201mpps",
		"200.000001mpps",
		"12000000001/min",
		"720000000001/h",
		"401gbit",
		"400000000001bit",
		"18446744073709551615gbit",
		"18446744073709551616pps",
		"99999999999999999999999999999999999pps",
		"0.00000000000000000000000000000000001gbit",
		"5pps\n",
		"\xff",
		"5\xffpps",
	};
	const struct sl_limit_spec untouched = {.rate = 7, .rate_unit = SL_RATE_BITS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct capture capture = capture_begin(stderr);
		struct sl_limit_spec spec = untouched;

		if (rate_parse(texts[i], &spec) != MISUSED)
			fail_msg("rate '%s' is taken", texts[i]);
		assert_named(&capture, texts[i]);
		assert_memory_equal(&spec, &untouched, sizeof(spec));
	}
}

/* --- Bursts --------------------------------------------------------------------------------- */

static const struct {
	const char *rate, *text;
	uint64_t burst;
	uint32_t unit;
	const char *printed; /* NULL: as it was written */
} bursts[] = {
	{"1kpps", "1", 1, SL_BURST_PACKETS, NULL},
	{"1kpps", "2000", 2000, SL_BURST_PACKETS, NULL},
	{"5/h", "1000000", 1000000, SL_BURST_PACKETS, NULL},
	{"1kpps", "250ms", 250000000, SL_BURST_NS, NULL},
	{"1kpps", "0.25s", 250000000, SL_BURST_NS, "250ms"},
	{"1kpps", "1000ms", 1000000000, SL_BURST_NS, "1s"},
	{"1kpps", "90s", 90000000000, SL_BURST_NS, NULL},
	{"1kpps", "120s", 120000000000, SL_BURST_NS, "2min"},
	{"1/min", "60min", 3600000000000, SL_BURST_NS, "1h"},
	{"1/h", "25h", 90000000000000, SL_BURST_NS, NULL},
	{"1mpps", "1500us", 1500000, SL_BURST_NS, NULL},
	{"200mpps", "5ns", 5, SL_BURST_NS, NULL},
	{"1mbit", "1514B", 1514, SL_BURST_BYTES, NULL},
	{"1mbit", "64kB", 64000, SL_BURST_BYTES, NULL},
	{"1mbit", "64000B", 64000, SL_BURST_BYTES, "64kB"},
	{"1mbit", "64KiB", 65536, SL_BURST_BYTES, NULL},
	{"1mbit", "65536B", 65536, SL_BURST_BYTES, "64KiB"},
	{"1mbit", "1.5MB", 1500000, SL_BURST_BYTES, "1500kB"},
	{"1mbit", "2MiB", 2097152, SL_BURST_BYTES, NULL},
	{"1gbit", "3GB", 3000000000, SL_BURST_BYTES, NULL},
	{"1gbit", "1GiB", 1073741824, SL_BURST_BYTES, NULL},
	{"1gbit", "250ms", 250000000, SL_BURST_NS, NULL},
	{"1kpps", "2000 packets", 2000, SL_BURST_PACKETS, "2000"},
	{"1kpps", "1packet", 1, SL_BURST_PACKETS, "1"},
	{"1kpps", "250 msec", 250000000, SL_BURST_NS, "250ms"},
	{"1kpps", "2 Seconds", 2000000000, SL_BURST_NS, "2s"},
	{"1mbit", "64 kB", 64000, SL_BURST_BYTES, "64kB"},
	{"1mbit", "1514 bytes", 1514, SL_BURST_BYTES, "1514B"},
};

static void test_bursts_are_read_and_written_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bursts); i++) {
		struct sl_limit_spec spec = {0}, again;
		char text[UNITS_TEXT];

		assert_int_equal(rate_parse(bursts[i].rate, &spec), OK);
		again = spec;
		assert_int_equal(burst_parse(bursts[i].text, &spec), OK);
		assert_int_equal(spec.burst, bursts[i].burst);
		assert_int_equal(spec.burst_unit, bursts[i].unit);
		assert_string_equal(burst_format(&spec, text),
				    bursts[i].printed ? bursts[i].printed : bursts[i].text);
		assert_int_equal(burst_parse(text, &again), OK);
		assert_memory_equal(&spec, &again, sizeof(spec));
	}
}

static void test_wrong_bursts_are_refused(void **state)
{
	static const struct {
		const char *rate, *text;
	} cases[] = {
		{"1kpps", ""},
		{"1kpps", "0"},
		{"1kpps", "0ms"},
		{"1kpps", "-1"},
		{"1kpps", "+1"},
		{"1kpps", " 1"},
		{"1kpps", "1 "},
		{"1kpps", "1.5"},
		{"1kpps", "nan"},
		{"1kpps", "inf"},
		{"1kpps", "1e3"},
		{"1kpps", "64kB"},
		{"1kpps", "1B"},
		{"1kpps", "10p"},
		{"1kpps", "1d"},
		{"1kpps", "1m"},
		{"1kpps", "10MS"},
		{"1kpps", "010"},
		{"1kpps", "1 day"},
		{"1kpps", "1h30m"},
		{"1kpps", "0.5ns"},
		{"1kpps", "ms"},
		{"1mbit", "2000"},
		{"1mbit", "0B"},
		{"1mbit", "64kb"},
		{"1mbit", "64K"},
		{"1mbit", "64KB"},
		{"1mbit", "64kbit"},
		{"1mbit", "1.5B"},
		{"1mbit", "1.0001kB"},
		{"1kpps", "18446744073709551616"},
		{"1kpps", "18446744073709551615us"},
		{"1mbit", "18446744073709551615kB"},
		{"1mbit", "\xff"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture capture = capture_begin(stderr);
		struct sl_limit_spec spec = {0}, untouched;

		assert_int_equal(rate_parse(cases[i].rate, &spec), OK);
		untouched = spec;
		if (burst_parse(cases[i].text, &spec) != MISUSED)
			fail_msg("burst '%s' of %s is taken", cases[i].text, cases[i].rate);
		assert_named(&capture, cases[i].text);
		assert_memory_equal(&spec, &untouched, sizeof(spec));
	}
}

static void test_the_default_burst_is_one_second_or_64_packets(void **state)
{
	static const struct {
		const char *rate;
		uint64_t burst;
		uint32_t unit;
	} cases[] = {
		{"1/h", 64, SL_BURST_PACKETS},
		{"1pps", 64, SL_BURST_PACKETS},
		{"64pps", 64, SL_BURST_PACKETS},
		{"65pps", 65, SL_BURST_PACKETS},
		{"1kpps", 1000, SL_BURST_PACKETS},
		{"240000/min", 4000, SL_BURST_PACKETS},
		{"200mpps", 200000000, SL_BURST_PACKETS},
		{"1kbit", 256000, SL_BURST_BYTES},
		{"2mbit", 256000, SL_BURST_BYTES},
		{"2049kbit", 256125, SL_BURST_BYTES},
		{"400gbit", 50000000000, SL_BURST_BYTES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = {0};

		assert_int_equal(rate_parse(cases[i].rate, &limit.spec), OK);
		burst_default(&limit.spec);
		assert_int_equal(limit.spec.burst, cases[i].burst);
		assert_int_equal(limit.spec.burst_unit, cases[i].unit);
		assert_int_equal(limit_check(&limit), OK);
	}
}

/* --- Amounts of a window -------------------------------------------------------------------- */

static void test_amounts_are_read_and_written_back(void **state)
{
	static const struct {
		const char *text, *shown; /* shown: NULL: as it was written */
		uint64_t amount;
		uint8_t unit;
	} cases[] = {
		{"1", NULL, 1, SL_RATE_PPS},
		{"1000", NULL, 1000, SL_RATE_PPS},
		{"18446744073709551615", NULL, UINT64_MAX, SL_RATE_PPS},
		{"1B", NULL, 1, SL_RATE_BITS},
		{"10MB", NULL, 10000000, SL_RATE_BITS},
		{"1.5kB", "1500B", 1500, SL_RATE_BITS},
		{"1000kB", "1MB", 1000000, SL_RATE_BITS},
		{"64KiB", NULL, 65536, SL_RATE_BITS},
		{"140TB", NULL, 140000000000000, SL_RATE_BITS},
		{"1 B", "1B", 1, SL_RATE_BITS},
		{"10 bytes", "10B", 10, SL_RATE_BITS},
		{"10 packets", "10", 10, SL_RATE_PPS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[UNITS_TEXT];
		uint64_t amount;
		uint8_t unit;

		assert_int_equal(amount_parse("window", cases[i].text, &amount, &unit), OK);
		assert_int_equal(amount, cases[i].amount);
		assert_int_equal(unit, cases[i].unit);
		assert_string_equal(amount_format(amount, unit, text),
				    cases[i].shown ?: cases[i].text);
	}
}

static void test_wrong_amounts_are_refused(void **state)
{
	static const char *const cases[] = {"",
					    "-1",
					    "x",
					    "0",
					    "0B",
					    "1.5",
					    "0.0001kB",
					    "1kb",
					    "1ms",
					    "1pps",
					    "1 x",
					    "01",
					    "1mbit",
					    "1 ",
					    "18446744073709551616",
					    "99999999999TB"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture capture = capture_begin(stderr);
		uint64_t amount = 7;
		uint8_t unit = 7;

		if (amount_parse("window", cases[i], &amount, &unit) != MISUSED)
			fail_msg("'%s' is taken", cases[i]);
		assert_named(&capture, cases[i]);
		assert_true(amount == 7 && unit == 7);
	}
}

/* --- Times and plain numbers ---------------------------------------------------------------- */

static void test_times_are_read_and_written_back(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
		const char *printed; /* NULL: as it was written */
	} cases[] = {
		{"1ns", 1, NULL},
		{"999ns", 999, NULL},
		{"1500us", 1500000, NULL},
		{"1000us", 1000000, "1ms"},
		{"1ms", 1000000, NULL},
		{"0.25s", 250000000, "250ms"},
		{"1.0000s", 1000000000, "1s"},
		{"30s", 30000000000, NULL},
		{"60s", 60000000000, "1min"},
		{"90s", 90000000000, NULL},
		{"10min", 600000000000, NULL},
		{"3540s", 3540000000000, "59min"},
		{"1h", 3600000000000, NULL},
		{"25h", 90000000000000, NULL},
		{"24h", 86400000000000, "1d"},
		{"1.5d", 129600000000000, "36h"},
		{"7d", 604800000000000, NULL},
		{"0.000000001s", 1, "1ns"},
		{"730d", 63072000000000000, NULL},
		{"63072000000000000ns", 63072000000000000, "730d"},
		{"5m", 300000000000, "5min"},
		{"5 minutes", 300000000000, "5min"},
		{"1 Minute", 60000000000, "1min"},
		{"5mins", 300000000000, "5min"},
		{"90 s", 90000000000, "90s"},
		{"90sec", 90000000000, "90s"},
		{"1 second", 1000000000, "1s"},
		{"2 days", 172800000000000, "2d"},
		{"1 DAY", 86400000000000, "1d"},
		{"2 weeks", 1209600000000000, "14d"},
		{"1w", 604800000000000, "7d"},
		{"1 hour", 3600000000000, "1h"},
		{"2hrs", 7200000000000, "2h"},
		{"1h30m", 5400000000000, "90min"},
		{"1h 30min", 5400000000000, "90min"},
		{"1 hour 30 minutes", 5400000000000, "90min"},
		{"1d2h3m4s5ms6us7ns", 93784005006007, "93784005006007ns"},
		/* as Go writes them */
		{"3h59m58s", 14398000000000, "14398s"},
		{"1h0m0s", 3600000000000, "1h"},
		{"3h59m58.876543s", 14398876543000, "14398876543us"},
		{"1.5ms", 1500000, "1500us"},
		{"250\xc2\xb5s", 250000, "250us"},
		{"250\xce\xbcs", 250000, "250us"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[UNITS_TEXT];
		uint64_t ns = 0;

		assert_int_equal(time_parse("for", cases[i].text, &ns), OK);
		assert_int_equal(ns, cases[i].ns);
		assert_string_equal(time_format(ns, text), cases[i].printed ?: cases[i].text);
		assert_int_equal(time_parse("for", text, &ns), OK);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void test_no_time_is_in_seconds(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(time_format(0, text), "0s");
	assert_string_equal(left_format(0, text), "0s");
}

static void test_wrong_times_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"s",
		"30",
		"0",
		"0s",
		"0.0h",
		"-1s",
		"+1s",
		" 1s",
		"1s ",
		"1 s ",
		"1S",
		"1M",
		"1MS",
		"1mo",
		"1y",
		"010s",
		"1h010m",
		"00s",
		"30m1h",
		"30m30m",
		"1m30min",
		"1h30",
		"1h 30",
		"1h,30m",
		"h30m",
		"0h0m0s",
		"729d24h1ns",
		"1 hour and 30 minutes",
		"1e3s",
		"0x1s",
		"nan",
		"inf",
		"infs",
		".5s",
		"5.s",
		"1.5ns",
		"0.0000000001s",
		"731d",
		"17521h",
		"63072000000000001ns",
		"18446744073709551615d",
		"18446744073709551616ns",
		"99999999999999999999999999s",
		"1s\n",
		"\xff",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct capture capture = capture_begin(stderr);
		uint64_t ns = 7;

		if (time_parse("for", texts[i], &ns) != MISUSED)
			fail_msg("time '%s' is taken", texts[i]);
		assert_named(&capture, texts[i]);
		assert_int_equal(ns, 7);
	}
}

static void test_numbers_are_read_up_to_their_most(void **state)
{
	static const struct {
		const char *text;
		unsigned int most;
		int number; /* -1: there is none */
		const char *rest;
	} cases[] = {
		{"0", 0, 0, ""},
		{"1", 0, -1, NULL},
		{"24", 32, 24, ""},
		{"32/64", 32, 32, "/64"},
		{"33/64", 32, -1, NULL},
		{"007x", 7, -1, NULL},
		{"00", 7, -1, NULL},
		{"0x", 7, 0, "x"},
		{"65535", 65535, 65535, ""},
		{"65536", 65535, -1, NULL},
		{"", 9, -1, NULL},
		{"-1", 9, -1, NULL},
		{"+1", 9, -1, NULL},
		{" 1", 9, -1, NULL},
		{"1.5", 9, 1, ".5"},
		{"99999999999999999999999", 0x7fffffff, -1, NULL},
		{"18446744073709551640", 32, -1, NULL}, /* 2^64 + 24 */
	};

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_read_and_written_back),
		cmocka_unit_test(test_wrong_rates_are_refused),
		cmocka_unit_test(test_bursts_are_read_and_written_back),
		cmocka_unit_test(test_wrong_bursts_are_refused),
		cmocka_unit_test(test_the_default_burst_is_one_second_or_64_packets),
		cmocka_unit_test(test_amounts_are_read_and_written_back),
		cmocka_unit_test(test_wrong_amounts_are_refused),
		cmocka_unit_test(test_times_are_read_and_written_back),
		cmocka_unit_test(test_no_time_is_in_seconds),
		cmocka_unit_test(test_wrong_times_are_refused),
		cmocka_unit_test(test_numbers_are_read_up_to_their_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
