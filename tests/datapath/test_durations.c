// SPDX-License-Identifier: GPL-2.0
/* Tests of the time per packet, which each CPU measures once in SL_DURATION_SAMPLE packets. */
#include "rig.h"

#include "state/durations.h"

#define NS SL_TICKS_PER_NS

static struct durations durations_of(const struct rig *rig, enum durations_verdict verdict)
{
	struct durations all[DURATIONS_VERDICTS];

	assert_int_equal(durations_read(&rig->gate, all), 0);
	return all[verdict];
}

static void send_on(struct rig *rig, unsigned int cpu, uint64_t count)
{
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);

	rig_run_on(rig, cpu);
	rig_send_batch_through(rig, rig->programs.fd[HOOK_INGRESS], &frame, count);
}

TEST(test_one_packet_in_4096_of_each_cpu_is_timed)
{
	struct rig *rig = rig_begin(state);

	rig_set(rig, "default", "1mpps", "1000");
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		send_on(rig, cpu, SL_DURATION_SAMPLE - 1);
		assert_int_equal(durations_of(rig, DURATIONS_DROP).timed, 3 * cpu);
		send_on(rig, cpu, 1);
		assert_int_equal(durations_of(rig, DURATIONS_DROP).timed, 3 * cpu + 1);
		send_on(rig, cpu, 2 * SL_DURATION_SAMPLE);
		assert_int_equal(durations_of(rig, DURATIONS_DROP).timed, 3 * cpu + 3);
	}
	assert_int_equal(durations_of(rig, DURATIONS_PASS).timed, 0);
	rig_check_counted(rig);
}

TEST(test_the_verdict_selects_the_histogram)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);

	rig_list(rig, "192.0.2.1", SL_ACCESS_ALLOW, 0);
	for (int hook = 0; hook < HOOKS; hook++) {
		send_on(rig, 0, SL_DURATION_SAMPLE - 1);
		assert_true(rig_run(rig, hook, frame.bytes, frame.size));
		assert_int_equal(durations_of(rig, DURATIONS_PASS).timed, hook + 1);
	}
	rig_list(rig, "192.0.2.1", SL_ACCESS_DENY, 0);
	for (int hook = 0; hook < HOOKS; hook++) {
		send_on(rig, 0, SL_DURATION_SAMPLE - 1);
		assert_false(rig_run(rig, hook, frame.bytes, frame.size));
		assert_int_equal(durations_of(rig, DURATIONS_DROP).timed, hook + 1);
	}
	assert_int_equal(durations_of(rig, DURATIONS_PASS).timed, HOOKS);
}

static const struct {
	const char *what;
	uint64_t ns;
	unsigned int bucket;
} lookups[] = {
	{"the least bucket", 1, 0},
	{"its bound", 32, 0},
	{"one more", 33, 1},
	{"a bound", 1024, 5},
	{"one more than that", 1025, 6},
	{"the last bound", 524288, 14},
	{"the bucket without a bound", 524289, 15},
	{"a second", 1000000000, 15},
};

TEST(test_a_slow_map_lookup_is_in_the_bucket_of_its_duration)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(lookups); i++) {
		struct durations passed;

		rig_empty(rig);
		rig_list(rig, "192.0.2.1", SL_ACCESS_ALLOW, 0);
		send_on(rig, 0, SL_DURATION_SAMPLE - 1);
		assert_int_equal(durations_of(rig, DURATIONS_PASS).timed, 0);
		*rig->lookup_ticks = lookups[i].ns * NS;
		send_on(rig, 0, 1);
		passed = durations_of(rig, DURATIONS_PASS);
		if (passed.timed != 1 || passed.histogram.bucket[lookups[i].bucket] != 1 ||
		    passed.histogram.ns != lookups[i].ns)
			fail_msg("%s: %llu ns", lookups[i].what, passed.histogram.ns);
	}
}

TEST(test_a_clock_that_steps_back_is_no_duration)
{
	struct rig *rig = rig_begin(state);
	struct durations passed;

	rig_list(rig, "192.0.2.1", SL_ACCESS_ALLOW, 0);
	send_on(rig, 0, SL_DURATION_SAMPLE - 1);
	*rig->lookup_ticks = -5 * NS;
	send_on(rig, 0, 1);
	passed = durations_of(rig, DURATIONS_PASS);
	assert_int_equal(passed.histogram.bucket[0], 1);
	assert_int_equal(passed.histogram.ns, 0);
}

/* Shipped programs measure the durations of packets by the kernel's clock. */
TEST(test_shipped_programs_time_packets)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));
	struct histogram histogram;
	struct durations passed;

	rig_list(rig, "192.0.2.1", SL_ACCESS_ALLOW, 0);
	rig_send_batch_through(rig, shipped.prog[HOOK_INGRESS], &frame, 100 * SL_DURATION_SAMPLE);
	shipped_free(&shipped);
	passed = durations_of(rig, DURATIONS_PASS);
	assert_int_equal(passed.timed, 100);
	assert_true(passed.histogram.ns > 0);
	histogram = durations_histogram(&passed);
	print_message(
		"figure: of 100 timed packets, half took at most %llu ns, the longest at most "
		"%llu ns\n",
		histogram_quantile(&histogram, 500), histogram_quantile(&histogram, 1000));
}

TESTS(rig_setup, rig_teardown)
