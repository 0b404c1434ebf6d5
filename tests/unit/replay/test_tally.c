// SPDX-License-Identifier: GPL-2.0
/* Tests user/replay/tally.h, which counts every source and every interval of time. */
#include "replay/tally.h"

#include <arpa/inet.h>
#include "test.h"
#include "prefix_of.h"
#include "rules/prefix.h"

static struct sl_prefix source_of(uint32_t number)
{
	struct sl_prefix prefix = {.bits = SL_FAMILY_BITS + 32, .family = htonl(SL_FAMILY_IPV4)};

	number = htonl(0x0a000000 + number);
	memcpy(prefix.addr, &number, sizeof(number));
	return prefix;
}

TEST(test_each_of_many_sources_is_counted)
{
	enum { SOURCES = 50000 };
	struct tally_sources sources = {0};

	for (uint32_t i = 0; i < 3 * SOURCES; i++) {
		struct sl_prefix prefix = source_of(i % SOURCES);

		fates_add(&tally_source(&sources, &prefix)->fates, FATE_PASSED, i % SOURCES);
	}
	assert_int_equal(sources.count, SOURCES);
	for (uint32_t i = 0; i < SOURCES; i++) {
		struct sl_prefix prefix = source_of(i);
		const struct tally_source *source = tally_source(&sources, &prefix);

		assert_int_equal(source->fates.of[FATE_PASSED].packets, 3);
		assert_int_equal(source->fates.of[FATE_PASSED].bytes, 3 * i);
	}
	free(sources.slot);
}

TEST(test_sources_are_sorted_by_dropped_then_would_drop_then_passed)
{
	/* packets of each source by enum fate, in the expected order of sources */
	static const unsigned int packets[][FATES] = {{0, 0, 2}, {9, 3, 1}, {5, 2, 1},
						      {8, 0, 0}, {8, 0, 0}, {7, 0, 0}};
	struct tally_sources sources = {0};
	const struct tally_source **top;
	unsigned int count;

	for (unsigned int i = ARRAY_SIZE(packets); i--;) {
		struct sl_prefix prefix = source_of(i);

		for (int fate = 0; fate < FATES; fate++)
			for (unsigned int n = packets[i][fate]; n; n--)
				fates_add(&tally_source(&sources, &prefix)->fates, fate, 60);
	}
	top = tally_top(&sources, 5, &count);
	assert_int_equal(count, 5);
	for (unsigned int i = 0; i < count; i++) {
		struct sl_prefix prefix = source_of(i);

		assert_true(prefix_equal(&top[i]->prefix, &prefix));
	}
	free(top);
	free(sources.slot);
}

TEST(test_lengths_of_intervals_are_multiples)
{
	for (unsigned int scale = 0; scale < 30; scale++) {
		unsigned int merged, next;
		uint64_t length = tally_length(scale, &merged);

		assert_true(merged > 1);
		assert_int_equal(tally_length(scale + 1, &next), length * merged);
	}
}

TEST(test_merged_intervals_keep_all_packets)
{
	static struct tally_times times;

	/* the next packet arrives a century later */
	for (unsigned int i = 0; i < 5000; i++)
		times_add(&times, SEC_NS + i * 3000000ULL, i % FATES, 1);
	times_add(&times, SEC_NS + 3155760000ULL * SEC_NS, FATE_DROPPED, 1);
	tally_shorten(&times, 20);
	assert_in_range(times.count, 2, 20);
	assert_int_equal(fates_sum(&times.interval[0]).packets, 5000);
	assert_int_equal(times.interval[0].of[FATE_DROPPED].packets, 1666);
	assert_int_equal(fates_sum(&times.interval[times.count - 1]).packets, 1);
}

TESTS(NULL, NULL)
