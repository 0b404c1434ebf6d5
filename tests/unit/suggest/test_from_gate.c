// SPDX-License-Identifier: GPL-2.0
/* Tests user/suggest/from_gate.h, which proposes a limit from the rates that a policy counted. */
#include "suggest/from_gate.h"

#include "random.h"
#include "rules/value.h"
#include "test.h"

#define LONG_NS (100 * SEC_NS)

static struct gate_proposal proposal;

static void propose(const struct sl_counters *counters, uint64_t span_ns, unsigned int quantile,
		    unsigned int headroom)
{
	const struct suggest_settings settings = {.quantile = quantile, .headroom = headroom};

	rates_propose(counters, span_ns, &settings, &proposal);
}

/* 1,000 source-seconds: 500 with up to 2 packets, 480 with up to 8, and so on. */
static const struct sl_counters mixed = {
	.reason = {[SL_PASS_WITHIN] = {.packets = 9000}, [SL_DROP_OVER_LIMIT] = {.packets = 3000}},
	.rates = {.seconds = {[1] = 500, [3] = 480, [5] = 10, [7] = 9, [10] = 1}, .packets = 9000},
};

static const struct {
	unsigned int quantile, headroom;
	uint64_t rate, burst, exceeded;
} settings_cases[] = {
	{99900, 0, 128, 256, 1},   {99900, 50, 200, 400, 1},	      {98000, 0, 8, 16, 20},
	{98001, 0, 32, 64, 10},	   {98000, 300, 32, 64, 10},	      {98000, 200, 24, 48, 20},
	{99901, 0, 1024, 2048, 0}, {SUGGEST_WHOLE, 0, 1024, 2048, 0},
};

TEST(test_rate_of_a_quantile_and_headroom)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings_cases); i++) {
		print_message("%u + %u %%\n", settings_cases[i].quantile,
			      settings_cases[i].headroom);
		propose(&mixed, LONG_NS, settings_cases[i].quantile, settings_cases[i].headroom);
		assert_int_equal(proposal.refusal, SUGGEST_PROPOSED);
		assert_int_equal(proposal.limit.spec.rate, settings_cases[i].rate);
		assert_int_equal(proposal.limit.spec.burst, settings_cases[i].burst);
		assert_int_equal(proposal.exceeded, settings_cases[i].exceeded);
		assert_int_equal(proposal.limit.spec.action, SL_ACTION_OBSERVE);
	}
}

TEST(test_numbers_of_the_histogram)
{
	propose(&mixed, LONG_NS, SUGGEST_QUANTILE, 0);
	assert_int_equal(proposal.span_ns, LONG_NS);
	assert_int_equal(proposal.seconds, 1000);
	assert_int_equal(proposal.packets, 9000);
	assert_int_equal(proposal.judged, 12000);
	assert_int_equal(proposal.p50, 2);
	assert_int_equal(proposal.p99, 32);
	assert_int_equal(proposal.p999, 128);
	assert_int_equal(proposal.max, 1024);
}

TEST(test_the_last_bucket_has_no_upper_bound)
{
	const struct sl_counters counters = {
		.rates = {.seconds = {[SL_RATE_BUCKETS - 1] = 10}, .packets = 1 << 27},
	};

	propose(&counters, LONG_NS, SUGGEST_QUANTILE, 0);
	assert_int_equal(proposal.max, 1 << 27);
	assert_int_equal(proposal.limit.spec.rate, 1 << 27);
	assert_int_equal(proposal.exceeded, 10);
}

TEST(test_no_rate_exceeds_the_highest_rate_of_a_limit)
{
	static const uint64_t packets[] = {RATE_PPS_MAX - 1, RATE_PPS_MAX + 1, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		const struct sl_counters counters = {
			.rates = {.seconds = {[SL_RATE_BUCKETS - 1] = 10}, .packets = packets[i]},
		};

		propose(&counters, LONG_NS, SUGGEST_QUANTILE, 1000);
		assert_true(rate_is_sound(&proposal.limit.spec));
		assert_int_equal(proposal.limit.spec.rate, RATE_PPS_MAX);
		assert_int_equal(proposal.limit.spec.burst, 2 * RATE_PPS_MAX);
	}
}

static const struct {
	uint64_t packets, seconds, span_ns;
	enum suggest_refusal refusal;
} amounts[] = {
	{1000, 10, 10 * SEC_NS, SUGGEST_PROPOSED},  {999, 10, 10 * SEC_NS, SUGGEST_TOO_LITTLE},
	{1000, 9, 10 * SEC_NS, SUGGEST_TOO_LITTLE}, {1000, 10, 10 * SEC_NS - 1, SUGGEST_TOO_LITTLE},
	{0, 0, 10 * SEC_NS, SUGGEST_TOO_LITTLE},
};

TEST(test_too_little_traffic)
{
	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
		struct sl_counters counters = {.rates = {.packets = amounts[i].packets}};

		counters.rates.seconds[7] = amounts[i].seconds;
		propose(&counters, amounts[i].span_ns, SUGGEST_QUANTILE, 0);
		assert_int_equal(proposal.refusal, amounts[i].refusal);
	}
}

#define SECONDS	       200
#define SECOND_PACKETS 64

/*
 * A source sends SECOND_PACKETS packets in each second: the first packet begins the second, and the
 * rest is a burst at its begin, at its end, or anywhere. A token bucket with the proposed rate and
 * burst refuses no packet.
 */
TEST(test_limit_refuses_nothing_of_a_source_within_the_rate)
{
	static const struct sl_counters counters = {
		.rates = {.seconds = {[6] = SECONDS}, .packets = SECONDS * SECOND_PACKETS},
	};
	uint64_t random = 1, now = 0, begin = 0;
	double level, burst, rate;

	propose(&counters, LONG_NS, SUGGEST_WHOLE, 0);
	level = burst = proposal.limit.spec.burst;
	rate = proposal.limit.spec.rate;
	for (unsigned int second = 0; second < SECONDS; second++, begin += SEC_NS) {
		uint64_t places[] = {0, SEC_NS - 1, random_next(&random) % SEC_NS};
		uint64_t offset = places[random_next(&random) % ARRAY_SIZE(places)];

		for (unsigned int i = 0; i < SECOND_PACKETS; i++) {
			uint64_t at = begin + (i ? offset : 0);

			level += (at - now) * rate / SEC_NS;
			level = (level < burst ? level : burst) - 1;
			now = at;
			assert_true(level >= 0);
		}
	}
}

TESTS(NULL, NULL)
