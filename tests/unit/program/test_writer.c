// SPDX-License-Identifier: GPL-2.0
/* Tests user/program/writer.h, which prints text or JSON by the same calls. */
#include <inttypes.h>
#include "test.h"
#include "program/writer.h"

/* Returns the document that `report` prints. The caller frees it. */
static char *document(void (*report)(void), bool json)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	print_begin(out, json);
	report();
	fclose(out);
	return text;
}

/* Checks what `report` prints as text and as JSON. */
static void check(void (*report)(void), const char *text, const char *json)
{
	for (int is_json = 0; is_json < 2; is_json++) {
		char *printed = document(report, is_json);

		assert_string_equal(printed, is_json ? json : text);
		free(printed);
	}
}

static void report_values(void)
{
	print_object(NULL);
	print_string("gate", "gate %s:", "main");
	print_number("rules", " %" PRIu64 " rules", 1ULL << 63);
	print_string("kept", " by %s", NULL);
	print_text(", %d of text\n", 1);
	print_number("json", NULL, 7);
	print_bool("is_idle", true);
	print_real("whole", 3);
	print_real("part", 0.1);
	print_array("none");
	print_end();
	print_array("names");
	print_string(NULL, "%s\n", "dns");
	print_null(NULL);
	print_end();
	print_end();
}

TEST(test_values_are_written_by_format_or_by_key)
{
	check(report_values, "gate main: 9223372036854775808 rules, 1 of text\ndns\n",
	      "{\n  \"gate\": \"main\",\n  \"rules\": 9223372036854775808,\n  \"kept\": null,\n"
	      "  \"json\": 7,\n  \"is_idle\": true,\n  \"whole\": 3.0,\n  \"part\": 0.1,\n"
	      "  \"none\": [],\n  \"names\": [\n    \"dns\",\n    null\n  ]\n}\n");
}

static void report_rows(void)
{
	print_array(NULL);
	print_row(NULL);
	print_string("name", "  %-4s", "a");
	print_number("count", " %6" PRIu64 "\n", 12);
	print_end();
	print_row(NULL);
	print_null("name");
	print_array("more");
	print_object(NULL);
	print_end();
	print_end();
	print_end();
	print_end();
}

TEST(test_a_row_is_a_line)
{
	check(report_rows, "  a        12\n",
	      "[\n  {\"name\": \"a\", \"count\": 12},\n  {\"name\": null, \"more\": [{}]}\n]\n");
}

static void report_odd_strings(void)
{
	print_string(NULL, "%s", "\"\\\n\x1b\xff\xc3\xa4\xf0\x9f\x98\x80\xed\xa0\x80");
}

TEST(test_strings_that_are_not_printable)
{
	check(report_odd_strings, "\"\\???\xc3\xa4\xf0\x9f\x98\x80???",
	      "\"\\\"\\\\\\n\\u001b?\\u00e4\\ud83d\\ude00???\"");
}

static void report_half(void)
{
	print_array(NULL);
	print_row(NULL);
	print_string("name", NULL, "a");
}

TEST(test_a_document_after_an_incomplete_document)
{
	free(document(report_half, true));
	assert_true(print_is_begun());
	check(report_rows, "  a        12\n",
	      "[\n  {\"name\": \"a\", \"count\": 12},\n  {\"name\": null, \"more\": [{}]}\n]\n");
}

TESTS(NULL, NULL)
