// SPDX-License-Identifier: GPL-2.0
/* Allow and deny lists: the longest prefix of all rules decides. Those with an end: test_ends.c. */
#include "rig.h"

#include <stdlib.h>

#define ENOUGH 40 /* packets: more than any burst here */

static uint64_t send_from(struct rig *rig, const char *source, uint64_t count)
{
	struct frame frame = frame_from(source, 60);

	return rig_send(rig, rand() % HOOKS, &frame, count);
}

/* How many of ENOUGH packets pass: all, none, or at 1/h the burst of the policy that judges. */
static uint64_t burst_of(struct rig *rig, const char *source)
{
	return send_from(rig, source, ENOUGH);
}

static uint64_t reason_of(const struct rig *rig, enum sl_reason reason)
{
	return rig_counters(rig).reason[reason].packets;
}

/* --- Longest prefix ------------------------------------------------------------------------- */

#define ALLOWED ENOUGH
#define DENIED	0

static void test_longest_prefix_of_all_rules(void **state)
{
	static const struct {
		const char *source;
		unsigned int burst;
	} cases[] = {
		{"9.255.255.255", 3},
		{"10.0.0.0", DENIED},
		{"10.255.255.255", DENIED},
		{"10.1.0.0", ALLOWED},
		{"10.1.255.255", ALLOWED},
		{"10.1.2.0", 5},
		{"10.1.2.127", 5},
		{"10.1.2.128", DENIED},
		{"10.1.2.200", ALLOWED},
		{"10.1.2.201", 7},
		{"10.1.2.202", DENIED},
		{"10.1.2.1", DENIED},
		{"2001:db7::1", 3},
		{"2001:db8::1", DENIED},
		{"2001:db8:1::1", ALLOWED},
		{"2001:db8:1:2::1", 4},
		{"2001:db8:1:2::5", DENIED},
		{"2001:db8:1:2:8000::", ALLOWED},
		{"2001:db8:1:2:8000::9", 6},
		{"2001:db8:1:2:ffff::9", ALLOWED},
		{"2001:db8:1:3::1", ALLOWED},
		{"a01:2c8::", 3}, /* not 10.1.2.200 */
	};
	struct rig *rig = rig_begin(state);
	struct ruleset set = {0};

	rules_add_limits(&set, "default", "rate 1/h burst 3", NULL);
	rules_add_list(&set, "10.0.0.0/8", SL_LIST_DENY, 0);
	rules_add_list(&set, "10.1.0.0/16", SL_LIST_ALLOW, 0);
	rules_add_limits(&set, "10.1.2.0/24", "rate 1/h burst 5", NULL);
	rules_add_list(&set, "10.1.2.128/25", SL_LIST_DENY, 0);
	rules_add_list(&set, "10.1.2.1", SL_LIST_DENY, 0);
	rules_add_list(&set, "10.1.2.200", SL_LIST_ALLOW, 0);
	rules_add_limits(&set, "10.1.2.201", "rate 1/h burst 7", NULL);
	rules_add_list(&set, "2001:db8::/32", SL_LIST_DENY, 0);
	rules_add_list(&set, "2001:db8:1::/48", SL_LIST_ALLOW, 0);
	rules_add_limits(&set, "2001:db8:1:2::/64", "rate 1/h burst 4", NULL);
	rules_add_list(&set, "2001:db8:1:2::5", SL_LIST_DENY, 0);
	rules_add_list(&set, "2001:db8:1:2:8000::/65", SL_LIST_ALLOW, 0);
	rules_add_limits(&set, "2001:db8:1:2:8000::9", "rate 1/h burst 6", NULL);
	assert_int_equal(rig_change(rig, &set), OK);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t burst = burst_of(rig, cases[i].source);

		if (burst != cases[i].burst)
			fail_msg("%s: %lu pass, not %u", cases[i].source, burst, cases[i].burst);
	}
	rig_check_tidy(rig, 14);
	rig_check_counted(rig);
}

/* Of the whole families, and of all. */
static void test_shortest_prefixes(void **state)
{
	struct rig *rig = rig_begin(state);

	rig_list(rig, "default", SL_LIST_DENY, 0);
	assert_int_equal(burst_of(rig, "192.0.2.1"), DENIED);
	assert_int_equal(burst_of(rig, "2001:db8::1"), DENIED);
	rig_list(rig, "0.0.0.0/0", SL_LIST_ALLOW, 0);
	assert_int_equal(burst_of(rig, "192.0.2.1"), ALLOWED);
	assert_int_equal(burst_of(rig, "2001:db8::1"), DENIED);
	rig_limits(rig, "::/0", "rate 1/h burst 6", NULL);
	assert_int_equal(burst_of(rig, "2001:db8::1"), 6);
	rig_list(rig, "default", SL_LIST_NONE, 0);
	rig_list(rig, "0.0.0.0/0", SL_LIST_NONE, 0);
	assert_int_equal(burst_of(rig, "192.0.2.1"), ENOUGH);
	assert_int_equal(reason_of(rig, SL_PASS_NO_RULE), ENOUGH);
	rig_check_tidy(rig, 1);
	rig_check_counted(rig);
}

/* The list of a prefix decides before its limits, which stay, with all their levels. */
static void test_list_over_limits(void **state)
{
	static const char *const prefixes[] = {"192.0.2.1", "192.0.2.0/24", "default", "0.0.0.0/0"};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		rig_empty(rig);
		rig_limits(rig, prefixes[i], "rate 1/h burst 10",
			   "name b rate 1/h burst 1 match tcp", NULL);
		assert_int_equal(send_from(rig, "192.0.2.1", 4), 4);
		rig_list(rig, prefixes[i], SL_LIST_DENY, 0);
		assert_int_equal(burst_of(rig, "192.0.2.1"), DENIED);
		rig_list(rig, prefixes[i], SL_LIST_ALLOW, 0);
		assert_int_equal(burst_of(rig, "192.0.2.1"), ALLOWED);
		rig_check_tidy(rig, 1);
		rig_limits(rig, prefixes[i], "rate 1/h burst 10",
			   "name b rate 1/h burst 2 match tcp", NULL);
		assert_int_equal(burst_of(rig, "192.0.2.1"), ALLOWED);
		rig_list(rig, prefixes[i], SL_LIST_NONE, 0);
		assert_int_equal(burst_of(rig, "192.0.2.1"), 6);
		rig_check_tidy(rig, 1);
		rig_check_counted(rig);
	}
}

/* Whoever is listed is counted under the list, and costs no ledger. */
static void test_listed_are_counted(void **state)
{
	struct rig *rig = rig_begin(state);
	struct sl_counters counters;

	rig_limits(rig, "default", "rate 1/h burst 3", NULL);
	rig_list(rig, "192.0.2.0/24", SL_LIST_ALLOW, 0);
	rig_list(rig, "2001:db8::/32", SL_LIST_DENY, 0);
	assert_int_equal(send_from(rig, "192.0.2.1", 7), 7);
	assert_int_equal(send_from(rig, "2001:db8::1", 9), 0);
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_ALLOW, &counters), OK);
	assert_int_equal(counters.reason[SL_PASS_ALLOWED].packets, 7);
	assert_int_equal(counters.reason[SL_PASS_ALLOWED].bytes, 7 * 60);
	assert_int_equal(counters_passed(&counters).packets, 7);
	assert_int_equal(counters_dropped(&counters).packets, 0);
	assert_int_equal(counters_read(&rig->gate, SL_POLICY_DENY, &counters), OK);
	assert_int_equal(counters.reason[SL_DROP_DENIED].packets, 9);
	assert_int_equal(counters_passed(&counters).packets, 0);
	assert_int_equal(counters_dropped(&counters).packets, 9);
	assert_int_equal(rig_entries(rig, MAP_LEDGERS4) + rig_entries(rig, MAP_LEDGERS6), 0);
	assert_int_equal(rig_entries(rig, MAP_BUCKETS4), 1);
	assert_int_equal(rig_entries(rig, MAP_BUCKETS6), 1);
	rig_check_counted(rig);
}

/* --- Hosts of one /64 ----------------------------------------------------------------------- */

static void test_hosts_split_their_64(void **state)
{
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "2001:db8::/32", "rate 1/h burst 10", NULL);
	assert_int_equal(send_from(rig, "2001:db8:5::1", 2), 2); /* the bucket is there already */
	rig_list(rig, "2001:db8:5::1", SL_LIST_DENY, 0);
	assert_int_equal(burst_of(rig, "2001:db8:5::1"), DENIED);
	assert_int_equal(send_from(rig, "2001:db8:5::2", 3), 3);
	rig_list(rig, "2001:db8:5::2", SL_LIST_ALLOW, 0);
	assert_int_equal(burst_of(rig, "2001:db8:5::1"), DENIED);
	assert_int_equal(burst_of(rig, "2001:db8:5::2"), ALLOWED);
	assert_int_equal(send_from(rig, "2001:db8:5::3", 1), 1);
	rig_list(rig, "2001:db8:5::1", SL_LIST_NONE, 0);
	assert_int_equal(send_from(rig, "2001:db8:5::1", 1), 1);
	assert_int_equal(burst_of(rig, "2001:db8:5::2"), ALLOWED);
	rig_list(rig, "2001:db8:5::2", SL_LIST_NONE, 0);
	rig_check_tidy(rig, 1);
	assert_int_equal(burst_of(rig, "2001:db8:5::2"), 3); /* what is left of the /64's ten */
	assert_int_equal(burst_of(rig, "2001:db8:5::1"), 0);
	rig_check_counted(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest_prefix_of_all_rules),
		cmocka_unit_test(test_shortest_prefixes),
		cmocka_unit_test(test_list_over_limits),
		cmocka_unit_test(test_listed_are_counted),
		cmocka_unit_test(test_hosts_split_their_64),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
