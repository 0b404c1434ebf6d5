// SPDX-License-Identifier: GPL-2.0
/* Tests include/histogram.h: histograms whose bucket bounds double. */
#include "test.h"
#include "histogram.h"

#define SHIFT	5
#define BUCKETS 16

/* The numbers of values in up to three buckets, and the quantiles of that histogram. */
static const struct {
	const char *what;
	struct {
		unsigned int bucket;
		uint64_t count;
	} filled[3];
	uint64_t median, p99, p999, largest;
} cases[] = {
	{"no value", {}, 0, 0, 0, 0},
	{"one value is every quantile", {{2, 1}}, 128, 128, 128, 128},
	{"half of the values are in the first bucket", {{0, 50}, {3, 50}}, 32, 256, 256, 256},
	{"the median is the value after the first half", {{0, 50}, {3, 51}}, 256, 256, 256, 256},
	{"one value in 100 is beyond p99", {{1, 99}, {9, 1}}, 64, 64, 16384, 16384},
	{"two values in 101 are not", {{1, 99}, {9, 2}}, 64, 16384, 16384, 16384},
	{"one value in 1000 is beyond p99.9", {{1, 999}, {9, 1}}, 64, 64, 64, 16384},
	{"the last bucket has no bound",
	 {{4, 1}, {15, 3}},
	 HISTOGRAM_UNBOUNDED,
	 HISTOGRAM_UNBOUNDED,
	 HISTOGRAM_UNBOUNDED,
	 HISTOGRAM_UNBOUNDED},
	{"counts near 2^64",
	 {{1, UINT64_MAX / 100 * 60}, {5, UINT64_MAX / 100 * 40}},
	 64,
	 1024,
	 1024,
	 1024},
};

TEST(test_quantiles_are_the_bounds_of_their_buckets)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		__u64 counts[BUCKETS] = {0};
		const struct histogram histogram = {counts, SHIFT, BUCKETS};

		for (size_t j = 0; j < ARRAY_SIZE(cases[i].filled); j++)
			counts[cases[i].filled[j].bucket] += cases[i].filled[j].count;
		if (histogram_quantile(&histogram, 500) != cases[i].median ||
		    histogram_quantile(&histogram, 990) != cases[i].p99 ||
		    histogram_quantile(&histogram, 999) != cases[i].p999 ||
		    histogram_quantile(&histogram, 1000) != cases[i].largest)
			fail_msg("%s", cases[i].what);
	}
}

/* A bound is in its bucket, and the next value in the next bucket. */
TEST(test_a_value_is_in_the_bucket_of_its_bound)
{
	for (unsigned int shift = 0; shift <= SHIFT; shift += SHIFT) {
		const struct histogram histogram = {NULL, shift, BUCKETS};

		assert_int_equal(histogram_bucket(0, shift, BUCKETS), 0);
		for (unsigned int i = 0; i < BUCKETS - 1; i++) {
			uint64_t bound = histogram_bound(&histogram, i);

			assert_int_equal(bound, 1ULL << (shift + i));
			assert_int_equal(histogram_bucket(bound, shift, BUCKETS), i);
			assert_int_equal(histogram_bucket(bound + 1, shift, BUCKETS), i + 1);
		}
		assert_int_equal(histogram_bound(&histogram, BUCKETS - 1), HISTOGRAM_UNBOUNDED);
		assert_int_equal(histogram_bucket(UINT64_MAX, shift, BUCKETS), BUCKETS - 1);
	}
}

TESTS(NULL, NULL)
