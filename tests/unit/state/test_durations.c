// SPDX-License-Identifier: GPL-2.0
/* Tests user/state/durations.h: the percentiles of a histogram of durations. */
#include "test.h"
#include "state/durations.h"

static const struct {
	const char *what;
	struct {
		unsigned int bucket;
		uint64_t count;
	} filled[3];
	uint64_t median, p99, longest;
} cases[] = {
	{"no packet was timed", {}, 0, 0, 0},
	{"one packet is every percentile", {{2, 1}}, 128, 128, 128},
	{"half of the packets are in the first bucket", {{0, 50}, {3, 50}}, 32, 256, 256},
	{"the median is the packet after the first half", {{0, 50}, {3, 51}}, 256, 256, 256},
	{"one packet in 100 is beyond the 99th percentile", {{1, 99}, {9, 1}}, 64, 64, 16384},
	{"two packets in 101 are not", {{1, 99}, {9, 2}}, 64, 16384, 16384},
	{"the last bucket has no bound",
	 {{4, 1}, {15, 3}},
	 DURATION_UNBOUNDED,
	 DURATION_UNBOUNDED,
	 DURATION_UNBOUNDED},
	{"counts near 2^64",
	 {{1, UINT64_MAX / 100 * 60}, {5, UINT64_MAX / 100 * 40}},
	 64,
	 1024,
	 1024},
};

TEST(test_percentiles_are_the_bounds_of_their_buckets)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct durations durations = {0};

		for (size_t j = 0; j < ARRAY_SIZE(cases[i].filled); j++) {
			unsigned int bucket = cases[i].filled[j].bucket;

			durations.histogram.bucket[bucket] += cases[i].filled[j].count;
			durations.timed += cases[i].filled[j].count;
		}
		if (durations_percentile(&durations, 50) != cases[i].median ||
		    durations_percentile(&durations, 99) != cases[i].p99 ||
		    durations_percentile(&durations, 100) != cases[i].longest)
			fail_msg("%s", cases[i].what);
	}
}

TEST(test_bounds_double)
{
	assert_int_equal(duration_bound(0), 32);
	assert_int_equal(duration_bound(SL_DURATION_BUCKETS - 2), 524288);
	assert_int_equal(duration_bound(SL_DURATION_BUCKETS - 1), DURATION_UNBOUNDED);
}

TESTS(NULL, NULL)
