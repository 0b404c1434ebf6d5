// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of sets of the table that another CPU has locked. If its set is locked, a new source gets
 * no state. Sources with a state are not affected.
 */
#include "rig.h"

#define PACKETS 100
#define BURST	10
#define BUDGET	7

static const char *const sources[SL_FAMILIES] = {"192.0.2.1", "2001:db8::1"};

/*
 * Returns a rig with a limit of BURST packets. Adds a budget of `budget` packets unless `budget` is
 * 0.
 */
static struct rig *busy_begin(void **state, uint64_t budget)
{
	struct rig *rig = rig_begin(state);
	char burst[24];

	rig_set(rig, "default", "1/h", "10");
	snprintf(burst, sizeof(burst), "%lu", budget);
	rig_budget(rig, "default", budget ? "1/h" : NULL, burst);
	return rig;
}

/* Checks that no packet got a state, because the set of its key was locked. */
static void check_refused(const struct rig *rig, uint64_t packets)
{
	assert_int_equal(rig_events(rig, SL_EVENT_BUSY), packets);
	assert_int_equal(rig_refusals(rig), packets);
	assert_int_equal(rig_events(rig, SL_EVENT_INSERTED), 0);
	assert_int_equal(rig_states(rig) + rig_buckets(rig), 0);
	rig_check_counted(rig);
}

/*
 * If the set of a new source is locked, its packets pass without a state. They do not use up the
 * burst of the source.
 */
TEST(test_a_source_of_a_locked_set_passes_as_a_newcomer)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct frame frame = frame_from(sources[family], FRAME_LEAST);
		struct rig *rig = busy_begin(state, 0);

		rig_admit(rig, false);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, PACKETS), PACKETS);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), PACKETS);
		check_refused(rig, PACKETS);
		rig_admit(rig, true);
		/* delete the sketch's counts of the packets sent so far */
		rig_zero(rig, MAP_SKETCHES);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 2 * BURST), BURST);
		rig_check_counted(rig);
	}
}

TEST(test_sources_of_locked_sets_share_the_budget)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct frame frame = frame_from(sources[family], FRAME_LEAST);
		struct rig *rig = busy_begin(state, BUDGET);

		rig_admit(rig, false);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, PACKETS), BUDGET);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), BUDGET);
		assert_int_equal(rig_reason(rig, SL_DROP_OVER_BUDGET), PACKETS - BUDGET);
		check_refused(rig, BUDGET);
	}
}

/* A known source is found and charged even while its set is locked. */
TEST(test_a_known_source_of_a_locked_set_is_charged)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct frame frame = frame_from(sources[family], FRAME_LEAST);
		struct rig *rig = busy_begin(state, 0);
		struct sl_prefix source = prefix_of(sources[family]);

		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 4), 4);
		rig_admit(rig, false);
		rig_forget_bucket(rig, &source);
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, PACKETS), BURST - 4);
		assert_int_equal(rig_reason(rig, SL_PASS_NEWCOMER), 0);
		assert_int_equal(rig_refusals(rig), 0);
		rig_check_counted(rig);
	}
}

TESTS(rig_setup_xdp, rig_teardown)
