// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of action block. After a packet has exceeded the limit, all matching packets are dropped
 * for some time.
 */
#include "rig.h"

#include <stdlib.h>
#include <netinet/in.h>

static const char *const sources[] = {"192.0.2.1", "2001:db8::1"};
static const char *const neighbours[] = {"192.0.2.2", "2001:db8:0:1::1"}; /* /24, /56 */
static const char *const strangers[] = {"192.0.3.1", "2001:db8:1::1"};

/* Sends `count` packets on each hook of each CPU. Returns how many pass in all. */
static uint64_t send_everywhere(struct rig *rig, const struct frame *frame, uint64_t count)
{
	uint64_t passed = 0;

	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++)
		for (int hook = 0; hook < HOOKS; hook++) {
			rig_run_on(rig, cpu);
			passed += rig_send(rig, hook, frame, count);
		}
	rig_run_on(rig, 0);
	return passed;
}

/* Sets a policy, and sends packets until its limit begins a block. */
static void overrun(struct rig *rig, const struct frame *frame, const char *words, uint64_t burst)
{
	rig_empty(rig);
	rig_limits(rig, "default", words, NULL);
	rig_clock_forward(rig, rand() % JIFFY);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, frame, burst), burst);
	rig_clock_forward(rig, 17);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, frame, 1), 0);
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), 1);
	assert_int_equal(rig_reason(rig, SL_DROP_BLOCKED), 0);
}

/* --- Its length ----------------------------------------------------------------------------- */

struct length_case {
	const char *words;
	uint64_t burst;
	uint64_t block; /* ticks */
	uint64_t after; /* number of packets that pass at once after the block ends */
};

static const struct length_case length_cases[] = {
	{"rate 1kpps burst 5 action block 30s", 5, 30 * SEC, 5},
	{"rate 1kpps burst 5 action block 1ms", 5, MS, 1},
	{"rate 1/h burst 5 action block 30s", 5, 30 * SEC, 0},
	{"rate 1/h burst 5 action block 2h", 5, 7200 * SEC, 2},
	{"rate 1mpps burst 5 action block 3ms", 5, 3 * MS, 5},
	{"rate 1kpps burst 1000 action block 500ms", 1000, SEC / 2, 500},
	{"rate 1kpps burst 1000 action block 730d", 1000, 730 * 86400 * SEC, 1000},
	{"rate 10pps burst 20 per 24/56 action block 1s", 20, SEC, 10},
	{"rate 10pps burst 20 per 32/128 action block 1s", 20, SEC, 10},
};

/*
 * Checks that no packet passes during a block. After the block, packets can spend the credit that
 * has refilled.
 */
static void length_check(struct rig *rig, const struct length_case *it, const char *source,
			 bool insist)
{
	struct frame frame = frame_of_proto(source, IPPROTO_UDP);
	uint64_t begun, sent = 0, most;

	overrun(rig, &frame, it->words, it->burst);
	begun = rig_now(rig);
	while (insist && rig_now(rig) - begun < it->block - it->block / 7) {
		assert_int_equal(send_everywhere(rig, &frame, 2), 0);
		sent += 2 * rig->cpus * HOOKS;
		rig_clock_forward(rig, it->block / 13);
	}
	rig_clock_forward(rig, begun + it->block - 1 - rig_now(rig));
	assert_int_equal(send_everywhere(rig, &frame, 1), 0);
	sent += rig->cpus * HOOKS;
	assert_int_equal(rig_reason(rig, SL_DROP_BLOCKED), sent);
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), 1);
	rig_clock_forward(rig, JIFFY); /* Cached refusals expire at the end of the jiffy. */
	most = it->after + JIFFY / rig_limit(rig, source)->cost + 1;
	assert_in_range(rig_send(rig, HOOK_XDP, &frame, it->burst + 50), it->after,
			most < it->burst ? most : it->burst);
	rig_check_counted(rig);
}

TEST(test_length)
{
	struct rig *rig = rig_begin(state);

	srand(7);
	for (size_t i = 0; i < ARRAY_SIZE(length_cases); i++)
		for (size_t s = 0; s < ARRAY_SIZE(sources); s++)
			for (int turn = 0; turn < 20; turn++)
				length_check(rig, &length_cases[i], sources[s], turn % 2);
	print_message("figure: blocks of 1 ms to 730 days: no packet passes before the end, "
		      "however many are sent; then as many as this time refills\n");
}

/* --- Whom it hits --------------------------------------------------------------------------- */

/*
 * A block applies to all sources with the same key, on every CPU. Sources with another key are not
 * blocked.
 */
TEST(test_shared_key)
{
	struct rig *rig = rig_begin(state);

	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		struct frame one = frame_of_proto(sources[s], IPPROTO_UDP),
			     two = frame_of_proto(neighbours[s], IPPROTO_UDP);
		struct frame other = frame_of_proto(strangers[s], IPPROTO_UDP);

		rig_empty(rig);
		rig_limits(rig, "default", "rate 1kpps burst 10 per 24/56 action block 10s", NULL);
		assert_int_equal(rig_send(rig, HOOK_XDP, &two, 5), 5);
		assert_int_equal(rig_send(rig, HOOK_XDP, &one, 10), 5);
		assert_int_equal(send_everywhere(rig, &two, 5), 0);
		assert_int_equal(send_everywhere(rig, &other, 1), HOOKS * rig->cpus);
		rig_clock_forward(rig, 10 * SEC - 1);
		assert_int_equal(send_everywhere(rig, &two, 5), 0);
		rig_clock_forward(rig, JIFFY);
		assert_int_equal(rig_send(rig, HOOK_XDP, &two, 5), 5);
		assert_int_equal(rig_send(rig, HOOK_XDP, &one, 10), 5);
		rig_check_counted(rig);
	}
}

/* A block applies to all CPUs at once, because a limit that blocks has no slices. */
TEST(test_on_every_cpu_at_once)
{
	struct rig *rig = rig_begin(state);

	rig_need_cpus(rig, 2);
	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		struct frame frame = frame_of_proto(sources[s], IPPROTO_UDP);

		rig_empty(rig);
		rig_limits(rig, "default", "rate 1/min burst 1000 action block 1h", NULL);
		rig_run_on(rig, 1);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 1), 1);
		rig_run_on(rig, 0);
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, 1100), 999);
		rig_run_on(rig, 1);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 100), 0);
		rig_check_counted(rig);
	}
}

/* --- What begins one ------------------------------------------------------------------------ */

/* A packet that another limit drops does not begin a block. */
TEST(test_dropped_anyway)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);

	rig_limits(rig, "default", "name b rate 1/h burst 20 action block 1h",
		   "name d rate 1kpps burst 4", NULL);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(send_everywhere(rig, &frame, 10), 4);
		rig_clock_forward(rig, SEC);
	}
	assert_int_equal(rig_reason(rig, SL_DROP_BLOCKED), 0);
	assert_int_equal(send_everywhere(rig, &frame, 10), 4);
	rig_clock_forward(rig, SEC);
	assert_int_equal(send_everywhere(rig, &frame, 1), 0); /* packet 21 exceeds limit b */
	assert_true(rig_reason(rig, SL_DROP_BLOCKED) > 0);
	rig_clock_forward(rig, 3598 * SEC);
	assert_int_equal(send_everywhere(rig, &frame, 1), 0);
	rig_check_counted(rig);
}

static const struct {
	const char *words; /* arguments of `sluice set`; the source is blocked for an hour */
	bool blocked;
} changes[] = {
	{"rate 1kpps burst 5 action block 1h", true},
	{"rate 2kpps burst 9 action block 1h", true},
	{"rate 1kpps burst 5 action block 5s", true},
	{"name all rate 1kpps burst 5 match udp action block 1h", true},
	{"rate 1kpps burst 5 action drop", false},
	{"rate 1kpps burst 5 action observe", false},
	{"rate 1kpps burst 5 per 24 action block 1h", false},
	{"name other rate 1kpps burst 5 action block 1h", false},
};

TEST(test_rule_changes)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		rig_empty(rig);
		rig_limits(rig, "default", "rate 1kpps burst 5 action block 1h", NULL);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 6), 5);
		rig_clock_forward(rig, 10 * SEC);
		rig_limits(rig, "default", changes[i].words, NULL);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 5), changes[i].blocked ? 0 : 5);
		rig_set(rig, "198.51.100.0/24", "1/h", "1");
		assert_int_equal(rig_send(rig, HOOK_EGRESS, &frame, 1), i == 5 ? 1 : 0);
		if (!changes[i].blocked)
			continue;
		rig_clock_forward(rig, 3590 * SEC - 1);
		assert_int_equal(send_everywhere(rig, &frame, 2), 0);
		rig_clock_forward(rig, JIFFY);
		assert_true(rig_send(rig, HOOK_XDP, &frame, 5) == 5);
		rig_check_counted(rig);
	}
}

TESTS(rig_setup, rig_teardown)
