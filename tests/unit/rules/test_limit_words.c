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
			 .start_empty = 1},
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
		{"default", SPEC_START, "", "full or empty"},
		{"default", SPEC_START, "half", "full or empty"},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_field_reads_back_from_its_words),
		cmocka_unit_test(test_all_but_the_rate_has_a_default),
		cmocka_unit_test(test_all_fields_together_are_read),
		cmocka_unit_test(test_a_length_is_of_the_family_of_the_prefix),
		cmocka_unit_test(test_words_of_a_match_match_these_packets),
		cmocka_unit_test(test_a_wrong_field_is_named_with_its_text),
		cmocka_unit_test(test_a_limit_without_a_rate_is_refused),
		cmocka_unit_test(test_every_error_is_said),
		cmocka_unit_test(test_a_wrong_rate_is_the_only_error),
		cmocka_unit_test(test_errors_have_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
