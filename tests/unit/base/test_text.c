// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/base/text.h: suggestions of similar words, printable texts, names, and shell quoting.
 */
#include <pthread.h>
#include "test.h"
#include "base/array.h"
#include "base/text.h"

TEST(test_the_word_that_was_meant_is_found)
{
	static const char *const words[] = {"rate", "pt", "port", "--resize"};
	static const struct {
		const char *typed, *found;
	} cases[] = {
		{"rtae", "rate"},
		{"tp", "pt"}, /* swapping two letters is one difference */
		{"RATE", "rate"},
		{"rate", NULL}, /* a correct word has no suggestion */
		{"rax", NULL},	/* more than half of the letters are wrong */
		{"rooe", "rate"},
		{"xate", "rate"},
		{"xatte", NULL}, /* two letters differ, including the first letter */
		{"resize", "--resize"},
		{"pot", "port"}, /* equally similar words: the longer word is suggested */
		{"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *found = nearly_find(cases[i].typed, words, ARRAY_SIZE(words));

		if (strcmp(found ?: "", cases[i].found ?: ""))
			fail_msg("%s: %s", cases[i].typed, found ?: "none");
	}
}

TEST(test_printable_text_is_utf8_without_control_characters)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{"", true},
		{"eth0", true},
		{"a b\"'\\~", true},
		{"\x1f", false},
		{"\x7f", false},
		{"a\n", false},
		{"b\xc3\xbcro", true},
		{"\xc3", false},
		{"\xc3(", false},
		{"\xbc", false},
		{"\xff", false},
		{"\xf8\x88\x80\x80\x80", false},
		{"\xc1\xbf", false},
		{"\xe0\x9f\xbf", false},
		{"\xe0\xa0\x80", true},
		{"\xf0\x8f\xbf\xbf", false},
		{"\xf0\x90\x80\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"\xf4\x90\x80\x80", false},
		{"\xed\x9f\xbf", true},
		{"\xed\xa0\x80", false},
		{"\xed\xbf\xbf", false},
		{"\xee\x80\x80", true},
		{"\xc2\x9f", false},
		{"\xc2\xa0", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (text_is_printable(cases[i].text) != cases[i].is)
			fail_msg("case %zu", i);
}

TEST(test_a_word_is_quoted_where_a_shell_would_change_it)
{
	static const char *const cases[][2] = {
		{"eth0.10", "eth0.10"}, {"a@b", "a@b"},	      {"", "''"},
		{"a b", "'a b'"},	{"$(id)", "'$(id)'"}, {"*", "'*'"},
		{"it's", "'it'\\''s'"}, {"~", "'~'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(word_typed(cases[i][0]), cases[i][1]);
}

TEST(test_a_shell_reads_a_quoted_word_back)
{
	static const char *const words[] = {
		"a;$(id)'\033[1m",
		"-e\033%s\\",
		"caf\xe9",
		"caf\xc3\xa9",
		"it's",
		"a b",
		"",
		"\x7f",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char command[NAME_TYPED + sizeof("printf %s ")], read[64];
		FILE *shell;

		snprintf(command, sizeof(command), "printf %%s %s", word_typed(words[i]));
		shell = popen(command, "r");
		assert_non_null(shell);
		read[fread(read, 1, sizeof(read) - 1, shell)] = '\0';
		assert_int_equal(pclose(shell), 0);
		assert_string_equal(read, words[i]);
		assert_true(text_is_printable(word_typed(words[i])));
	}
}

TEST(test_a_name_is_shown_without_what_acts_on_a_terminal)
{
	static const char *const cases[][2] = {
		{"eth0", "eth0"},
		{"", ""},
		{"b\xc3\xbcro", "b\xc3\xbcro"},
		{"\033[2J\n", "?[2J?"},
		{"\x7f", "?"},
		{"\xc2\x9b"
		 "2J",
		 "??2J"},
		{"\x9b"
		 "2J\xc3",
		 "?2J?"},
		{"\xc3\xbc\xff\xc3\xbc", "\xc3\xbc?\xc3\xbc"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(name_shown(cases[i][0]), cases[i][1]);
}

/*
 * A message can contain up to WORDS_LIVE texts, because these functions use WORDS_LIVE buffers by
 * turns.
 */
TEST(test_words_live_beside_each_other)
{
	const char *words[WORDS_LIVE];

	for (int i = 0; i < WORDS_LIVE; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		words[i] = i % 3 ? i % 3 == 1 ? word_typed(name) : operand_typed(name)
				 : name_shown(name);
	}
	for (int i = 0; i < WORDS_LIVE; i++)
		assert_int_equal(*words[i], 'a' + i);
}

static void *words_write(void *data)
{
	for (int i = 0; i < WORDS_LIVE; i++)
		word_typed("other");
	gate_option("other");
	return data;
}

TEST(test_each_thread_has_its_own_words)
{
	const char *word = word_typed("word"), *option = gate_option("gate");
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, words_write, NULL), 0);
	pthread_join(thread, NULL);
	assert_string_equal(word, "word");
	assert_string_equal(option, "-g gate ");
}

TEST(test_the_longest_word_has_room)
{
	static const char fill[] = {'\'', '\033', 'a', '-'};
	char word[2 * WORD_TYPED];

	for (size_t i = 0; i < ARRAY_SIZE(fill); i++) {
		memset(word, fill[i], sizeof(word) - 1);
		word[sizeof(word) - 1] = '\0';
		assert_true(strlen(word_typed(word)) >= WORD_TYPED);
		assert_true(strlen(operand_typed(word)) < 4 * WORD_TYPED + 32);
		assert_true(strlen(name_shown(word)) == sizeof(word) - 1);
	}
}

TEST(test_an_operand_is_no_option)
{
	assert_string_equal(operand_typed("eth0"), "eth0");
	assert_string_equal(operand_typed("-"), "-");
	assert_string_equal(operand_typed("-x"), "-- -x");
	assert_string_equal(operand_typed("-a b"), "-- '-a b'");
}

TESTS(NULL, NULL)
