// SPDX-License-Identifier: GPL-2.0
/* Tests of changes of rules. A limit that keeps its id keeps the states of its sources. */
#include "rig.h"

#include <stdlib.h>
#include <netinet/in.h>
#include <bpf/bpf.h>

static uint32_t id_of(const struct rig *rig, const char *address, const char *name)
{
	return rig_limit_named(rig, address, name)->id;
}

static unsigned int slot_of(const struct rig *rig, const char *address, const char *name)
{
	return rig_limit_named(rig, address, name)->slot;
}

static uint64_t refused(const struct rig *rig, const char *address, const char *name)
{
	return rig_counters_of(rig, address).refused[slot_of(rig, address, name)].packets;
}

/* --- What a limit keeps --------------------------------------------------------------------- */

/* If the name, kind and key of a limit stay the same, the limit keeps its id and its states. */
TEST(test_limits_keep_their_levels)
{
	static const struct {
		const char *words; /* the limit that replaces `rate 1/h burst 10` */
		/*
		 * Packets that pass after the change. Before the change, the source had credit for
		 * 4 packets.
		 */
		uint64_t passes;
	} cases[] = {
		{"rate 1/h burst 10", 4},
		{"rate 1/h burst 20", 4},
		{"rate 1/h burst 3", 3},
		{"rate 2/h burst 20", 8}, /* credit of 4 packets at 1/h is 8 packets at 2/h */
		{"rate 30/min burst 40", 40},
		{"rate 1/h burst 10 start empty", 4},
		{"name all rate 1/h burst 10 match udp", 4},
		{"name all rate 1/h burst 10 match udp port 0", 4},
		{"rate 1/h burst 10 action block 1h", 4},
		{"rate 1/h burst 10 per 32/64", 4},
		{"rate 1/h burst 10 per 24", 10}, /* a limit with a new key gets new states */
		{"rate 1/h burst 10 per 32/56", 10},
		{"rate 1/h burst 10 key dst", 10},
		{"name other rate 1/h burst 10", 10},
		/*
		 * The default name of a limit depends on its match, so these limits have new
		 * states.
		 */
		{"rate 1/h burst 10 match udp", 10},
		{"rate 1/h burst 10 match tcp", 2000},
		{"window 12 per 1h", 12}, /* a limit of another kind gets new states */
		{"shape 1pps horizon 10s", 11},
	};
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t passed;

		rig_empty(rig);
		rig_limits(rig, "default", "rate 1/h burst 10", NULL);
		assert_int_equal(rig_send(rig, HOOK_EGRESS, &frame, 6), 6);
		rig_limits(rig, "default", cases[i].words, NULL);
		passed = rig_send(rig, HOOK_EGRESS, &frame, 2000);
		if (passed != cases[i].passes)
			fail_msg("%s: %lu pass, not %lu", cases[i].words, passed, cases[i].passes);
		rig_check_tidy(rig, 1);
		rig_check_counted(rig);
	}
}

/* Each change of a limit's key gives the limit a new id, even a change back to an earlier key. */
TEST(test_ids_are_used_once)
{
	static const char *const words[] = {
		"rate 1/h burst 10",	    "rate 1/h burst 10 per 24", "rate 1/h burst 10",
		"name b rate 1/h burst 10", "rate 1/h burst 10",	"rate 1/h burst 10 key dst",
		"rate 1/h burst 10",
	};
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);
	uint32_t ids[ARRAY_SIZE(words)];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		rig_limits(rig, "default", words[i], NULL);
		ids[i] = rig_limit(rig, "192.0.2.1")->id;
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(ids[i], ids[j]);
		assert_int_equal(rig_send(rig, HOOK_EGRESS, &frame, ENOUGH), 10);
	}
	rig_del(rig, "default");
	rig_limits(rig, "default", words[0], NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, ENOUGH), 10);
	rig_check_counted(rig);
}

/*
 * If other limits are added or removed, a limit keeps its id, its slot and its number of refused
 * packets.
 */
TEST(test_slots)
{
	struct rig *rig = rig_begin(state);
	struct frame udp = frame_of_proto("192.0.2.1", IPPROTO_UDP),
		     tcp = frame_of_proto("192.0.2.1", IPPROTO_TCP);
	unsigned int slots[2];
	uint32_t ids[2];

	rig_limits(rig, "default", "name a rate 1/h burst 10 match udp", "name b rate 1/h burst 5",
		   "name c rate 1/h burst 90", NULL);
	ids[0] = id_of(rig, "192.0.2.1", "a");
	ids[1] = id_of(rig, "192.0.2.1", "c");
	slots[0] = slot_of(rig, "192.0.2.1", "a");
	slots[1] = slot_of(rig, "192.0.2.1", "c");
	assert_int_equal(rig_send(rig, HOOK_XDP, &tcp, 12), 5);
	assert_int_equal(refused(rig, "192.0.2.1", "b"), 7);

	/*
	 * Limit d reuses the slot of b. The counters of d start at 0. Limit e gets the last slot.
	 */
	rig_limits(rig, "default", "name e rate 1/h burst 90", "name d rate 1/h burst 3 match tcp",
		   "name c rate 1/h burst 80", "name a rate 1/h burst 10 match udp", NULL);
	assert_int_equal(id_of(rig, "192.0.2.1", "a"), ids[0]);
	assert_int_equal(id_of(rig, "192.0.2.1", "c"), ids[1]);
	assert_int_equal(slot_of(rig, "192.0.2.1", "a"), slots[0]);
	assert_int_equal(slot_of(rig, "192.0.2.1", "c"), slots[1]);
	assert_int_equal(refused(rig, "192.0.2.1", "d"), 0);
	assert_int_equal(refused(rig, "192.0.2.1", "e"), 0);
	assert_int_equal(rig_send(rig, HOOK_XDP, &tcp, 9), 3);
	assert_int_equal(rig_send(rig, HOOK_XDP, &udp, 30), 10);
	assert_int_equal(refused(rig, "192.0.2.1", "d"), 6);
	assert_int_equal(refused(rig, "192.0.2.1", "a"), 20);

	/*
	 * Remove all limits except a. Limit a keeps its id, its slot and its number of refused
	 * packets.
	 */
	rig_limits(rig, "default", "name a rate 1/h burst 11 match udp", NULL);
	assert_int_equal(id_of(rig, "192.0.2.1", "a"), ids[0]);
	assert_int_equal(slot_of(rig, "192.0.2.1", "a"), slots[0]);
	assert_int_equal(refused(rig, "192.0.2.1", "a"), 20);
	assert_int_equal(rig_counters_of(rig, "192.0.2.1").reason[SL_DROP_OVER_LIMIT].packets,
			 7 + 6 + 20);
	assert_int_equal(rig_send(rig, HOOK_XDP, &udp, 1), 0);
	assert_int_equal(rig_send(rig, HOOK_XDP, &tcp, 5), 5);
	rig_check_tidy(rig, 1);
	rig_check_counted(rig);
}

/* --- Counters ------------------------------------------------------------------------------- */

/*
 * A new policy can get the number of a deleted policy. The counters of the new policy start at 0.
 */
TEST(test_numbers_are_used_again)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);
	unsigned int number;

	rig_limits(rig, "192.0.2.0/24", "rate 1/h burst 5", "name b rate 1/h burst 3", NULL);
	number = SL_POLICY(rig_policy(rig, "192.0.2.1") - rig->gate.checked);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 10), 3);
	rig_del(rig, "192.0.2.0/24");
	rig->gate.state->next_policy = number;
	rig_limits(rig, "192.0.2.1", "name x rate 1/h burst 7", "name y rate 1/h burst 2", NULL);
	assert_int_equal(SL_POLICY(rig_policy(rig, "192.0.2.1") - rig->gate.checked), number);
	assert_int_equal(rig_counters_of(rig, "192.0.2.1").reason[SL_PASS_WITHIN].packets, 0);
	assert_int_equal(refused(rig, "192.0.2.1", "x"), 0);
	assert_int_equal(refused(rig, "192.0.2.1", "y"), 0);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 10), 2);
	assert_int_equal(refused(rig, "192.0.2.1", "y"), 8);
	rig_limits(rig, "192.0.2.1", "name x rate 1/h burst 8", NULL);
	assert_int_equal(rig_counters_of(rig, "192.0.2.1").reason[SL_PASS_WITHIN].packets, 2);
	assert_int_equal(refused(rig, "192.0.2.1", "x"), 0);
	rig_check_counted(rig);
}

/* --- Other limits --------------------------------------------------------------------------- */

static struct sl_bucket bucket_of(const struct rig *rig, const char *address)
{
	struct sl_prefix prefix = prefix_of(address);
	struct source source;
	struct sl_bucket bucket;

	assert_int_equal(source_read(&rig->gate, NULL, &prefix, &source), 0);
	assert_int_equal(source.count, 1);
	bucket = source.buckets[0];
	source_free(&source);
	return bucket;
}

static struct sl_state state_of(const struct rig *rig, const char *address)
{
	struct sl_prefix prefix = prefix_of(address);
	struct sl_state state;

	assert_true(rig_state(rig, &prefix, rig_limit(rig, address), &state));
	return state;
}

/* A change of other rules does not affect the slice to which packets are charged. */
static void check_unnoticed(struct rig *rig, struct ruleset *set)
{
	struct sl_state state = state_of(rig, "192.0.2.1"), after;
	struct sl_bucket bucket = bucket_of(rig, "192.0.2.1");
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);
	uint64_t cost = rig_limit(rig, "192.0.2.1")->cost;
	uint32_t generation = rig->gate.state->generation;

	assert_int_equal(rig_change(rig, set), 0);
	*set = (struct ruleset){0};
	assert_int_equal(rig->gate.state->generation, generation + 1);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 1), 1);
	after = state_of(rig, "192.0.2.1");
	assert_memory_equal(&after, &state, sizeof(state));
	assert_int_equal(bucket_of(rig, "192.0.2.1").slice[0].credit,
			 bucket.slice[0].credit - cost);
	assert_int_equal(bucket_of(rig, "192.0.2.1").generation, generation + 1);
}

TEST(test_others_keep_their_slices)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_of_proto("192.0.2.1", IPPROTO_UDP);
	struct ruleset set = {0};

	rig_limits(rig, "192.0.0.0/16", "rate 1/min burst 1000", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 2), 2);
	assert_true(bucket_of(rig, "192.0.2.1").slice[0].credit > 0);

	rules_add_limits(&set, "default", "rate 1/h burst 5", NULL);
	check_unnoticed(rig, &set);
	rules_add_limits(&set, "192.0.2.2", "rate 1/h burst 5", NULL);
	rules_add_list(&set, "198.51.100.0/24", SL_ACCESS_DENY, 0);
	rules_add_list(&set, "2001:db8::1", SL_ACCESS_DENY, 0);
	check_unnoticed(rig, &set);
	/* The new ruleset contains the limits of default and 192.0.0.0/16 unchanged. */
	rules_add_limits(&set, "192.0.0.0/16", "rate 1/min burst 1000", NULL);
	rules_add_limits(&set, "default", "rate 2/h burst 5", NULL);
	check_unnoticed(rig, &set);
	rules_add_list(&set, "192.0.2.2", SL_ACCESS_NONE, 0);
	rules_add_list(&set, "default", SL_ACCESS_DENY, 0);
	check_unnoticed(rig, &set);
	/* A change of a rule with a longer prefix does not change the slice. */
	rig_limits(rig, "192.0.2.0/24", "rate 1/h burst 5", NULL);
	rig_del(rig, "192.0.2.0/24");
	rules_add_list(&set, "default", SL_ACCESS_NONE, 0);
	check_unnoticed(rig, &set);
	for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
		rig_run_on(rig, cpu);
		rig_send(rig, HOOK_INGRESS, &frame, 1100);
	}
	assert_int_equal(rig->passed.packets, 1000);
	rig_check_counted(rig);
}

static int64_t credit_of(const struct rig *rig, const char *name)
{
	return bucket_of(rig, "192.0.2.1").slice[slot_of(rig, "192.0.2.1", name)].credit;
}

/*
 * After a change of limits, the next packet returns unused credit from the slices to the states. If
 * the key of a limit changes, this credit is lost.
 */
TEST(test_limits_keep_their_slices)
{
	static const struct {
		const char *limits[3];
		bool stays[2]; /* whether the slices of t and u keep their credit */
	} changes[] = {
		{{"name t rate 1/min burst 1000 match tcp",
		  "name u rate 1/min burst 1000 match udp", "name x rate 1/h burst 500"},
		 {true, true}},
		{{"name u rate 1/min burst 1000 match udp",
		  "name t rate 1/min burst 1000 match tcp"},
		 {true, true}},
		{{"name u rate 1/min burst 900 match udp",
		  "name t rate 2/min burst 1000 match tcp"},
		 {true, true}},
		{{"name u rate 1/min burst 900 match udp action observe",
		  "name t rate 2/min burst 1000 match tcp vlan 9"},
		 {true, true}},
		{{"name u rate 1/min burst 900 match udp per 24",
		  "name t rate 2/min burst 1000 match tcp"},
		 {true, false}},
		{{"name u rate 1/min burst 900 match udp",
		  "name v rate 2/min burst 1000 match tcp"},
		 {false, false}},
	};
	struct rig *rig = rig_begin(state);
	struct frame udp = frame_of_proto("192.0.2.1", IPPROTO_UDP),
		     tcp = frame_of_proto("192.0.2.1", IPPROTO_TCP);
	struct frame gre = frame_of_proto("192.0.2.1", 47);
	int64_t t, u;

	rig_limits(rig, "default", "name t rate 1/min burst 1000 match tcp",
		   "name u rate 1/min burst 1000 match udp", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		const char *const *limits = changes[i].limits;

		assert_int_equal(rig_send(rig, HOOK_XDP, &tcp, 2), 2);
		assert_int_equal(rig_send(rig, HOOK_XDP, &udp, 2), 2);
		t = credit_of(rig, "t");
		u = credit_of(rig, "u");
		rig_limits(rig, "default", limits[0], limits[1], limits[2], NULL);
		/* Each packet updates the bucket, even if no limit matches the packet. */
		assert_int_equal(rig_send(rig, HOOK_XDP, &gre, 1), 1);
		if (i + 1 < ARRAY_SIZE(changes))
			assert_int_equal(credit_of(rig, "t"), changes[i].stays[0] ? t : 0);
		else
			assert_int_equal(credit_of(rig, "v"), 0);
		assert_int_equal(credit_of(rig, "u"), changes[i].stays[1] ? u : 0);
		rig_check_tidy(rig, 1);
	}
	rig_check_counted(rig);
}

/* Unused credit of a slice returns only to the state from which it was borrowed. */
TEST(test_slices_are_of_their_states)
{
	struct rig *rig = rig_begin(state);
	struct frame one = frame_of_proto("192.0.2.1", IPPROTO_UDP),
		     other = frame_of_proto("192.0.2.2", IPPROTO_UDP);

	rig_limits(rig, "default", "name u rate 1/min burst 1000", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, 2), 2);
	assert_true(credit_of(rig, "u") > 0);
	rig_limits(rig, "default", "name u rate 1/min burst 1000 per 24", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &other, 1100), 1000);
	rig_limits(rig, "default", "name u rate 1/min burst 1000 per 24",
		   "name x rate 1/h burst 500", NULL);
	rig_limits(rig, "default", "name u rate 1/min burst 1001 per 24", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &one, 100), 0);
	rig_check_counted(rig);
}

TESTS(rig_setup, rig_teardown)
