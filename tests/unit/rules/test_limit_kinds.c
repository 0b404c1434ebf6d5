// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/rules/limit.h, which compiles windows, shapers, escalating blocks, and limits with two
 * rates.
 */
#include "test.h"
#include "kinds.h"
#include "prefix_of.h"
#include "rules/limit_words.h"
#include "rules/matches.h"
#include "spec_words.h"

static const struct machine machine = {.cpus = 2, .jiffy_ns = JIFFY_NS};

static struct sl_limit compiled(const char *words, enum sl_family family)
{
	struct limit limit = limit_of_words("default", words);

	return limit_compile(&limit, family, &machine);
}

TEST(test_windows_compile_to_these_numbers)
{
	static const struct {
		const char *words;
		uint64_t most, span;
		uint8_t parts, bits, shift;
		bool by_bytes, by_jiffy;
	} cases[] = {
		{"window 1000 per 1min", 1000, 60 * SEC, 5, 12, 0, false, true},
		{"window 4095 per 1s", 4095, SEC, 5, 12, 0, false, true},
		{"window 4096 per 1s", 4096, SEC, 5, 12, 1, false, true},
		{"window 10MB per 1h", 10000000, 3600 * SEC, 5, 12, 12, true, true},
		{"window 64 per 1s groups 10", 64, SEC, 10, 6, 1, false, true},
		{"window 1B per 1ms groups 1", 1, MS, 1, 48, 0, true, false},
		{"window 140737488355328 per 730d groups 1", 1ULL << 47, 63072000 * SEC, 1, 48, 0,
		 false, true},
		{"window 140737488355328 per 730d groups 2", 1ULL << 47, 63072000 * SEC, 2, 30, 18,
		 false, true},
		/* `by_jiffy` requires sub-windows of at least two jiffies, here 8 ms */
		{"window 9 per 8ms groups 1", 9, 8 * MS, 1, 48, 0, false, true},
		{"window 9 per 7ms groups 1", 9, 7 * MS, 1, 48, 0, false, false},
		{"window 9 per 39ms groups 5", 9, 39 * MS, 5, 12, 0, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit = compiled(cases[i].words, i % SL_FAMILIES);
		uint64_t least = (cases[i].span + WINDOW_CLOCKS) / cases[i].parts;

		assert_int_equal(limit.kind, SL_WINDOW);
		assert_int_equal(limit.most, cases[i].most);
		assert_int_equal(limit.groups, cases[i].parts);
		assert_int_equal(limit.bits, cases[i].bits);
		assert_int_equal(limit.shift, cases[i].shift);
		assert_int_equal(limit.by_bytes, cases[i].by_bytes);
		assert_int_equal(limit.refuse_by_jiffy, cases[i].by_jiffy);
		/* a window in packets counts 3 packets; a window in bytes counts 777 bytes */
		assert_int_equal(credit_cost(&limit, 3, 777), cases[i].by_bytes ? 777 : 3);
		/* a sub-window's length, which is rounded up by less than 1/100000 + 16 ticks */
		assert_in_range(limit.period, least, least + least / 100000 + 16);
	}
}

TEST(test_shapers_compile_to_these_numbers)
{
	static const struct {
		const char *words;
		uint64_t cost, ticks;
		bool by_bytes, by_jiffy;
	} cases[] = {
		{"shape 1kpps", MS, 200 * MS, false, true},
		{"shape 10mbit", 12800ULL << 16, 200 * MS, true, true},
		{"shape 3pps horizon 1s", 5333333334, SEC, false, true},
		{"shape 1mpps horizon 7ms", MS / 1000, 7 * MS, false, false},
		{"shape 1gbit horizon 10s", 128ULL << 16, 10 * SEC, true, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit = compiled(cases[i].words, i % SL_FAMILIES);

		assert_int_equal(limit.kind, SL_SHAPE);
		assert_int_equal(limit.cost, cases[i].cost);
		assert_int_equal(limit.horizon, cases[i].ticks);
		assert_int_equal(limit.by_bytes, cases[i].by_bytes);
		assert_int_equal(limit.refuse_by_jiffy, cases[i].by_jiffy);
		assert_int_equal(limit.slice, 0);
	}
}

/* Windows and token buckets have the same escalating blocks. Shapers have no blocks. */
TEST(test_escalating_blocks_compile_to_these_numbers)
{
	static const struct {
		const char *words;
		uint64_t block, most;
		uint8_t escalate, steps;
	} cases[] = {
		{"rate 1kpps action block 10s", 10 * SEC, 0, 0, 0},
		{"rate 1kpps action block 10s escalate 2", 10 * SEC, 600 * SEC, 2, 6},
		{"window 9 per 1s action block 1ms escalate 16 max 1h", MS, 3600 * SEC, 16, 6},
		{"rate 1kpps action block 1s escalate 2 max 32768s", SEC, 32768 * SEC, 2, 15},
		{"rate 1kpps action drop", 0, 0, 0, 0},
		{"shape 1kpps", 0, 0, 0, 0},
	};
	struct limit stale =
		limit_of_words("default", "rate 1kpps action block 10s escalate 2 max 1h");
	struct sl_limit limit;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		limit = compiled(cases[i].words, i % SL_FAMILIES);
		assert_int_equal(limit.block, cases[i].block);
		assert_int_equal(limit.block_max, cases[i].most);
		assert_int_equal(limit.escalate, cases[i].escalate);
		assert_int_equal(limit.steps_max, cases[i].steps);
	}
	stale.spec.action = SL_ACTION_DROP;
	limit = limit_compile(&stale, SL_IPV4, &machine);
	assert_true(!limit.block && !limit.block_max && !limit.escalate);
}

static const struct sl_limit_spec bucket = {.rate = 1000, .burst = 250, .per = {32, 64}};
static const struct sl_limit_spec window = {
	.kind = SL_WINDOW, .rate = 9, .span_ns = 60 * SEC, .groups = 5, .per = {32, 64}};
static const struct sl_limit_spec shape = {
	.kind = SL_SHAPE, .rate = 1000, .span_ns = 1000000, .per = {32, 64}};
static const struct sl_limit_spec block = {.rate = 1000,
					   .burst = 250,
					   .action = SL_ACTION_BLOCK,
					   .block_ns = 1000000,
					   .block_max_ns = 32000000,
					   .escalate = 2};

/*
 * A limit with a number out of range is refused, because the owner of a gate can write any number
 * to its maps.
 */
TEST(test_what_no_words_make_is_not_sound)
{
#define WRONG(base, field, number)                                                                 \
	do {                                                                                       \
		struct sl_limit_spec wrong = base;                                                 \
		assert_true(limit_is_sound(&wrong));                                               \
		wrong.field = number;                                                              \
		assert_false(limit_is_sound(&wrong));                                              \
	} while (0)
	WRONG(bucket, rate, 0);
	WRONG(bucket, rate, ~0ULL);
	WRONG(bucket, burst, 0);
	WRONG(bucket, burst, ~0ULL);
	WRONG(bucket, kind, SL_KINDS);
	WRONG(bucket, rate_unit, SL_RATE_BITS + 1);
	WRONG(bucket, burst_unit, SL_BURST_NS + 1);
	WRONG(bucket, action, SL_ACTION_BLOCK + 1);
	WRONG(bucket, per[SL_IPV4], 33);
	WRONG(bucket, per[SL_IPV6], 129);
	WRONG(bucket, key_dst, 2);
	WRONG(bucket, start, SL_START_SHARE + 1);
	WRONG(bucket, start, SL_START_SHARE);
	WRONG(bucket, second, 2);
	WRONG(bucket, shared, SL_SHARED_BLOCK + 1);
	WRONG(bucket, shared, SL_SHARED_BLOCK);
	WRONG(window, shared, 1);
	WRONG(shape, shared, 1);
	WRONG(window, rate, 0);
	WRONG(window, rate, WINDOW_MOST_MAX + 1);
	WRONG(window, span_ns, 0);
	WRONG(window, span_ns, ~0ULL);
	WRONG(window, groups, 0);
	WRONG(window, groups, WINDOW_GROUPS_MAX + 1);
	WRONG(shape, rate, 0);
	WRONG(shape, span_ns, 0);
	WRONG(shape, span_ns, HORIZON_MAX_NS + 1);
	WRONG(shape, action, SL_ACTION_BLOCK);
	WRONG(block, block_ns, 0);
	WRONG(block, block_ns, ~0ULL);
	WRONG(block, block_max_ns, 0);
	WRONG(block, block_max_ns, ~0ULL);
	WRONG(block, escalate, 1);
	WRONG(block, block_max_ns, 1ULL << 40); /* more escalations than are allowed */
}

TEST(test_a_name_that_does_not_end_is_none)
{
	static const char names[][SL_NAME] = {"", "-a", "a b", "a\n", "a;b", "\x1b[2J", "\xc3\xa4"};
	char full[SL_NAME];

	memset(full, 'a', sizeof(full));
	assert_false(limit_name_is_valid(full));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_false(limit_name_is_valid(names[i]));
}

TEST(test_matches_that_no_words_make_are_not_sound)
{
	static const struct sl_match cases[] = {
		{.fact = 0},
		{.fact = SL_FACT_PORT},
		{.fact = SL_FACT_TCP | SL_FACT_UDP},
		{.fact = SL_FACT_ANY, .vlan = 4095},
		{.fact = SL_FACT_ICMP, .ports = 1},
		{.fact = SL_FACT_UDP, .fields = SL_FIELD_SPORT},
		{.fact = SL_FACT_UDP, .sports = 1},
		{.fact = SL_FACT_UDP, .fields = SL_FIELD_SPORT, .sports = SL_PORTS_MAX + 1},
		{.fact = SL_FACT_UDP, .fields = SL_FIELD_FLAGS, .tcp_mask = 2},
		{.fact = SL_FACT_TCP, .fields = SL_FIELD_FLAGS},
		{.fact = SL_FACT_TCP, .fields = SL_FIELD_FLAGS, .tcp_mask = 2, .tcp_flags = 1},
		{.fact = SL_FACT_ICMP, .fields = SL_FIELD_ICMP, .icmp_type = {8, 9}},
		{.fact = SL_FACT_ICMP, .fields = SL_FIELD_ICMP, .icmp_type = {256, 256}},
		{.fact = SL_FACT_ANY, .fields = SL_FIELD_DSCP, .dscp = 64},
		{.fact = SL_FACT_ANY, .fields = SL_FIELD_LENGTH, .length = {2, 1}},
		{.fact = SL_FACT_ANY, .fields = SL_FIELD_TO},
		{.fact = SL_FACT_ANY, .fields = SL_FIELD_TO, .to_family = 4, .to_bits = 1},
		{.fact = SL_FACT_ANY, .fields = SL_FIELDS + 1},
		{.fact = SL_FACT_TCP, .ports = SL_PORTS_MAX + 1},
		{.fact = SL_FACT_TCP, .ports = 255},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_false(match_is_sound(&cases[i]));
}

/*
 * If the kind or the key of a limit changes, its states are dropped. The states of a window are
 * also dropped if its number of sub-windows or the unit of its counts changes.
 */
TEST(test_a_changed_limit_keeps_its_states_where_it_can_read_them)
{
	static const struct {
		const char *from, *to;
		bool keeps;
	} cases[] = {
		{"rate 1kpps", "rate 5/h burst 9", true},
		{"rate 1kpps", "rate 1mbit", true},
		{"rate 1kpps", "rate 1kpps 1mbit", true},
		{"rate 1kpps", "rate 1kpps shared yes", true},
		{"rate 1kpps", "rate 1kpps per 24", false},
		{"rate 1kpps", "rate 1kpps key dst", false},
		{"rate 1kpps", "window 1000 per 1min", false},
		{"shape 1kpps", "rate 1kpps", false},
		{"shape 1kpps", "shape 5mbit horizon 1s", true},
		{"window 1000 per 1min", "shape 1kpps", false},
		{"window 1000 per 1min", "window 1000 per 1min action observe", true},
		{"window 1000 per 1min", "window 2000 per 1min", true},
		{"window 1000 per 1min", "window 4096 per 1min",
		 false}, /* counts above 4095 packets are stored in units of two packets */
		{"window 1000 per 1min", "window 1000 per 2min", false},
		{"window 1000 per 1min", "window 1kB per 1min", false},
		{"window 1000 per 1min", "window 1000 per 1min groups 6", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct limit from = limit_of_words("default", cases[i].from),
			     to = limit_of_words("default", cases[i].to);

		if (limit_keeps_states(&from.spec, &to.spec) != cases[i].keeps)
			fail_msg("case %zu: states are %s", i, cases[i].keeps ? "lost" : "kept");
	}
}

TESTS(NULL, NULL)
