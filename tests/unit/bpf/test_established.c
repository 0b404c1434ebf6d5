// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the budget in bpf/charge.h, compiled for the host. The budget is a burst and a rate for all
 * sources together that are not yet established. Runs with 1, 2 and 128 CPUs.
 */
#define HOST_CPUS 128
#include "charge_host.h"

#define SETS	1024
#define SECONDS 20

/* A flood of sources, each with its own limit. Rates are in packets per second. */
struct flood {
	const char *name;
	unsigned int run;     /* packets that a source sends in a row */
	unsigned int sources; /* sources that send by turns; 0: each run has a new source */
	unsigned int rate;    /* rate of all sources together */
	uint64_t limit_rate, limit_burst;
};

static const uint64_t budget_rate = 100, budget_burst = 100;

/* Sets the clock to `ticks` after the test's start. */
static void time_set(uint64_t ticks)
{
	clock_set(1000 * SL_TICKS_PER_SEC + ticks);
}

static void world_begin(const struct flood *flood, unsigned int cpus)
{
	struct sl_limit limit;

	host_gate_begin(SL_IPV4, SETS);
	host_table.gate.params.flood_threshold = 1024;
	host_table.gate.params.interval_shift = 4;
	limit = limit_of(flood->limit_rate, flood->limit_burst, cpus);
	host_add(&limit);
	host_set_budget(limit_of(budget_rate, budget_burst, cpus));
}

/* Sends a packet of a source with a bucket. If the source is new, its bucket must get no credit. */
static enum sl_reason packet_send(uint32_t source)
{
	struct sl_bucket bucket = {0};
	struct verdict verdict;

	host_charge(source, &bucket, &verdict);
	if (verdict.is_new & 1)
		assert_true(bucket.slice[0].credit <= 0);
	return verdict.reason;
}

/* Returns the number of packets that the budget allows between the start of the test and now. */
static uint64_t budget_allows(void)
{
	uint64_t ticks = test_clock_ticks - 1000 * SL_TICKS_PER_SEC;

	return budget_burst + ticks * budget_rate / SL_TICKS_PER_SEC;
}

/*
 * Sends a flood through all CPUs. Checks after each packet that the budget is not exceeded. Returns
 * the number of packets of new sources that pass. Sets *ret_established to the number of packets of
 * established sources that pass.
 */
static uint64_t flood_run(const struct flood *flood, unsigned int cpus, uint64_t *ret_established)
{
	const uint64_t count = (uint64_t)flood->rate * SECONDS;
	uint64_t passed = 0, established = 0;
	uint32_t number = 1, left = 0;

	world_begin(flood, cpus);
	for (uint64_t i = 0; i < count; i++) {
		enum sl_reason reason;

		time_set(i * SL_TICKS_PER_SEC / flood->rate);
		host_cpu = random_next(&random_state) % cpus;
		if (flood->sources) {
			number = 1 + i % flood->sources;
		} else if (!left) {
			number++;
			left = flood->run;
		}
		left--;
		reason = packet_send(number);
		established += reason == SL_PASS_WITHIN;
		passed += reason == SL_PASS_NEWCOMER;
		if (passed > budget_allows())
			fail_msg("%s on %u CPUs: %lu of %lu packets pass; the budget allows %lu",
				 flood->name, cpus, passed, i, budget_allows());
	}
	*ret_established = established;
	print_message("figure: %s, %u CPUs: of %lu packets %lu of new sources pass, the budget "
		      "allows %lu; %lu of established ones\n",
		      flood->name, cpus, count, passed, budget_allows(), established);
	return passed;
}

static const unsigned int cpu_cases[] = {1, 2, HOST_CPUS};

/* Spoofed sources together use nearly all of the budget, and never exceed it. */
TEST(test_forged_sources_pass_what_the_budget_allows)
{
	static const struct flood cases[] = {
		{"single packets, 500 a second", 1, .rate = 500, .limit_rate = 50,
		 .limit_burst = 200},
		{"single packets", 1, .rate = 20000, .limit_rate = 50, .limit_burst = 200},
		{"runs of burst + 2", 202, .rate = 20000, .limit_rate = 50, .limit_burst = 200},
		{"runs of 3", 3, .rate = 20000, .limit_rate = 50, .limit_burst = 200},
		{"runs under a limit that refills slowly", 1002, .rate = 20000, .limit_rate = 1,
		 .limit_burst = 1000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t cpus = 0; cpus < ARRAY_SIZE(cpu_cases); cpus++) {
			uint64_t established;
			uint64_t passed = flood_run(&cases[i], cpu_cases[cpus], &established);

			assert_int_equal(established, 0);
			assert_true(passed > budget_allows() * 9 / 10 - 20);
		}
}

/*
 * 20,000 sources send a packet every 2 seconds. The budget must pay at least one packet of each
 * source that becomes established.
 */
TEST(test_the_budget_limits_how_many_sources_become_established)
{
	static const struct flood drips = {"drips", .sources = 20000, .rate = 10000,
					   .limit_rate = 50, .limit_burst = 20};

	for (size_t cpus = 0; cpus < ARRAY_SIZE(cpu_cases); cpus++) {
		uint64_t established, known = 0;

		flood_run(&drips, cpu_cases[cpus], &established);
		for (uint32_t i = 0; i < SETS * SL_WAYS; i++)
			known += host_table.entry[i].limit &&
				 host_table.entry[i].made & ENTRY_ESTABLISHED;
		print_message("figure: %lu sources are established\n", known);
		assert_true(known > 0 && known <= budget_allows());
	}
}

/* If honest sources send half as much as the budget allows, all of their packets pass. */
TEST(test_honest_sources_keep_all_packets)
{
	static const struct flood honest = {"10 honest sources", .sources = 10, .rate = 50,
					    .limit_rate = 50, .limit_burst = 50};

	for (size_t cpus = 0; cpus < ARRAY_SIZE(cpu_cases); cpus++) {
		uint64_t established;
		uint64_t passed = flood_run(&honest, cpu_cases[cpus], &established);

		assert_int_equal(passed + established, honest.rate * SECONDS);
		/* sources become established after 1 s to 2.25 s */
		assert_in_range(passed, honest.rate, honest.rate * 9 / 4);
	}
}

/*
 * The budget is never charged for packets of an established source, even in a flood or after an
 * idle hour.
 */
TEST(test_an_established_source_is_never_charged)
{
	static const struct flood flood = {"", .limit_rate = 50, .limit_burst = 50};
	uint64_t refused = 0;

	for (size_t cpus = 0; cpus < ARRAY_SIZE(cpu_cases); cpus++) {
		world_begin(&flood, cpu_cases[cpus]);
		for (int second = 0; second < 4; second++) {
			time_set(second * SL_TICKS_PER_SEC);
			assert_true(packet_send(1) < SL_FIRST_DROP);
		}
		for (int rest = 0; rest < 2; rest++) {
			uint64_t begin = (5 + rest * 3600) * SL_TICKS_PER_SEC;

			for (uint32_t i = 0; i < 20000; i++) {
				time_set(begin + i * SL_TICKS_PER_SEC / 10000);
				host_cpu = i % cpu_cases[cpus];
				refused += packet_send(1000 + i) == SL_DROP_OVER_BUDGET;
				if (i % 200 == 199)
					assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			}
		}
		assert_true(refused > 10000);
	}
}

/* A source becomes established when its burst could have refilled since its first packet. */
TEST(test_a_source_is_established_after_its_burst_could_refill)
{
	static const struct {
		uint64_t rate, burst;
		/* seconds: the source is still new at `not_yet`, and is established at `then` */
		double not_yet, then;
	} cases[] = {
		{1000, 10, 1.0, 2.2}, /* established after 1 s, which is the minimum */
		{50, 200, 4.0, 6.5},  /* established when the burst could refill: after 4 s */
		{10, 500, 50, 52.5},  /* established when the burst could refill: after 50 s */
		{1, 1000, 64, 66.6},  /* established after about a minute, which is the maximum */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int at = 0; at < 16; at++) {
			struct flood flood = {"", .limit_rate = cases[i].rate,
					      .limit_burst = cases[i].burst};
			uint64_t begin = at * (1ULL << ENTRY_MOMENT_SHIFT) / 16;

			world_begin(&flood, 2);
			time_set(begin);
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
			time_set(begin + cases[i].not_yet * SL_TICKS_PER_SEC);
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
			time_set(begin + cases[i].then * SL_TICKS_PER_SEC);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		}
}

/* A refused packet is charged neither to its limit nor to the budget. */
TEST(test_a_refused_packet_costs_nothing)
{
	static const struct flood flood = {"", .limit_rate = 1, .limit_burst = 3};
	struct sl_state before;

	world_begin(&flood, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	before = host.budget;
	for (int i = 0; i < 100; i++)
		assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
	assert_int_equal(host.budget.empty_at, before.empty_at);
	for (unsigned int i = 3; i < budget_burst; i++)
		assert_int_equal(packet_send(i), SL_PASS_NEWCOMER);
	for (int i = 0; i < 100; i++)
		assert_int_equal(packet_send(4), SL_DROP_OVER_BUDGET);
	host.budget = credit_full(&host.policy.newcomers, test_clock_ticks);
	host.budget_slice[0] = (struct sl_budget_slice){0};
	assert_int_equal(packet_send(4), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(4), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(4), SL_DROP_OVER_LIMIT);
}

/*
 * A part of the budget is reserved for sources that send more than one packet. A flood of sources
 * with one packet each cannot use this part.
 */
TEST(test_a_source_that_sends_again_gets_the_reserve)
{
	static const struct flood flood = {"", .limit_rate = 100, .limit_burst = 100};
	unsigned int sent = 0, passed = 0;

	world_begin(&flood, 1);
	for (uint32_t i = 0; i < 100000; i++) {
		time_set(i * SL_TICKS_PER_SEC / 20000);
		packet_send(1000 + i);
		if (i < 20000 || i % 400) /* only source 1 sends often: 50 packets per second */
			continue;
		sent++;
		passed += packet_send(1) < SL_FIRST_DROP;
	}
	assert_int_equal(sent, 200);
	print_message("figure: %u of %u\n", passed, sent);
	assert_true(passed >= sent - 4);
}

/*
 * A source is established under one of its two limits. Its packets are not charged to the budget.
 */
TEST(test_a_source_is_established_by_one_of_its_limits)
{
	static const struct flood flood = {"", .limit_rate = 50, .limit_burst = 50};
	for (int by_source = 0; by_source < 2; by_source++) {
		world_begin(&flood, 1);
		host.policy.by_source[SL_IPV4] = by_source;
		for (int at = 0; at < 4; at++) {
			time_set(at * SL_TICKS_PER_SEC);
			packet_send(1);
		}
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		host_add(host.policy.limit[SL_IPV4]);
		assert_int_equal(packet_send(1), by_source ? SL_PASS_WITHIN : SL_PASS_NEWCOMER);
		assert_int_equal(packet_send(2), SL_PASS_NEWCOMER);
	}
}

/* A source with two limits becomes established after the slower of the two bursts could refill. */
TEST(test_a_fast_limit_does_not_establish_a_source_under_a_slow_one)
{
	static const struct flood slow = {"", .limit_rate = 10, .limit_burst = 600};
	struct sl_limit fast = limit_of(1000, 1000, 1);

	world_begin(&slow, 1);
	fast.budgeted = true;
	host_add(&fast);
	host.policy.by_source[SL_IPV4] = 3;
	for (uint32_t source = 1; source <= 20; source++)
		assert_int_equal(packet_send(source), SL_PASS_NEWCOMER);
	for (uint32_t second = 4; second < 60; second += 4)
		for (uint32_t source = 1; source <= 20; source++) {
			time_set(second * SL_TICKS_PER_SEC);
			for (int i = 0; i < 50; i++)
				assert_int_not_equal(packet_send(source), SL_PASS_WITHIN);
		}
	time_set(64 * SL_TICKS_PER_SEC);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
}

/*
 * A limit that only observes charges nothing to the budget. If states begin without credit, the
 * first packet is refused.
 */
TEST(test_other_limits)
{
	static const struct flood flood = {"", .limit_rate = 1, .limit_burst = 5};
	struct sl_limit *limit = &host.policy.limit[SL_IPV4][0];

	world_begin(&flood, 1);
	limit->observe = true;
	limit->budgeted = false;
	host.policy.by_source[SL_IPV4] = 0;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(packet_send(i % 7), SL_PASS_WITHIN);
	world_begin(&flood, 1);
	limit->start_empty = true;
	assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
	time_set(SL_TICKS_PER_SEC);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
}

static uint64_t inserted(void)
{
	uint64_t count = 0;

	for (int cpu = 0; cpu < HOST_CPUS; cpu++)
		count += host.admission[cpu].event[SL_EVENT_INSERTED].total;
	return count;
}

/*
 * If a CPU's clock is late, an entry's creation time can be in the future. The CPU must then treat
 * the source as new.
 */
TEST(test_a_late_clock_establishes_no_source)
{
	static const struct flood flood = {"", .limit_rate = 50, .limit_burst = 200};
	const uint64_t unit = 1ULL << ENTRY_MOMENT_SHIFT;
	uint64_t edge = unit - 1000 * SL_TICKS_PER_SEC % unit;

	world_begin(&flood, 2);
	time_set(edge);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	host_cpu = 1;
	time_set(edge - SL_TICKS_PER_NS);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	time_set(edge + SL_TICKS_PER_NS);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
}

/*
 * A limit that only observes has no budget. In a flood, new keys get entries at most at the rate of
 * the threshold.
 */
TEST(test_a_flood_under_a_limit_that_observes_inserts_little)
{
	static const struct flood flood = {"", .limit_rate = 50, .limit_burst = 50};

	world_begin(&flood, 1);
	host.policy.limit[SL_IPV4][0].observe = true;
	host.policy.by_source[SL_IPV4] = 0;
	for (uint32_t i = 0; i < 200000; i++) {
		time_set(i * SL_TICKS_PER_SEC / 100000);
		assert_int_equal(packet_send(1 + i), SL_PASS_WITHIN);
	}
	assert_true(inserted() <= host_table.gate.params.flood_threshold);
}

/*
 * Established sources fill a quarter of the table, and are idle for up to 300 s. Meanwhile, spoofed
 * sources that use the budget need many times the space of the table. The established sources must
 * keep their states.
 */
TEST(test_idle_sources_stay_established_in_a_flood)
{
	static const struct flood flood = {"", .limit_rate = 50, .limit_burst = 50};
	static const unsigned int rests[] = {30, 120, 300};
	const uint32_t known = SETS * SL_WAYS / 4, rate = 5000;

	for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
		uint64_t begin = 20 * SL_TICKS_PER_SEC;
		uint32_t stay = 0;

		world_begin(&flood, 1);
		host_set_budget(limit_of(1000, 5000, 1));
		for (uint32_t at = 0; at < 6 * known; at++) {
			time_set(at * begin / (6 * known));
			assert_true(packet_send(1 + at % known) < SL_FIRST_DROP);
		}
		for (uint32_t at = 0; at < rests[i] * rate; at++) {
			time_set(begin + at * (SL_TICKS_PER_SEC / rate));
			packet_send(1 + known + at / 3);
		}
		for (uint32_t at = 0; at < known; at++)
			stay += packet_send(1 + at) == SL_PASS_WITHIN;
		print_message("figure: %u of %u stay established for %u s, beside %lu entries\n",
			      stay, known, rests[i], inserted());
		assert_true(inserted() > rests[i] * 1000);
		assert_true(stay >= known * .98);
	}
}

TESTS(NULL, NULL)
