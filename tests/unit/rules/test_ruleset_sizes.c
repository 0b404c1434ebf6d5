// SPDX-License-Identifier: GPL-2.0
/* user/rules/ruleset.h: the sizes of maps that rules require. */
#include "test.h"
#include "rules/ruleset.h"

static void test_sizes_are_specified_without_reserved_policies(void **state)
{
	struct gate_sizes sizes = {0};

	(void)state;
	assert_int_equal(size_specified(&sizes, SIZE_POLICIES), 0);
	size_set(&sizes, SIZE_POLICIES, 5);
	assert_int_equal(sizes.policies, 5 + SL_POLICY_FIRST);
	assert_int_equal(size_specified(&sizes, SIZE_POLICIES), 5);
}

/* --- Growing -------------------------------------------------------------------------------- */

#define POLICIES(specified) (SL_POLICY_FIRST + (specified))

static const struct {
	const char *name;
	struct gate_sizes has, needed;
	uint32_t fixed;
	struct gate_sizes grown;
} growths[] = {
	{"what holds stays",
	 {.hosts = 100, .prefixes = 7, .policies = POLICIES(5)},
	 {.hosts = 100, .prefixes = 1, .policies = POLICIES(5)},
	 0,
	 {.hosts = 100, .prefixes = 7, .policies = POLICIES(5)}},
	{"one more doubles", {.hosts = 16384}, {.hosts = 16385}, 0, {.hosts = 32768}},
	{"at least twice of what is no power",
	 {.hosts = 20000},
	 {.hosts = 20001},
	 0,
	 {.hosts = 65536}},
	{"a fixed size stays, although it is too small",
	 {.hosts = 20, .prefixes = 20},
	 {.hosts = 21, .prefixes = 21},
	 SIZE_BIT(SIZE_HOSTS),
	 {.hosts = 20, .prefixes = 64}},
	{"no more than the largest",
	 {.prefixes = (1 << 26) - 1},
	 {.prefixes = 1 << 26},
	 0,
	 {.prefixes = 1 << 26}},
	{"and no size holds more",
	 {.prefixes = 5},
	 {.prefixes = (1 << 26) + 1},
	 0,
	 {.prefixes = 1 << 26}},
	{"what no rule needs does not grow",
	 {.sources = 5, .buckets = 5},
	 {0},
	 0,
	 {.sources = 5, .buckets = 5}},
};

static void test_sizes_grow(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(growths); i++) {
		struct gate_sizes got =
			sizes_grown(&growths[i].has, &growths[i].needed, growths[i].fixed);

		print_message("# %s\n", growths[i].name);
		assert_memory_equal(&got, &growths[i].grown, sizeof(got));
		assert_int_equal(sizes_hold(&growths[i].has, &growths[i].needed),
				 i == 0 || i == ARRAY_SIZE(growths) - 1);
	}
}

static void test_sizes_are_written_as_users_do(void **state)
{
	static const struct {
		uint32_t size;
		const char *text;
	} cases[] = {{1, "1"},	      {1000, "1000"},	     {1024, "1k"},
		     {1536, "1536"},  {16384, "16k"},	     {1 << 20, "1m"},
		     {3 << 20, "3m"}, {1025 << 10, "1025k"}, {1 << 26, "64m"}};
	char text[SIZE_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(size_format(cases[i].size, text), cases[i].text);
}

static void test_an_empty_rule_takes_no_room(void **state)
{
	struct rule rules[] = {
		{.access = SL_ACCESS_DENY}, {.lists = 1}, {.limits = 1}, {.until = 1}};
	const struct ruleset set = {.rules = rules, .count = ARRAY_SIZE(rules)};
	const struct room room = room_needed(&set);

	(void)state;
	assert_int_equal(room.prefixes, 3);
	assert_int_equal(room.policies, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_are_specified_without_reserved_policies),
		cmocka_unit_test(test_sizes_grow),
		cmocka_unit_test(test_sizes_are_written_as_users_do),
		cmocka_unit_test(test_an_empty_rule_takes_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
