// SPDX-License-Identifier: GPL-2.0
/*
 * user/gate/schema6.h, schema7.c: gates that the last versions of schemas 6 and 7 recorded,
 * converted to this version.
 */
#include "recorded_gate.h"
#include "aggregate.h"
#include "gate/compile.h"
#include "gate/schema6.h"
#include "list_ends.h"
#include "rules/prefix.h"
#include "rules/sizes.h"
#include "seat.h"
#include "table_find.h"

/* What differs between the gates. */
static const struct row {
	const char *name;
	const char *data;
	const struct old_schema *schema;
	uint32_t generation;
	uint32_t prefixes;
	uint32_t next_limit;
	uint32_t policies_seen;
	size_t trial_at;      /* in the entry of `gate` */
	size_t groups_at;     /* in a compiled limit */
	unsigned int limited; /* rules without an entry by hand */
	uint64_t passed;
	uint64_t dropped;
} rows[] = {
	{"schema 6", "tests/data/schema6/", &schema6, 35, 17, 19, 15, 536, 80, 17, 93, 36},
	{"schema 7", "tests/data/schema7/", &schema7, 37, 19, 21, 17, 528, 78, 19, 98, 39},
};

static const struct row *row;
static const struct old_schema *schema; /* that of the row */

static const char *data_name(const char *file)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s%s", row->data, file);
	return name;
}

static int setup(void **state)
{
	(void)state;
	return recorded_open(data_name("gate.json"));
}

/* --- The gate ------------------------------------------------------------------------------- */

static void test_every_map_has_the_recorded_shape(void **state)
{
	(void)state;
	check_shapes(schema);
}

/* Where both schemas have the same in the entry of `gate`. */
#define CHANGING_AT (6 * sizeof(uint32_t))
#define SECRET_AT   152

static void check_state(const void *key, const void *value, void *data)
{
	struct sl_gate gate = schema->state(value, schema->map[MAP_GATE].value_size);

	(void)key;
	assert_int_equal(*(const uint32_t *)value, schema->number);
	assert_int_equal(gate.schema, SL_SCHEMA);
	assert_int_equal(gate.generation, row->generation);
	assert_int_equal(gate.jiffy_ns, 4000000);
	assert_int_equal(gate.hosts, 9);
	assert_int_equal(gate.prefixes, row->prefixes);
	assert_int_equal(gate.split_rules, 2);
	assert_int_equal(gate.changing, 0);
	assert_int_equal(gate.hand_allows, 3);
	assert_int_equal(gate.next_limit, row->next_limit);
	assert_int_equal(gate.next_policy, row->policies_seen);
	assert_int_equal(gate.policies_seen, row->policies_seen);
	assert_int_equal(gate.sizes_stated, (1 << SIZES) - 1);
	assert_memory_equal(gate.meeting.secret, (const uint8_t *)value + SECRET_AT,
			    sizeof(gate.meeting.secret));
	check_map_ids(schema, &gate);
	*(struct sl_gate *)data = gate;
}

static struct sl_gate gate_converted(void)
{
	struct sl_gate gate = {0};

	each_entry(schema, MAP_GATE, check_state, &gate);
	return gate;
}

static void test_the_gate_keeps_its_numbers_and_finds_its_maps(void **state)
{
	(void)state;
	assert_int_equal(gate_converted().schema, SL_SCHEMA);
}

/* Else an upgrade would put rules in force that nobody has confirmed. */
static void test_the_gate_keeps_that_its_rules_are_on_trial(void **state)
{
	_Alignas(struct sl_gate) uint8_t old[OLD_VALUE_MAX] = {0};
	const uint64_t until = 1ULL << 40;
	struct sl_gate gate;

	(void)state;
	memcpy(old + row->trial_at, &until, sizeof(until));
	old[row->trial_at + sizeof(until)] = 7;
	gate = schema->state(old, schema->map[MAP_GATE].value_size);
	assert_int_equal(gate.trial_until, until);
	assert_int_equal(gate.trial, 7);
}

/* Their sizes of sources were stated, as those of older schemas: other sizes grow. */
static void test_the_first_gates_of_schema_6_end_before_trials(void **state)
{
	const struct schema6_gate old = {.schema = 6, .prefixes = 3, .list_ends = {[63] = 9}};
	const struct map_shape *shape = &schema6.map[MAP_GATE];
	struct sl_gate gate = schema6.state(&old, shape->first_value_size);

	(void)state;
	assert_int_equal(shape->first_value_size, 536);
	assert_int_equal(gate.prefixes, 3);
	assert_int_equal(gate.list_ends[63], 9);
	assert_int_equal(gate.sizes_stated, SIZES_OF_SOURCES);
	assert_int_equal(gate.trial_until, 0);
}

/* They had the number of nodes elsewhere. */
static void test_the_first_gates_of_schema_7_end_before_what_divides_limits(void **state)
{
	struct sl_gate old = {
		.schema = 7, .sizes_stated = 3, .meeting = {.hot = 64, .sketch_mask = 5}};
	const struct map_shape *shape = &schema7.map[MAP_GATE];
	struct sl_gate gate = schema7.state(&old, shape->first_value_size);

	(void)state;
	assert_int_equal(shape->first_value_size, 544);
	assert_int_equal(gate.sizes_stated, 3);
	assert_int_equal(gate.meeting.hot, 64);
	assert_int_equal(gate.meeting.sketch_mask, 0);
	assert_int_equal(gate.nodes, 5);
	assert_int_equal(gate.divide_at, 0);
	old.nodes = 3;
	old.divide_at = 1ULL << 50;
	gate = schema7.state(&old, sizeof(old));
	assert_int_equal(gate.nodes, 3);
	assert_int_equal(gate.divide_at, old.divide_at);
}

/* A change that is cut off raises it, and the next gate undoes the change. */
static void test_the_gate_keeps_that_a_change_is_under_way(void **state)
{
	_Alignas(struct sl_gate) uint8_t old[OLD_VALUE_MAX] = {[CHANGING_AT] = 1};

	(void)state;
	assert_int_equal(schema->state(old, schema->map[MAP_GATE].value_size).changing, 1);
}

/* --- Lists ---------------------------------------------------------------------------------- */

/* By place. `feed` has moved, as it got another end; `spent` has ended. */
static const struct {
	const char *name;
	enum sl_list access;
	bool ends;
} lists[] = {
	[1] = {"bogons", SL_LIST_DENY, false},
	[2] = {"office", SL_LIST_ALLOW, false},
	[3] = {"spent", SL_LIST_DENY, true},
	[4] = {"feed", SL_LIST_DENY, true},
};

struct check_lists {
	struct sl_gate gate;
	unsigned int count;
};

static void check_list(const void *key, const void *value, void *data)
{
	struct check_lists *check = data;
	struct sl_list_info list = schema->list(value);
	uint32_t place = *(const uint32_t *)key;
	uint64_t bit = 1ULL << place;
	const uint32_t *words = value;

	assert_true(place < ARRAY_SIZE(lists) && lists[place].name);
	assert_string_equal(list.name, lists[place].name);
	assert_int_equal(list.since, words[0]);
	assert_int_equal(list.gone, words[1]);
	assert_int_equal(list.until, words[2]);
	assert_int_equal(list.replaced, words[4]);
	assert_int_equal(list.list, lists[place].access);
	assert_int_equal(!!list.until, lists[place].ends);
	assert_int_equal(!!(check->gate.lists_allow & bit), list.list == SL_LIST_ALLOW);
	assert_int_equal(!!(check->gate.lists_ending & bit), !!list.until);
	if (list.until)
		assert_int_equal(check->gate.list_ends[list_end_index(bit)], list.until);
	check->count++;
}

static void test_lists_keep_their_places_accesses_and_ends(void **state)
{
	struct check_lists check = {.gate = gate_converted()};

	(void)state;
	each_entry(schema, MAP_LISTS, check_list, &check);
	assert_int_equal(check.count, 4);
}

/* --- Policies ------------------------------------------------------------------------------- */

/* A limit as schema 6 compiled it, up to where schema 7 has fewer bytes of flags. */
struct compiled {
	__u64 cost;
	__u64 burst;  /* or most, or horizon */
	__u64 refill; /* or period */
	__u64 purse;  /* or factor */
	__u64 block;
	__u64 block_max;
	__u64 mask[2];
	__u32 id;
	__u32 life;
	__u8 kind;
	__u8 by_bytes;
	__u8 flags[14];
};

/* Behind the flags. */
struct compiled_scale {
	__u8 groups;
	__u8 bits;
	__u8 shift;
	__u8 coarse;
	__u8 escalate;
	__u8 steps_max;
};

_Static_assert(sizeof(struct compiled) == sizeof(struct schema6_limit), "schema 6");

/*
 * All that the words of its ledgers depend on: those are carried as they are, and the index of a
 * window means nothing by another scale.
 */
static void check_words(const struct sl_limit *limit, const struct schema6_limit *old)
{
	const struct compiled *was = (const struct compiled *)old;
	const struct compiled_scale *scale = (const void *)((const uint8_t *)old + row->groups_at);

	assert_int_equal(limit->id, was->id);
	assert_int_equal(limit->kind, was->kind);
	assert_int_equal(limit->cost, was->cost);
	assert_int_equal(limit->burst, was->burst);
	assert_int_equal(limit->by_bytes, was->by_bytes);
	assert_int_equal(limit->block, was->block);
	assert_int_equal(limit->block_max, was->block_max);
	assert_int_equal(limit->escalate, scale->escalate);
	assert_int_equal(limit->steps_max, scale->steps_max);
	assert_memory_equal(limit->mask, was->mask, sizeof(was->mask));
	assert_int_equal(limit->groups, scale->groups);
	assert_int_equal(limit->bits, scale->bits);
	assert_int_equal(limit->shift, scale->shift);
	assert_int_equal(limit->coarse, scale->coarse);
	assert_int_equal(limit->refill, was->refill);
	if (limit->kind == SL_WINDOW)
		assert_int_equal(limit->factor, was->purse);
}

/* The limits that packets read: as many, and asked in the same order. */
static void check_compiled(const struct sl_policy *policy, const struct schema6_policy *old)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		assert_int_equal(policy->limits[family], old->limits[family]);
		for (int i = 0; i < policy->limits[family]; i++)
			check_words(&policy->limit[family][i], &old->limit[family][i]);
	}
	check_words(&policy->newcomers, &old->newcomers);
	assert_int_equal(policy->deep, old->deep);
}

static void check_policy(const void *key, const void *value, void *data)
{
	const struct schema6_policy *old = value;
	struct sl_counters base = schema->counters(&old->base);
	struct sl_policy policy;

	(void)key;
	schema->policy(value, &policy);
	policy_compile(&policy, &machine);
	assert_int_equal(policy.since, old->since);
	assert_int_equal(policy.inherits, old->inherits);
	assert_int_equal(policy.newcomers_since, old->newcomers_since);
	assert_memory_equal(&policy.base, &base, sizeof(base));
	assert_memory_equal(policy.changed, old->changed, sizeof(old->changed));
	check_compiled(&policy, old);
	if (policy.since)
		check_shown(&policy, data);
}

static void test_policies_say_what_they_said(void **state)
{
	struct said said = {file_read(data_name("show.txt")), NULL, 0};

	(void)state;
	each_entry(schema, MAP_POLICIES, check_policy, &said);
	assert_int_equal(said.lines,
			 lines_with(said.text, " set ") + lines_with(said.text, " newcomers "));
}

/* What heirs have from others: slots by policy. The record of `default` is 6, so its policy 3. */
#define DEFAULT 6
#define WEB	10 /* 192.0.2.96/28 */
#define NET6	18 /* 2001:db8::/32 */
#define MINUTE	25 /* 100.64.0.0/16 */

static const struct {
	uint32_t record;
	uint32_t parent;
	uint32_t newcomers_home;
	uint32_t home[SL_LIMITS_MAX];
} heirs[] = {
	{WEB, DEFAULT, 3, {0, SL_HOME(3, 0), SL_HOME(3, 1)}},
	{12, WEB, 3, {0, SL_HOME(5, 0), SL_HOME(3, 1)}},  /* 192.0.2.99 */
	{NET6, DEFAULT, 3, {0, SL_HOME(3, 1)}},		  /* has a limit `all` of its own */
	{21, NET6, 0, {0, SL_HOME(9, 0), SL_HOME(3, 1)}}, /* 2001:db8:7::/48, with a budget */
	{MINUTE, DEFAULT, 3, {0, SL_HOME(3, 0), SL_HOME(3, 1)}},
	{9, 0, 0, {0}}, /* 198.51.100.0/24 does not */
};

static void check_heir(const void *key, const void *value, void *data)
{
	uint32_t record = *(const uint32_t *)key;
	unsigned int *count = data;
	struct sl_policy policy;

	for (size_t i = 0; i < ARRAY_SIZE(heirs); i++) {
		if (heirs[i].record != record)
			continue;
		schema->policy(value, &policy);
		policy_compile(&policy, &machine);
		assert_int_equal(policy.inherits, heirs[i].parent != 0);
		assert_int_equal(policy.parent, heirs[i].parent);
		assert_int_equal(policy.newcomers_home, heirs[i].newcomers_home);
		assert_memory_equal(policy.home, heirs[i].home, sizeof(policy.home));
		++*count;
	}
}

static void test_heirs_keep_their_parents_and_the_homes_of_their_limits(void **state)
{
	unsigned int count = 0;

	(void)state;
	each_entry(schema, MAP_POLICIES, check_heir, &count);
	assert_int_equal(count, ARRAY_SIZE(heirs));
}

/* --- Rules ---------------------------------------------------------------------------------- */

static void check_face(const struct sl_face *face, const uint32_t words[4])
{
	assert_int_equal(face->record, words[0] & 0x3fffffff);
	assert_int_equal(face->list, words[0] >> 30);
	assert_int_equal(face->until, words[1]);
	assert_int_equal(face->lists, words[2] | (uint64_t)words[3] << 32);
}

struct listed {
	unsigned int by_hand[3];
	unsigned int by_lists;
};

static void check_rule(const void *key, const void *value, void *data)
{
	struct sl_rule rule = schema->rule(value);
	const uint32_t *words = value;
	struct listed *listed = data;

	(void)key;
	assert_int_equal(rule.since, words[0]);
	assert_int_equal(rule.bits, words[1]);
	check_face(&rule.now, words + 2);
	check_face(&rule.before, words + 6);
	listed->by_hand[rule.now.list]++;
	listed->by_lists += rule.now.lists != 0;
}

static void test_rules_keep_what_is_by_hand_their_lists_and_their_ends(void **state)
{
	struct listed listed = {0};

	(void)state;
	each_entry(schema, MAP_HOSTS4, check_rule, &listed);
	each_entry(schema, MAP_HOSTS6, check_rule, &listed);
	each_entry(schema, MAP_PREFIXES, check_rule, &listed);
	assert_int_equal(listed.by_hand[SL_LIST_NONE], row->limited);
	assert_int_equal(listed.by_hand[SL_LIST_ALLOW], 3);
	assert_int_equal(listed.by_hand[SL_LIST_DENY], 6); /* one of them has ended */
	assert_int_equal(listed.by_lists, 7);		   /* one list has ended */
}

/* --- Maps that the next gate shares --------------------------------------------------------- */

/* Takes a prefix of `prefixes` from the counts of the aggregates that it divides. */
static void block_take(const void *key, const void *value, void *data)
{
	const struct sl_prefix *prefix = key;
	bool ipv4 = prefix_is_ipv4(prefix);
	uint64_t head = aggregate_head(prefix, ipv4), *blocks = data;
	enum sl_aggregate_kind wide = ipv4 ? SL_AGGREGATE_IPV4 : SL_AGGREGATE_IPV6_WIDE;

	(void)value;
	if (prefix->bits > SL_FAMILY_BITS + SL_AGGREGATE_WIDE_BITS)
		blocks[aggregate_place(head, wide)]--;
	if (!ipv4 && prefix->bits > SL_FAMILY_BITS + SL_AGGREGATE_NARROW_BITS)
		blocks[aggregate_place(head, SL_AGGREGATE_IPV6_NARROW)]--;
}

static void block_put(const void *key, const void *value, void *data)
{
	uint64_t *blocks = data;

	blocks[*(const uint32_t *)key] = *(const uint64_t *)value;
}

static void test_blocks_count_what_this_version_looks_for(void **state)
{
	uint64_t *blocks = calloc(SL_AGGREGATES, sizeof(*blocks));

	(void)state;
	assert_true(schema->shared[MAP_BLOCKS] && blocks);
	each_entry(schema, MAP_BLOCKS, block_put, blocks);
	each_entry(schema, MAP_PREFIXES, block_take, blocks);
	for (unsigned int i = 0; i < SL_AGGREGATES; i++)
		assert_int_equal(blocks[i], 0);
	free(blocks);
}

/* An upgrade copies the rules if `prefixes` is not shared, and never copies `lists`. */
static void test_the_maps_of_rules_and_lists_are_shared_together(void **state)
{
	static const enum gate_map rules[] = {MAP_HOSTS4, MAP_HOSTS6, MAP_PREFIXES,
					      MAP_SPLITS, MAP_BLOCKS, MAP_LISTS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		assert_true(schema->shared[rules[i]]);
	assert_false(schema->shared[MAP_GATE]);
}

/* --- Counters ------------------------------------------------------------------------------- */

/* The name of each reason, and whether its packets were dropped. */
static const struct {
	const char *name;
	bool dropped;
} reasons[SCHEMA6_REASONS] = {
	{"within-limit", false}, {"no-limit", false},  {"newcomer", false},   {"allowed", false},
	{"no-rule", false},	 {"not-ip", false},    {"short", false},      {"bad-header", false},
	{"unreadable", true},	 {"vlan-depth", true}, {"over-limit", true},  {"oversize", true},
	{"over-horizon", true},	 {"blocked", true},    {"over-budget", true}, {"denied", true},
	{"contended", true},
};

static void test_each_reason_keeps_its_name_and_its_verdict(void **state)
{
	(void)state;
	for (int reason = 0; reason < SCHEMA6_REASONS; reason++) {
		struct schema6_counters old = {0};
		struct sl_counters counters;
		struct sl_cell total;

		old.reason[reason] = (struct schema4_cell){3, 200};
		counters = schema->counters(&old);
		if (schema->shared[MAP_COUNTERS])
			assert_memory_equal(&counters, &old, sizeof(counters));
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
	struct sl_counters counters = schema->counters(value);

	(void)key;
	counters_add_to(data, &counters);
}

static void test_counters_come_to_what_was_said(void **state)
{
	json_t *stats = json_load_file(data_name("stats.json"), 0, NULL);
	const json_t *said = json_object_get(stats, "reasons");
	struct sl_counters sum = {0};

	(void)state;
	each_entry(schema, MAP_COUNTERS, counters_sum, &sum);
	for (int i = 0; i < SL_REASONS; i++)
		assert_int_equal(sum.reason[i].packets,
				 json_integer_value(json_object_get(said, reason_names[i])));
	assert_int_equal(counters_passed(&sum).packets, row->passed);
	assert_int_equal(counters_dropped(&sum).packets, row->dropped);
	json_decref(stats);
}

static void test_each_slot_keeps_what_it_refused(void **state)
{
	struct schema6_counters old = {.refused = {{1, 10}, {2, 20}, {3, 30}, {4, 40}}};
	struct sl_counters counters = schema->counters(&old);

	(void)state;
	assert_memory_equal(counters.refused, old.refused, sizeof(old.refused));
}

/* --- The table, and bucket entries, that schema 7 has in common with this one --------------- */

#define SETS  1024
#define SEATS 8192

static struct sl_set sets[SETS];
static struct sl_line lines[SETS * SL_WAYS];
static struct sl_hot hot[SEATS / SL_SEATS];
static struct sl_bucket buckets[SEATS];

struct array {
	void *values;
	size_t each;
	uint32_t count;
};

static void array_put(const void *key, const void *value, void *data)
{
	const struct array *array = data;
	uint32_t index = *(const uint32_t *)key;

	assert_true(index < array->count);
	memcpy((uint8_t *)array->values + index * array->each, value, array->each);
}

static void test_each_ledger_lies_where_this_version_looks_for_it(void **state)
{
	struct array sets_array = {sets, sizeof(*sets), ARRAY_SIZE(sets)};
	struct array lines_array = {lines, sizeof(*lines), ARRAY_SIZE(lines)};
	struct sl_gate gate = gate_converted();
	unsigned int count = 0;

	(void)state;
	each_entry(schema, MAP_SETS, array_put, &sets_array);
	each_entry(schema, MAP_LEDGERS, array_put, &lines_array);
	assert_true(schema->shared[MAP_SETS] && schema->shared[MAP_LEDGERS]);
	assert_int_equal(gate.meeting.set_mask, SETS - 1);
	assert_int_equal(set_other(&gate.meeting, 5, 0x1234), 400); /* no key is in that here */
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct ledger_key key = {{lines[i].addr[0], lines[i].addr[1]}, lines[i].limit};

		if (!key.limit)
			continue;
		assert_ptr_equal(table_find_mapped(&gate.meeting, sets, lines, &key), &lines[i]);
		count++;
	}
	assert_true(count > 10);
}

/* The part of the CPU that all packets came through is the first. */
static void test_a_bucket_entry_is_where_this_version_looks_for_it(void **state)
{
	static const struct {
		const char *source;
		uint64_t packets;
	} sent[] = {{"192.0.2.7", 15}, {"2001:db8:9::1", 4}};
	struct array hot_array = {hot, sizeof(*hot), ARRAY_SIZE(hot)};
	struct array buckets_array = {buckets, sizeof(*buckets), ARRAY_SIZE(buckets)};
	struct sl_gate gate = gate_converted();

	(void)state;
	each_entry(schema, MAP_HOT, array_put, &hot_array);
	each_entry(schema, MAP_BUCKETS, array_put, &buckets_array);
	assert_true(schema->shared[MAP_HOT] && schema->shared[MAP_BUCKETS]);
	for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
		const struct sl_bucket *bucket = NULL;
		struct sl_prefix prefix;
		struct seat seat;

		assert_int_equal(prefix_parse(sent[i].source, &prefix), OK);
		seat = seat_of(&gate.meeting, (const __u64 *)prefix.addr, prefix_is_ipv4(&prefix));
		for (unsigned int way = 0; way < SL_SEATS; way++)
			if (hot[seat.set].tag[way] == seat.tag)
				bucket = &buckets[seat.set * SL_SEATS + way];
		assert_non_null(bucket);
		assert_memory_equal(bucket->source, seat.source, sizeof(seat.source));
		assert_int_equal(bucket->passed.packets + bucket->dropped.packets, sent[i].packets);
	}
}

/* --- All schemas ---------------------------------------------------------------------------- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_map_has_the_recorded_shape),
		cmocka_unit_test(test_the_gate_keeps_its_numbers_and_finds_its_maps),
		cmocka_unit_test(test_the_gate_keeps_that_its_rules_are_on_trial),
		cmocka_unit_test(test_the_gate_keeps_that_a_change_is_under_way),
		cmocka_unit_test(test_lists_keep_their_places_accesses_and_ends),
		cmocka_unit_test(test_policies_say_what_they_said),
		cmocka_unit_test(test_heirs_keep_their_parents_and_the_homes_of_their_limits),
		cmocka_unit_test(test_rules_keep_what_is_by_hand_their_lists_and_their_ends),
		cmocka_unit_test(test_blocks_count_what_this_version_looks_for),
		cmocka_unit_test(test_the_maps_of_rules_and_lists_are_shared_together),
		cmocka_unit_test(test_each_reason_keeps_its_name_and_its_verdict),
		cmocka_unit_test(test_counters_come_to_what_was_said),
		cmocka_unit_test(test_each_slot_keeps_what_it_refused),
	};

	const struct CMUnitTest of_schema7[] = {
		cmocka_unit_test(test_each_ledger_lies_where_this_version_looks_for_it),
		cmocka_unit_test(test_a_bucket_entry_is_where_this_version_looks_for_it),
	};
	const struct CMUnitTest first_gates[] = {
		cmocka_unit_test(test_the_first_gates_of_schema_6_end_before_trials),
		cmocka_unit_test(test_the_first_gates_of_schema_7_end_before_what_divides_limits),
	};
	int failed = cmocka_run_group_tests_name("first gates", first_gates, NULL, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		row = &rows[i];
		schema = row->schema;
		failed += cmocka_run_group_tests_name(row->name, tests, setup, recorded_close);
	}
	return failed + cmocka_run_group_tests_name("the table of schema 7", of_schema7, setup,
						    recorded_close);
}
