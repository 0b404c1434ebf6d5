// SPDX-License-Identifier: GPL-2.0
/*
 * user/gate/schema4.h: a gate that the last version of schema 4 recorded, converted to this
 * version.
 */
#include "recorded_gate.h"
#include "gate/compile.h"
#include "gate/schema4.h"

#define DATA "tests/data/schema4/"

static int setup(void **state)
{
	(void)state;
	return recorded_open(DATA "gate.json");
}

/* --- The gate ------------------------------------------------------------------------------- */

static void test_every_map_has_the_recorded_shape(void **state)
{
	(void)state;
	check_shapes(&schema4);
}

static void check_state(const void *key, const void *value, void *data)
{
	const struct schema4_gate *old = value;
	struct sl_gate gate = schema4.state(value, sizeof(*old));

	(void)key, (void)data;
	assert_int_equal(old->schema, 4);
	assert_int_equal(gate.schema, SL_SCHEMA);
	assert_int_equal(gate.generation, old->generation);
	assert_int_equal(gate.jiffy_ns, 4000000);
	assert_int_equal(gate.hosts, 5);
	assert_int_equal(gate.prefixes, 8);
	assert_int_equal(gate.split_rules, 2);
	assert_int_equal(gate.changing, 0);
	assert_int_equal(gate.next_limit, old->next_limit);
	assert_int_equal(gate.policies_seen, old->policies_seen);
	assert_memory_equal(gate.meeting.secret, old->secret, sizeof(old->secret));
	check_map_ids(&schema4, &gate);
}

static void test_the_gate_keeps_its_numbers_and_finds_its_maps(void **state)
{
	(void)state;
	each_entry(&schema4, MAP_GATE, check_state, NULL);
}

/* --- Policies ------------------------------------------------------------------------------- */

/* The limits that packets read: as many, and asked in the same order. */
static void check_compiled(const struct sl_policy *policy, const struct schema4_policy *old)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		assert_int_equal(policy->limits[family], old->limits[family]);
		for (int i = 0; i < policy->limits[family]; i++)
			check_limit(&policy->limit[family][i], old->limit[family][i].words);
	}
	check_limit(&policy->newcomers, old->newcomers.words);
}

static void check_policy(const void *key, const void *value, void *data)
{
	const struct schema4_policy *old = value;
	struct sl_counters base = schema4.counters(&old->base);
	struct sl_policy policy;

	(void)key;
	schema4.policy(value, &policy);
	policy_compile(&policy, &machine);
	assert_int_equal(policy.since, old->since);
	assert_memory_equal(&policy.base, &base, sizeof(base));
	assert_memory_equal(policy.changed, old->changed, sizeof(old->changed));
	check_compiled(&policy, old);
	if (policy.since)
		check_shown(&policy, data);
}

static void test_policies_say_what_they_said(void **state)
{
	struct said said = {file_read(DATA "show.txt"), " inherit no", 0};

	(void)state;
	each_entry(&schema4, MAP_POLICIES, check_policy, &said);
	assert_int_equal(said.lines,
			 lines_with(said.text, " set ") + lines_with(said.text, " newcomers "));
}

/* --- Rules ---------------------------------------------------------------------------------- */

static void check_face(const struct sl_face *face, const uint32_t words[2])
{
	assert_int_equal(face->record, words[0] & 0x3fffffff);
	assert_int_equal(face->list, words[0] >> 30);
	assert_int_equal(face->until, words[1]);
}

static void check_rule(const void *key, const void *value, void *data)
{
	struct sl_rule rule = schema4.rule(value);
	const uint32_t *words = value;
	unsigned int *lists = data;

	(void)key;
	assert_int_equal(rule.since, words[0]);
	assert_int_equal(rule.bits, words[1]);
	check_face(&rule.now, words + 2);
	check_face(&rule.before, words + 4);
	lists[rule.now.list]++;
}

static void test_rules_keep_their_lists_and_ends(void **state)
{
	unsigned int lists[3] = {0};

	(void)state;
	each_entry(&schema4, MAP_HOSTS4, check_rule, lists);
	each_entry(&schema4, MAP_HOSTS6, check_rule, lists);
	each_entry(&schema4, MAP_PREFIXES, check_rule, lists);
	assert_int_equal(lists[SL_LIST_NONE], 4);
	assert_int_equal(lists[SL_LIST_ALLOW], 3);
	assert_int_equal(lists[SL_LIST_DENY], 6); /* one of them has ended */
}

/* --- Counters ------------------------------------------------------------------------------- */

/*
 * What each reason is called, and what its packets met. Packets that passed for their depth of tags
 * stay what passed, and vlan-depth is a drop now; oversize is none any more, and stays a drop by a
 * limit.
 */
static const struct {
	const char *name;
	bool dropped;
} reasons[SCHEMA4_REASONS] = {
	{"within-limit", false}, {"newcomer", false}, {"allowed", false},    {"no-rule", false},
	{"not-ip", false},	 {"short", false},    {"bad-header", false}, {"not-ip", false},
	{"over-limit", true},	 {"blocked", true},   {"over-budget", true}, {"denied", true},
	{"over-limit", true},	 {"contended", true},
};

static void test_each_reason_keeps_its_name_and_its_verdict(void **state)
{
	(void)state;
	for (int reason = 0; reason < SCHEMA4_REASONS; reason++) {
		struct schema4_counters old = {0};
		struct sl_counters counters;
		struct sl_cell total;

		old.reason[reason] = (struct schema4_cell){3, 200};
		counters = schema4.counters(&old);
		total = reasons[reason].dropped ? counters_dropped(&counters)
						: counters_passed(&counters);
		assert_int_equal(total.packets, 3);
		assert_int_equal(total.bytes, 200);
		for (int i = 0; i < SL_REASONS; i++)
			if (counters.reason[i].packets)
				assert_string_equal(reason_names[i], reasons[reason].name);
	}
}

static void counters_sum(const void *key, const void *value, void *data)
{
	struct sl_counters counters = schema4.counters(value);

	(void)key;
	counters_add_to(data, &counters);
}

static void test_counters_come_to_what_was_said(void **state)
{
	json_t *stats = json_load_file(DATA "stats.json", 0, NULL);
	const json_t *said = json_object_get(stats, "reasons");
	struct sl_counters sum = {0};

	(void)state;
	each_entry(&schema4, MAP_COUNTERS, counters_sum, &sum);
	for (int i = 0; i < SL_REASONS; i++) {
		unsigned int told = json_integer_value(json_object_get(said, reason_names[i]));

		if (i == SL_PASS_NOT_IP)
			told += json_integer_value(json_object_get(said, "vlan-depth"));
		if (i != SL_DROP_VLAN_DEPTH)
			assert_int_equal(sum.reason[i].packets, told);
	}
	assert_int_equal(sum.reason[SL_DROP_VLAN_DEPTH].packets, 0);
	assert_int_equal(counters_passed(&sum).packets + counters_dropped(&sum).packets, 85);
	json_decref(stats);
}

static void test_each_slot_keeps_what_it_refused(void **state)
{
	struct schema4_counters old = {.refused = {{1, 10}, {2, 20}, {3, 30}, {4, 40}}};
	struct sl_counters counters = schema4.counters(&old);

	(void)state;
	assert_memory_equal(counters.refused, old.refused, sizeof(old.refused));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_map_has_the_recorded_shape),
		cmocka_unit_test(test_the_gate_keeps_its_numbers_and_finds_its_maps),
		cmocka_unit_test(test_policies_say_what_they_said),
		cmocka_unit_test(test_rules_keep_their_lists_and_ends),
		cmocka_unit_test(test_each_reason_keeps_its_name_and_its_verdict),
		cmocka_unit_test(test_counters_come_to_what_was_said),
		cmocka_unit_test(test_each_slot_keeps_what_it_refused),
	};

	return cmocka_run_group_tests_name("schema 4", tests, setup, recorded_close);
}
