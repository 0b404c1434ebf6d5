// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/keep/state_file.h with arbitrary bytes. A file that is not refused must be equal when
 * it is written back. The first byte of the input selects whether the rest is the file, or selects
 * words of a valid file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "keep/state_file.h"
#include "rules/ruleset.h"

#define TEXT_MAX 8192

static void expect(bool truth)
{
	if (!truth)
		abort();
}

/* Words of a state file. Each byte of the input from 128 on selects a word. */
static const char *const words[] = {"\"192.0.2.1",
				    "\"2001:db8::1",
				    "\"10.0.0.0/8",
				    "\", ",
				    "\"",
				    " allow",
				    " deny",
				    " -",
				    " 3600000",
				    " 0",
				    " 3",
				    " 9",
				    " 64",
				    "{\"place\": 0",
				    "{\"place\": 3",
				    ", \"name\": \"",
				    "\", \"access\": \"",
				    ", \"left_ms\": ",
				    ", \"replaced\": 1",
				    "3600000",
				    "}, ",
				    "}",
				    "a",
				    "b"};

#define HEAD "{\"version\": 1, \"boot\": \"b\", \"saved_ms\": 4102444800000, \"bpffs\": 31, "
#define LISTS                                                                                      \
	"\"lists\": [{\"place\": 0, \"name\": \"a\", \"access\": \"deny\", \"replaced\": 1}, "     \
	"{\"place\": 3, \"name\": \"b\", \"access\": \"allow\", \"replaced\": 1}], "

static const char *const heads[] = {"", HEAD "\"rules\": [], \"lists\": [",
				    HEAD "\"lists\": [], \"rules\": [", HEAD LISTS "\"rules\": ["};

static const char *const tails[] = {"", "]}", "]}", "]}"};

static size_t text_make(const uint8_t *data, size_t size, char text[TEXT_MAX])
{
	unsigned int kind = size ? *data % 4 : 0;
	size_t length = strlen(strcpy(text, heads[kind]));

	for (size_t i = 1; i < size && length < TEXT_MAX - 128; i++) {
		if (kind && data[i] >= 128)
			length += strlen(strcpy(text + length,
						words[data[i] % (sizeof(words) / sizeof(*words))]));
		else
			text[length++] = data[i];
	}
	memcpy(text + length, tails[kind], strlen(tails[kind]));
	return length + strlen(tails[kind]);
}

/*
 * Checks that two rule sets are equal, except for entries that expired between reading `a` and `b`.
 */
static void rules_expect_equal(const struct ruleset *a, const struct ruleset *b)
{
	expect(a->count >= b->count && lists_count(a->lists) >= lists_count(b->lists));
	if (a->count != b->count)
		return;
	for (unsigned int i = 0; i < a->count; i++) {
		expect(a->rules[i].access == b->rules[i].access);
		expect(until_equal(a->rules[i].until, b->rules[i].until));
		expect(until_equal(a->rules[i].list_until, b->rules[i].list_until));
		expect(!i || memcmp(&a->rules[i].prefix, &a->rules[i - 1].prefix,
				    sizeof(a->rules[i].prefix)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX], *written;
	struct state_file state, again;
	size_t length = text_make(data, size, text);
	json_t *root;

	if (state_file_parse("state", text, length, &state)) {
		error_drop(0);
		return 0;
	}
	root = state_file_json(&state);
	written = json_dumps(root, 0);
	expect(written && !state_file_parse("state", written, strlen(written), &again));
	rules_expect_equal(&state.entries, &again.entries);
	expect(state.bpffs == again.bpffs && again.is_of_boot);
	free(written);
	json_decref(root);
	state_file_free(&state);
	state_file_free(&again);
	return 0;
}
