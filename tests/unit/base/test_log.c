// SPDX-License-Identifier: GPL-2.0
/* user/base/log.h: who is told of priorities, and which messages are printed. */
#include <sys/stat.h>
#include "test.h"
#include "base/log.h"
#include "program/messages.h"
#include "capture.h"

static void test_the_journal_is_told_by_device_and_inode(void **state)
{
	static const struct {
		const char *stream;
		bool is;
	} cases[] = {
		{NULL, false},	     {"", false},	  {"9:12345", true},
		{"9:12346", false},  {"8:12345", false},  {"9", false},
		{"9:", false},	     {"9:12345 ", false}, {"9:12345x", false},
		{"x9:12345", false}, {"-1:-1", false},	  {"18446744073709551625:12345", false},
	};
	const struct stat st = {.st_dev = 9, .st_ino = 12345};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (journal_reads(cases[i].stream, &st) != cases[i].is)
			fail_msg("%s", cases[i].stream);
}

static bool is_no_secret(void *data, const char *message)
{
	(*(int *)data)++;
	return strcmp(message, "secret");
}

static void test_a_filter_is_asked_of_all_but_what_was_done(void **state)
{
	struct capture capture = capture_begin(stderr);
	int asked = 0;

	(void)state;
	log_filter(is_no_secret, &asked);
	failure("a");
	misuse("secret");
	note("secret");
	warning("b");
	inform("secret");
	log_filter(NULL, NULL);
	note("secret");
	assert_string_equal(capture_end(&capture),
			    "sluice: a\nsluice: b\nsluice: secret\nsluice: secret\n");
	assert_int_equal(asked, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_journal_is_told_by_device_and_inode),
		cmocka_unit_test(test_a_filter_is_asked_of_all_but_what_was_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
