// SPDX-License-Identifier: GPL-2.0
/*
 * user/keep/bans.h: a state file of any bytes is refused or read, and what is read is written back
 * as a file that reads to the same. The first bytes choose whether the rest is the file, or words
 * that are put between the brackets of a file that is well formed up to there.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keep/bans.h"
#include "rules/lists.h"

#define TEXT_MAX 8192
#define NOW	 1795348800 /* 2026-11-22T12:00:00Z */

static void expect(bool truth)
{
	if (!truth)
		abort();
}

/* What a byte above 127 stands for. */
static const char *const words[] = {"{\"prefix\": \"",
				    "192.0.2.1",
				    "2001:db8::1",
				    "10.0.0.0/8",
				    "\", \"access\": \"",
				    "allow",
				    "deny",
				    "\"}",
				    "\"}, ",
				    "\", \"until\": \"2026-11-22T13:00:00Z\", \"left_ms\": ",
				    "3600000",
				    "{\"name\": \"",
				    "\", \"prefixes\": [",
				    "\"192.0.2.1\"",
				    "\"192.0.2.2\", ",
				    "]",
				    "}",
				    "]}",
				    "a",
				    "b"};

static const char *const heads[] = {
	"",
	"{\"version\": 1, \"boot\": \"b\", \"lists\": [], \"entries\": [",
	"{\"version\": 1, \"boot\": \"b\", \"entries\": [], \"lists\": [",
	("{\"version\": 1, \"boot\": \"\", \"entries\": [], \"lists\": [], \"file\": "
	 "{\"lists\": [], \"entries\": ["),
};

static const char *const tails[] = {"", "]}", "]}", "]}}"};

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

/* What had less than a moment left may have ended meanwhile. */
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
	struct bans bans, again;
	size_t length = text_make(data, size, text);
	json_t *root;

	if (bans_parse("state", text, length, NOW, &bans))
		return 0;
	root = bans_json(&bans);
	written = json_dumps(root, 0);
	expect(written && !bans_parse("state", written, strlen(written), time(NULL), &again));
	if (bans.given.lists && again.given.lists)
		rules_expect_equal(&bans.given, &again.given);
	expect(bans.file_is_known == again.file_is_known && !strcmp(bans.boot, again.boot));
	free(written);
	json_decref(root);
	bans_free(&bans);
	bans_free(&again);
	return 0;
}
