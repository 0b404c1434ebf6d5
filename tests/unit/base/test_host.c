// SPDX-License-Identifier: GPL-2.0
/* user/base/host.h: which kernels are refused, and how; CPUs and the jiffy. */
#include <errno.h>
#include "test.h"
#include "base/error.h"
#include "base/host.h"

static void test_kernels_from_6_1_on_are_accepted(void **state)
{
	static const char *const releases[] = {
		"6.1.0", "6.1.0-37-amd64", "6.12.117+deb12-amd64", "6.18-rc1", "7.0", "10.2.1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		assert_int_equal(kernel_check(releases[i]), 0);
	assert_int_equal(kernel_require(), 0);
}

/* Text that is no release is refused as well. */
static void test_older_kernels_are_refused_by_name(void **state)
{
	static const char *const releases[] = {"6.0.19", "5.15.0-91-generic", "5.10.0", "4.19",
					       "x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		assert_int_equal(kernel_check(releases[i]), -EOPNOTSUPP);
		assert_non_null(strstr(error_last(0)->text, releases[i]));
		error_drop(0);
	}
}

static void test_this_machine_has_cpus_and_a_jiffy(void **state)
{
	struct machine here = {0};

	(void)state;
	assert_int_equal(machine_get(&here), 0);
	assert_in_range(here.cpus, 1, 1 << 16);
	assert_in_range(here.jiffy_ns, 500000, 20000000);
	assert_in_range(here.cpu_ids, here.cpus, 1 << 16);
}

static void test_the_end_of_a_cpu_list_is_behind_its_highest(void **state)
{
	static const struct {
		const char *list;
		unsigned int end;
	} cases[] = {{"0", 1},	     {"0-1\n", 2},    {"0-3,8-11\n", 12},
		     {"0,2,5\n", 6}, {"0-3,9\n", 10}, {"0-127\n", 128},
		     {"", 0},	     {"\n", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(cpu_list_end(cases[i].list), cases[i].end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels_from_6_1_on_are_accepted),
		cmocka_unit_test(test_older_kernels_are_refused_by_name),
		cmocka_unit_test(test_this_machine_has_cpus_and_a_jiffy),
		cmocka_unit_test(test_the_end_of_a_cpu_list_is_behind_its_highest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
