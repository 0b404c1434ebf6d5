// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/live/sources.h, which computes the rates of sources between two visits, and removes
 * idle sources.
 */
#include "live/sources.h"
#include "test.h"

#define SECOND 1000000000ULL

static struct live_sources sources;

static int begin(void **state)
{
	(void)state;
	return live_sources_begin(&sources, LIVE_SOURCES_MAX);
}

static int end(void **state)
{
	(void)state;
	live_sources_free(&sources);
	return 0;
}

/* Makes an empty set with room for `most` sources. */
static void begin_with(uint32_t most)
{
	live_sources_free(&sources);
	assert_int_equal(live_sources_begin(&sources, most), 0);
}

static struct sl_prefix host(unsigned int number)
{
	char text[PREFIX_TEXT];
	struct sl_prefix prefix;

	snprintf(text, sizeof(text), "10.%u.%u.%u", number >> 16, number >> 8 & 255, number & 255);
	assert_int_equal(prefix_parse(text, &prefix), 0);
	return prefix;
}

/* Visits a host with these values of its counters, for packets of 100 bytes. Returns the source. */
static const struct live_source *visit(unsigned int number, uint64_t passed, uint64_t dropped,
				       uint64_t now)
{
	const struct sl_cell count[LIVE_COUNTERS] = {
		[LIVE_PASSED] = {passed, 100 * passed},
		[LIVE_DROPPED] = {dropped, 100 * dropped},
	};
	struct sl_prefix prefix = host(number);

	assert_int_equal(live_visit(&sources, &prefix, count, 7, now), 0);
	return live_source_find(&sources, &prefix);
}

static bool is_known(unsigned int number)
{
	struct sl_prefix prefix = host(number);

	return live_source_find(&sources, &prefix);
}

static const struct {
	const char *what;
	struct sl_cell before, now;
	uint64_t ns;
	float packets, bits;
} rates[] = {
	{"a second", {100, 1000}, {150, 2000}, SECOND, 50, 8000},
	{"half a second", {0, 0}, {10, 100}, SECOND / 2, 20, 1600},
	{"four seconds", {8, 0}, {16, 0}, 4 * SECOND, 2, 0},
	{"nothing was counted", {9, 90}, {9, 90}, SECOND, 0, 0},
	{"no time has passed", {0, 0}, {10, 100}, 0, 0, 0},
	{"the counter began again", {100, 1000}, {99, 2000}, SECOND, 0, 0},
	{"its bytes began again", {100, 1000}, {101, 999}, SECOND, 0, 0},
	{"near the end of 64 bits", {~0ULL - 5, ~0ULL - 50}, {~0ULL, ~0ULL}, SECOND, 5, 400},
	{"it passed the end of 64 bits", {~0ULL, 0}, {3, 0}, SECOND, 0, 0},
};

TEST(test_rates_of_two_readings)
{
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct live_rate rate = live_rate_of(&rates[i].before, &rates[i].now, rates[i].ns);

		if (rate.packets != rates[i].packets || rate.bits != rates[i].bits)
			fail_msg("%s: %f %f", rates[i].what, (double)rate.packets,
				 (double)rate.bits);
	}
}

TEST(test_the_dropped_packets_of_the_previous_visit_are_kept)
{
	assert_int_equal(visit(90, 0, 10, SECOND)->dropped_before, 0);
	assert_int_equal(visit(90, 0, 30, 2 * SECOND)->dropped_before, 10);
	assert_int_equal(visit(90, 0, 30, 3 * SECOND)->dropped_before, 30);
	assert_int_equal(visit(90, 0, 4, 4 * SECOND)->dropped_before, 0); /* a new bucket */
}

TEST(test_a_source_has_a_rate_from_its_second_visit_on)
{
	const struct live_source *source = visit(1, 1000, 10, SECOND);

	assert_true(source->is_new && !source->rate[LIVE_PASSED].packets);
	source = visit(1, 1500, 20, 3 * SECOND);
	assert_false(source->is_new);
	assert_true(source->rate[LIVE_PASSED].packets == 250);
	assert_true(source->rate[LIVE_DROPPED].packets == 5);
	assert_true(source->rate[LIVE_DROPPED].bits == 4000);
	assert_int_equal(source->version, 7);
}

TEST(test_a_source_whose_counters_began_again_is_new)
{
	const struct live_source *source;

	visit(2, 1000, 10, SECOND);
	visit(2, 2000, 10, 2 * SECOND);
	source = visit(2, 5, 0, 3 * SECOND);
	assert_true(source->is_new && !source->rate[LIVE_PASSED].packets);
	source = visit(2, 25, 0, 5 * SECOND);
	assert_true(!source->is_new && source->rate[LIVE_PASSED].packets == 10);
}

/* If two visits are at almost the same time, the source's rate does not change. */
TEST(test_a_visit_too_early_keeps_the_rate_and_the_counts_before)
{
	const struct live_source *source;

	visit(3, 0, 0, SECOND);
	visit(3, 100, 0, 2 * SECOND);
	source = visit(3, 101, 0, 2 * SECOND);
	assert_true(source->rate[LIVE_PASSED].packets == 100);
	source = visit(3, 150, 0, 2 * SECOND + LIVE_SPAN_LEAST_NS - 1);
	assert_true(source->rate[LIVE_PASSED].packets == 100);
	source = visit(3, 300, 0, 3 * SECOND);
	assert_true(source->rate[LIVE_PASSED].packets == 200);
}

TEST(test_a_source_that_a_pass_did_not_see_is_removed)
{
	begin_with(LIVE_SOURCES_MAX);
	for (unsigned int i = 0; i < 10000; i++)
		visit(i, i, 0, SECOND);
	live_pass_end(&sources);
	for (unsigned int i = 0; i < 10000; i += 2)
		visit(i, i, 0, 2 * SECOND);
	live_pass_end(&sources);
	assert_int_equal(sources.count, 5000);
	for (unsigned int i = 0; i < 10000; i++)
		assert_int_equal(is_known(i), i % 2 == 0);
}

/* A source that loses its bucket and gets a new bucket within one pass counts as new. */
TEST(test_a_source_that_was_gone_and_is_back_is_new)
{
	struct sl_prefix prefix = host(5);

	visit(5, 10, 0, SECOND);
	visit(5, 20, 0, 2 * SECOND);
	live_source_find(&sources, &prefix)->is_gone = true;
	assert_true(visit(5, 900, 0, 3 * SECOND)->is_new);
	live_pass_end(&sources);
	assert_true(is_known(5));
	live_source_find(&sources, &prefix)->is_gone = true;
	live_pass_end(&sources);
	assert_false(is_known(5));
}

TEST(test_memory_is_bounded_and_busy_sources_are_kept)
{
	begin_with(2000);
	for (unsigned int second = 1; second <= 2; second++) {
		for (unsigned int i = 0; i < 3000; i++)
			visit(i, i < 10 ? 500 * second : 500, 0, second * SECOND);
		assert_int_equal(sources.count, 2000);
		assert_int_equal(sources.left_out, 1000);
		live_pass_end(&sources);
	}
	/* live_pass_end() removes sources without packets since the last pass */
	assert_int_equal(sources.count, 10);
	visit(2999, 1, 0, 3 * SECOND);
	assert_true(is_known(2999) && is_known(9) && !is_known(10));
}

/*
 * Returns the numbers of the hosts in the order of `sorting`, such as "3 1 2 ". Returns at most
 * `most` numbers.
 */
static const char *chosen(struct live_sorting sorting, unsigned int most)
{
	static char text[256];
	const struct live_source *list[8];
	struct live_choice choice = {.list = list, .most = most, .sorting = sorting};
	size_t length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < sources.count; i++)
		live_choice_add(&choice, &sources.items[i]);
	live_choice_sort(&choice);
	for (unsigned int i = 0; i < choice.count; i++)
		length += snprintf(text + length, sizeof(text) - length, "%u ",
				   list[i]->prefix.addr[3]);
	return text;
}

TEST(test_the_first_sources_in_an_order)
{
	static const struct {
		struct live_sorting sorting;
		unsigned int most;
		const char *hosts;
	} orders[] = {
		{{LIVE_BY_SOURCE, false, false}, 8, "1 2 3 4 5 "},
		{{LIVE_BY_SOURCE, false, true}, 8, "5 4 3 2 1 "},
		{{LIVE_BY_SOURCE, false, true}, 2, "5 4 "},
		{{LIVE_BY_PASSED, false, false}, 8, "4 5 2 1 3 "},
		{{LIVE_BY_DROPPED, false, false}, 3, "3 2 4 "},
		{{LIVE_BY_DROPPED, false, true}, 2, "1 5 "},
		{{LIVE_BY_ALL, true, false}, 8, "3 4 2 5 1 "},
		{{LIVE_BY_ALL, false, false}, 1, "3 "},
		{{LIVE_BY_ALL, false, false}, 0, ""},
	};
	static const unsigned int passed[] = {0, 1, 20, 0, 300, 25};
	static const unsigned int dropped[] = {0, 0, 30, 400, 0, 0};

	begin_with(LIVE_SOURCES_MAX);
	for (unsigned int i = 1; i <= 5; i++) {
		visit(i, 0, 0, SECOND);
		visit(i, passed[i], dropped[i], 2 * SECOND);
	}
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (strcmp(chosen(orders[i].sorting, orders[i].most), orders[i].hosts))
			fail_msg("order %d, %u: %s", orders[i].sorting.order, orders[i].most,
				 chosen(orders[i].sorting, orders[i].most));
}

TESTS(begin, end)
