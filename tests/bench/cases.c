// SPDX-License-Identifier: GPL-2.0
#include <fnmatch.h>
#include <string.h>

#include "base/array.h"
#include "bench.h"

/* Limits so high that one CPU cannot exceed them. */
#define AMPLE	     .rate = "200mpps", .burst = "250ms"
#define AMPLE_BITS   .rate = "400gbit", .burst = "250ms"
#define AMPLE_WINDOW .window = "1000000000 per 1s"
#define AMPLE_SHAPE  .shape = "200mpps"

/* A limit without per-CPU slices, because its burst is small. */
#define AMPLE_EXACT .rate = "200mpps", .burst = "30"

/* A typical limit. It refuses most packets of a source that sends at full speed. */
#define USUAL .rate = "10kpps", .burst = "1000"

/* A limit that passes only the first packet of the benchmark. */
#define SPENT .rate = "1/min", .burst = "1"

#define FORGED4 "0.0.0.0/0"
#define FORGED6 "::/0"

/* Prefixes of 65,536 and 1,048,576 sources. */
#define LOOKED_UP_64K "22.0.0.0/16"
#define LOOKED_UP_1M  "21.0.0.0/12"

#define IN_CREDIT .subject = ON_SLUICE, .essential = true, .expect = EXPECT_PASS
#define REFUSED	  .subject = ON_SLUICE, .essential = true, .expect = EXPECT_DROP
#define SENT	  .subject = ON_EGRESS, .essential = true, .expect = EXPECT_PASS
#define UNKNOWN	  .subject = ON_SLUICE, .essential = true, .expect = EXPECT_ANY, .target = 1.10

/* Compare with the textbook limiter with the same number of sources. */
#define BESIDE_64K .against = "naive_64k"
#define BESIDE_1M  .against = "naive_1m"

#define KNOWN_64K .limit = {{AMPLE}}, .subject = ON_64K, .target = 1.40, BESIDE_64K
#define KNOWN_1M  .limit = {{AMPLE}}, .subject = ON_1M, .target = 1.00, BESIDE_1M
#define OVER_64K                                                                                   \
	.limit = {{SPENT}}, .subject = ON_64K_OVER, .expect = EXPECT_DROP, .target = 1.40,         \
	BESIDE_64K
#define DENIED_1M(on)                                                                              \
	.deny = true, .subject = (on), .expect = EXPECT_DROP, .target = 0.70, BESIDE_1M

/* A limit that reads the headers costs 105 ns. A further word of its match adds up to 6 ns. */
#define MATCHED(words) .limit = {{AMPLE, .match = (words)}}, IN_CREDIT
#define FIELD(basis)   .target = 1.06, .against = (basis)

#define AS_FAST_AS(name) .cpus = 2, .target = 1.10, .against = (name)

#define CASE(word, from, ...)                                                                      \
	{                                                                                          \
		.name = (word), .source = (from), __VA_ARGS__                                      \
	}
#define BASIS(word, from, on) CASE(word, from, .subject = (on), .essential = true)
#define BARE_64K(word, on)    CASE(word, LOOKED_UP_64K, .subject = (on), BESIDE_64K)
#define BARE_1M(word, on)     CASE(word, LOOKED_UP_1M, .subject = (on), BESIDE_1M)

#define UDP_443 0x30, 0x39, 0x01, 0xbb, 0, 68, 0, 0 /* ports, length, no checksum */

/* A QUIC Initial packet, a DNS query, a TLS ClientHello and an echo request. */
static const struct bench_packet quic = {
	17, 24, {UDP_443, 0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 8, 0}};
static const struct bench_packet query = {
	17, 20, {UDP_443, 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}};
static const struct bench_packet hello = {6, 31, {0x30, 0x39, 0x01, 0xbb, 0, 0, 0,    1, 0, 0,	  0,
						  1,	0x50, 0x18, 1,	  0, 0, 0,    0, 0, 0x16, 3,
						  1,	0x02, 0,    1,	  0, 1, 0xfc, 3, 3}};
static const struct bench_packet echo = {1, 8, {8, 0, 0, 0, 0, 0, 0, 1}};

const struct bench_case bench_cases[] = {
	BASIS("empty", "10.0.0.1", ON_EMPTY),
	BASIS("parse", "10.0.0.1", ON_PARSE),
	BASIS("vary", FORGED4, ON_PARSE),
	BASIS("vary6", FORGED6, ON_PARSE),
	BASIS("floor", "10.0.0.1", ON_FLOOR),
	BASIS("naive", "10.0.0.1", ON_NAIVE),
	BASIS("naive_newcomer", FORGED4, ON_NAIVE),

	CASE("accept", "10.0.1.1", .limit = {{AMPLE}}, IN_CREDIT, .target = 0.80),
	CASE("accept6", "2001:db8:f::1", .limit = {{AMPLE}}, IN_CREDIT),
	CASE("accept_bits", "10.0.2.1", .limit = {{AMPLE_BITS}}, IN_CREDIT),
	CASE("accept_4_limits", "10.0.3.1",
	     .limit = {{AMPLE},
		       {.rate = "199mpps", .burst = "250ms"},
		       {.rate = "198mpps", .burst = "250ms"},
		       {AMPLE_BITS}},
	     IN_CREDIT, .target = 0.95),
	CASE("refuse", "10.0.4.1", .limit = {{USUAL}}, REFUSED, .target = 0.80),
	CASE("accept_chain", "10.0.1.1", .limit = {{AMPLE}}, .subject = ON_CHAIN,
	     .expect = EXPECT_PASS, .target = 1.05, .against = "accept"),
	CASE("refuse6", "2001:db8:e::1", .limit = {{USUAL}}, REFUSED),
	CASE("refuse_slow", "10.0.5.1", .limit = {{.rate = "1pps", .burst = "5"}}, REFUSED),
	CASE("deny_hot", "10.0.6.1", .deny = true, REFUSED, .target = 0.70),

	CASE("window_accept", "10.0.7.1", .limit = {{AMPLE_WINDOW}}, IN_CREDIT, .target = 1.60),
	CASE("window_refuse", "10.0.8.1", .limit = {{.window = "10 per 1h"}}, REFUSED,
	     .target = 1.60),
	CASE("shared_accept", "10.0.12.1", .limit = {{AMPLE, .shared = true}}, IN_CREDIT,
	     .target = 1.10, .against = "accept"),
	CASE("shared_refuse", "10.0.13.1", .limit = {{USUAL, .shared = true}}, REFUSED,
	     .target = 1.10, .against = "refuse"),
	CASE("exact", "10.0.14.1", .limit = {{AMPLE_EXACT}}, IN_CREDIT),
	CASE("match_udp", "10.0.20.1", MATCHED("udp")),
	CASE("match_port", "10.0.21.1", MATCHED("udp port 9")),
	CASE("match_sport", "10.0.22.1", MATCHED("udp sport 12345"), FIELD("match_udp")),
	CASE("match_to", "10.0.23.1", MATCHED("udp to 198.51.100.0/24"), FIELD("match_udp")),
	CASE("match_length", "10.0.24.1", MATCHED("udp length 40-1500"), FIELD("match_udp")),
	CASE("match_dscp", "10.0.25.1", MATCHED("udp dscp 0"), FIELD("match_udp")),
	CASE("match_quic", "10.0.26.1", .packet = &quic, MATCHED("quic-initial"),
	     FIELD("match_udp")),
	CASE("match_dns", "10.0.27.1", .packet = &query, MATCHED("dns-query"), FIELD("match_udp")),
	CASE("match_tcp", "10.0.28.1", .packet = &hello, MATCHED("tcp")),
	CASE("match_flags", "10.0.29.1", .packet = &hello, MATCHED("flags ack,!syn"),
	     FIELD("match_tcp")),
	CASE("match_tls", "10.0.30.1", .packet = &hello, MATCHED("tls-hello"), FIELD("match_tcp")),
	CASE("match_icmp", "10.0.31.1", .packet = &echo, MATCHED("icmp")),
	CASE("match_type", "10.0.32.1", .packet = &echo, MATCHED("icmp-type echo-request"),
	     FIELD("match_icmp")),
	BASIS("floor_tc", "10.0.0.1", ON_FLOOR_TC),
	CASE("shape", "10.0.10.1", .limit = {{AMPLE_SHAPE}}, SENT, .target = 1.80,
	     .against = "floor_tc"),
	CASE("three_kinds", "10.0.11.1", .limit = {{AMPLE}, {AMPLE_WINDOW}, {AMPLE_SHAPE}}, SENT),

	CASE("naive_64k", LOOKED_UP_64K, .subject = ON_NAIVE_64K),
	CASE("naive_1m", LOOKED_UP_1M, .subject = ON_NAIVE_1M),
	BARE_64K("lru_percpu_64k", ON_LRU_PERCPU_64K),
	BARE_64K("lru_64k", ON_LRU_64K),
	BARE_64K("hash_64k", ON_HASH_64K),
	BARE_64K("array_64k", ON_ARRAY_64K),
	BARE_1M("lru_percpu_1m", ON_LRU_PERCPU_1M),
	BARE_1M("lru_1m", ON_LRU_1M),
	BARE_1M("hash_1m", ON_HASH_1M),
	BARE_1M("array_1m", ON_ARRAY_1M),

	CASE("deny_1m", "20.0.0.0/12", DENIED_1M(ON_DENIED)),
	CASE("deny6_1m", "2001:db8:200::/44 by /64", DENIED_1M(ON_DENIED6)),
	CASE("accept_64k", "22.0.0.0/16", KNOWN_64K),
	CASE("accept6_64k", "2001:db8:22::/48 by /64", KNOWN_64K),
	CASE("refuse_64k", "23.0.0.0/16", OVER_64K),
	CASE("refuse6_64k", "2001:db8:23::/48 by /64", OVER_64K),
	CASE("accept_1m", "21.0.0.0/12", KNOWN_1M),
	CASE("accept6_1m", "2001:db8:210::/44 by /64", KNOWN_1M),

	CASE("newcomer", FORGED4, UNKNOWN),
	CASE("newcomer6", FORGED6, UNKNOWN),
	CASE("newcomer6_48", "2001:db8:1::/48", .subject = ON_CROWD, .essential = true,
	     .expect = EXPECT_ANY, .target = 1.30, BESIDE_64K),
	CASE("newcomer6_64", "2001:db8:2:3::/64", UNKNOWN),

	CASE("refuse_watched", "10.0.4.1", .limit = {{USUAL}}, .subject = ON_WATCHED,
	     .essential = true, .expect = EXPECT_DROP, .target = 1.03, .against = "refuse"),
	CASE("newcomer_watched", FORGED4, .subject = ON_WATCHED, .essential = true,
	     .expect = EXPECT_ANY, .target = 1.03, .against = "newcomer"),

	CASE("accept_2cpu", "10.0.1.1", IN_CREDIT, AS_FAST_AS("accept")),
	CASE("refuse_2cpu", "10.0.4.1", REFUSED, AS_FAST_AS("refuse")),
	CASE("newcomer_2cpu", FORGED4, .subject = ON_SLUICE, .essential = true,
	     .expect = EXPECT_ANY, AS_FAST_AS("newcomer")),
};

const size_t bench_cases_count = ARRAY_SIZE(bench_cases);

bool bench_has_limit(const struct bench_limit *limit)
{
	return limit->rate || limit->window || limit->shape;
}

bool case_is_tc(const struct bench_case *bench)
{
	return bench->subject == ON_FLOOR_TC || bench->subject == ON_EGRESS;
}

bool case_is_established(const struct bench_case *bench)
{
	bool has_sized_map = bench->subject > ON_FLOOR_TC && bench->subject < SUBJECTS_SLUICE;

	return strchr(bench->source, '/') && (has_sized_map || bench_has_limit(&bench->limit[0]));
}

/* --- What runs ------------------------------------------------------------------------------- */

static bool chosen_essential;
static char *const *chosen_names;

void cases_choose(bool only_essential, char *const *names)
{
	chosen_essential = only_essential;
	chosen_names = names;
}

bool name_is_chosen(const char *name)
{
	for (char *const *pattern = chosen_names; *pattern; pattern++)
		if (!fnmatch(*pattern, name, 0))
			return true;
	return !*chosen_names;
}

static bool case_is_asked(const struct bench_case *bench)
{
	if (bench->subject <= ON_FLOOR)
		return true;
	if (*chosen_names)
		return name_is_chosen(bench->name);
	return bench->essential || !chosen_essential;
}

bool case_is_chosen(const struct bench_case *bench)
{
	bool chosen = case_is_asked(bench);

	for (size_t i = 0; !chosen && i < bench_cases_count; i++)
		chosen = bench_cases[i].against && !strcmp(bench_cases[i].against, bench->name) &&
			 case_is_asked(&bench_cases[i]);
	return chosen;
}
