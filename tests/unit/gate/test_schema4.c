// SPDX-License-Identifier: GPL-2.0
/*
 * user/gate/schema4.h: a gate that the last version of schema 4 recorded, converted to this
 * version.
 */
#include <jansson.h>
#include <linux/bpf.h>

#include "test.h"
#include "capture.h"
#include "gate/counters.h"
#include "gate/old_schema.h"
#include "gate/policy.h"
#include "gate/schema4.h"
#include "rules/ruleset.h"

#define DATA "tests/data/schema4/"

static const struct machine machine = {.cpus = 2, .jiffy_ns = JIFFY_NS};

static json_t *maps;

static int setup(void **state)
{
	json_t *gate = json_load_file(DATA "gate.json", 0, NULL);

	(void)state;
	maps = json_incref(json_object_get(gate, "maps"));
	json_decref(gate);
	return maps ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(maps);
	return 0;
}

static const json_t *map_recorded(const char *name)
{
	return json_object_get(maps, name);
}

static unsigned int number_of(const char *map, const char *key)
{
	return json_integer_value(json_object_get(map_recorded(map), key));
}

static void bytes_of(const char *hex, void *ret, size_t size)
{
	uint8_t *bytes = ret;

	assert_int_equal(strlen(hex), 2 * size);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
}

/* Calls `call` with each value that a map held, of each CPU. */
static void each_value(const char *map, size_t size, void (*call)(const void *value, void *data),
		       void *data)
{
	const json_t *holds = json_object_get(map_recorded(map), "holds");
	uint64_t value[OLD_VALUE_MAX / sizeof(uint64_t)];

	assert_true(json_array_size(holds) > 0);
	for (size_t i = 0; i < json_array_size(holds); i++) {
		const json_t *values = json_object_get(json_array_get(holds, i), "values");

		for (size_t cpu = 0; cpu < json_array_size(values); cpu++) {
			bytes_of(json_string_value(json_array_get(values, cpu)), value, size);
			call(value, data);
		}
	}
}

/* --- Shapes --------------------------------------------------------------------------------- */

static uint32_t type_of(const char *name)
{
	static const char *const names[] = {
		[BPF_MAP_TYPE_HASH] = "hash",
		[BPF_MAP_TYPE_ARRAY] = "array",
		[BPF_MAP_TYPE_PERCPU_ARRAY] = "percpu_array",
		[BPF_MAP_TYPE_LRU_HASH] = "lru_hash",
		[BPF_MAP_TYPE_LRU_PERCPU_HASH] = "lru_percpu_hash",
		[BPF_MAP_TYPE_LPM_TRIE] = "lpm_trie",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return 0;
}

static void test_every_map_has_the_recorded_shape(void **state)
{
	unsigned int known = 0;

	(void)state;
	for (int map = 0; map < GATE_MAPS; map++) {
		const char *name = gate_map_names[map];

		if (!schema4.map[map].type)
			continue;
		assert_int_equal(
			schema4.map[map].type,
			type_of(json_string_value(json_object_get(map_recorded(name), "type"))));
		assert_int_equal(schema4.map[map].key_size, number_of(name, "key"));
		assert_int_equal(schema4.map[map].value_size, number_of(name, "value"));
		known++;
	}
	assert_int_equal(known, json_object_size(maps));
}

/* --- The gate ------------------------------------------------------------------------------- */

static void check_state(const void *value, void *data)
{
	const struct schema4_gate *old = value;
	struct sl_gate gate = schema4.state(value);

	(void)data;
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
	assert_int_equal(gate.meeting.known_mask, number_of("known", "entries") - 1);
	assert_memory_equal(gate.meeting.secret, old->secret, sizeof(old->secret));
	for (int map = 0; map < GATE_MAPS; map++)
		assert_int_equal(gate.map_ids[map],
				 schema4.map[map].type ? number_of(gate_map_names[map], "id") : 0);
}

static void test_the_gate_keeps_its_numbers_and_finds_its_maps(void **state)
{
	(void)state;
	each_value("gate", sizeof(struct schema4_gate), check_state, NULL);
}

/* --- Policies ------------------------------------------------------------------------------- */

/* A policy, as `show` prints it, must be just so what the old version said; counts the lines. */
static void check_shown(const struct sl_policy *policy, const char *said, unsigned int *lines)
{
	struct rule rule = {.prefix = policy->prefix};
	struct capture capture = capture_begin(stdout);
	char *shown, *line;

	assert_int_equal(policy_limits(policy, &rule), OK);
	rule_print(&rule, NULL, NULL, "GATE", "");
	shown = strdup(capture_end(&capture));
	rule_free(&rule);
	for (line = strtok(shown, "\n"); line; line = strtok(NULL, "\n")) {
		char *inherit = strstr(line, " inherit no"); /* as policies of schema 4 do */

		if (inherit)
			*inherit = '\0';
		if (!strstr(said, line))
			print_error("not said by the old version: %s\n", line);
		assert_non_null(strstr(said, line));
		++*lines;
	}
	free(shown);
}

/* The limits that packets read: as many, and asked in the same order. */
static void check_compiled(const struct sl_policy *policy, const struct schema4_policy *old)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		assert_int_equal(policy->limits[family], old->limits[family]);
		for (int i = 0; i < policy->limits[family]; i++) {
			const struct sl_limit *limit = &policy->limit[family][i];

			/* cost, burst and id are words 0, 1 and 7 */
			assert_int_equal(limit->cost, old->limit[family][i].words[0]);
			assert_int_equal(limit->burst, old->limit[family][i].words[1]);
			assert_int_equal(limit->id, (uint32_t)old->limit[family][i].words[7]);
		}
	}
	assert_int_equal(policy->newcomers.cost, old->newcomers.words[0]);
	assert_int_equal(policy->newcomers.burst, old->newcomers.words[1]);
}

struct shown {
	char *said;
	unsigned int lines;
};

static void check_policy(const void *value, void *data)
{
	const struct schema4_policy *old = value;
	struct sl_counters base = schema4.counters(&old->base);
	struct shown *shown = data;
	struct sl_policy policy;

	schema4.policy(value, &machine, &policy);
	assert_int_equal(policy.since, old->since);
	assert_memory_equal(&policy.base, &base, sizeof(base));
	assert_memory_equal(policy.changed, old->changed, sizeof(old->changed));
	check_compiled(&policy, old);
	if (policy.since)
		check_shown(&policy, shown->said, &shown->lines);
}

static char *file_read(const char *path)
{
	static char text[1 << 14];
	FILE *file = fopen(path, "re");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static unsigned int lines_with(const char *text, const char *word)
{
	unsigned int count = 0;

	while ((text = strstr(text, word))) {
		count++;
		text++;
	}
	return count;
}

static void test_policies_say_what_they_said(void **state)
{
	struct shown shown = {.said = file_read(DATA "show.txt")};

	(void)state;
	each_value("policies", sizeof(struct schema4_policy), check_policy, &shown);
	assert_int_equal(shown.lines,
			 lines_with(shown.said, " set ") + lines_with(shown.said, " newcomers "));
}

/* --- Rules ---------------------------------------------------------------------------------- */

static void check_face(const struct sl_face *face, const uint32_t words[2])
{
	assert_int_equal(face->record, words[0] & 0x3fffffff);
	assert_int_equal(face->list, words[0] >> 30);
	assert_int_equal(face->until, words[1]);
}

static void check_rule(const void *value, void *data)
{
	struct sl_rule rule = schema4.rule(value);
	const uint32_t *words = value;
	unsigned int *lists = data;

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
	each_value("hosts4", sizeof(struct schema4_rule), check_rule, lists);
	each_value("hosts6", sizeof(struct schema4_rule), check_rule, lists);
	each_value("prefixes", sizeof(struct schema4_rule), check_rule, lists);
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

static void counters_sum(const void *value, void *data)
{
	struct sl_counters counters = schema4.counters(value);

	counters_add_to(data, &counters);
}

static void test_counters_come_to_what_was_said(void **state)
{
	json_t *stats = json_load_file(DATA "stats.json", 0, NULL);
	const json_t *said = json_object_get(stats, "reasons");
	struct sl_counters sum = {0};

	(void)state;
	each_value("counters", sizeof(struct schema4_counters), counters_sum, &sum);
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

	return cmocka_run_group_tests_name("schema 4", tests, setup, teardown);
}
