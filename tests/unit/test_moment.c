// SPDX-License-Identifier: GPL-2.0
/* user/base/clock.h: RFC 3339, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "base/array.h"
#include "base/clock.h"
#include "capture.h"

#include <cmocka.h>

static void test_moments(void **state)
{
	static const struct {
		const char *text;
		time_t when;
		const char *printed; /* NULL: as it was written */
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0, NULL},
		{"2001-09-09T01:46:40Z", 1000000000, NULL},
		{"2001-09-09t01:46:40z", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-09T01:46:40.999999999999999999999Z", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-09T03:46:40+02:00", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-08T15:16:40-10:30", 1000000000, "2001-09-09T01:46:40Z"},
		{"2001-09-09T01:46:40-00:00", 1000000000, "2001-09-09T01:46:40Z"},
		{"2000-02-29T23:59:59Z", 951868799, NULL},
		{"2024-02-29T00:00:00+23:59", 1709078460, "2024-02-28T00:01:00Z"},
		{"9999-12-31T23:59:59Z", 253402300799, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[MOMENT_TEXT];
		time_t when;

		assert_int_equal(moment_parse(cases[i].text, &when), OK);
		assert_int_equal(when, cases[i].when);
		assert_string_equal(moment_format(when, text),
				    cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

static void test_moments_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"now",
		"1h",
		"2026",
		"2026-11-21",
		"2026-11-21T13:00Z",
		"2026-11-21T13:00:00",
		"2026-11-21 13:00:00Z",
		"2026-11-21T13:00:00z ",
		" 2026-11-21T13:00:00Z",
		"2026-11-21T13:00:00ZZ",
		"2026-11-21T13:00:00.Z",
		"2026-11-21T13:00:00+0200",
		"2026-11-21T13:00:00+2:00",
		"2026-11-21T13:00:00+24:00",
		"2026-11-21T13:00:00+01:60",
		"2026-11-21T13:00:00+01:00Z",
		"2026-11-21T24:00:00Z",
		"2026-11-21T13:60:00Z",
		"2026-11-21T13:00:60Z",
		"2026-11-31T13:00:00Z",
		"2026-13-21T13:00:00Z",
		"2026-00-21T13:00:00Z",
		"2026-11-00T13:00:00Z",
		"2025-02-29T13:00:00Z",
		"1900-02-29T13:00:00Z",
		"+026-11-21T13:00:00Z",
		"02026-11-21T13:00:00Z",
		"2026-1-21T13:00:00Z",
		"2026-11-21T13:00:00\xe2\x88\x92"
		"01:00",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct capture capture = capture_begin(stderr);
		time_t when = 42;
		enum status status = moment_parse(texts[i], &when);
		const char *said = capture_end(&capture);

		if (status != MISUSED || !*said)
			fail_msg("moment '%s' is taken", texts[i]);
		assert_int_equal(when, 42);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_moments_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
