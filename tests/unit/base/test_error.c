// SPDX-License-Identifier: GPL-2.0
/* Tests user/base/error.h: the text of an error, and the list of errors. */
#include <errno.h>
#include "test.h"
#include "base/error.h"

TEST(test_the_first_semicolon_of_the_format_begins_the_hint)
{
	static const struct {
		const char *format, *name, *text, *hint;
	} cases[] = {
		{"no limit '%s'; see 'show'", "syn", "no limit 'syn'", "see 'show'"},
		{"no limit '%s'", "a; b", "no limit 'a; b'", ""},
		{"no '%s'; one; two", "a; b", "no 'a; b'", "one; two"},
		{"no '%s'; see", "a\x1f", "no 'a?'", "see"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_error *error;

		assert_int_equal(
			error_add(ENOENT, "no-limit", "10.0.0.0/8", cases[i].format, cases[i].name),
			-ENOENT);
		error = error_last(0);
		assert_string_equal(error->id, "no-limit");
		assert_string_equal(error->object, "10.0.0.0/8");
		assert_string_equal(error->text, cases[i].text);
		assert_string_equal(error->hint, cases[i].hint);
		error_drop(0);
	}
}

TEST(test_items_from_a_mark_get_a_place_and_are_dropped)
{
	unsigned int mark;
	char *text;

	error_warn("list-old", "bad.txt", "old");
	mark = error_count();
	assert_int_equal(error_misuse("bad-rate", "fast", "not a rate; try 1kpps"), -EINVAL);
	error_notice("hint", NULL, "see the manual");
	error_place(mark, "rules.yaml:3:7");
	text = error_format(error_last(mark));
	assert_string_equal(text, "rules.yaml:3:7: fast: not a rate; try 1kpps");
	free(text);
	assert_true(error_last(mark)->is_misuse);
	assert_string_equal(error_get(2)->object, "rules.yaml:3:7");
	assert_string_equal(error_get(0)->object, "bad.txt");
	error_drop(mark);
	assert_int_equal(error_count(), 1);
	assert_null(error_last(0));
	error_drop(0);
}

TEST(test_one_item_is_removed)
{
	static const char *const objects[] = {"a", "b", "c"};

	for (size_t removed = 0; removed < ARRAY_SIZE(objects); removed++) {
		for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
			error_warn("x", objects[i], "x");
		error_remove(removed);
		assert_int_equal(error_count(), 2);
		assert_string_equal(error_get(0)->object, objects[removed == 0]);
		assert_string_equal(error_get(1)->object, objects[removed < 2 ? 2 : 1]);
		error_drop(0);
	}
}

static unsigned int printed;

static void count_printed(const struct sl_error *error)
{
	assert_non_null(error->text);
	printed++;
}

TEST(test_a_flush_prints_all_items_once)
{
	error_set_printer(count_printed);
	for (int i = 0; i < 100; i++)
		error_inform("saved", NULL, "saved %d", i);
	error_flush();
	error_flush();
	assert_int_equal(printed, 100);
	error_set_printer(NULL);
}

TESTS(NULL, NULL)
