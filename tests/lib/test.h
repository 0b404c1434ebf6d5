/* SPDX-License-Identifier: GPL-2.0 */
/* Includes cmocka and the headers that it requires, for each test in C. Defines units of time. */
#ifndef SLUICE_TEST_TEST_H
#define SLUICE_TEST_TEST_H

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/array.h"
#include "sluice.h"

/* Durations in ticks. JIFFY is for HZ=250. bpf_host.h replaces SEC by libbpf's macro. */
#define SEC   SL_TICKS_PER_SEC
#define MS    (SL_TICKS_PER_SEC / 1000)
#define JIFFY (4 * MS)

/* Durations in nanoseconds. */
#define SEC_NS	 1000000000ULL
#define JIFFY_NS 4000000U

/*
 * TEST(name) defines and registers a test. TESTS(setup, teardown) defines a main() that runs the
 * tests of the file in their order.
 */
static struct CMUnitTest tests_registered[64] __attribute__((unused));
static size_t tests_count __attribute__((unused));

#define TEST(name)                                                                                 \
	static void name(void **state);                                                            \
	__attribute__((constructor)) static void name##_register(void)                             \
	{                                                                                          \
		assert(tests_count < ARRAY_SIZE(tests_registered));                                \
		tests_registered[tests_count++] = (struct CMUnitTest)cmocka_unit_test(name);       \
	}                                                                                          \
	static void name(void **state __attribute__((unused)))

#define TESTS(setup, teardown)                                                                     \
	int main(void)                                                                             \
	{                                                                                          \
		return _cmocka_run_group_tests("tests", tests_registered, tests_count, setup,      \
					       teardown);                                          \
	}

/* Skips the test, and prints the reason in the form that scripts/run-tests expects. */
#define skip_because(...)                                                                          \
	do {                                                                                       \
		printf("SKIPPED: ");                                                               \
		printf(__VA_ARGS__);                                                               \
		putchar('\n');                                                                     \
		skip();                                                                            \
	} while (0)

#endif
