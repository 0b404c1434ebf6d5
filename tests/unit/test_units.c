// SPDX-License-Identifier: GPL-2.0
/* user/rules/units.h and user/rules/limit.h: from words to numbers, back to words, and on to ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/array.h"
#include "credit.h"
#include "rules/limit.h"
#include "rules/units.h"

#include <cmocka.h>

#define SEC   SL_TICKS_PER_SEC
#define MS    (SEC / 1000)
#define HOUR  (3600 * SEC)
#define JIFFY (4 * MS) /* a jiffy at HZ=250 */

static const struct machine machine = {.cpus = 2, .jiffy_ns = 4000000};

/* --- Rates ---------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint64_t rate;
	uint32_t unit;
	double per_second;
	const char *printed; /* NULL: as it was written */
} rates[] = {
	{"1pps", 1, SL_RATE_PPS, 1, NULL},
	{"500pps", 500, SL_RATE_PPS, 500, NULL},
	{"500/s", 500, SL_RATE_PPS, 500, "500pps"},
	{"1000pps", 1000, SL_RATE_PPS, 1000, "1kpps"},
	{"1001pps", 1001, SL_RATE_PPS, 1001, NULL},
	{"10kpps", 10000, SL_RATE_PPS, 10000, NULL},
	{"1.5kpps", 1500, SL_RATE_PPS, 1500, "1500pps"},
	{"0.5kpps", 500, SL_RATE_PPS, 500, "500pps"},
	{"0.001kpps", 1, SL_RATE_PPS, 1, "1pps"},
	{"1.50kpps", 1500, SL_RATE_PPS, 1500, "1500pps"},
	{"007pps", 7, SL_RATE_PPS, 7, "7pps"},
	{"2mpps", 2000000, SL_RATE_PPS, 2000000, NULL},
	{"2000kpps", 2000000, SL_RATE_PPS, 2000000, "2mpps"},
	{"200mpps", 200000000, SL_RATE_PPS, 200000000, NULL},
	{"1/min", 1, SL_RATE_PER_MIN, 1 / 60.0, NULL},
	{"30/min", 30, SL_RATE_PER_MIN, 0.5, NULL},
	{"60000/min", 60000, SL_RATE_PER_MIN, 1000, NULL},
	{"12000000000/min", 12000000000, SL_RATE_PER_MIN, 200000000, NULL},
	{"1/h", 1, SL_RATE_PER_HOUR, 1 / 3600.0, NULL},
	{"5/h", 5, SL_RATE_PER_HOUR, 5 / 3600.0, NULL},
	{"720000000000/h", 720000000000, SL_RATE_PER_HOUR, 200000000, NULL},
	{"1000bit", 1000, SL_RATE_BITS, 1000, "1kbit"},
	{"1kbit", 1000, SL_RATE_BITS, 1000, NULL},
	{"1234567bit", 1234567, SL_RATE_BITS, 1234567, NULL},
	{"50mbit", 50000000, SL_RATE_BITS, 50000000, NULL},
	{"1gbit", 1000000000, SL_RATE_BITS, 1000000000, NULL},
	{"2.5gbit", 2500000000, SL_RATE_BITS, 2500000000, "2500mbit"},
	{"400gbit", 400000000000, SL_RATE_BITS, 400000000000, NULL},
	/* said otherwise, and of one meaning */
	{"1000/s", 1000, SL_RATE_PPS, 1000, "1kpps"},
	{"5/sec", 5, SL_RATE_PPS, 5, "5pps"},
	{"5/second", 5, SL_RATE_PPS, 5, "5pps"},
	{"5/minute", 5, SL_RATE_PER_MIN, 5 / 60.0, "5/min"},
	{"5/hour", 5, SL_RATE_PER_HOUR, 5 / 3600.0, "5/h"},
	{"10Mbit", 10000000, SL_RATE_BITS, 10000000, "10mbit"},
	{"10Mbit/s", 10000000, SL_RATE_BITS, 10000000, "10mbit"},
	{"1GBIT", 1000000000, SL_RATE_BITS, 1000000000, "1gbit"},
	{"5Kpps", 5000, SL_RATE_PPS, 5000, "5kpps"},
	{"5PPS", 5, SL_RATE_PPS, 5, "5pps"},
	{"5Mpps", 5000000, SL_RATE_PPS, 5000000, "5mpps"},
};

static void test_rates(void **state)
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

static void test_rates_refused(void **state)
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
		"0pps",
		"0.0kpps",
		"0/h",
		"0mbit",
		"-5pps",
		"+5pps",
		" 5pps",
		"5pps ",
		"5 pps",
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
		"5/m",
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
		struct sl_limit_spec spec = untouched;

		if (rate_parse(texts[i], &spec) != MISUSED)
			fail_msg("rate '%s' is taken", texts[i]);
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
};

static void test_bursts(void **state)
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

static void test_bursts_refused(void **state)
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
		{"1kpps", "10 ms"},
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
		struct sl_limit_spec spec = {0}, untouched;

		assert_int_equal(rate_parse(cases[i].rate, &spec), OK);
		untouched = spec;
		if (burst_parse(cases[i].text, &spec) != MISUSED)
			fail_msg("burst '%s' of %s is taken", cases[i].text, cases[i].rate);
		assert_memory_equal(&spec, &untouched, sizeof(spec));
	}
}

static void test_default_bursts(void **state)
{
	static const struct {
		const char *rate;
		uint64_t burst;
		uint32_t unit;
	} cases[] = {
		{"1/h", 8, SL_BURST_PACKETS},
		{"1pps", 8, SL_BURST_PACKETS},
		{"35pps", 8, SL_BURST_PACKETS},
		{"36pps", 9, SL_BURST_PACKETS},
		{"1kpps", 250, SL_BURST_PACKETS},
		{"240000/min", 1000, SL_BURST_PACKETS},
		{"200mpps", 50000000, SL_BURST_PACKETS},
		{"1kbit", 128000, SL_BURST_BYTES},
		{"4mbit", 128000, SL_BURST_BYTES},
		{"8mbit", 250000, SL_BURST_BYTES},
		{"400gbit", 12500000000, SL_BURST_BYTES},
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

/* --- Times and plain numbers ---------------------------------------------------------------- */

static void test_times(void **state)
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

static void test_times_refused(void **state)
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
		"1 s",
		"1S",
		"1sec",
		"1m",
		"1w",
		"1y",
		"1h30min",
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
		uint64_t ns = 7;

		if (time_parse("for", texts[i], &ns) != MISUSED)
			fail_msg("time '%s' is taken", texts[i]);
		assert_int_equal(ns, 7);
	}
}

static void test_numbers(void **state)
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
		{"007x", 7, 7, "x"},
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

/* --- Limits --------------------------------------------------------------------------------- */

static struct limit limit_of(const char *rate, const char *burst)
{
	struct limit limit = {.spec = {.per = {32, 64}}, .match = {.fact = SL_FACT_ANY}};

	assert_int_equal(rate_parse(rate, &limit.spec), OK);
	if (burst)
		assert_int_equal(burst_parse(burst, &limit.spec), OK);
	else
		burst_default(&limit.spec);
	return limit;
}

static void test_limits(void **state)
{
	static const struct {
		const char *rate, *burst;
		uint64_t cost, burst_ticks, refill, purse;
		uint32_t life;
		bool by_bytes, by_jiffy;
	} cases[] = {
		/* purses: a sixteenth of the burst, over two CPUs, for as many whole ticks less one */
		{"1kpps", "1000", SEC / 1000, SEC, SEC / 16 * 15, SEC / 32, 14, false, true},
		{"1kpps", "1s", SEC / 1000, SEC, SEC / 16 * 15, SEC / 32, 14, false, true},
		{"1kpps", "128", MS, 128 * MS, 120 * MS, 4 * MS, 1, false, true},
		{"200pps", "64", 5 * MS, 320 * MS, 300 * MS, 10 * MS, 4, false, true},
		/* too short for a purse, in ticks or in packets; too short to refuse by tick */
		{"1kpps", "127", MS, 127 * MS, 127 * MS, 0, 0, false, true},
		{"1mpps", "127000", MS / 1000, 127 * MS, 127 * MS, 0, 0, false, true},
		{"200pps", "63", 5 * MS, 315 * MS, 315 * MS, 0, 0, false, true},
		{"1kpps", "8", MS, 8 * MS, 8 * MS, 0, 0, false, true},
		{"1kpps", "7", MS, 7 * MS, 7 * MS, 0, 0, false, false},
		/* the ends of the range */
		{"1/h", "1", HOUR, HOUR, HOUR, 0, 0, false, true},
		{"1/h", "8", HOUR, 8 * HOUR, 8 * HOUR, 0, 0, false, true},
		{"200mpps", "1", 80, 80, 80, 0, 0, false, false},
		{"200mpps", "5ns", 80, 80, 80, 0, 0, false, false},
		/* costs round up */
		{"3pps", "1", 5333333334, 5333333334, 5333333334, 0, 0, false, true},
		{"7/min", "1", 137142857143, 137142857143, 137142857143, 0, 0, false, true},
		{"7/h", "2", 8228571428572, 16457142857144, 16457142857144, 0, 0, false, true},
		/* bytes */
		{"1mbit", "2000B", 128000ULL << 16, 2000 * 128000ULL, 2000 * 128000ULL, 0, 0, true,
		 true},
		{"400gbit", "1514B", 20972, 485, 485, 0, 0, true, false},
		{"1kbit", "60B", 128000000ULL << 16, 60 * 128000000ULL, 60 * 128000000ULL, 0, 0,
		 true, true},
		{"8gbit", "200MB", 16 << 16, 3200000000, 3000000000, 100000000, 2, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit author = limit_of(cases[i].rate, cases[i].burst);
		struct sl_limit limit = limit_compile(&author, i % SL_FAMILIES, &machine);

		assert_int_equal(limit_check(&author), OK);
		assert_int_equal(limit.cost, cases[i].cost);
		assert_int_equal(limit.burst, cases[i].burst_ticks);
		assert_int_equal(limit.refill, cases[i].refill);
		assert_int_equal(limit.purse, cases[i].purse);
		assert_int_equal(limit.life, cases[i].life);
		assert_int_equal(limit.by_bytes, cases[i].by_bytes);
		assert_int_equal(limit.refuse_by_jiffy, cases[i].by_jiffy);
	}
}

static void test_limits_refused(void **state)
{
	static const struct {
		const char *rate, *burst;
	} cases[] = {
		{"1kpps", "999us"},
		{"1kpps", "999999ns"},
		{"1/h", "3599s"},
		{"3pps", "333333333ns"},
		{"200mpps", "4ns"},
		{"1mbit", "1us"},
		{"1kbit", "7999us"},
		{"1/h", "20017"},
		{"1/h", "20017h"},
		{"200mpps", "20017h"},
		{"1kbit", "10GB"},
		{"1/h", "18446744073709551615"},
		{"1kbit", "18446744073709551615B"},
		{"1kpps", "18446744073709551615ns"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].rate, cases[i].burst);

		if (limit_check(&limit) != MISUSED)
			fail_msg("burst %s at %s is taken", cases[i].burst, cases[i].rate);
	}
}

/* One less than what was refused above is taken. */
static void test_limits_at_the_edge(void **state)
{
	static const struct {
		const char *rate, *burst;
	} cases[] = {
		{"1kpps", "1ms"},  {"1/h", "3600s"}, {"3pps", "333333334ns"}, {"200mpps", "5ns"},
		{"1mbit", "1B"},   {"1mbit", "8us"}, {"1kbit", "8ms"},	      {"1/h", "20015"},
		{"1/h", "20015h"}, {"1kbit", "9GB"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].rate, cases[i].burst);

		assert_int_equal(limit_check(&limit), OK);
		assert_in_range(limit_compile(&limit, SL_IPV4, &machine).burst, 1,
				SL_BURST_TICKS_MAX);
	}
}

/* What include/credit.h asks of a limit, for any number of CPUs and any jiffy. */
static void assert_one_burst(const struct sl_limit *limit, const struct machine *m)
{
	uint64_t purses = limit->burst - limit->refill;
	uint64_t jiffy = m->jiffy_ns * SL_TICKS_PER_NS;

	assert_true(limit->refill <= limit->burst && limit->burst <= SL_BURST_TICKS_MAX);
	assert_true(limit->purse * m->cpus <= purses);
	assert_true(purses <= limit->burst / 16);
	if (limit->purse) /* one more: the kernel may count a tick late */
		assert_true((limit->life + 1) * jiffy <= purses);
	assert_int_equal(!limit->purse, !limit->life);
	if (limit->purse)
		assert_true(limit->purse >= 2 * credit_cost(limit, 1, 1514));
	else
		assert_int_equal(limit->refill, limit->burst);
	if (limit->refuse_by_jiffy)
		assert_true(limit->refill >= 2 * jiffy);
	/* what credit_cost relies on: nothing wraps */
	assert_true(limit->cost < 1ULL << (limit->by_bytes ? 43 : 46));
}

static void test_purses_and_ledger_are_one_burst(void **state)
{
	static const char *const some_bursts[] = {"1ms", "33ms", "250ms", "1s", "7min", "20000h"};
	static const unsigned int cpus[] = {1, 2, 3, 64, 1024, 8192};
	static const unsigned int ticks[] = {1000000, 3333333, 4000000, 10000000};
	unsigned int compiled = 0;

	(void)state;
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++)
		for (size_t b = 0; b <= ARRAY_SIZE(some_bursts); b++)
			for (size_t c = 0; c < ARRAY_SIZE(cpus) * ARRAY_SIZE(ticks); c++) {
				struct machine m = {.cpus = cpus[c % ARRAY_SIZE(cpus)],
						    .jiffy_ns = ticks[c / ARRAY_SIZE(cpus)]};
				bool usual = b == ARRAY_SIZE(some_bursts);
				struct limit author;
				struct sl_limit limit;

				author = limit_of(rates[r].text, usual ? NULL : some_bursts[b]);
				if (limit_check(&author))
					continue;
				limit = limit_compile(&author, SL_IPV6, &m);
				assert_one_burst(&limit, &m);
				compiled++;
			}
	assert_true(compiled > 3000);
}

/* Rounding never lets a rate be exceeded, and costs at most a part in 100,000 of any rate. */
static void test_costs_are_never_too_small(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct limit author = limit_of(rates[i].text, NULL);
		struct sl_limit limit = limit_compile(&author, SL_IPV4, &machine);
		double exact;

		exact = SEC / rates[i].per_second * (limit.by_bytes ? 8.0 * (1 << 16) : 1);
		assert_true(limit.cost >= exact * (1 - 1e-12));
		assert_true(limit.cost <= exact * (1 + 1e-12) + 1);
	}
}

/* What the key keeps of an address. */
static void test_masks(void **state)
{
	static const struct {
		enum sl_family family;
		uint8_t bits;
		uint8_t bytes[16];
	} cases[] = {
		{SL_IPV4, 0, {0}},
		{SL_IPV4, 1, {0x80}},
		{SL_IPV4, 20, {0xff, 0xff, 0xf0}},
		{SL_IPV4, 24, {0xff, 0xff, 0xff}},
		{SL_IPV4, 32, {0xff, 0xff, 0xff, 0xff}},
		{SL_IPV6, 0, {0}},
		{SL_IPV6, 56, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{SL_IPV6, 65, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80}},
		{SL_IPV6,
		 128,
		 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		  0xff, 0xff, 0xff}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit author = limit_of("1kpps", NULL);
		struct sl_limit limit;

		author.spec.per[cases[i].family] = cases[i].bits;
		limit = limit_compile(&author, cases[i].family, &machine);
		assert_memory_equal(limit.mask, cases[i].bytes, sizeof(limit.mask));
	}
}

static void test_actions(void **state)
{
	struct limit author = limit_of("1kpps", "1s");
	struct sl_limit limit;

	(void)state;
	author.spec.id = 77;
	author.spec.action = SL_ACTION_OBSERVE;
	author.spec.start_empty = 1;
	limit = limit_compile(&author, SL_IPV4, &machine);
	assert_true(limit.observe && limit.start_empty && !limit.block && !limit.key_dst);
	assert_int_equal(limit.id, 77);
	author.spec.action = SL_ACTION_BLOCK;
	author.spec.block_ns = 30000000000;
	author.spec.key_dst = 1;
	limit = limit_compile(&author, SL_IPV4, &machine);
	assert_int_equal(limit.block, 30 * SEC);
	assert_true(!limit.observe && limit.key_dst && limit.apart);
}

/*
 * A CPU holds credit for one source: none where a ledger is of many, where a bucket is of many
 * ledgers, or where a block is to begin at once.
 */
static void test_who_has_purses(void **state)
{
	struct limit whole = limit_of("1kpps", "1s"), longer = whole, wider = whole, dst = whole;
	struct limit blocks = whole;

	(void)state;
	longer.spec.per[SL_IPV6] = 128;
	wider.spec.per[SL_IPV4] = 24;
	dst.spec.key_dst = 1;
	blocks.spec.action = SL_ACTION_BLOCK;
	blocks.spec.block_ns = 1000000;
	assert_true(limit_compile(&whole, SL_IPV4, &machine).purse);
	assert_true(limit_compile(&whole, SL_IPV6, &machine).purse);
	assert_true(limit_compile(&longer, SL_IPV4, &machine).purse);
	assert_false(limit_compile(&longer, SL_IPV6, &machine).purse);
	assert_true(limit_compile(&longer, SL_IPV6, &machine).apart);
	assert_false(limit_compile(&wider, SL_IPV4, &machine).purse);
	assert_true(limit_compile(&wider, SL_IPV6, &machine).purse);
	assert_false(limit_compile(&dst, SL_IPV4, &machine).purse);
	assert_false(limit_compile(&blocks, SL_IPV4, &machine).purse);
}

/* A burst in bytes is not made smaller by rounding: so many bytes pass at once. */
static void test_a_burst_in_bytes_holds_them(void **state)
{
	static const char *const some_rates[] = {"1kbit", "3kbit", "1234567bit", "50mbit",
						 "1gbit", "7gbit", "399gbit",	 "400gbit"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(some_rates); i++)
		for (unsigned int size = 60; size < 70000; size = size * 3 + 1) {
			struct limit author = limit_of(some_rates[i], "1B");
			struct sl_limit limit;

			author.spec.burst = size;
			limit = limit_compile(&author, SL_IPV4, &machine);
			if (limit_check(&author) || credit_cost(&limit, 1, size) > limit.burst)
				fail_msg("burst %uB at %s does not hold %u bytes", size,
					 some_rates[i], size);
		}
}

static void test_this_machine(void **state)
{
	struct machine here = {0};

	(void)state;
	assert_int_equal(machine_get(&here), OK);
	assert_in_range(here.cpus, 1, 1 << 16);
	assert_in_range(here.jiffy_ns, 500000, 20000000);
	assert_in_range(here.cpu_ids, here.cpus, 1 << 16);
}

static void test_cpu_lists(void **state)
{
	static const struct {
		const char *list;
		unsigned int end;
	} cases[] = {{"0", 1},	     {"0-1\n", 2},    {"0-3,8-11\n", 12},
		     {"0,2,5\n", 6}, {"0-3,9\n", 10}, {"0-127\n", 128},
		     {"", 0},	     {"\n", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cpu_list_end(cases[i].list), cases[i].end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_rates_refused),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_bursts_refused),
		cmocka_unit_test(test_default_bursts),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_times_refused),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_limits_refused),
		cmocka_unit_test(test_limits_at_the_edge),
		cmocka_unit_test(test_purses_and_ledger_are_one_burst),
		cmocka_unit_test(test_costs_are_never_too_small),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_who_has_purses),
		cmocka_unit_test(test_a_burst_in_bytes_holds_them),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_cpu_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
