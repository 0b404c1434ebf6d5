// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/rules/limit_words.h, which parses the words of a limit, and prints a limit as words.
 */
#include <errno.h>
#include "test.h"
#include "errors.h"
#include "prefix_of.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "rules/ruleset.h"
#include "spec_words.h"

#define IPV4 "203.0.113.0/24"
#define IPV6 "2001:db8::/32"

/*
 * Checks that these texts are refused, and that the result does not change. Returns the negative
 * errno.
 */
static int texts_refuse(const struct spec_texts *texts, const char *prefix_text)
{
	struct sl_prefix prefix = prefix_of(prefix_text);
	struct limit limit, untouched;
	int err;

	memset(&untouched, 7, sizeof(untouched));
	memcpy(&limit, &untouched, sizeof(limit));
	err = spec_parse_first(texts, &prefix, &limit);
	assert_memory_equal(&limit, &untouched, sizeof(limit));
	return err;
}

/* --- Words that are right ------------------------------------------------------------------- */

static struct spec_texts spec_of(enum spec_field field, const char *text)
{
	struct spec_texts spec = {.text = {[SPEC_RATE] = "1kpps"}};

	spec.text[field] = text;
	return spec;
}

static struct limit limit_of(const char *prefix_text, enum spec_field field, const char *text)
{
	struct spec_texts spec = spec_of(field, text);
	struct sl_prefix prefix = prefix_of(prefix_text);
	struct limit limit;

	if (spec_parse_first(&spec, &prefix, &limit))
		fail_msg("%s: %s '%s' is refused", prefix_text, spec_names[field], text);
	return limit;
}

/*
 * Prints the fields of a limit as texts. If `whole` is false, leaves out fields with default
 * values.
 */
static struct spec_texts spec_back(const struct limit *limit, const struct sl_prefix *prefix,
				   bool whole, char text[SPEC_FIELDS][SPEC_TEXT])
{
	struct spec_texts spec;

	for (int field = 0; field < SPEC_FIELDS; field++)
		spec.text[field] = whole ? spec_format_whole(limit, prefix, field, text[field])
					 : spec_format(limit, prefix, field, text[field]);
	return spec;
}

/* Checks that a limit is valid. Prints and parses the limit, and checks that it does not change. */
static void assert_round_trip(const struct limit *limit, const struct sl_prefix *prefix)
{
	char text[SPEC_FIELDS][SPEC_TEXT];

	assert_true(limit_is_sound(&limit->spec) && limit_name_is_valid(limit->spec.name));
	assert_true(match_is_sound(&limit->match));
	for (int whole = 0; whole < 2; whole++) {
		struct spec_texts spec = spec_back(limit, prefix, whole, text);
		struct limit again;

		assert_int_equal(spec_parse_first(&spec, prefix, &again), 0);
		assert_memory_equal(limit, &again, sizeof(again));
	}
}

TEST(test_each_field_reads_back_from_its_words)
{
	static const struct {
		const char *prefix;
		enum spec_field field;
		const char *text;
		const char *printed; /* NULL: equal to `text`; "": the field is not printed */
	} cases[] = {
		{"default", SPEC_NAME, "all", ""},
		{"default", SPEC_NAME, "syn", NULL},
		{"default", SPEC_NAME, "A_b-9", NULL},
		{"default", SPEC_NAME, "fifteen-letters", NULL},
		{"default", SPEC_RATE, "50mbit", NULL},
		{"default", SPEC_RATE, "1000pps", "1kpps"},
		{"default", SPEC_BURST, "250", NULL},
		{"default", SPEC_BURST, "1000ms", "1s"},
		{"default", SPEC_MATCH, "any", ""},
		{"default", SPEC_MATCH, " any  ", ""},
		{"default", SPEC_MATCH, "icmp", NULL},
		{"default", SPEC_MATCH, "fragment", NULL},
		{"default", SPEC_MATCH, "proto 47", NULL},
		{"default", SPEC_MATCH, "proto 255", NULL},
		{"default", SPEC_MATCH, "udp port 53", NULL},
		{"default", SPEC_MATCH, "udp\tport  53", "udp port 53"},
		{"default", SPEC_MATCH, "tcp port 80,443", NULL},
		{"default", SPEC_MATCH, "udp port 0-65535", NULL},
		{"default", SPEC_MATCH, "tcp port 53-53", "tcp port 53"},
		{"default", SPEC_MATCH, "tcp port 80,8000-8080", NULL},
		{"default", SPEC_MATCH,
		 "tcp-syn port 10000-10001,10002-10003,10004-10005,10006-10007,10008-10009,"
		 "10010-10011,10012-10013,10014-10015 vlan 4094",
		 NULL},
		{"default", SPEC_MATCH, "vlan 10", NULL},
		{"default", SPEC_MATCH, "any vlan 10", "vlan 10"},
		{"default", SPEC_MATCH, "fragment vlan 4094", NULL},
		{"default", SPEC_MATCH, "all vlan 3", "vlan 3"},
		{"default", SPEC_MATCH, "tcp syn port 22 vlan 3", "tcp-syn port 22 vlan 3"},
		{"default", SPEC_MATCH, "tcp syn dport 80,443", "tcp-syn port 80,443"},
		{"default", SPEC_MATCH, "port 53", NULL},
		{"default", SPEC_MATCH, "any vlan 3 port 53", "port 53 vlan 3"},
		{"default", SPEC_MATCH, "udp sport 53,123,1900", NULL},
		{"default", SPEC_MATCH, "tcp port 80 sport 1-1023", "tcp sport 1-1023 port 80"},
		{"default", SPEC_MATCH, "to 192.0.2.0/24", NULL},
		{"default", SPEC_MATCH, "udp to 2001:db8::/32 port 53",
		 "udp port 53 to 2001:db8::/32"},
		{"default", SPEC_MATCH, "to ::ffff:192.0.2.1", "to 192.0.2.1"},
		{"default", SPEC_MATCH, "to 0.0.0.0/0", NULL},
		{"default", SPEC_MATCH, "flags !ack,syn", "flags syn,!ack"},
		{"default", SPEC_MATCH, "tcp flags fin,!psh", "flags fin,!psh"},
		{"default", SPEC_MATCH, "tcp-syn flags !rst", NULL},
		{"default", SPEC_MATCH, "icmp icmp-type 8", "icmp-type 8"},
		{"default", SPEC_MATCH, "icmp-type echo-request", NULL},
		{"default", SPEC_MATCH, "icmp-type neighbor-solicitation", NULL},
		{"default", SPEC_MATCH, "length 60", NULL},
		{"default", SPEC_MATCH, "quic-initial", NULL},
		{"default", SPEC_MATCH, "tls-hello port 443 to 192.0.2.1", NULL},
		{"default", SPEC_MATCH, "tls-hello flags psh", NULL},
		{"default", SPEC_MATCH, "dns-query sport 53 length 60", NULL},
		{"default", SPEC_MATCH, "fragment length 0-65535 dscp 0", NULL},
		{"default", SPEC_MATCH,
		 "tcp-syn flags !fin,!syn,!rst,!psh,!ack,!urg,!ece,!cwr sport "
		 "10000-10001,10002-10003,10004-10005,10006-10007,10008-10009,10010-10011,"
		 "10012-10013,10014-10015 port "
		 "10000-10001,10002-10003,10004-10005,10006-10007,10008-10009,10010-10011,"
		 "10012-10013,10014-10015 to "
		 "2001:db8:1111:2222:3333:4444:5555:6660/125 length 10000-20000 dscp 63 vlan 4094",
		 NULL},
		{"default", SPEC_PER, "0", "0/64"},
		{"default", SPEC_PER, "33", "32/33"},
		{"default", SPEC_PER, "128", "32/128"},
		{"default", SPEC_PER, "24/56", NULL},
		{"default", SPEC_PER, "/24/56", "24/56"},
		{"default", SPEC_PER, "32/24", NULL},
		{"0.0.0.0/0", SPEC_PER, "16", NULL},
		{IPV4, SPEC_PER, "32", ""},
		{IPV4, SPEC_PER, "0", NULL},
		{IPV6, SPEC_PER, "64", ""},
		{IPV6, SPEC_PER, "24", NULL},
		{IPV6, SPEC_PER, "128", NULL},
		{"default", SPEC_KEY, "src", ""},
		{"default", SPEC_KEY, "dst", NULL},
		{"default", SPEC_ACTION, "drop", ""},
		{"default", SPEC_ACTION, "observe", NULL},
		{"default", SPEC_ACTION, "block  \t 30s", "block 30s"},
		{"default", SPEC_ACTION, "block 5 minutes", "block 5min"},
		{"default", SPEC_ACTION, "block 1h 30m 5s", "block 5405s"},
		{"default", SPEC_ACTION, "block 1 hour 30 minutes escalate 2 max 1 day 2 hours",
		 "block 90min escalate 2 max 26h"},
		{"default", SPEC_ACTION, "block 730d", NULL},
		{"default", SPEC_START, "full", ""},
		{"default", SPEC_START, "empty", NULL},
		{"default", SPEC_SHARED, "no", ""},
		{"default", SPEC_SHARED, "true", "yes"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of(cases[i].prefix, cases[i].field, cases[i].text);
		struct sl_prefix prefix = prefix_of(cases[i].prefix);
		char text[SPEC_TEXT];
		const char *printed = spec_format(&limit, &prefix, cases[i].field, text);

		assert_string_equal(printed ?: "", cases[i].printed ?: cases[i].text);
		assert_round_trip(&limit, &prefix);
	}
}

/* Different matches give different default names of limits. */
TEST(test_the_default_name_is_that_of_the_match)
{
	static const struct {
		const char *match, *name;
	} cases[] = {
		{"any", "all"},
		{"vlan 10", "vlan-10"},
		{"tcp vlan 10", "tcp-vlan-10"},
		{"tcp-syn vlan 100", "tcp-syn-vl-82ed"},
		{"tcp-syn port 22", "tcp-syn-22"},
		{"proto 47", "proto-47"},
		{"udp port 53", "udp-53"},
		{"tcp port 80-443", "tcp-80-443"},
		{"tcp port 80,443", "tcp-80_443"},
		{"tcp port 80,443,8080", "tcp-80_443_8080"},
		{"port 53", "port-53"},
		{"udp sport 53", "udp-sport-53"},
		{"to 192.0.2.0/24", "to-192_0_2_0_24"},
		{"to 10.0.0.0/8", "to-10_0_0_0_8"},
		{"flags syn,!ack", "flags-syn__ack"},
		{"icmp-type 8", "icmp-type-8"},
		{"length 60-99", "length-60-99"},
		{"dscp 46", "dscp-46"},
		{"dns-query", "dns-query"},
		{"quic-initial", "quic-initial"},
		{"tls-hello port 443", "tls-hello-443"},
		{"tcp port 80,443,8080,8443", "tcp-80_443-8399"},
		{"tcp port 80,443,8080,8444", "tcp-80_443-80f8"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of("default", SPEC_MATCH, cases[i].match);

		assert_string_equal(limit.spec.name, cases[i].name);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(cases[i].name, cases[j].name);
	}
}

TEST(test_all_but_the_rate_has_a_default)
{
	struct limit limit = limit_of("default", SPEC_RATE, "1kpps");
	struct sl_prefix prefix = prefix_of("default");
	char text[SPEC_FIELDS][SPEC_TEXT];
	struct spec_texts said = spec_back(&limit, &prefix, false, text);
	struct limit expected = {
		.spec = {.name = "all",
			 .rate = 1000,
			 .burst = 1000,
			 .rate_unit = SL_RATE_PPS,
			 .burst_unit = SL_BURST_PACKETS,
			 .action = SL_ACTION_DROP,
			 .per = {32, 64}},
		.match = {.fact = SL_FACT_ANY},
	};

	assert_memory_equal(&limit, &expected, sizeof(limit));
	assert_string_equal(said.text[SPEC_RATE], "1kpps");
	assert_string_equal(said.text[SPEC_BURST], "1000");
	for (int field = 0; field < SPEC_FIELDS; field++)
		if (field != SPEC_RATE && field != SPEC_BURST)
			assert_null(said.text[field]);
}

/* --- Kinds ---------------------------------------------------------------------------------- */

static struct limit limit_of_kind(const char *text)
{
	struct sl_prefix prefix = prefix_of("default");
	struct limit limit = limit_of_words("default", text);

	assert_round_trip(&limit, &prefix);
	return limit;
}

/* Returns the words that `sluice show` prints for a limit. */
static const char *shown(const struct limit *limit)
{
	static char line[LIMIT_TEXT];
	struct sl_prefix prefix = prefix_of("default");

	return limit_format(limit, &prefix, line) + 1;
}

TEST(test_words_of_each_kind_mean_these_numbers)
{
	static const struct {
		const char *words;
		const char *shown;
		uint64_t rate, span_ns;
		uint8_t kind, rate_unit, groups;
	} cases[] = {
		{"window 1000 per 1min", "window 1000 per 1min", 1000, 60000000000, SL_WINDOW,
		 SL_RATE_PPS, 5},
		{"window 1000 \t per  60s", "window 1000 per 1min", 1000, 60000000000, SL_WINDOW,
		 SL_RATE_PPS, 5},
		{"window 10MB per 1h", "window 10MB per 1h", 10000000, 3600000000000, SL_WINDOW,
		 SL_RATE_BITS, 5},
		{"window 1.5GB per 7d", "window 1500MB per 7d", 1500000000, 604800000000000,
		 SL_WINDOW, SL_RATE_BITS, 5},
		{"window 140737488355328 per 730d", "window 140737488355328 per 730d", 1ULL << 47,
		 63072000000000000, SL_WINDOW, SL_RATE_PPS, 5},
		{"window 1B per 1s groups 1", "window 1B per 1s groups 1", 1, 1000000000, SL_WINDOW,
		 SL_RATE_BITS, 1},
		{"window 9 per 1s groups 10", "window 9 per 1s groups 10", 9, 1000000000, SL_WINDOW,
		 SL_RATE_PPS, 10},
		{"window 9 packets per 1 hour 30 minutes groups 5", "window 9 per 90min", 9,
		 5400000000000, SL_WINDOW, SL_RATE_PPS, 5},
		{"window 10 MB per 1h 30m", "window 10MB per 90min", 10000000, 5400000000000,
		 SL_WINDOW, SL_RATE_BITS, 5},
		{"shape 10 mbit horizon 1 second", "shape 10mbit horizon 1s", 10000000, 1000000000,
		 SL_SHAPE, SL_RATE_BITS, 0},
		{"shape 10kpps horizon 1ms", "shape 10kpps horizon 1ms", 10000, 1000000, SL_SHAPE,
		 SL_RATE_PPS, 0},
		{"shape 5pps horizon 0.2s", "shape 5pps", 5, 200000000, SL_SHAPE, SL_RATE_PPS, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of_kind(cases[i].words);
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

/*
 * The default name is derived from the match. The name "all" is omitted if it is the default name.
 */
TEST(test_names_are_written_unless_all_is_the_default)
{
	static const struct {
		const char *words, *shown;
	} cases[] = {
		{"name all rate 5pps burst 9", "rate 5pps burst 9"},
		{"name all rate 5pps burst 9 match tcp", "name all rate 5pps burst 9 match tcp"},
		{"rate 5pps burst 9 match tcp", "name tcp rate 5pps burst 9 match tcp"},
		{"rate 5pps burst 9 match vlan 3", "name vlan-3 rate 5pps burst 9 match vlan 3"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of_kind(cases[i].words);

		assert_string_equal(shown(&limit), cases[i].shown);
	}
}

/* Windows and shapers accept words of their own, in addition to the words of all limits. */
TEST(test_kinds_compose_with_the_other_words)
{
	static const char window[] =
		"name dns window 1000 per 1min groups 3 match udp port 53 per 24/56 "
		"key dst action block 10s escalate 3 max 2min start empty",
			  shape[] = "name out shape 50mbit horizon 1s match tcp per 24/56 key dst";
	struct limit limit = limit_of_kind(window);

	assert_string_equal(shown(&limit), window);
	assert_int_equal(limit.spec.block_ns, 10000000000);
	assert_int_equal(limit.spec.block_max_ns, 120000000000);
	assert_int_equal(limit.spec.escalate, 3);
	limit = limit_of_kind(shape);
	assert_string_equal(shown(&limit), shape);
}

TEST(test_two_rates_are_one_limit)
{
	static const struct {
		const char *words, *shown;
		uint64_t first, second, burst_first, burst_second;
	} cases[] = {
		{"rate 10kpps 100mbit", "rate 10kpps 100mbit burst 10000 12500kB", 10000, 100000000,
		 10000, 12500000},
		{"rate 1pps 1mbit", "rate 1pps 1mbit burst 64 250KiB", 1, 1000000, 64, 256000},
		{"rate 60/min 1mbit burst 1s 64kB", "rate 60/min 1mbit burst 1s 64kB", 60, 1000000,
		 1000000000, 64000},
		{"rate 10 kpps 100 mbit burst 2000 packets 64 kB",
		 "rate 10kpps 100mbit burst 2000 64kB", 10000, 100000000, 2000, 64000},
		{"rate 10kpps 100mbit burst 2000 100ms", "rate 10kpps 100mbit burst 2000 100ms",
		 10000, 100000000, 2000, 100000000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit limit = limit_of_kind(cases[i].words);

		assert_string_equal(shown(&limit), cases[i].shown);
		assert_int_equal(limit.spec.rate, cases[i].first);
		assert_int_not_equal(limit.spec.rate_unit, SL_RATE_BITS);
		assert_int_equal(limit.second.rate, cases[i].second);
		assert_int_equal(limit.spec.burst, cases[i].burst_first);
		assert_int_equal(limit.second.burst, cases[i].burst_second);
	}
}

/* If a limit has two rates, limit_second() returns its second rate as a separate limit. */
TEST(test_the_second_rate_is_a_limit_of_bits)
{
#define WEB(rate, burst)                                                                           \
	"name web rate " rate " burst " burst                                                      \
	" match tcp port 80 per 24/56 action block 10s escalate 2"
	struct limit limit = limit_of_kind(WEB("10kpps 100mbit", "2000 64kB"));
	struct limit second = limit_second(&limit),
		     expected = limit_of_kind(WEB("100mbit", "64kB"));

	expected.spec.second = true;
	assert_memory_equal(&second, &expected, sizeof(expected));
}

TEST(test_escalating_blocks_read_back)
{
	static const struct {
		const char *action, *shown;
		uint64_t block_ns, max_ns;
		uint8_t escalate;
	} cases[] = {
		{"block 10s escalate 2", "block 10s escalate 2 max 10min", 10000000000,
		 600000000000, 2},
		{"block 599s escalate 16", "block 599s escalate 16 max 10min", 599000000000,
		 600000000000, 16},
		{"block 1ms escalate 2 max 1000001ns", "block 1ms escalate 2 max 1000001ns",
		 1000000, 1000001, 2},
		{"block  10h\tescalate 2 max 730d", "block 10h escalate 2 max 730d", 36000000000000,
		 63072000000000000, 2},
	};

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

TEST(test_each_length_has_a_limit)
{
	static const struct {
		const char *prefix;
		const char *words;
		const char *names, *shown[SL_LIMITS_MAX];
		uint8_t per[SL_LIMITS_MAX][SL_FAMILIES];
		unsigned int count;
	} cases[] = {
		{"default",
		 "rate 100pps,1kpps,20kpps per 32,24,16",
		 "all all-24 all-16",
		 {"rate 100pps burst 100", "name all-24 rate 1kpps burst 1000 per 24/56",
		  "name all-16 rate 20kpps burst 20000 per 16/48"},
		 {{32, 64}, {24, 56}, {16, 48}},
		 3},
		{"default",
		 "rate 1kpps burst 10,20 name dns match udp port 53,5353 per 32/128, 0/0",
		 "dns dns-0",
		 {"name dns rate 1kpps burst 10 match udp port 53,5353 per 32/128",
		  "name dns-0 rate 1kpps burst 20 match udp port 53,5353 per 0/0"},
		 {{32, 128}, {0, 0}},
		 2},
		{"default",
		 "window 10 per 1s, 1MB per 1h groups 2 per 32,8",
		 "all all-8",
		 {"window 10 per 1s groups 2", "name all-8 window 1MB per 1h groups 2 per 8/40"},
		 {{32, 64}, {8, 40}},
		 2},
		{"default",
		 "shape 1mbit,10mbit horizon 200ms,1s per 32,0",
		 "all all-0",
		 {"shape 1mbit", "name all-0 shape 10mbit horizon 1s per 0/0"},
		 {{32, 64}, {0, 0}},
		 2},
		{"default",
		 "rate 1kpps 1mbit,10kpps 10mbit per 32,24",
		 "all all-24",
		 {"rate 1kpps 1mbit burst 1000 250KiB",
		  "name all-24 rate 10kpps 10mbit burst 10000 1250kB per 24/56"},
		 {{32, 64}, {24, 56}},
		 2},
		{IPV4,
		 "rate 1kpps per 32,30,28,26",
		 "all all-30 all-28 all-26",
		 {NULL},
		 {{32, 64}, {30, 64}, {28, 64}, {26, 64}},
		 4},
		{"default",
		 "rate 1kpps match udp port 53,123,1900 per 32,24",
		 "udp-53_123_1900 udp-53_123-cefd",
		 {NULL},
		 {{32, 64}, {24, 56}},
		 2},
		{IPV6,
		 "rate 1kpps per 128,64,48 action observe",
		 "all all-64 all-48",
		 {NULL},
		 {{32, 128}, {32, 64}, {32, 48}},
		 3},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_prefix prefix = prefix_of(cases[i].prefix);
		struct limits limits;
		struct words words;
		char names[128] = "";

		words_split(cases[i].words, &words);
		assert_int_equal(texts_parse(&words.spec, &prefix, &limits), 0);
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

/* --- Words that are wrong ------------------------------------------------------------------- */

TEST(test_a_wrong_field_is_named_with_its_text)
{
	static const struct {
		const char *prefix;
		enum spec_field field;
		const char *id, *texts;
	} cases[] = {
		{"default", SPEC_NAME, "bad-name", "|sixteen-letters-|a b|-|-x|a.b|ü"},
		{"default", SPEC_RATE, "no-unit", "5"},
		{"default", SPEC_BURST, "burst-unit", "64kB"},
		{"default", SPEC_BURST, "out-of-range", "999us"},
		{"default", SPEC_MATCH, "bad-match", "|  |47"},
		{"default", SPEC_MATCH, "bad-match",
		 "udp syn|udp port 53 sport|udp port 53 dport 53|udp sport 1 sport 2|"
		 "icmp port 53|icmp sport 53|fragment sport 53|proto 17 sport 53|fragment port "
		 "53|proto 6 port 53|proto 132 port 53|tcp port|"
		 "tcp port vlan|tcp port vlan 10|tcp port dns|tcp port 65536|tcp port 053|"
		 "tcp port 1-080|tcp port 99999999999999999999|tcp port -1|tcp port 1-|"
		 "tcp port 1-65536|tcp port 1-2-3|tcp port 1,|tcp port ,1|tcp port 1,,2|"
		 "tcp port 1x|tcp port 1.5|tcp port 80, 443|tcp port 80 443|tcp port 443-80|"
		 "tcp port 80,80|tcp port 1-10,10-20|tcp port 10-20,1-10|tcp port 1-100,50|"
		 "tcp port 50,7,1-100|tcp port 1,2,3,4,5,6,7,8,9|tcp port 80 port 81"},
		{"default", SPEC_MATCH, "bad-match",
		 "ip|proto|proto 256|proto 007|proto -1|proto 6x|proto gre|proto vlan 10|vlan|"
		 "vlan 0|vlan 4095|vlan 010|vlan x|vlan 1x|vlan 1 vlan 2|vlan 1 tcp|"
		 "tcp udp|any any|tcp syn syn|udp quic-initial|dns-query flags syn|quic|tls-hello "
		 "443"},
		{"default", SPEC_MATCH, "bad-match",
		 "flags|flags |flags none|flags syn,|flags ,syn|flags syn,,ack|flags syn,syn|"
		 "flags syn,!syn|flags !!syn|flags !|flags SYN|flags 2|udp flags syn|"
		 "icmp flags syn|any flags syn|fragment flags syn|flags syn icmp-type 8"},
		{"default", SPEC_MATCH, "bad-match",
		 "icmp-type|icmp-type 256|icmp-type -1|icmp-type 08|icmp-type echo|tcp icmp-type 8|"
		 "any icmp-type 8|proto 1 icmp-type 8|icmp-type 8 icmp-type 0|icmp-type 8 port 1"},
		{"default", SPEC_MATCH, "bad-match",
		 "length|length 65536|length 5-4|length 5-|length -5|length 5,6|length 60x|"
		 "length 1 length 2|dscp|dscp 64|dscp -1|dscp ef|dscp 1-2|dscp 1 dscp 1"},
		{"default", SPEC_MATCH, "bad-match",
		 "to|to default|to any|to 192.0.2.1 to 192.0.2.2"},
		{"default", SPEC_PER, "bad-length",
		 "|x|/|24/|24x|24/56/64|24 56|-1|129|24/129|33/64|024|24/056|/024"},
		{IPV4, SPEC_PER, "bad-length", "33|64|24/56"},
		{"0.0.0.0/0", SPEC_PER, "bad-length", "56"},
		{IPV6, SPEC_PER, "bad-length", "24/56|129"},
		{"::/0", SPEC_PER, "bad-length", "24/56"},
		{"default", SPEC_KEY, "bad-choice", "|source|dst "},
		{"default", SPEC_ACTION, "bad-action",
		 "|pass|drop 30s|observe 30s|blocks 30s|block|block "},
		{"default", SPEC_ACTION, "no-unit", "block 30"},
		{"default", SPEC_ACTION, "bad-time", "block 30s 30s"},
		{"default", SPEC_ACTION, "not-a-number", "block 010s"},
		{"default", SPEC_ACTION, "out-of-range", "block 0s|block 999999ns|block 731d"},
		{"default", SPEC_START, "bad-choice", "|half"},
		{"default", SPEC_SHARED, "bad-choice", "|half"},
	};
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (const char *rest = cases[i].texts; part_next(&rest, text);) {
			struct spec_texts spec = spec_of(cases[i].field, text);

			if (texts_refuse(&spec, cases[i].prefix) != -EINVAL)
				fail_msg("%s '%s' is accepted", spec_names[cases[i].field], text);
			assert_one_error(cases[i].id, spec_names[cases[i].field]);
		}
}

/* A wrong prefix has the same errors in a match as elsewhere. */
TEST(test_a_wrong_prefix_of_a_match_is_named)
{
	static const struct {
		const char *text, *id, *object;
	} cases[] = {
		{"to x", "bad-address", "'x'"},
		{"udp to 192.0.2.0/33", "bad-length", "'192.0.2.0/33'"},
		{"to 192.0.2.1/24", "host-bits", "'192.0.2.1/24'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_match match;

		assert_int_equal(match_parse(cases[i].text, &match), -EINVAL);
		assert_one_error(cases[i].id, cases[i].object);
	}
}

/* If a word is misspelled, the error suggests the correct word. */
TEST(test_what_was_meant_is_named)
{
	static const struct {
		enum spec_field field;
		const char *text, *named;
	} cases[] = {
		{SPEC_MATCH, "tpc", "'tcp'"},
		{SPEC_MATCH, "fragmnet", "'fragment'"},
		{SPEC_MATCH, "udp prot 53", "'port'"},
		{SPEC_MATCH, "udp vlna 5", "'vlan'"},
		{SPEC_MATCH, "udp sprot 5", "'sport'"},
		{SPEC_MATCH, "legnth 5", "'length'"},
		{SPEC_MATCH, "syn", "tcp-syn"},
		{SPEC_MATCH, "47", "proto N"},
		{SPEC_MATCH, "proto tcp", "'tcp'"},
		{SPEC_MATCH, "proto 17 port 53", "'udp port"},
		{SPEC_MATCH, "tcp port 1-10,10-20", "1-10 and 10-20"},
		{SPEC_MATCH, "tcp port 50,7,1-100", "50 and 1-100"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec_texts spec = spec_of(cases[i].field, cases[i].text);
		char *text;

		assert_int_equal(texts_refuse(&spec, "default"), -EINVAL);
		text = error_format(error_last(0));
		assert_non_null(strstr(text, cases[i].named));
		free(text);
		error_drop(0);
	}
}

/* Each error names the field that is wrong. */
TEST(test_wrong_words_of_kinds_and_lists_are_named)
{
	static const struct {
		const char *prefix;
		const char *words;
		const char *errors; /* in the format of assert_errors() */
	} cases[] = {
		/* the kind */
		{"default", "", "- no-rate"},
		{"default", "rate 1kpps window 9 per 1s", "window: window two-kinds"},
		{"default", "window 9 per 1s horizon 1s", "horizon: horizon other-kind"},
		{"default", "shape 1kpps action drop", "action: action other-kind"},
		{"default", "shape 1kpps shared yes", "shared: shared other-kind"},
		{"default", "rate 1kpps start share", "start: start 'share' not-shared"},
		{"default", "window 9 per 1s start share", "start: start 'share' not-shared"},
		{"default", "rate 1kpps shared block action drop",
		 "shared: shared 'block' no-block"},
		/* windows */
		{"default", "window", "window: window '' bad-window"},
		{"default", "window 1000 per 1s 1min", "window: window '1s 1min' bad-time"},
		{"default", "window x per 1min", "window: window 'x' not-a-number"},
		{"default", "window 140737488355329B per 1h",
		 "window: window '140737488355329B' out-of-range"},
		{"default", "window 1000 per 999us", "window: window '999us' out-of-range"},
		{"default", "window 1000 per 1", "window: window '1' no-unit"},
		{"default", "window 9 per 1s groups 0", "groups: groups '0' bad-number"},
		{"default", "window 9 per 1s groups 11", "groups: groups '11' bad-number"},
		{"default", "window 9 per 1s burst 5", "burst: burst other-kind"},
		/* shape */
		{"default", "shape 1kpps horizon 5", "horizon: horizon '5' no-unit"},
		{"default", "shape 1kpps horizon 999us", "horizon: horizon '999us' out-of-range"},
		{"default", "shape 1kpps horizon 11s", "horizon: horizon '11s' out-of-range"},
		{"default", "shape 1pps", "shape: horizon '200ms' out-of-range"},
		{"default", "shape 100pps horizon 9ms", "horizon: horizon '9ms' out-of-range"},
		/* two rates */
		{"default", "rate 10kpps 20kpps", "rate: rate '10kpps 20kpps' two-rates"},
		{"default", "rate 1mbit 2mbit", "rate: rate '1mbit 2mbit' two-rates"},
		{"default", "rate 10kpps 5 burst 9 9", "rate: rate '5' no-unit"},
		{"default", "rate 10kpps 100mbit burst 2500", "burst: burst '2500' two-bursts"},
		{"default", "rate 10kpps 100mbit burst 2500 64", "burst: burst '64' burst-unit"},
		{"default", "rate 10kpps 100mbit burst 64kB 64kB",
		 "burst: burst '64kB' burst-unit"},
		{"default", "rate 1pps 1kbit burst 8 10GB", "burst: burst '10GB' out-of-range"},
		{"default", "rate 10kpps burst 9 9", "burst: burst '9 9' two-bursts"},
		/* escalating blocks */
		{"default", "rate 1kpps action block 10s 2", "action: block '10s 2' no-unit"},
		{"default", "rate 1kpps action block 10s escalate 2 up 1h",
		 "action: action block 'escalate' bad-action"},
		{"default", "rate 1kpps action block 10s escalate 2 max 1h x",
		 "action: action 'block 10s escalate 2 max 1h x' bad-action"},
		{"default", "rate 1kpps action block 10s escalate 1",
		 "action: escalate '1' bad-number"},
		{"default", "rate 1kpps action block 10s escalate 17",
		 "action: escalate '17' bad-number"},
		{"default", "rate 1kpps action block 10s escalate 2 max 1",
		 "action: max '1' no-unit"},
		{"default", "rate 1kpps action block 10s escalate 2 max 10s",
		 "action: escalate bad-escalate"},
		{"default", "rate 1kpps action block 1s escalate 2 max 32769s",
		 "action: escalate bad-escalate"},
		{"default", "rate 1kpps action block 1h escalate 2",
		 "action: escalate bad-escalate"},
		/* several lengths */
		{"default", "rate 1kpps,2kpps", "rate: rate wrong-count"},
		{"default", "rate 1kpps per 32,24,16,8,0",
		 "per: per '32,24,16,8,0' too-many-values"},
		{"default", "rate 1kpps per 64,56", "per: per '64' bad-length"},
		{"default", "rate 1kpps per 24,32", "per: per wrong-order"},
		{"default", "rate 1kpps per 24,24", "per: per wrong-order"},
		{"default", "rate 1kpps per 32/48,24/56", "per: per wrong-order"},
		{IPV4, "rate 1kpps per 64,56", "per: per '64' bad-length"},
		{"default", "rate 1kpps per 32,", "per: per '' bad-length"},
		{"default", "rate 1kpps per 32,24 name thirteen-long",
		 "name: name 'thirteen-long' bad-name"},
		{"default", "rate 1kpps,5 per 32,24", "rate: rate '5' no-unit"},
		/* each wrong field is reported; the burst is checked only if the rate is valid */
		{"default",
		 "rate 1kpps per x name a b burst 1us match port x key x action x start x",
		 "name: name 'a b' bad-name; match: match 'port x' bad-match; per: per 'x' "
		 "bad-length; key: key 'x' bad-choice; action: action 'x' bad-action; start: start "
		 "'x' bad-choice"},
		{"default", "rate 5pps action reject shared block",
		 "action: action 'reject' bad-action"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct words words;

		words_split(cases[i].words, &words);
		assert_int_equal(texts_refuse(&words.spec, cases[i].prefix), -EINVAL);
		assert_errors("", cases[i].errors);
	}
}

/* A text that does not fit into its buffer is refused, not truncated. */
TEST(test_long_values_are_refused_and_not_cut)
{
	static const enum spec_field fields[] = {SPEC_RATE, SPEC_BURST, SPEC_WINDOW, SPEC_ACTION,
						 SPEC_MATCH};
	static const char *const begins[] = {"10kpps", "2500", "1000 per 1min", "block 10s", "any"};
	char text[2 * SPEC_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct spec_texts spec = {.text = {[SPEC_RATE] = "10kpps"}};

		if (fields[i] == SPEC_WINDOW)
			spec.text[SPEC_RATE] = NULL;
		snprintf(text, sizeof(text), "%s%*s", begins[i], SPEC_TEXT, "x");
		spec.text[fields[i]] = text;
		assert_int_equal(texts_refuse(&spec, "default"), -EINVAL);
		assert_int_equal(error_count(), 1);
		error_drop(0);
	}
}

TESTS(NULL, NULL)
