// SPDX-License-Identifier: GPL-2.0
/* user/rules/sizes.h: sizes of maps that forget are raised to what is of use, and that is said. */
#include "test.h"
#include "capture.h"
#include "rules/sizes.h"

static const struct machine two = {.cpus = 2}, many = {.cpus = 128};

static const char *said_of(const struct gate_sizes *said, const struct machine *machine)
{
	struct capture capture = capture_begin(stderr);

	sizes_say_raised(said, machine);
	return capture_end(&capture);
}

/* Those of rules stay: what they hold is not forgotten. */
static void test_small_sizes_are_raised_and_that_is_said(void **state)
{
	const struct gate_sizes said = {1, 511, 1, 1, 1}, raised = {512, 512, 1, 1, 1};
	struct gate_sizes got = sizes_raise(&said, &two);

	(void)state;
	assert_memory_equal(&got, &raised, sizeof(got));
	assert_string_equal(said_of(&said, &two),
			    "sluice: sources 1 is raised to 512, for 2 CPUs: a smaller map forgets "
			    "sources while it is almost empty\n"
			    "sluice: hot 511 is raised to 512, for 2 CPUs: a smaller map forgets "
			    "sources while it is almost empty\n");
	assert_string_equal(said_of(&raised, &two), "");
}

static void test_not_said_is_not_raised(void **state)
{
	const struct gate_sizes none = {0};
	struct gate_sizes got = sizes_raise(&none, &many);

	(void)state;
	assert_memory_equal(&got, &none, sizeof(got));
	assert_string_equal(said_of(&none, &many), "");
}

static void test_the_least_size_grows_with_cpus(void **state)
{
	const struct gate_sizes said = {.hot = 16384};

	(void)state;
	assert_int_equal(sizes_raise(&said, &two).hot, 16384);
	assert_int_equal(sizes_raise(&said, &many).hot, 32768);
	assert_int_equal(size_least(&many), 32768);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_sizes_are_raised_and_that_is_said),
		cmocka_unit_test(test_not_said_is_not_raised),
		cmocka_unit_test(test_the_least_size_grows_with_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
