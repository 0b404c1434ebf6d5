// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/program/program.h, which parses command lines by a table of words. Also tests
 * journal_reads().
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "test.h"
#include "base/error.h"
#include "program/program.h"

#define WORDS 24

/* "limit DEFAULT|PREFIX [rate RATE...] [match any|tcp|port N] [size N] [force] [-f FILE] ..." */
struct limit_args {
	const char *prefix;
	const char *rate;
	const char *match;
	uint32_t size;
	bool force;
	const char *file;
	uint64_t wait_ns;
	bool dry;
};

static const struct word limit_words[] = {
	{"PREFIX", OPERAND, VALUE_TEXT("PREFIX"), offsetof(struct limit_args, prefix), NULL},
	{"rate", KEYWORD, VALUE_TEXT("N per TIME", .extent = VALUE_NUMBERS),
	 offsetof(struct limit_args, rate), NULL},
	{"match", KEYWORD, VALUE_TEXT("any|tcp|port N", .extent = VALUE_WORDS),
	 offsetof(struct limit_args, match), NULL},
	{"per", KEYWORD, VALUE_TEXT("LEN"), offsetof(struct limit_args, match), NULL},
	{"burst", KEYWORD, VALUE_TEXT("N", .extent = VALUE_NUMBERS),
	 offsetof(struct limit_args, rate), NULL},
	{"size", KEYWORD, &value_size, offsetof(struct limit_args, size), NULL},
	{"force", KEYWORD, NULL, offsetof(struct limit_args, force), NULL},
	{"-f", OPTION, VALUE_TEXT("FILE"), offsetof(struct limit_args, file), NULL},
	{"--wait", OPTION, &value_time, offsetof(struct limit_args, wait_ns), NULL},
	{"--dry", OPTION, NULL, offsetof(struct limit_args, dry), NULL},
	WORD_CONFIRM,
};

static const struct command limit = {
	.name = "limit",
	.question = "which prefix?",
	COMMAND_WORDS(limit_words, struct limit_args),
};

/* A command that accepts prefixes before and after its keywords. */
struct deny_args {
	struct operands prefixes;
	bool force;
};

static const struct word deny_words[] = {
	{"PREFIX", OPERANDS_ANYWHERE, NULL, offsetof(struct deny_args, prefixes), NULL},
	{"force", KEYWORD, NULL, offsetof(struct deny_args, force), NULL},
	{"--resize", OPTION, NULL, offsetof(struct deny_args, force), NULL},
};

static const struct command deny = {.name = "deny", COMMAND_WORDS(deny_words, struct deny_args)};

static const struct command *const all[] = {&limit, &deny};

/* A parsed command line, and a buffer for its words. */
struct parsed {
	char text[512];
	char *argv[WORDS + 1], *words[WORDS + 1];
	struct option_table options;
	struct command_line line;
	struct context context;
};

/* Splits a text at blanks into argv. A ~ in the text becomes a blank in a word. Returns argc. */
static int split(struct parsed *parsed, const char *text)
{
	char *rest;
	int argc = 1;

	*parsed = (struct parsed){.argv = {"sluice"}, .options = options_of(all, ARRAY_SIZE(all))};
	parsed->line = (struct command_line){.options = &parsed->options, .words = parsed->words};
	snprintf(parsed->text, sizeof(parsed->text), "%s", text);
	for (char *word = strtok_r(parsed->text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest), argc++)
		parsed->argv[argc] = word;
	for (char *c = parsed->text; c < parsed->text + sizeof(parsed->text); c++)
		*c = *c == '~' ? ' ' : *c;
	return argc;
}

static int parse(struct parsed *parsed, const char *text, void *args)
{
	int err = options_parse(split(parsed, text), parsed->argv, &parsed->line);

	if (err)
		return err;
	parsed->context.command = strcmp(parsed->words[0], "deny") ? &limit : &deny;
	return words_parse(&parsed->context, &parsed->line, args);
}

TEST(test_words_fill_the_arguments)
{
	static const struct {
		const char *line;
		struct limit_args args;
		const char *gate;
	} cases[] = {
		{"limit a", {.prefix = "a"}, NULL},
		{"limit a rate 5 size 4k force", {"a", "5", .size = 4096, .force = true}, NULL},
		{"limit a rate 5 per 1h 30 min per x",
		 {"a", "5 per 1h 30 min", .match = "x"},
		 NULL},
		{"limit a burst 30 per minute size 1", {"a", "30 per minute", .size = 1}, NULL},
		{"limit a rate 5~per~1h per x", {"a", "5 per 1h", .match = "x"}, NULL},
		{"limit a match port 1 to 2 force",
		 {"a", .match = "port 1 to 2", .force = true},
		 NULL},
		{"limit -- -a", {.prefix = "-a"}, NULL},
		{"limit -", {.prefix = "-"}, NULL},
		{"-gx limit a", {.prefix = "a"}, "x"},
		{"limit a --gate=x", {.prefix = "a"}, "x"},
		{"limit --gate x a", {.prefix = "a"}, "x"},
		{"-jvgx limit a", {.prefix = "a"}, "x"},
		{"limit a -fx --dry", {.prefix = "a", .file = "x", .dry = true}, NULL},
		{"--file x limit a", {.prefix = "a", .file = "x"}, NULL},
		{"limit a --wait 5 minutes size 1",
		 {"a", .size = 1, .wait_ns = 300000000000},
		 NULL},
		{"limit a --wait=90s", {.prefix = "a", .wait_ns = 90000000000}, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *expected[] = {cases[i].args.prefix, cases[i].args.rate,
					  cases[i].args.match, cases[i].args.file, cases[i].gate};
		struct limit_args args = {0};
		struct parsed parsed;
		int err = parse(&parsed, cases[i].line, &args);
		const char *got[] = {args.prefix, args.rate, args.match, args.file,
				     parsed.line.option[OPTION_GATE]};

		if (err)
			fail_msg("%s: %s", cases[i].line, error_last(0)->text);
		for (size_t j = 0; j < ARRAY_SIZE(got); j++)
			if (strcmp(got[j] ?: "", expected[j] ?: ""))
				fail_msg("%s: '%s'", cases[i].line, got[j] ?: "");
		if (args.size != cases[i].args.size || args.force != cases[i].args.force ||
		    args.dry != cases[i].args.dry || args.wait_ns != cases[i].args.wait_ns)
			fail_msg("%s: a number or a flag", cases[i].line);
	}
}

TEST(test_operands_and_the_trial_are_counted)
{
	struct limit_args limited = {0};
	struct deny_args denied = {0};
	struct parsed parsed;

	assert_int_equal(parse(&parsed, "deny a force b", &denied), 0);
	assert_int_equal(denied.prefixes.count, 2);
	assert_string_equal(denied.prefixes.words[0], "a");
	assert_string_equal(denied.prefixes.words[1], "b");
	assert_true(denied.force);
	assert_int_equal(parsed.context.operands, 2);
	assert_int_equal(parse(&parsed, "limit a --confirm 1min", &limited), 0);
	assert_int_equal(parsed.context.trial_ns, 60000000000);
}

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* An invalid command line causes one error, which has this id and contains the text `named`. */
TEST(test_wrong_lines_are_refused_and_named)
{
	static const struct {
		const char *line, *id, *named;
	} cases[] = {
		{"limit", "no-operand", "which prefix?"},
		{"limit a b", "unexpected", "'b'"},
		{"limit rate 5 a", "unexpected", "'a'"},
		{"limit a RATE 5", "unexpected", "'RATE'"},
		{"limit a rat 5", "unexpected", "did you mean 'rate'"},
		{"limit a resize", "unexpected", "'resize'"},
		{"deny froce", "unexpected", "did you mean 'force'"},
		{"limit a rate", "no-value", "'rate'"},
		{"limit a size", "no-value", "'size'"},
		{"limit a size 1 size 2", "given-twice", "'size'"},
		{"limit a force force", "given-twice", "'force'"},
		{"limit a size 1 2", "unexpected", "'2'"},
		{"limit a --wait 5", "no-unit", "--wait '5'"},
		{"limit a --confirm 1s", "out-of-range", "5s to 1h"},
		{"limit a --resize", "no-option", "'--resize'"},
		{"deny a -f x", "no-option", "'--file'"},
		{"limit a -x", "no-option", "'-x'"},
		{"limit a -jx", "no-option", "'-x' in '-jx'"},
		{"limit a --wai 5s", "no-option", "'--wai'"},
		{"limit a --js=1", "no-option", "'--js=1'"},
		{"limit a --dry=1", "unexpected-value", "'--dry=1'"},
		{"limit a -g", "no-value", "-g needs a value, GATE"},
		{"-g x limit a --gate y", "given-twice", "'x' and 'y'"},
		{"limit a match " X64 " " X64 " " X64, "too-long", "'match'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		union {
			struct limit_args limit;
			struct deny_args deny;
		} args = {0};
		struct parsed parsed;
		char *text;

		if (!parse(&parsed, cases[i].line, &args))
			fail_msg("accepted: %s", cases[i].line);
		assert_int_equal(error_count(), 1);
		assert_string_equal(error_last(0)->id, cases[i].id);
		assert_true(error_last(0)->is_misuse);
		text = error_format(error_last(0));
		if (!strstr(text, cases[i].named))
			fail_msg("%s: %s", cases[i].line, text);
		free(text);
		error_drop(0);
	}
}

TEST(test_what_a_line_leaves_open)
{
	static const struct {
		const char *line, *keyword, *operand;
		unsigned int values, keywords;
	} cases[] = {
		{"limit", NULL, NULL, 0, 0},
		{"limit a", NULL, "a", 0, 0},
		{"limit a rate", "rate", "a", 0, 1},
		{"limit a rate 5", "rate", "a", 1, 1},
		{"limit a rate 5 per 1h", "rate", "a", 3, 1},
		{"limit a rate 5 per 1h per", "per", "a", 0, 2},
		{"limit a rate 5 per 1h per 24", NULL, "a", 0, 2},
		{"limit a match port", "match", "a", 1, 1},
		{"limit a match port 5 force", NULL, "a", 0, 2},
		{"limit a size 5", NULL, "a", 0, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct parsed parsed;
		int argc = split(&parsed, cases[i].line);
		struct words_end end = words_scan(&limit, parsed.argv + 2, argc - 2);

		if (strcmp(end.keyword ? end.keyword->name : "", cases[i].keyword ?: "") ||
		    strcmp(end.operand ?: "", cases[i].operand ?: "") ||
		    end.values != cases[i].values ||
		    __builtin_popcountll(end.keywords) != (int)cases[i].keywords)
			fail_msg("%s: keyword %s, operand %s, %u values", cases[i].line,
				 end.keyword ? end.keyword->name : "-", end.operand ?: "-",
				 end.values);
	}
}

TEST(test_the_journal_is_told_by_device_and_inode)
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

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (journal_reads(cases[i].stream, &st) != cases[i].is)
			fail_msg("%s", cases[i].stream);
}

TESTS(NULL, NULL)
