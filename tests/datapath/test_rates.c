// SPDX-License-Identifier: GPL-2.0
/* Tests of the rates of sources: each policy has a histogram of packets per source and second. */
#include "rig.h"

#define US (MS / 1000)

static const char source[] = "192.0.2.1";
static const struct sl_rates no_rates;

static void rates_print(const char *whose, const struct sl_rates *rates)
{
	print_message("%s: %llu packets", whose, rates->packets);
	for (int i = 0; i < SL_RATE_BUCKETS; i++)
		if (rates->seconds[i])
			print_message(", %llu seconds in bucket %d", rates->seconds[i], i);
	print_message("\n");
}

/* Checks the rates that the policy of an address has counted. */
static void check_rates(const struct rig *rig, const char *what, const char *address,
			const struct sl_rates *expected)
{
	struct sl_rates rates = rig_counters_of(rig, address).rates;

	if (!memcmp(&rates, expected, sizeof(rates)))
		return;
	rates_print("expected", expected);
	rates_print("counted", &rates);
	fail_msg("%s, for %s", what, address);
}

/* Sends `count` packets of a source. Each is followed by `gap` ticks. */
static void send_paced(struct rig *rig, const char *address, uint64_t count, uint64_t gap)
{
	struct frame frame = frame_from(address, FRAME_LEAST);

	for (uint64_t i = 0; i < count; i++) {
		rig_send(rig, i % HOOKS, &frame, 1);
		rig_clock_forward(rig, gap);
	}
}

/* --- One source ------------------------------------------------------------------------------ */

/* A source sends volleys of `packets` packets. Each volley is followed by `pause` ticks. */
static const struct rate_case {
	const char *what, *limit;
	uint64_t volleys, packets, gap, pause;
	struct sl_rates rates;
} cases[] = {
	{"100 packets a second", "rate 1kpps burst 1000", 10, 100, 10 * MS, 0, {{[7] = 9}, 900}},
	{"a bound of a bucket",
	 "rate 1kpps burst 1000",
	 6,
	 128,
	 4 * MS,
	 488 * MS,
	 {{[7] = 5}, 640}},
	{"one packet more", "rate 1kpps burst 1000", 6, 129, 4 * MS, 484 * MS, {{[8] = 5}, 645}},
	{"a packet a minute", "rate 1/h burst 5", 4, 1, 0, 60 * SEC, {{[0] = 3}, 3}},
	{"volleys after pauses", "rate 1kpps burst 1000", 4, 20, MS, 10 * SEC, {{[5] = 3}, 60}},
	{"a window", "window 100 per 10s", 10, 50, 20 * MS, 0, {{[6] = 9}, 450}},
	{"refused", "rate 1/h burst 5", 30, 10, 100 * MS, 0, {{[4] = 29}, 290}},
	{"observed", "rate 1/h burst 5 action observe", 30, 10, 100 * MS, 0, {{[4] = 29}, 290}},
	{"blocked", "rate 1/h burst 5 action block 1h", 30, 10, 100 * MS, 0, {{[4] = 29}, 290}},
	{"shared key", "rate 1kpps burst 1000 per /24", 10, 100, 10 * MS, 0, {{[7] = 9}, 900}},
};

TEST(test_packets_of_a_source_and_second_are_counted)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct rate_case *it = &cases[i];

		rig_empty(rig);
		rig_limits(rig, "default", it->limit, NULL);
		for (uint64_t volley = 0; volley < it->volleys; volley++) {
			send_paced(rig, source, it->packets, it->gap);
			rig_clock_forward(rig, it->pause);
		}
		check_rates(rig, it->what, source, &it->rates);
		rig_check_counted(rig);
	}
}

/* A slice lives for up to a 16th of the burst, and a second ends when a slice has ended. */
TEST(test_a_second_of_a_source_with_slices_ends_with_a_slice)
{
	struct rig *rig = rig_begin(state);
	struct sl_rates rates;

	rig_set(rig, "default", "1mpps", "1000000");
	send_paced(rig, source, 4 * 5000, 200 * US);
	rates = rig_counters_of(rig, source).rates;
	assert_int_equal(rates.seconds[13], 3);
	assert_in_range(rates.packets, 3 * 5000, 3 * (5000 + 5000 / 16));
	rig_check_counted(rig);
}

TEST(test_each_packet_of_a_merged_packet_counts)
{
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "1kpps", "1000");
	for (int i = 0; i < 40; i++) {
		rig_run_merged(rig, source, 10);
		rig_clock_forward(rig, 100 * MS);
	}
	check_rates(rig, "merged", source, &(struct sl_rates){{[7] = 3}, 300});
}

TEST(test_each_cpu_counts_its_part_of_a_source)
{
	struct rig *rig = rig_begin(state);

	rig_need_cpus(rig, 2);
	rig_set(rig, "default", "1kpps", "1000");
	for (int i = 0; i < 1000; i++) {
		rig_run_on(rig, i % 2);
		send_paced(rig, source, 1, 10 * MS);
	}
	rig_run_on(rig, 0);
	check_rates(rig, "two CPUs", source, &(struct sl_rates){{[6] = 18}, 900});
}

/* --- Which sources are counted --------------------------------------------------------------- */

TEST(test_a_source_without_a_bucket_is_not_counted)
{
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "1kpps", "1000");
	rig_end_first_buckets(rig);
	send_paced(rig, source, 400, 10 * MS);
	check_rates(rig, "a slow source", source, &no_rates);
	rig_check_counted(rig);
}

/*
 * A fast source gets a bucket, and loses it when the source becomes slow. When the source is fast
 * again, it begins a new second. The second without the slow packets is not counted.
 */
TEST(test_a_second_is_not_counted_if_the_bucket_was_not_in_use)
{
	struct rig *rig = rig_begin(state);
	struct sl_prefix prefix = prefix_of(source);

	rig_set(rig, "default", "1kpps", "1000");
	rig_end_first_buckets(rig);
	send_paced(rig, source, 200, 0);
	assert_true(rig_has_bucket(rig, &prefix));
	send_paced(rig, source, 25, 100 * MS);
	check_rates(rig, "a slow source", source, &no_rates);
	send_paced(rig, source, 200, 0);
	send_paced(rig, source, 5, 100 * MS);
	check_rates(rig, "a source that was fast again", source, &no_rates);
}

/* A CPU finds an empty bucket if the bucket was evicted, and another CPU has inserted it again. */
TEST(test_a_second_begins_with_an_empty_bucket)
{
	struct rig *rig = rig_begin(state);
	struct sl_prefix prefix = prefix_of(source);

	rig_need_cpus(rig, 2);
	rig_set(rig, "default", "1kpps", "1000");
	send_paced(rig, source, 1, 10 * MS);
	rig_forget_bucket(rig, &prefix);
	rig_run_on(rig, 1);
	send_paced(rig, source, 1, 10 * MS);
	rig_run_on(rig, 0);
	send_paced(rig, source, 350, 10 * MS);
	check_rates(rig, "an empty bucket", source, &(struct sl_rates){{[7] = 3}, 300});
}

/* --- Several policies ------------------------------------------------------------------------ */

TEST(test_each_policy_counts_its_own_sources)
{
	static const struct {
		const char *address;
		unsigned int divisor; /* sends in one of `divisor` steps of 10 ms */
		struct sl_rates rates;
	} senders[] = {
		{"192.0.2.1", 1, {{[7] = 18}, 1800}}, /* the policy has two such sources */
		{"192.0.2.2", 1, {{[7] = 18}, 1800}},  {"2001:db8::1", 10, {{[4] = 9}, 90}},
		{"198.51.100.1", 50, {{[1] = 9}, 18}}, {"203.0.113.1", 1, {{0}, 0}},
		{"203.0.113.2", 1, {{0}, 0}},
	};
	struct rig *rig = rig_begin(state);

	rig_set(rig, "192.0.2.0/24", "1kpps", "1000");
	rig_set(rig, "2001:db8::/32", "1kpps", "1000");
	rig_set(rig, "default", "1/h", "5");
	rig_list(rig, "203.0.113.1", SL_ACCESS_ALLOW, 0);
	rig_list(rig, "203.0.113.2", SL_ACCESS_DENY, 0);
	for (unsigned int step = 0; step < 1000; step++) {
		for (size_t i = 0; i < ARRAY_SIZE(senders); i++)
			if (!(step % senders[i].divisor))
				send_paced(rig, senders[i].address, 1, 0);
		rig_clock_forward(rig, 10 * MS);
	}
	for (size_t i = 0; i < ARRAY_SIZE(senders); i++)
		check_rates(rig, "several policies", senders[i].address, &senders[i].rates);
	rig_check_counted(rig);
}

TEST(test_a_changed_policy_keeps_its_rates_and_a_new_one_has_none)
{
	const struct sl_rates expected = {{[7] = 3}, 300};
	struct rig *rig = rig_begin(state);
	struct sl_counters total;

	rig_set(rig, "default", "1kpps", "1000");
	send_paced(rig, source, 400, 10 * MS);
	check_rates(rig, "before the change", source, &expected);
	rig_set(rig, "default", "2kpps", "1000");
	check_rates(rig, "after the change", source, &expected);
	rig_del(rig, "default");
	rig_set(rig, "192.0.2.0/24", "1kpps", "1000");
	check_rates(rig, "a new policy", source, &no_rates);
	total = rig_counters(rig);
	assert_memory_equal(&total.rates, &expected, sizeof(expected));
}

TESTS(rig_setup, rig_teardown)
