// SPDX-License-Identifier: GPL-2.0
#include <fnmatch.h>
#include <string.h>

#include "base/array.h"
#include "bench.h"

/* More than any CPU can send, so that the source stays within them. */
#define AMPLE	     .rate = "200mpps", .burst = "250ms"
#define AMPLE_BITS   .rate = "400gbit", .burst = "250ms"
#define AMPLE_WINDOW .window = "1000000000 per 1s"
#define AMPLE_SHAPE  .shape = "200mpps"

/* The burst is too small for slices: each packet asks the state. */
#define AMPLE_EXACT .rate = "200mpps", .burst = "30"

/* What real sources would have: a flood of one is refused nearly always. */
#define USUAL .rate = "10kpps", .burst = "1000"

/* Over with the packet by which the source becomes known, and for the rest of the benchmark. */
#define SPENT .rate = "1/min", .burst = "1"

#define FORGED4 "0.0.0.0/0"
#define FORGED6 "::/0"

/* 64 K and 1 M sources */
#define LOOKED_UP_64K "22.0.0.0/16"
#define LOOKED_UP_1M  "21.0.0.0/12"

#define IN_CREDIT .subject = ON_SLUICE, .essential = true, .expect = EXPECT_PASS
#define REFUSED	  .subject = ON_SLUICE, .essential = true, .expect = EXPECT_DROP
#define SENT	  .subject = ON_EGRESS, .essential = true, .expect = EXPECT_PASS
#define UNKNOWN	  .subject = ON_SLUICE, .essential = true, .expect = EXPECT_ANY

/* Many sources wait for memory, and how long depends on the machine. */
#define BESIDE_64K .against = "naive_64k"
#define BESIDE_1M  .against = "naive_1m"

#define AS_FAST_AS(name) .cpus = 2, .target = 1.10, .against = (name)

const struct bench_case bench_cases[] = {
	{.name = "empty", .source = "10.0.0.1", .subject = ON_EMPTY, .essential = true},
	{.name = "parse", .source = "10.0.0.1", .subject = ON_PARSE, .essential = true},
	{.name = "vary", .source = FORGED4, .subject = ON_PARSE, .essential = true},
	{.name = "vary6", .source = FORGED6, .subject = ON_PARSE, .essential = true},
	{.name = "floor", .source = "10.0.0.1", .subject = ON_FLOOR, .essential = true},
	{.name = "naive", .source = "10.0.0.1", .subject = ON_NAIVE, .essential = true},
	{.name = "naive_newcomer", .source = FORGED4, .subject = ON_NAIVE, .essential = true},

	{.name = "accept", .source = "10.0.1.1", .limit = {{AMPLE}}, IN_CREDIT, .target = 0.80},
	{.name = "accept6", .source = "2001:db8:f::1", .limit = {{AMPLE}}, IN_CREDIT},
	{.name = "accept_bits", .source = "10.0.2.1", .limit = {{AMPLE_BITS}}, IN_CREDIT},
	{.name = "accept_4_limits",
	 .source = "10.0.3.1",
	 .limit = {{AMPLE},
		   {.rate = "199mpps", .burst = "250ms"},
		   {.rate = "198mpps", .burst = "250ms"},
		   {AMPLE_BITS}},
	 IN_CREDIT,
	 .target = 0.95},
	{.name = "refuse", .source = "10.0.4.1", .limit = {{USUAL}}, REFUSED, .target = 0.80},
	{.name = "refuse6", .source = "2001:db8:e::1", .limit = {{USUAL}}, REFUSED},
	{.name = "refuse_slow",
	 .source = "10.0.5.1",
	 .limit = {{.rate = "1pps", .burst = "5"}},
	 REFUSED},
	{.name = "deny_hot", .source = "10.0.6.1", .deny = true, REFUSED, .target = 0.70},

	{.name = "window_accept",
	 .source = "10.0.7.1",
	 .limit = {{AMPLE_WINDOW}},
	 IN_CREDIT,
	 .target = 1.60},
	{.name = "window_refuse",
	 .source = "10.0.8.1",
	 .limit = {{.window = "10 per 1h"}},
	 REFUSED,
	 .target = 1.60},
	{.name = "shared_accept",
	 .source = "10.0.12.1",
	 .limit = {{AMPLE, .shared = true}},
	 IN_CREDIT,
	 .target = 1.10,
	 .against = "accept"},
	{.name = "shared_refuse",
	 .source = "10.0.13.1",
	 .limit = {{USUAL, .shared = true}},
	 REFUSED,
	 .target = 1.10,
	 .against = "refuse"},
	{.name = "exact", .source = "10.0.14.1", .limit = {{AMPLE_EXACT}}, IN_CREDIT},
	{.name = "floor_tc", .source = "10.0.0.1", .subject = ON_FLOOR_TC, .essential = true},
	{.name = "shape",
	 .source = "10.0.10.1",
	 .limit = {{AMPLE_SHAPE}},
	 SENT,
	 .target = 1.80,
	 .against = "floor_tc"},
	{.name = "three_kinds",
	 .source = "10.0.11.1",
	 .limit = {{AMPLE}, {AMPLE_WINDOW}, {AMPLE_SHAPE}},
	 SENT},

	{.name = "naive_64k", .source = LOOKED_UP_64K, .subject = ON_NAIVE_64K},
	{.name = "naive_1m", .source = LOOKED_UP_1M, .subject = ON_NAIVE_1M},
	{.name = "lru_percpu_64k",
	 .source = LOOKED_UP_64K,
	 .subject = ON_LRU_PERCPU_64K,
	 BESIDE_64K},
	{.name = "lru_64k", .source = LOOKED_UP_64K, .subject = ON_LRU_64K, BESIDE_64K},
	{.name = "hash_64k", .source = LOOKED_UP_64K, .subject = ON_HASH_64K, BESIDE_64K},
	{.name = "array_64k", .source = LOOKED_UP_64K, .subject = ON_ARRAY_64K, BESIDE_64K},
	{.name = "lru_percpu_1m", .source = LOOKED_UP_1M, .subject = ON_LRU_PERCPU_1M, BESIDE_1M},
	{.name = "lru_1m", .source = LOOKED_UP_1M, .subject = ON_LRU_1M, BESIDE_1M},
	{.name = "hash_1m", .source = LOOKED_UP_1M, .subject = ON_HASH_1M, BESIDE_1M},
	{.name = "array_1m", .source = LOOKED_UP_1M, .subject = ON_ARRAY_1M, BESIDE_1M},

	{.name = "deny_1m",
	 .source = "20.0.0.0/12",
	 .deny = true,
	 .subject = ON_DENIED,
	 .expect = EXPECT_DROP,
	 .target = 0.70,
	 BESIDE_1M},
	{.name = "deny6_1m",
	 .source = "2001:db8:200::/44 by /64",
	 .deny = true,
	 .subject = ON_DENIED6,
	 .expect = EXPECT_DROP,
	 .target = 0.70,
	 BESIDE_1M},
	{.name = "accept_64k",
	 .source = "22.0.0.0/16",
	 .limit = {{AMPLE}},
	 .subject = ON_64K,
	 .target = 1.40,
	 BESIDE_64K},
	{.name = "accept6_64k",
	 .source = "2001:db8:22::/48 by /64",
	 .limit = {{AMPLE}},
	 .subject = ON_64K,
	 .target = 1.40,
	 BESIDE_64K},
	{.name = "refuse_64k",
	 .source = "23.0.0.0/16",
	 .limit = {{SPENT}},
	 .subject = ON_64K_OVER,
	 .expect = EXPECT_DROP,
	 .target = 1.40,
	 BESIDE_64K},
	{.name = "refuse6_64k",
	 .source = "2001:db8:23::/48 by /64",
	 .limit = {{SPENT}},
	 .subject = ON_64K_OVER,
	 .expect = EXPECT_DROP,
	 .target = 1.40,
	 BESIDE_64K},
	{.name = "accept_1m",
	 .source = "21.0.0.0/12",
	 .limit = {{AMPLE}},
	 .subject = ON_1M,
	 .target = 1.00,
	 BESIDE_1M},
	{.name = "accept6_1m",
	 .source = "2001:db8:210::/44 by /64",
	 .limit = {{AMPLE}},
	 .subject = ON_1M,
	 .target = 1.00,
	 BESIDE_1M},

	{.name = "newcomer", .source = FORGED4, UNKNOWN, .target = 1.10},
	{.name = "newcomer6", .source = FORGED6, UNKNOWN, .target = 1.10},
	{.name = "newcomer6_48",
	 .source = "2001:db8:1::/48",
	 .subject = ON_CROWD,
	 .essential = true,
	 .expect = EXPECT_ANY,
	 .target = 1.30,
	 BESIDE_64K},
	{.name = "newcomer6_64", .source = "2001:db8:2:3::/64", UNKNOWN, .target = 1.10},

	{.name = "accept_2cpu", .source = "10.0.1.1", IN_CREDIT, AS_FAST_AS("accept")},
	{.name = "refuse_2cpu", .source = "10.0.4.1", REFUSED, AS_FAST_AS("refuse")},
	{.name = "newcomer_2cpu", .source = FORGED4, UNKNOWN, AS_FAST_AS("newcomer")},
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
