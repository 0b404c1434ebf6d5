// SPDX-License-Identifier: GPL-2.0
/* user/program/program.h: journal_reads() */
#include <sys/stat.h>
#include "test.h"
#include "program/program.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_journal_is_told_by_device_and_inode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
