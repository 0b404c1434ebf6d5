// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/suggest/ladder.h, which finds the smallest burst with which credit.h passes all
 * packets of a stream.
 */
#include "suggest/ladder.h"

#include "credit.h"
#include "random.h"
#include "rules/limit_words.h"
#include "test.h"

#define TIMES_MAX 3000

/* The packets of a source, at times in ticks. */
struct stream {
	uint64_t time[TIMES_MAX];
	unsigned int count;
};

/* Makes a stream that has a burst of `size` packets every `gap` ticks. */
static struct stream bursts_make(unsigned int bursts, unsigned int size, uint64_t gap)
{
	struct stream stream = {0};

	for (unsigned int i = 0; i < bursts * size; i++)
		stream.time[stream.count++] = i / size * gap;
	return stream;
}

static struct track track_of(const struct stream *stream)
{
	struct track track = {0};

	for (unsigned int i = 0; i < stream->count; i++)
		track_add(&track, stream->time[i], 1);
	return track;
}

/* Returns the number of packets that a token bucket without slices refuses. */
static unsigned int refused(const struct stream *stream, uint64_t cost, uint64_t burst)
{
	struct sl_limit limit = {.cost = cost, .burst = burst, .refill = burst};
	struct sl_state state = credit_full(&limit, stream->time[0]);
	unsigned int count = 0;

	for (unsigned int i = 0; i < stream->count; i++) {
		struct sl_slice slice = {0};

		count += !credit_charge(&limit, &state, &slice, 0, cost, stream->time[i], 0);
	}
	return count;
}

TEST(test_costs_are_those_of_limits)
{
	static const struct machine any = {.jiffy_ns = JIFFY_NS, .cpus = 1};
	struct limit limit = limit_defaults;

	for (unsigned int i = 0; i < LADDER_RATES; i++) {
		limit.spec.rate = ladder_rate[i];
		limit.spec.rate_unit = SL_RATE_PPS;
		assert_int_equal(ladder_cost[i], limit_compile(&limit, SL_IPV4, &any).cost);
	}
}

static unsigned int step_of(uint32_t rate)
{
	unsigned int i = 0;

	while (ladder_rate[i] != rate)
		i++;
	return i;
}

static const struct {
	const char *what;
	unsigned int bursts, size;
	uint64_t gap;
	uint32_t rate;
	uint64_t burst;
} bursts[] = {
	{"100 pps in bursts of 20, at its rate", 100, 20, SEC / 5, 100, 20},
	{"100 pps in bursts of 20, at a higher rate", 100, 20, SEC / 5, 1000000, 20},
	{"at half its rate, half of all but the last burst is in excess", 100, 20, SEC / 5, 50,
	 99 * 10 + 20},
	{"100 pps evenly", 1000, 1, SEC / 100, 100, 1},
	{"one packet", 1, 1, SEC, 1, 1},
	{"one burst", 1, 300, SEC, 1, 300},
};

TEST(test_burst_of_regular_streams)
{
	for (size_t i = 0; i < ARRAY_SIZE(bursts); i++) {
		struct stream stream = bursts_make(bursts[i].bursts, bursts[i].size, bursts[i].gap);
		struct track track = track_of(&stream);

		print_message("%s\n", bursts[i].what);
		assert_int_equal(track_burst(&track, step_of(bursts[i].rate)), bursts[i].burst);
	}
}

/* Makes bursts of random sizes after random gaps. */
static struct stream stream_random(uint64_t seed)
{
	struct stream stream = {0};
	uint64_t now = 0;

	while (stream.count < TIMES_MAX) {
		unsigned int size = 1 + random_next(&seed) % 30;
		uint64_t scale = SEC >> random_next(&seed) % 20;

		for (unsigned int i = 0; i < size && stream.count < TIMES_MAX; i++) {
			now += random_next(&seed) % (scale / size + 1);
			stream.time[stream.count++] = now;
		}
	}
	return stream;
}

TEST(test_burst_refuses_nothing_and_one_less_refuses)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct stream stream = stream_random(seed);
		struct track track = track_of(&stream);

		for (unsigned int step = 0; step < LADDER_RATES; step++) {
			uint64_t cost = ladder_cost[step], burst = track_burst(&track, step);

			assert_int_equal(refused(&stream, cost, burst * cost), 0);
			assert_int_equal(refused(&stream, cost, track.most[step]), 0);
			if (burst > 1)
				assert_true(refused(&stream, cost, (burst - 1) * cost) >= 1);
			if (track.most[step] > cost)
				assert_true(refused(&stream, cost, track.most[step] - 1) >= 1);
		}
	}
}

TEST(test_burst_falls_with_the_rate)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct stream stream = stream_random(seed);
		struct track track = track_of(&stream);

		for (unsigned int step = 1; step < LADDER_RATES; step++)
			assert_true(track_burst(&track, step) <= track_burst(&track, step - 1));
	}
}

TEST(test_demand_is_a_rate_whose_burst_lasts_a_second)
{
	struct stream even = bursts_make(1000, 1, SEC / 100);
	struct stream at_once = bursts_make(1, 300, SEC);
	struct track of_even = track_of(&even), of_burst = track_of(&at_once);

	assert_int_equal(track_demand(&of_even), 100);
	assert_int_equal(track_demand(&of_burst), 300);
}

TEST(test_merged_packets_count_as_several)
{
	struct track track = {0};

	track_add(&track, 0, 45);
	assert_int_equal(track_burst(&track, step_of(1000)), 45);
}

TEST(test_millions_of_packets_do_not_overflow)
{
	struct track track = {0};

	for (unsigned int i = 0; i < 100; i++)
		track_add(&track, 0, 1U << 30);
	for (unsigned int step = 0; step < LADDER_RATES; step++)
		assert_true(track.most[step] <= SL_BURST_TICKS_MAX);
}

TESTS(NULL, NULL)
