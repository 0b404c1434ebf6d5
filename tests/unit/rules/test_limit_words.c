// SPDX-License-Identifier: GPL-2.0
/* user/rules/limit_words.h: limits from words and back to words. */
#include "test.h"
#include "capture.h"
#include "match.h"
#include "prefix_of.h"
#include "rules/limit_words.h"
#include "spec_first.h"

#define IPV4 "203.0.113.0/24"
#define IPV6 "2001:db8::/32"

static int count_lines(const char *text)
{
	int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* For spec_parse(): each message is to begin with the field that it is about. */
static void place_say(void *data, enum spec_field field)
{
	(void)data;
	log_place(spec_names[field]);
}

static enum status parse_said(const struct spec *spec, const char *prefix_text, struct limit *ret,
			      const char **ret_said)
{
	struct sl_prefix prefix = prefix_of(prefix_text);
	struct capture capture = capture_begin(stderr);
	enum status status;

	status = spec_parse_first(spec, &prefix, place_say, NULL, ret);
	*ret_said = capture_end(&capture);
	log_place(NULL);
	return status;
}

/* --- Words that are right ------------------------------------------------------------------- */

static struct spec spec_of(enum spec_field field, const char *text)
{
	struct spec spec = {.text = {[SPEC_RATE] = "1kpps"}};

	spec.text[field] = text;
	return spec;
}

static struct limit limit_of(const char *prefix_text, enum spec_field field, const char *text)
{
	struct spec spec = spec_of(field, text);
	struct sl_prefix prefix = prefix_of(prefix_text);
	struct limit limit;

	if (spec_parse_first(&spec, &prefix, NULL, NULL, &limit))
		fail_msg("%s: %s '%s' is refused", prefix_text, spec_names[field], text);
	return limit;
}

/* All fields of a limit as words, those by default too or not; NULL where there is none. */
static struct spec spec_back(const struct limit *limit, const struct sl_prefix *prefix, bool whole,
			     char text[SPEC_FIELDS][SPEC_TEXT])
{
	struct spec spec;

	for (int field = 0; field < SPEC_FIELDS; field++)
		spec.text[field] = whole ? spec_format_whole(limit, prefix, field, text[field])
					 : spec_format(limit, prefix, field, text[field]);
	return spec;
}

/* What is printed parses to the same, to the byte. */
static void assert_round_trip(const struct limit *limit, const struct sl_prefix *prefix)
{
	char text[SPEC_FIELDS][SPEC_TEXT];

	for (int whole = 0; whole < 2; whole++) {
		struct spec spec = spec_back(limit, prefix, whole, text);
		struct limit again;

		assert_int_equal(spec_parse_first(&spec, prefix, NULL, NULL, &again), OK);
		assert_memory_equal(limit, &again, sizeof(again));
	}
}

static void test_each_field_reads_back_from_its_words(void **state)
{
	static const struct {
		const char *prefix;
		enum spec_field field;
		const char *text;
		const char *printed; /* NULL: as it was written; "": nothing, it is the default */
	} cases[] = {
		{"default", SPEC_NAME, "all", ""},
		{"default", SPEC_NAME, "syn", NULL},
		{"default", SPEC_NAME, "a", NULL},
		{"default", SPEC_NAME, "a-", NULL},
		{"default", SPEC_NAME, "A_b-9", NULL},
		{"default", SPEC_NAME, "rate", NULL},
		{"default", SPEC_NAME, "fifteen-letters", NULL},
		{"default", SPEC_RATE, "50mbit", NULL},
		{"default", SPEC_RATE, "1000pps", "1kpps"},
		{"default", SPEC_BURST, "250", NULL},
		{"default", SPEC_BURST, "1000ms", "1s"},
		{"default", SPEC_MATCH, "any", ""},
		{"default", SPEC_MATCH, " any  ", ""},
		{"default", SPEC_MATCH, "tcp", NULL},
		{"default", SPEC_MATCH, "udp", NULL},
		{"default", SPEC_MATCH, "icmp", NULL},
		{"default", SPEC_MATCH, "tcp-syn", NULL},
		{"default", SPEC_MATCH, "fragment", NULL},
		{"default", SPEC_MATCH, "proto 0", NULL},
		{"default", SPEC_MATCH, "proto 47", NULL},
		{"default", SPEC_MATCH, "proto 6", NULL},
		{"default", SPEC_MATCH, "proto 255", NULL},
		{"default", SPEC_MATCH, "proto 007", "proto 7"},
		{"default", SPEC_MATCH, "udp port 53", NULL},
		{"default", SPEC_MATCH, "udp\tport  53", "udp port 53"},
		{"default", SPEC_MATCH, "tcp port 80,443", NULL},
		{"default", SPEC_MATCH, "tcp port 443,80", NULL},
		{"default", SPEC_MATCH, "udp port 1024-65535", NULL},
		{"default", SPEC_MATCH, "udp port 0-65535", NULL},
		{"default", SPEC_MATCH, "udp port 0", NULL},
		{"default", SPEC_MATCH, "tcp port 53-53", "tcp port 53"},
		{"default", SPEC_MATCH, "tcp port 80,8000-8080", NULL},
		{"default", SPEC_MATCH, "tcp-syn port 22", NULL},
		{"default", SPEC_MATCH, "tcp port 1,2,3,4,5,6,7,8", NULL},
		{"default", SPEC_MATCH,
		 "tcp-syn port 10000-10001,10002-10003,10004-10005,10006-10007,10008-10009,"
		 "10010-10011,10012-10013,10014-10015 vlan 4094",
		 NULL},
		{"default", SPEC_MATCH, "vlan 10", NULL},
		{"default", SPEC_MATCH, "any vlan 10", "vlan 10"},
		{"default", SPEC_MATCH, "icmp vlan 1", NULL},
		{"default", SPEC_MATCH, "fragment vlan 4094", NULL},
		{"default", SPEC_MATCH, "proto 50 vlan 7", NULL},
		{"default", SPEC_MATCH, "udp port 53 vlan 10", NULL},
		{"default", SPEC_MATCH, "all", ""},
		{"default", SPEC_MATCH, "all vlan 3", "vlan 3"},
		{"default", SPEC_MATCH, "tcp syn", "tcp-syn"},
		{"default", SPEC_MATCH, "tcp syn port 22 vlan 3", "tcp-syn port 22 vlan 3"},
		{"default", SPEC_MATCH, "udp dport 53", "udp port 53"},
		{"default", SPEC_MATCH, "tcp syn dport 80,443", "tcp-syn port 80,443"},
		{"default", SPEC_PER, "32/64", ""},
		{"default", SPEC_PER, "24", "24/64"},
		{"default", SPEC_PER, "32", ""},
		{"default", SPEC_PER, "0", "0/64"},
		{"default", SPEC_PER, "33", "32/33"},
		{"default", SPEC_PER, "128", "32/128"},
		{"default", SPEC_PER, "24/56", NULL},
		{"default", SPEC_PER, "/24", "24/64"},
		{"default", SPEC_PER, "/24/56", "24/56"},
		{"default", SPEC_PER, "0/0", NULL},
		{"default", SPEC_PER, "32/24", NULL},
		{"0.0.0.0/0", SPEC_PER, "16", NULL},
		{IPV4, SPEC_PER, "32", ""},
		{IPV4, SPEC_PER, "24", NULL},
		{IPV4, SPEC_PER, "/24", "24"},
		{IPV4, SPEC_PER, "0", NULL},
		{IPV6, SPEC_PER, "64", ""},
		{IPV6, SPEC_PER, "24", NULL},
		{IPV6, SPEC_PER, "32", NULL},
		{IPV6, SPEC_PER, "0", NULL},
		{IPV6, SPEC_PER, "128", NULL},
		{"default", SPEC_KEY, "src", ""},
		{"default", SPEC_KEY, "dst", NULL},
		{"default", SPEC_ACTION, "drop", ""},
		{"default", SPEC_ACTION, "observe", NULL},
		{"default", SPEC_ACTION, "block 30s", NULL},
		{"default", SPEC_ACTION, "block  \t 30s", "block 30s"},
		{"default", SPEC_ACTION, "block 1ms", NULL},
		{"default", SPEC_ACTION, "block 1000001ns", NULL},
		{"default", SPEC_ACTION, "block 3600s", "block 1h"},
		{"default", SPEC_ACTION, "block 730d", NULL},
		{"default", SPEC_START, "full", ""},
		{"default", SPEC_START, "empty", NULL},
		{"default", SPEC_SHARED, "no", ""},
		{"default", SPEC_SHARED, "yes", NULL},
		{"default", SPEC_SHARED, "true", "yes"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].prefix, cases[i].field, cases[i].text);
		struct sl_prefix prefix = prefix_of(cases[i].prefix);
		char text[SPEC_TEXT];
		const char *printed = spec_format(&limit, &prefix, cases[i].field, text);

		assert_string_equal(printed ?: "", cases[i].printed ?: cases[i].text);
		assert_round_trip(&limit, &prefix);
	}
}

static void test_all_but_the_rate_has_a_default(void **state)
{
	struct limit limit = limit_of("default", SPEC_RATE, "1kpps");
	struct sl_prefix prefix = prefix_of("default");
	char text[SPEC_FIELDS][SPEC_TEXT];
	struct spec said = spec_back(&limit, &prefix, false, text);
	struct limit expected = {
		.spec = {.name = "all",
			 .rate = 1000,
			 .burst = 250,
			 .rate_unit = SL_RATE_PPS,
			 .burst_unit = SL_BURST_PACKETS,
			 .action = SL_ACTION_DROP,
			 .per = {32, 64}},
		.match = {.fact = SL_FACT_ANY},
	};

	(void)state;
	assert_memory_equal(&limit, &expected, sizeof(limit));
	assert_string_equal(said.text[SPEC_RATE], "1kpps");
	assert_string_equal(said.text[SPEC_BURST], "250");
	for (int field = 0; field < SPEC_FIELDS; field++)
		if (field != SPEC_RATE && field != SPEC_BURST)
			assert_null(said.text[field]);
}

static void test_all_fields_together_are_read(void **state)
{
	const struct spec spec = {.text = {[SPEC_NAME] = "dns",
					   [SPEC_RATE] = "50mbit",
					   [SPEC_BURST] = "64kB",
					   [SPEC_MATCH] = "udp port 53,5353-5355 vlan 9",
					   [SPEC_PER] = "24/56",
					   [SPEC_KEY] = "dst",
					   [SPEC_ACTION] = "block 10min",
					   [SPEC_START] = "empty"}};
	struct sl_prefix prefix = prefix_of("default");
	struct limit expected = {
		.spec = {.name = "dns",
			 .rate = 50000000,
			 .burst = 64000,
			 .block_ns = 600000000000,
			 .rate_unit = SL_RATE_BITS,
			 .burst_unit = SL_BURST_BYTES,
			 .action = SL_ACTION_BLOCK,
			 .per = {24, 56},
			 .key_dst = 1,
			 .start = SL_START_EMPTY},
		.match = {.fact = SL_FACT_UDP,
			  .ports = 2,
			  .vlan = 9,
			  .port = {{53, 53}, {5353, 5355}}},
	};
	struct limit limit;

	(void)state;
	assert_int_equal(spec_parse_first(&spec, &prefix, NULL, NULL, &limit), OK);
	assert_memory_equal(&limit, &expected, sizeof(limit));
	assert_round_trip(&limit, &prefix);
}

/* --- Kinds ---------------------------------------------------------------------------------- */

static struct limit limit_of_spec(const struct spec *spec, const char *prefix_text)
{
	struct sl_prefix prefix = prefix_of(prefix_text);
	struct limit limit;

	assert_int_equal(spec_parse_first(spec, &prefix, NULL, NULL, &limit), OK);
	assert_round_trip(&limit, &prefix);
	return limit;
}

/* The words that `show` prints of a limit. */
static const char *shown(const struct limit *limit)
{
	static char line[SPEC_FIELDS * SPEC_TEXT];
	struct sl_prefix prefix = prefix_of("default");
	char text[SPEC_TEXT];

	*line = '\0';
	for (int field = 0; field < SPEC_FIELDS; field++) {
		const char *words = spec_format(limit, &prefix, field, text);

		if (words)
			snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s %s",
				 *line ? " " : "", spec_names[field], words);
	}
	return line;
}

static void test_words_of_each_kind_mean_these_numbers(void **state)
{
	static const struct {
		struct spec spec;
		const char *shown;
		uint64_t rate, span_ns;
		uint8_t kind, rate_unit, groups;
	} cases[] = {
		{{{[SPEC_WINDOW] = "1000 per 1min"}},
		 "window 1000 per 1min",
		 1000,
		 60000000000,
		 SL_WINDOW,
		 SL_RATE_PPS,
		 5},
		{{{[SPEC_WINDOW] = "1000 \t per  60s"}},
		 "window 1000 per 1min",
		 1000,
		 60000000000,
		 SL_WINDOW,
		 SL_RATE_PPS,
		 5},
		{{{[SPEC_WINDOW] = "10MB per 1h"}},
		 "window 10MB per 1h",
		 10000000,
		 3600000000000,
		 SL_WINDOW,
		 SL_RATE_BITS,
		 5},
		{{{[SPEC_WINDOW] = "1.5GB per 7d"}},
		 "window 1500MB per 7d",
		 1500000000,
		 604800000000000,
		 SL_WINDOW,
		 SL_RATE_BITS,
		 5},
		{{{[SPEC_WINDOW] = "1 per 1ms"}},
		 "window 1 per 1ms",
		 1,
		 1000000,
		 SL_WINDOW,
		 SL_RATE_PPS,
		 5},
		{{{[SPEC_WINDOW] = "140737488355328 per 730d"}},
		 "window 140737488355328 per 730d",
		 1ULL << 47,
		 63072000000000000,
		 SL_WINDOW,
		 SL_RATE_PPS,
		 5},
		{{{[SPEC_WINDOW] = "1B per 1s", [SPEC_GROUPS] = "1"}},
		 "window 1B per 1s groups 1",
		 1,
		 1000000000,
		 SL_WINDOW,
		 SL_RATE_BITS,
		 1},
		{{{[SPEC_WINDOW] = "9 per 1s", [SPEC_GROUPS] = "10"}},
		 "window 9 per 1s groups 10",
		 9,
		 1000000000,
		 SL_WINDOW,
		 SL_RATE_PPS,
		 10},
		{{{[SPEC_WINDOW] = "9 per 1s", [SPEC_GROUPS] = "05"}},
		 "window 9 per 1s",
		 9,
		 1000000000,
		 SL_WINDOW,
		 SL_RATE_PPS,
		 5},
		{{{[SPEC_SHAPE] = "10mbit"}},
		 "shape 10mbit",
		 10000000,
		 200000000,
		 SL_SHAPE,
		 SL_RATE_BITS,
		 0},
		{{{[SPEC_SHAPE] = "10kpps", [SPEC_HORIZON] = "1ms"}},
		 "shape 10kpps horizon 1ms",
		 10000,
		 1000000,
		 SL_SHAPE,
		 SL_RATE_PPS,
		 0},
		{{{[SPEC_SHAPE] = "1pps", [SPEC_HORIZON] = "10s"}},
		 "shape 1pps horizon 10s",
		 1,
		 10000000000,
		 SL_SHAPE,
		 SL_RATE_PPS,
		 0},
		{{{[SPEC_SHAPE] = "5pps", [SPEC_HORIZON] = "0.2s"}},
		 "shape 5pps",
		 5,
		 200000000,
		 SL_SHAPE,
		 SL_RATE_PPS,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of_spec(&cases[i].spec, "default");
		const struct sl_limit_spec expected = {.name = "all",
						       .rate = cases[i].rate,
						       .span_ns = cases[i].span_ns,
						       .kind = cases[i].kind,
						       .rate_unit = cases[i].rate_unit,
						       .groups = cases[i].groups,
						       .per = {32, 64}};

		assert_memory_equal(&limit.spec, &expected, sizeof(expected));
		assert_int_equal(limit.second.rate, 0);
		assert_string_equal(shown(&limit), cases[i].shown);
	}
}

/* A window and a shaper compose with the rest, and each kind has its own words alone. */
static void test_kinds_compose_with_the_other_words(void **state)
{
	const struct spec window = {.text = {[SPEC_NAME] = "dns",
					     [SPEC_WINDOW] = "1000 per 1min",
					     [SPEC_GROUPS] = "3",
					     [SPEC_MATCH] = "udp port 53",
					     [SPEC_PER] = "24/56",
					     [SPEC_KEY] = "dst",
					     [SPEC_ACTION] = "block 10s escalate 3 max 2min",
					     [SPEC_START] = "empty"}},
			  shape = {.text = {[SPEC_NAME] = "out",
					    [SPEC_SHAPE] = "50mbit",
					    [SPEC_HORIZON] = "1s",
					    [SPEC_MATCH] = "tcp",
					    [SPEC_PER] = "24/56",
					    [SPEC_KEY] = "dst"}};
	struct limit limit = limit_of_spec(&window, "default");

	(void)state;
	assert_string_equal(shown(&limit),
			    "name dns window 1000 per 1min groups 3 match udp port 53 per 24/56 "
			    "key dst action block 10s escalate 3 max 2min start empty");
	assert_int_equal(limit.spec.block_ns, 10000000000);
	assert_int_equal(limit.spec.block_max_ns, 120000000000);
	assert_int_equal(limit.spec.escalate, 3);
	limit = limit_of_spec(&shape, "default");
	assert_string_equal(shown(&limit), "name out shape 50mbit horizon 1s match tcp per 24/56 "
					   "key dst");
}

static void test_two_rates_are_one_limit(void **state)
{
	static const struct {
		const char *rate, *burst, *shown;
		uint64_t first, second, burst_first, burst_second;
	} cases[] = {
		{"10kpps 100mbit", NULL, "rate 10kpps 100mbit burst 2500 3125kB", 10000, 100000000,
		 2500, 3125000},
		{"1pps  1mbit", NULL, "rate 1pps 1mbit burst 8 125KiB", 1, 1000000, 8, 128000},
		{"60/min 1mbit", "1s 64kB", "rate 60/min 1mbit burst 1s 64kB", 60, 1000000,
		 1000000000, 64000},
		{"10kpps 100mbit", "2000 100ms", "rate 10kpps 100mbit burst 2000 100ms", 10000,
		 100000000, 2000, 100000000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec spec = {
			.text = {[SPEC_RATE] = cases[i].rate, [SPEC_BURST] = cases[i].burst}};
		struct limit limit = limit_of_spec(&spec, "default");

		assert_string_equal(shown(&limit), cases[i].shown);
		assert_int_equal(limit.spec.rate, cases[i].first);
		assert_int_not_equal(limit.spec.rate_unit, SL_RATE_BITS);
		assert_int_equal(limit.second.rate, cases[i].second);
		assert_int_equal(limit.spec.burst, cases[i].burst_first);
		assert_int_equal(limit.second.burst, cases[i].burst_second);
	}
}

/* What limit_second() makes differs from the first in its rate, and is marked as the second. */
static void test_the_second_rate_is_a_limit_of_bits(void **state)
{
	const struct spec spec = {.text = {[SPEC_NAME] = "web",
					   [SPEC_RATE] = "10kpps 100mbit",
					   [SPEC_BURST] = "2000 64kB",
					   [SPEC_MATCH] = "tcp port 80",
					   [SPEC_PER] = "24/56",
					   [SPEC_ACTION] = "block 10s escalate 2"}},
			  bits = {.text = {[SPEC_NAME] = "web",
					   [SPEC_RATE] = "100mbit",
					   [SPEC_BURST] = "64kB",
					   [SPEC_MATCH] = "tcp port 80",
					   [SPEC_PER] = "24/56",
					   [SPEC_ACTION] = "block 10s escalate 2"}};
	struct limit limit = limit_of_spec(&spec, "default"), second = limit_second(&limit);
	struct limit expected = limit_of_spec(&bits, "default");

	(void)state;
	expected.spec.second = true;
	assert_memory_equal(&second, &expected, sizeof(expected));
}

static void test_escalating_blocks_read_back(void **state)
{
	static const struct {
		const char *action, *shown;
		uint64_t block_ns, max_ns;
		uint8_t escalate;
	} cases[] = {
		{"block 10s escalate 2 max 1h", "block 10s escalate 2 max 1h", 10000000000,
		 3600000000000, 2},
		{"block 10s escalate 2", "block 10s escalate 2 max 10min", 10000000000,
		 600000000000, 2},
		{"block 599s escalate 16", "block 599s escalate 16 max 10min", 599000000000,
		 600000000000, 16},
		{"block 1ms escalate 2 max 1000001ns", "block 1ms escalate 2 max 1000001ns",
		 1000000, 1000001, 2},
		{"block  10h\tescalate 02 max 730d", "block 10h escalate 2 max 730d",
		 36000000000000, 63072000000000000, 2},
		{"block 1s escalate 2 max 32768s", "block 1s escalate 2 max 32768s", 1000000000,
		 32768000000000, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of("default", SPEC_ACTION, cases[i].action);
		struct sl_prefix prefix = prefix_of("default");
		char text[SPEC_TEXT];

		assert_string_equal(spec_format(&limit, &prefix, SPEC_ACTION, text),
				    cases[i].shown);
		assert_int_equal(limit.spec.action, SL_ACTION_BLOCK);
		assert_int_equal(limit.spec.block_ns, cases[i].block_ns);
		assert_int_equal(limit.spec.block_max_ns, cases[i].max_ns);
		assert_int_equal(limit.spec.escalate, cases[i].escalate);
		assert_round_trip(&limit, &prefix);
	}
}

/* --- Several lengths ------------------------------------------------------------------------ */

static void test_each_length_has_a_limit(void **state)
{
	static const struct {
		const char *prefix;
		struct spec spec;
		const char *names, *shown[SL_LIMITS_MAX];
		uint8_t per[SL_LIMITS_MAX][SL_FAMILIES];
		unsigned int count;
	} cases[] = {
		{"default",
		 {{[SPEC_RATE] = "100pps,1kpps,20kpps", [SPEC_PER] = "32,24,16"}},
		 "all all-24 all-16",
		 {"rate 100pps burst 25", "name all-24 rate 1kpps burst 250 per 24/56",
		  "name all-16 rate 20kpps burst 5000 per 16/48"},
		 {{32, 64}, {24, 56}, {16, 48}},
		 3},
		{"default",
		 {{[SPEC_RATE] = "1kpps",
		   [SPEC_BURST] = "10,20",
		   [SPEC_NAME] = "dns",
		   [SPEC_MATCH] = "udp port 53,5353",
		   [SPEC_PER] = "32/128, 0/0"}},
		 "dns dns-0",
		 {"name dns rate 1kpps burst 10 match udp port 53,5353 per 32/128",
		  "name dns-0 rate 1kpps burst 20 match udp port 53,5353 per 0/0"},
		 {{32, 128}, {0, 0}},
		 2},
		{"default",
		 {{[SPEC_RATE] = "1kpps", [SPEC_PER] = "32,0"}},
		 "all all-0",
		 {"rate 1kpps burst 250", "name all-0 rate 1kpps burst 250 per 0/0"},
		 {{32, 64}, {0, 0}},
		 2},
		{"default",
		 {{[SPEC_WINDOW] = "10 per 1s, 1MB per 1h",
		   [SPEC_GROUPS] = "2",
		   [SPEC_PER] = "32,8"}},
		 "all all-8",
		 {"window 10 per 1s groups 2", "name all-8 window 1MB per 1h groups 2 per 8/40"},
		 {{32, 64}, {8, 40}},
		 2},
		{"default",
		 {{[SPEC_SHAPE] = "1mbit,10mbit",
		   [SPEC_HORIZON] = "200ms,1s",
		   [SPEC_PER] = "32,24"}},
		 "all all-24",
		 {"shape 1mbit", "name all-24 shape 10mbit horizon 1s per 24/56"},
		 {{32, 64}, {24, 56}},
		 2},
		{"default",
		 {{[SPEC_RATE] = "1kpps 1mbit,10kpps 10mbit", [SPEC_PER] = "32,24"}},
		 "all all-24",
		 {"rate 1kpps 1mbit burst 250 125KiB",
		  "name all-24 rate 10kpps 10mbit burst 2500 312500B per 24/56"},
		 {{32, 64}, {24, 56}},
		 2},
		{IPV4,
		 {{[SPEC_RATE] = "1kpps", [SPEC_PER] = "32,30,28,26"}},
		 "all all-30 all-28 all-26",
		 {NULL},
		 {{32, 64}, {30, 64}, {28, 64}, {26, 64}},
		 4},
		{IPV6,
		 {{[SPEC_RATE] = "1kpps", [SPEC_PER] = "128,64,48", [SPEC_ACTION] = "observe"}},
		 "all all-64 all-48",
		 {NULL},
		 {{32, 128}, {32, 64}, {32, 48}},
		 3},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix prefix = prefix_of(cases[i].prefix);
		struct limits limits;
		char names[128] = "";

		assert_int_equal(spec_parse(&cases[i].spec, &prefix, NULL, NULL, &limits), OK);
		assert_int_equal(limits.count, cases[i].count);
		for (unsigned int n = 0; n < limits.count; n++) {
			const struct limit *limit = &limits.list[n];

			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
				 n ? " " : "", limit->spec.name);
			assert_memory_equal(limit->spec.per, cases[i].per[n], SL_FAMILIES);
			assert_round_trip(limit, &prefix);
			if (cases[i].shown[n])
				assert_string_equal(shown(limit), cases[i].shown[n]);
		}
		assert_string_equal(names, cases[i].names);
	}
}

/* A length is of the family that the prefix has; the other keeps its default. */
static void test_a_length_is_of_the_family_of_the_prefix(void **state)
{
	static const struct {
		const char *prefix, *per;
		uint8_t ipv4, ipv6;
	} cases[] = {
		{"default", "24", 24, 64},  {"default", "33", 32, 33}, {"default", "24/56", 24, 56},
		{"default", "24/8", 24, 8}, {IPV4, "24", 24, 64},      {"0.0.0.0/0", "0", 0, 64},
		{IPV6, "24", 32, 24},	    {"::/0", "0", 32, 0},      {IPV6, "128", 32, 128},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].prefix, SPEC_PER, cases[i].per);

		assert_int_equal(limit.spec.per[SL_IPV4], cases[i].ipv4);
		assert_int_equal(limit.spec.per[SL_IPV6], cases[i].ipv6);
	}
}

/* The words mean what they say of packets. */
static void test_words_of_a_match_match_these_packets(void **state)
{
	enum { TCP = SL_FACT_ANY | SL_FACT_TCP | SL_FACT_PROTO | SL_FACT_PORT };
	static const struct sl_facts
		http_syn = {.facts = TCP | SL_FACT_SYN, .proto = 6, .port = 80, .vlan = 10},
		http = {.facts = TCP, .proto = 6, .port = 80},
		later = {.facts = SL_FACT_ANY | SL_FACT_TCP | SL_FACT_PROTO | SL_FACT_FRAGMENT,
			 .proto = 6},
		gre = {.facts = SL_FACT_ANY | SL_FACT_PROTO, .proto = 47, .vlan = 20},
		ping = {.facts = SL_FACT_ANY | SL_FACT_ICMP | SL_FACT_PROTO, .proto = 1};
	static const struct {
		const char *match;
		bool http_syn, http, later, gre, ping;
	} cases[] = {
		{"any", true, true, true, true, true},
		{"tcp", true, true, true, false, false},
		{"udp", false, false, false, false, false},
		{"icmp", false, false, false, false, true},
		{"tcp-syn", true, false, false, false, false},
		{"fragment", false, false, true, false, false},
		{"proto 6", true, true, true, false, false},
		{"proto 47", false, false, false, true, false},
		{"vlan 10", true, false, false, false, false},
		{"vlan 20", false, false, false, true, false},
		{"tcp port 80", true, true, false, false, false},
		{"tcp port 79,81", false, false, false, false, false},
		{"tcp port 79,80-90", true, true, false, false, false},
		{"tcp port 0-65535", true, true, false, false, false},
		{"tcp port 80 vlan 10", true, false, false, false, false},
		{"tcp-syn port 1-79", false, false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of("default", SPEC_MATCH, cases[i].match);

		assert_int_equal(match_packet(&limit.match, &http_syn), cases[i].http_syn);
		assert_int_equal(match_packet(&limit.match, &http), cases[i].http);
		assert_int_equal(match_packet(&limit.match, &later), cases[i].later);
		assert_int_equal(match_packet(&limit.match, &gre), cases[i].gre);
		assert_int_equal(match_packet(&limit.match, &ping), cases[i].ping);
	}
}

/* --- Words that are wrong ------------------------------------------------------------------- */

static void test_a_wrong_field_is_named_with_its_text(void **state)
{
	static char long_match[400];
	static const struct {
		const char *prefix;
		enum spec_field field;
		const char *text;
		const char *says; /* beside the text itself */
	} cases[] = {
		{"default", SPEC_NAME, "", "name of a limit"},
		{"default", SPEC_NAME, "sixteen-letters-", "at most 15"},
		{"default", SPEC_NAME, "a b", "letters"},
		{"default", SPEC_NAME, "-", "no - first"},
		{"default", SPEC_NAME, "-x", "no - first"},
		{"default", SPEC_NAME, "a.b", "letters"},
		{"default", SPEC_NAME, "ü", "letters"},
		{"default", SPEC_RATE, "5", "no unit"},
		{"default", SPEC_BURST, "64kB", "packet rate"},
		{"default", SPEC_BURST, "999us", "one packet"},
		{"default", SPEC_MATCH, "", "names no packets"},
		{"default", SPEC_MATCH, "  ", "names no packets"},
		{"default", SPEC_MATCH, "ip", "there is no 'ip'"},
		{"default", SPEC_MATCH, "TCP", "there is no 'TCP': did you mean 'tcp'?"},
		{"default", SPEC_MATCH, "tpc", "did you mean 'tcp'?"},
		{"default", SPEC_MATCH, "fragmnet", "did you mean 'fragment'?"},
		{"default", SPEC_MATCH, "udp prot 53",
		 "'prot' is unexpected: did you mean 'port'?"},
		{"default", SPEC_MATCH, "udp vlna 5", "did you mean 'vlan'?"},
		{"default", SPEC_MATCH, "udp sport 53", "no limit is by the port of the source"},
		{"default", SPEC_MATCH, "udp port 53 sport 53", "by the port of the source"},
		{"default", SPEC_MATCH, "dport 53", "port of what"},
		{"default", SPEC_MATCH, "udp syn", "first what"},
		{"default", SPEC_RATE, "10Mbps", "write 10mbit, or 80mbit if it is bytes"},
		{"default", SPEC_RATE, "1.5kbps", "write 1.5kbit, or 12kbit if it is bytes"},
		{"default", SPEC_RATE, "500bps", "write 500bit, or 4000bit if it is bytes"},
		{"default", SPEC_RATE, "1Gbps", "write 1gbit, or 8gbit if it is bytes"},
		{"default", SPEC_MATCH, "syn", "tcp-syn"},
		{"default", SPEC_MATCH, "47", "proto N"},
		{"default", SPEC_MATCH, long_match, "too long"},
		{"default", SPEC_MATCH, "port 53", "port of what"},
		{"default", SPEC_MATCH, "tcp port", "which port"},
		{"default", SPEC_MATCH, "tcp port vlan", "'vlan' is not a list of ports"},
		{"default", SPEC_MATCH, "tcp port vlan 10", "'vlan' is not a list of ports"},
		{"default", SPEC_MATCH, "tcp port dns", "'dns' is not"},
		{"default", SPEC_MATCH, "tcp port 65536", "'65536' is not"},
		{"default", SPEC_MATCH, "tcp port 99999999999999999999", "is not"},
		{"default", SPEC_MATCH, "tcp port -1", "'-1' is not"},
		{"default", SPEC_MATCH, "tcp port 1-", "'1-' is not"},
		{"default", SPEC_MATCH, "tcp port 1-65536", "is not"},
		{"default", SPEC_MATCH, "tcp port 1-2-3", "is not"},
		{"default", SPEC_MATCH, "tcp port 1,", "'1,' is not"},
		{"default", SPEC_MATCH, "tcp port ,1", "',1' is not"},
		{"default", SPEC_MATCH, "tcp port 1,,2", "is not"},
		{"default", SPEC_MATCH, "tcp port 1x", "'1x' is not"},
		{"default", SPEC_MATCH, "tcp port 1.5", "'1.5' is not"},
		{"default", SPEC_MATCH, "tcp port 80, 443", "'80,' is not"},
		{"default", SPEC_MATCH, "tcp port 80 443", "'443' is unexpected"},
		{"default", SPEC_MATCH, "tcp port 443-80", "443-80 runs backwards"},
		{"default", SPEC_MATCH, "tcp port 80,80", "80 and 80 overlap"},
		{"default", SPEC_MATCH, "tcp port 1-10,10-20", "1-10 and 10-20 overlap"},
		{"default", SPEC_MATCH, "tcp port 10-20,1-10", "overlap"},
		{"default", SPEC_MATCH, "tcp port 1-100,50", "1-100 and 50 overlap"},
		{"default", SPEC_MATCH, "tcp port 50,7,1-100", "50 and 1-100 overlap"},
		{"default", SPEC_MATCH, "tcp port 1,2,3,4,5,6,7,8,9", "more than 8"},
		{"default", SPEC_MATCH, "tcp port 80 port 81", "'port' is unexpected"},
		{"default", SPEC_MATCH, "any port 53", "any has no ports"},
		{"default", SPEC_MATCH, "icmp port 53", "icmp has no ports"},
		{"default", SPEC_MATCH, "fragment port 53", "fragment has no ports"},
		{"default", SPEC_MATCH, "proto 6 port 53", "write 'tcp port ...' or 'udp"},
		{"default", SPEC_MATCH, "proto 17 port 53", "write 'tcp port ...' or 'udp"},
		{"default", SPEC_MATCH, "proto 132 port 53", "proto has no ports"},
		{"default", SPEC_MATCH, "proto", "number, 0 to 255"},
		{"default", SPEC_MATCH, "proto 256", "number, 0 to 255"},
		{"default", SPEC_MATCH, "proto -1", "number, 0 to 255"},
		{"default", SPEC_MATCH, "proto 6x", "number, 0 to 255"},
		{"default", SPEC_MATCH, "proto gre", "number, 0 to 255"},
		{"default", SPEC_MATCH, "proto vlan 10", "number, 0 to 255"},
		{"default", SPEC_MATCH, "proto tcp", "write 'tcp' alone"},
		{"default", SPEC_MATCH, "proto icmp", "write 'icmp' alone"},
		{"default", SPEC_MATCH, "vlan", "1 to 4094"},
		{"default", SPEC_MATCH, "vlan 0", "1 to 4094"},
		{"default", SPEC_MATCH, "vlan 4095", "1 to 4094"},
		{"default", SPEC_MATCH, "vlan x", "1 to 4094"},
		{"default", SPEC_MATCH, "vlan 1x", "1 to 4094"},
		{"default", SPEC_MATCH, "vlan 1 vlan 2", "'vlan' is unexpected"},
		{"default", SPEC_MATCH, "vlan 1 tcp", "'tcp' is unexpected"},
		{"default", SPEC_MATCH, "tcp vlan 1 port 80", "'port' is unexpected"},
		{"default", SPEC_MATCH, "tcp udp", "'udp' is unexpected"},
		{"default", SPEC_MATCH, "any any", "'any' is unexpected"},
		{"default", SPEC_PER, "", "length of a key"},
		{"default", SPEC_PER, "x", "length of a key"},
		{"default", SPEC_PER, "/", "length of a key"},
		{"default", SPEC_PER, "24/", "length of a key"},
		{"default", SPEC_PER, "24x", "length of a key"},
		{"default", SPEC_PER, "24/56/64", "length of a key"},
		{"default", SPEC_PER, "24 56", "length of a key"},
		{"default", SPEC_PER, "-1", "length of a key"},
		{"default", SPEC_PER, "129", "length of a key"},
		{"default", SPEC_PER, "24/129", "length of a key"},
		{"default", SPEC_PER, "33/64", "first length is IPv4's"},
		{IPV4, SPEC_PER, "33", IPV4 " is IPv4"},
		{IPV4, SPEC_PER, "64", IPV4 " is IPv4"},
		{IPV4, SPEC_PER, "24/56", IPV4 " is IPv4 alone"},
		{"0.0.0.0/0", SPEC_PER, "56", "0.0.0.0/0 is IPv4"},
		{IPV6, SPEC_PER, "24/56", IPV6 " is IPv6 alone"},
		{"::/0", SPEC_PER, "24/56", "::/0 is IPv6 alone"},
		{IPV6, SPEC_PER, "129", "length of a key"},
		{"default", SPEC_KEY, "", "src or dst"},
		{"default", SPEC_KEY, "source", "src or dst"},
		{"default", SPEC_KEY, "dst ", "src or dst"},
		{"default", SPEC_ACTION, "", "drop, observe or block"},
		{"default", SPEC_ACTION, "pass", "drop, observe or block"},
		{"default", SPEC_ACTION, "drop 30s", "drop, observe or block"},
		{"default", SPEC_ACTION, "observe 30s", "drop, observe or block"},
		{"default", SPEC_ACTION, "blocks 30s", "drop, observe or block"},
		{"default", SPEC_ACTION, "block", "needs a time"},
		{"default", SPEC_ACTION, "block ", "needs a time"},
		{"default", SPEC_ACTION, "block 30", "no unit"},
		{"default", SPEC_ACTION, "block 30s 30s", "'30s' is unexpected behind its time"},
		{"default", SPEC_ACTION, "block 0s", "zero"},
		{"default", SPEC_ACTION, "block 999999ns", "shortest is 1ms"},
		{"default", SPEC_ACTION, "block 731d", "longest is 730d"},
		{"default", SPEC_START, "", "full, empty or share"},
		{"default", SPEC_START, "half", "full, empty or share"},
		{"default", SPEC_SHARED, "", "yes, no or block"},
		{"default", SPEC_SHARED, "half", "yes, no or block"},
	};
	struct limit untouched;

	(void)state;
	memset(long_match, ' ', sizeof(long_match) - 1);
	memset(&untouched, 7, sizeof(untouched));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec spec = spec_of(cases[i].field, cases[i].text);
		struct limit limit = untouched;
		enum status status;
		const char *said;

		status = parse_said(&spec, cases[i].prefix, &limit, &said);
		if (status != MISUSED || count_lines(said) != 1 || !strstr(said, cases[i].says))
			fail_msg("%s: %s '%s': %d in %d lines: %s", cases[i].prefix,
				 spec_names[cases[i].field], cases[i].text, status,
				 count_lines(said), said);
		assert_memory_equal(&limit, &untouched, sizeof(limit));
	}
}

static void test_a_limit_without_a_rate_is_refused(void **state)
{
	static const struct spec specs[] = {
		{{NULL}},
		{{[SPEC_NAME] = "syn"}},
		{{[SPEC_BURST] = "200"}},
		{{[SPEC_BURST] = "nonsense"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		enum status status;
		const char *said;
		struct limit limit;

		status = parse_said(&specs[i], "default", &limit, &said);
		assert_int_equal(status, MISUSED);
		assert_int_equal(count_lines(said), 1);
		assert_non_null(strstr(said, "needs a rate"));
	}
}

static void test_every_error_is_said(void **state)
{
	const struct spec spec = {.text = {[SPEC_NAME] = "a b",
					   [SPEC_RATE] = "1kpps",
					   [SPEC_BURST] = "1us",
					   [SPEC_MATCH] = "port 5",
					   [SPEC_PER] = "x",
					   [SPEC_KEY] = "x",
					   [SPEC_ACTION] = "x",
					   [SPEC_START] = "x"}};
	static const char *const says[] = {"'a b'",   "1us",	    "port of what", "per 'x'",
					   "key 'x'", "action 'x'", "start 'x'"};
	enum status status;
	struct limit limit;
	const char *said;

	(void)state;
	status = parse_said(&spec, "default", &limit, &said);
	assert_int_equal(status, MISUSED);
	assert_int_equal(count_lines(said), ARRAY_SIZE(says));
	for (size_t i = 0; i < ARRAY_SIZE(says); i++)
		assert_non_null(strstr(said, says[i]));
}

/* A burst is not judged by a rate that is wrong itself. */
static void test_a_wrong_rate_is_the_only_error(void **state)
{
	const struct spec spec = {.text = {[SPEC_RATE] = "5", [SPEC_BURST] = "64kB"}};
	enum status status;
	struct limit limit;
	const char *said;

	(void)state;
	status = parse_said(&spec, "default", &limit, &said);
	assert_int_equal(status, MISUSED);
	assert_int_equal(count_lines(said), 1);
	assert_non_null(strstr(said, "rate '5'"));
}

static void test_errors_have_places(void **state)
{
	static const struct {
		struct spec spec;
		const char *says;
	} cases[] = {
		{{{[SPEC_RATE] = "5"}}, "sluice: rate: rate '5'"},
		{{{[SPEC_RATE] = "5pps", [SPEC_BURST] = "5kB"}}, "burst: burst '5kB'"},
		{{{[SPEC_RATE] = "5pps", [SPEC_BURST] = "5ms"}}, "burst: burst '5ms'"},
		{{{[SPEC_RATE] = "5pps", [SPEC_MATCH] = "ip"}}, "match: match 'ip'"},
		{{{[SPEC_RATE] = "5pps", [SPEC_START] = "x", [SPEC_KEY] = "src"}},
		 "start: start 'x'"},
		{{{[SPEC_NAME] = "syn"}}, "rate: a limit needs a rate"},
		{{{[SPEC_BURST] = "5"}}, "rate: a limit needs a rate"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit;
		enum status status;
		const char *said;

		status = parse_said(&cases[i].spec, "default", &limit, &said);
		assert_int_equal(status, MISUSED);
		if (count_lines(said) != 1 || !strstr(said, cases[i].says))
			fail_msg("'%s' is not said: %s", cases[i].says, said);
	}
}

/* Each whole message, behind the field that it is about. */
static void test_what_is_said_of_kinds_and_lists(void **state)
{
#define RATE(text)   [SPEC_RATE] = text
#define WINDOW(text) [SPEC_WINDOW] = text
#define SHAPE(text)  [SPEC_SHAPE] = text
#define PER(text)    [SPEC_PER] = text
#define WRITE_WINDOW "': write 1000 per 1min, or 10MB per 1h"
#define WRITE_BLOCK  "' is unexpected behind its time: write block 10s escalate 2 max 1h"
#define WRITE_TIME   ": write 250ms, 30s, 10min, 1h or 7d"
	static const struct {
		const char *prefix;
		struct spec spec;
		const char *says;
	} cases[] = {
		/* of which kind it is */
		{"default",
		 {{NULL}},
		 "rate: a limit needs a rate: write 'rate 10kpps' or 'rate 50mbit', 'window 1000 "
		 "per 1min', or 'shape 10mbit'"},
		{"default",
		 {{RATE("1kpps"), WINDOW("9 per 1s")}},
		 "window: a limit has one of rate, window and shape: give the other a name of its "
		 "own"},
		{"default",
		 {{RATE("1kpps"), SHAPE("1kpps")}},
		 "shape: a limit has one of rate, window and shape: give the other a name of its "
		 "own"},
		{"default",
		 {{RATE("1kpps"), [SPEC_GROUPS] = "5"}},
		 "groups: groups '5' is a part of 'window': this limit has none"},
		{"default",
		 {{RATE("1kpps"), [SPEC_HORIZON] = "1s"}},
		 "horizon: horizon '1s' is a part of 'shape': this limit has none"},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_HORIZON] = "1s"}},
		 "horizon: horizon '1s' is a part of 'shape': this limit has none"},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_GROUPS] = "5"}},
		 "groups: groups '5' is a part of 'window': this limit has none"},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_ACTION] = "drop"}},
		 "action: action 'drop': a limit that shapes has none: it drops what would wait "
		 "longer than its horizon"},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_START] = "full"}},
		 "start: start 'full': a limit that shapes has none: it drops what would wait "
		 "longer than its horizon"},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_SHARED] = "yes"}},
		 "shared: shared 'yes': only a limit with a rate can be shared"},
		{"default",
		 {{[SPEC_RATE] = "1kpps", [SPEC_START] = "share"}},
		 "start: start 'share': it takes shared yes: what a new source holds is a share of "
		 "what it holds on all machines"},
		{"default",
		 {{[SPEC_RATE] = "1kpps", [SPEC_SHARED] = "block", [SPEC_ACTION] = "drop"}},
		 "shared: shared 'block': it takes an action that blocks: write action block 30s"},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_START] = "share"}},
		 "start: start 'share': it takes shared yes: what a new source holds is a share "
		 "of what it holds on all machines"},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_SHARED] = "no"}},
		 "shared: shared 'no': only a limit with a rate can be shared"},
		/* windows */
		{"default", {{WINDOW("")}}, "window: window '" WRITE_WINDOW},
		{"default", {{WINDOW("1000")}}, "window: window '1000" WRITE_WINDOW},
		{"default", {{WINDOW("1000 per")}}, "window: window '1000 per" WRITE_WINDOW},
		{"default",
		 {{WINDOW("1000 in 1min")}},
		 "window: window '1000 in 1min" WRITE_WINDOW},
		{"default",
		 {{WINDOW("1000 per 1min 1s")}},
		 "window: window '1000 per 1min 1s" WRITE_WINDOW},
		{"default",
		 {{WINDOW("x per 1min")}},
		 "window: window 'x' is not a positive number: write 1000 (packets) or 10MB"},
		{"default",
		 {{WINDOW("10Mb per 1min")}},
		 "window: window '10Mb': there is no unit 'Mb': write 1000 (packets) or 10MB"},
		{"default",
		 {{WINDOW("250ms per 1min")}},
		 "window: window '250ms': there is no unit 'ms': write 1000 (packets) or 10MB"},
		{"default",
		 {{WINDOW("0 per 1min")}},
		 "window: window '0' is zero: nothing would ever pass"},
		{"default",
		 {{WINDOW("0.5 per 1min")}},
		 "window: window '0.5' is not a whole number of its smallest unit, or too large"},
		{"default",
		 {{WINDOW("140737488355329B per 1h")}},
		 "window: window '140737488355329B' is too large: the largest is 140TB"},
		{"default",
		 {{WINDOW("1000 per 999us")}},
		 "window: window '999us' is too short: the shortest is 1ms"},
		{"default", {{WINDOW("1000 per 1")}}, "window: window '1' has no unit" WRITE_TIME},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_GROUPS] = "0"}},
		 "groups: groups '0' is not a whole number, 1 to 10: into how many parts the time "
		 "of a window is cut"},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_GROUPS] = "11"}},
		 "groups: groups '11' is not a whole number, 1 to 10: into how many parts the time "
		 "of a window is cut"},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_GROUPS] = "5x"}},
		 "groups: groups '5x' is not a whole number, 1 to 10: into how many parts the time "
		 "of a window is cut"},
		{"default",
		 {{WINDOW("9 per 1s"), [SPEC_BURST] = "5"}},
		 "burst: burst '5' is a part of 'rate': this limit has none"},
		/* shape */
		{"default",
		 {{SHAPE("10")}},
		 "shape: rate '10' has no unit: write 500pps, 10kpps, 30/min, 5/h, 50mbit or "
		 "1gbit"},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_HORIZON] = "5"}},
		 "horizon: horizon '5' has no unit" WRITE_TIME},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_HORIZON] = "999us"}},
		 "horizon: horizon '999us' is too short: it is 1ms to 10s"},
		{"default",
		 {{SHAPE("1kpps"), [SPEC_HORIZON] = "11s"}},
		 "horizon: horizon '11s' is too long: it is 1ms to 10s"},
		{"default",
		 {{SHAPE("1pps")}},
		 "shape: horizon '200ms' holds no second packet at 1pps: raise it to 1s"},
		{"default",
		 {{SHAPE("100pps"), [SPEC_HORIZON] = "9ms"}},
		 "horizon: horizon '9ms' holds no second packet at 100pps: raise it to 10ms"},
		/* two rates */
		{"default",
		 {{RATE("10kpps 20kpps")}},
		 "rate: rate '10kpps 20kpps': two rates are one of packets and one of bits: write "
		 "10kpps 100mbit"},
		{"default",
		 {{RATE("100mbit 10kpps")}},
		 "rate: rate '100mbit 10kpps': two rates are one of packets and one of bits: "
		 "write 10kpps 100mbit"},
		{"default",
		 {{RATE("1mbit 2mbit")}},
		 "rate: rate '1mbit 2mbit': two rates are one of packets and one of bits: write "
		 "10kpps 100mbit"},
		{"default",
		 {{RATE("10kpps 5"), [SPEC_BURST] = "9 9"}},
		 "rate: rate '5' has no unit: write 500pps, 10kpps, 30/min, 5/h, 50mbit or 1gbit"},
		{"default",
		 {{RATE("10kpps 100mbit"), [SPEC_BURST] = "2500"}},
		 "burst: burst '2500': two rates have two bursts: write 2500 64kB"},
		{"default",
		 {{RATE("10kpps 100mbit"), [SPEC_BURST] = "2500 64"}},
		 "burst: burst '64' of a bit rate needs a unit: write 64kB or 250ms"},
		{"default",
		 {{RATE("10kpps 100mbit"), [SPEC_BURST] = "64kB 64kB"}},
		 "burst: burst '64kB' of a packet rate: write 2000 (packets) or 250ms"},
		{"default",
		 {{RATE("1pps 1kbit"), [SPEC_BURST] = "8 10GB"}},
		 "burst: burst '10GB' takes more than 2 years to refill at 1kbit: lower the burst"},
		{"default",
		 {{RATE("10kpps"), [SPEC_BURST] = "9 9"}},
		 "burst: burst '9 9': one rate has one burst: write 2500, 64kB or 250ms"},
		/* blocks that escalate */
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s 2"}},
		 "action: action block: '2" WRITE_BLOCK},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate"}},
		 "action: action block: 'escalate' needs a value: write block 10s escalate 2 max "
		 "1h"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 2 max"}},
		 "action: action block: 'max' needs a value: write block 10s escalate 2 max 1h"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 2 up 1h"}},
		 "action: action block: 'escalate" WRITE_BLOCK},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 2 max 1h x"}},
		 "action: action 'block 10s escalate 2 max 1h x': write drop, observe or block "
		 "30s"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 1"}},
		 "action: escalate '1' is not a whole number, 2 to 16: by what each block is "
		 "longer than the last"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 17"}},
		 "action: escalate '17' is not a whole number, 2 to 16: by what each block is "
		 "longer than the last"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 2 max 1"}},
		 "action: max '1' has no unit" WRITE_TIME},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 10s escalate 2 max 10s"}},
		 "action: escalate: the longest block, 10s, is not longer than the first: write "
		 "max and a longer time"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 1s escalate 2 max 32769s"}},
		 "action: escalate: the longest block, 32769s, is out of reach, as at most 15 "
		 "blocks in a row get longer: write max 32768s or less"},
		{"default",
		 {{RATE("1kpps"), [SPEC_ACTION] = "block 1h escalate 2"}},
		 "action: escalate: the longest block, 10min, is not longer than the first: write "
		 "max and a longer time"},
		/* several lengths */
		{"default",
		 {{RATE("1kpps,2kpps")}},
		 "rate: rate '1kpps,2kpps' has 2 values: write as many lengths, such as per 32,24"},
		{"default",
		 {{RATE("1kpps,2kpps"), PER("24")}},
		 "rate: rate '1kpps,2kpps' has 2 values: write as many lengths, such as per 32,24"},
		{"default",
		 {{RATE("1kpps,2kpps"), PER("32,24,16")}},
		 "rate: rate '1kpps,2kpps' has 2 values, and per '32,24,16' has 3: write one for "
		 "each, or one for all"},
		{"default",
		 {{RATE("1kpps"), [SPEC_BURST] = "5,6,7", PER("32,24")}},
		 "burst: burst '5,6,7' has 3 values, and per '32,24' has 2: write one for each, or "
		 "one for all"},
		{"default",
		 {{RATE("1kpps"), PER("32,24,16,8,0")}},
		 "per: per '32,24,16,8,0': a prefix has 4 limits at most"},
		{"default",
		 {{RATE("1kpps"), PER("64,56")}},
		 "per: per '64': of several lengths on default each is IPv4's, 0 to 32, and IPv6's "
		 "is 32 longer; or write both, 24/56"},
		{"default",
		 {{RATE("1kpps"), PER("24,32")}},
		 "per: per '24,32': each length is shorter than the one before it: write 32,24,16"},
		{"default",
		 {{RATE("1kpps"), PER("24,24")}},
		 "per: per '24,24': each length is shorter than the one before it: write 32,24,16"},
		{"default",
		 {{RATE("1kpps"), PER("32/48,24/56")}},
		 "per: per '32/48,24/56': each length is shorter than the one before it: write "
		 "32,24,16"},
		{IPV4,
		 {{RATE("1kpps"), PER("64,56")}},
		 "per: per '64': " IPV4 " is IPv4: a key there has 0 to 32 bits"},
		{"default",
		 {{RATE("1kpps"), PER("32,")}},
		 "per: per '' is not the length of a key: write 24, or 56, or for default 24/56"},
		{"default",
		 {{RATE("1kpps"), PER("32,24"), [SPEC_NAME] = "thirteen-long"}},
		 "name: name 'thirteen-long': of several lengths of a key each has a limit with a "
		 "name such as 'thirteen-long-24': at most 15 letters"},
		{"default",
		 {{RATE("1kpps,5"), PER("32,24")}},
		 "rate: rate '5' has no unit: write 500pps, 10kpps, 30/min, 5/h, 50mbit or 1gbit"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit, untouched;
		char expected[512];
		enum status status;
		const char *said;

		memset(&untouched, 7, sizeof(untouched));
		memcpy(&limit, &untouched, sizeof(limit));
		status = parse_said(&cases[i].spec, cases[i].prefix, &limit, &said);
		snprintf(expected, sizeof(expected), "sluice: %s\n", cases[i].says);
		assert_string_equal(said, expected);
		assert_int_equal(status, MISUSED);
		assert_memory_equal(&limit, &untouched, sizeof(limit));
	}
}

static void test_a_budget_has_one_rate(void **state)
{
	struct capture capture = capture_begin(stderr);
	struct limit limit;
	enum status status = spec_parse_budget("10kpps 100mbit", NULL, NULL, NULL, &limit);

	(void)state;
	assert_string_equal(capture_end(&capture), "sluice: rate '10kpps 100mbit': a budget has "
						   "one rate: write 10kpps or 100mbit\n");
	assert_int_equal(status, MISUSED);
}

/* A text is never cut short: what does not fit is refused. */
static void test_long_values_are_refused_and_not_cut(void **state)
{
	static const enum spec_field fields[] = {SPEC_RATE, SPEC_BURST, SPEC_WINDOW, SPEC_ACTION};
	static const char *const begins[] = {"10kpps", "2500", "1000 per 1min", "block 10s"};
	char text[2 * SPEC_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct spec spec = {.text = {[SPEC_RATE] = "10kpps"}};
		enum status status;
		struct limit limit;
		const char *said;

		if (fields[i] == SPEC_WINDOW)
			spec.text[SPEC_RATE] = NULL;
		snprintf(text, sizeof(text), "%s%*s", begins[i], SPEC_TEXT, "x");
		spec.text[fields[i]] = text;
		status = parse_said(&spec, "default", &limit, &said);
		assert_int_equal(status, MISUSED);
		assert_int_equal(count_lines(said), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_field_reads_back_from_its_words),
		cmocka_unit_test(test_all_but_the_rate_has_a_default),
		cmocka_unit_test(test_all_fields_together_are_read),
		cmocka_unit_test(test_words_of_each_kind_mean_these_numbers),
		cmocka_unit_test(test_kinds_compose_with_the_other_words),
		cmocka_unit_test(test_two_rates_are_one_limit),
		cmocka_unit_test(test_the_second_rate_is_a_limit_of_bits),
		cmocka_unit_test(test_escalating_blocks_read_back),
		cmocka_unit_test(test_each_length_has_a_limit),
		cmocka_unit_test(test_a_length_is_of_the_family_of_the_prefix),
		cmocka_unit_test(test_words_of_a_match_match_these_packets),
		cmocka_unit_test(test_a_wrong_field_is_named_with_its_text),
		cmocka_unit_test(test_a_limit_without_a_rate_is_refused),
		cmocka_unit_test(test_every_error_is_said),
		cmocka_unit_test(test_a_wrong_rate_is_the_only_error),
		cmocka_unit_test(test_errors_have_places),
		cmocka_unit_test(test_what_is_said_of_kinds_and_lists),
		cmocka_unit_test(test_a_budget_has_one_rate),
		cmocka_unit_test(test_long_values_are_refused_and_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
