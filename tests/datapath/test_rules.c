// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of which rule decides about a packet, before and after changes. test_lists.c and
 * test_rule_cache.c prove that the longest prefix decides.
 */
#include "rig.h"

#include <fcntl.h>
#include <stdlib.h>

#include "gate/rules.h"

static void set_burst(struct rig *rig, const char *prefix, unsigned int burst)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", burst);
	rig_set(rig, prefix, "1/h", text);
}

/*
 * Policy `default` applies to IPv4 and IPv6. A policy of 0.0.0.0/0 or ::/0 applies to one family.
 */
TEST(test_default_and_the_whole_families)
{
	struct rig *rig = rig_begin(state);

	set_burst(rig, "0.0.0.0/0", 3);
	assert_int_equal(rig_burst_of(rig, "192.0.2.1"), 3);
	assert_int_equal(rig_burst_of(rig, "2001:db8::1"), ENOUGH);
	set_burst(rig, "default", 2);
	assert_int_equal(rig_burst_of(rig, "192.0.2.2"), 3);
	assert_int_equal(rig_burst_of(rig, "2001:db8:0:1::1"), 2);
	rig_del(rig, "0.0.0.0/0");
	assert_int_equal(rig_burst_of(rig, "192.0.2.3"), 2);
	set_burst(rig, "::/0", 4);
	assert_int_equal(rig_burst_of(rig, "2001:db8:0:2::1"), 4);
	rig_del(rig, "default");
	assert_int_equal(rig_burst_of(rig, "192.0.2.4"), ENOUGH);
	assert_int_equal(rig_burst_of(rig, "2001:db8:0:3::1"), 4);
	rig_del(rig, "::/0");
	assert_int_equal(rig_burst_of(rig, "2001:db8:0:4::1"), ENOUGH);
	rig_check_tidy(rig, 0);
	rig_check_counted(rig);
}

/* --- Longer than /64 ------------------------------------------------------------------------ */

TEST(test_split)
{
	struct rig *rig = rig_begin(state);
	struct frame one = frame_from("2001:db8:5::1", 60), two = frame_from("2001:db8:5::2", 60);

	set_burst(rig, "2001:db8::/32", 8);
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, 3), 3); /* the source gets a bucket */
	set_burst(rig, "2001:db8:5::1", 20);
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, ENOUGH), 20);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &two, ENOUGH), 5);
	assert_int_equal(rig_burst_of(rig, "2001:db8:5::3"), 0);
	assert_int_equal(rig_burst_of(rig, "2001:db8:6::1"), 8); /* another /64 */

	/* Until both rules in the /64 are deleted, each packet from the /64 needs a lookup. */
	set_burst(rig, "2001:db8:5::4", 11);
	assert_int_equal(rig_burst_of(rig, "2001:db8:5::4"), 11);
	rig_check_tidy(rig, 3);
	rig_del(rig, "2001:db8:5::1");
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, ENOUGH), 0);
	rig_clock_forward(rig, 3600 * SEC);
	assert_int_equal(rig_burst_of(rig, "2001:db8:5::4"), 1);
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, ENOUGH), 1);
	rig_del(rig, "2001:db8:5::4");
	rig_check_tidy(rig, 1);
	rig_clock_forward(rig, 9 * 3600 * SEC);
	assert_int_equal(rig_burst_of(rig, "2001:db8:5::4"), 8);
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, ENOUGH), 0);
	rig_check_counted(rig);
}

/* --- Set and delete ------------------------------------------------------------------------- */

TEST(test_delete_falls_back)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from("10.1.2.3", 60);

	set_burst(rig, "default", 3);
	set_burst(rig, "10.1.0.0/16", 5);
	set_burst(rig, "10.1.2.3", 7);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), 7);
	rig_del(rig, "10.1.2.3");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), 5);
	rig_del(rig, "10.1.0.0/16");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), 3);
	set_burst(rig, "10.1.2.3", 7);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), 7);
	rig_del(rig, "10.1.2.3");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), 0);
	rig_del(rig, "default");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), ENOUGH);
	rig_check_tidy(rig, 0);
	rig_check_counted(rig);
}

/* Deleting a rule that does not exist does not delete the rule of a shorter prefix. */
TEST(test_delete_what_is_not_there)
{
	struct rig *rig = rig_begin(state);

	set_burst(rig, "10.1.0.0/16", 5);
	rig_del(rig, "10.1.2.0/24");
	rig_del(rig, "10.1.2.3");
	rig_del(rig, "default");
	rig_del(rig, "2001:db8::1");
	assert_int_equal(rig_burst_of(rig, "10.1.2.3"), 5);
	rig_check_tidy(rig, 1);
}

/* --- A reader's copies ---------------------------------------------------------------------- */

/* Opens the gate read-only, with copies of maps, like a member of the gate's group. */
static struct gate reader_of(const struct gate *gate)
{
	struct gate reader = GATE_CLOSED;

	reader.machine = gate->machine;
	reader.dir.reads_only = true;
	for (int map = 0; map < GATE_MAPS; map++)
		reader.map[map] = fcntl(gate->map[map], F_DUPFD_CLOEXEC, 0);
	assert_int_equal(gate_map_state(&reader), 0);
	assert_int_equal(gate_map_rules(&reader), 0);
	return reader;
}

static void check_same_rules(const struct gate *gate, const struct gate *reader)
{
	struct ruleset rules = {0}, seen = {0};

	assert_int_equal(rules_read(gate, &rules), 0);
	assert_int_equal(rules_read(reader, &seen), 0);
	assert_int_equal(seen.count, rules.count);
	for (unsigned int i = 0; i < rules.count; i++)
		assert_true(rule_equal(&seen.rules[i], &rules.rules[i]));
	ruleset_free(&rules);
	ruleset_free(&seen);
}

/* A reader sees each change. */
TEST(test_a_reader_sees_each_change)
{
	struct rig *rig = rig_begin(state);
	struct gate reader;
	char prefix[32];

	set_burst(rig, "10.1.0.0/16", 5);
	reader = reader_of(&rig->gate);
	check_same_rules(&rig->gate, &reader);
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(prefix, sizeof(prefix), "10.%u.0.0/16", i);
		rig_del(rig, "10.1.0.0/16");
		set_burst(rig, prefix, 6 + i);
		if (i % 3)
			rig_del(rig, prefix);
		set_burst(rig, "10.1.0.0/16", 20 + i);
		check_same_rules(&rig->gate, &reader);
	}
	gate_close(&reader);
}

TESTS(rig_setup, rig_teardown)
