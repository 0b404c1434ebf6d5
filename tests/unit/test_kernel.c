// SPDX-License-Identifier: GPL-2.0
/* user/base/host.h: which kernels are refused, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/array.h"
#include "base/host.h"
#include "capture.h"

#include <cmocka.h>

static void test_new_enough(void **state)
{
	static const char *const releases[] = {
		"6.1.0", "6.1.0-37-amd64", "6.12.117+deb12-amd64", "6.18-rc1", "7.0", "10.2.1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		assert_int_equal(kernel_check(releases[i]), OK);
	assert_int_equal(kernel_require(), OK);
}

/* What is no release at all, too. */
static void test_too_old(void **state)
{
	static const char *const releases[] = {"6.0.19", "5.15.0-91-generic", "5.10.0", "4.19",
					       "x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		struct capture capture = capture_begin(stderr);
		enum status status = kernel_check(releases[i]);
		const char *said = capture_end(&capture);

		assert_int_equal(status, FAILED);
		assert_non_null(strstr(said, releases[i]));
		assert_non_null(strstr(said, "6.1 or newer"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_enough),
		cmocka_unit_test(test_too_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
