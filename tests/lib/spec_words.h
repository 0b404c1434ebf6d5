/* SPDX-License-Identifier: GPL-2.0 */
/* Makes limits from arguments of `sluice set`, for tests. */
#ifndef SLUICE_TEST_SPEC_WORDS_H
#define SLUICE_TEST_SPEC_WORDS_H

#include "test.h"
#include "prefix_of.h"
#include "spec_first.h"

struct words {
	struct spec_texts spec;
	char text[SPEC_FIELDS][SPEC_TEXT];
};

static inline int field_of(const char *word)
{
	int field = 0;

	while (field < SPEC_FIELDS && strcmp(word, spec_names[field]))
		field++;
	return field;
}

/*
 * Returns whether the word "per" belongs to the value of a window. In "window 10 per 1s, 1MB per 1h
 * per 32,24", only the last "per" is a keyword.
 */
static inline bool is_part(int field, const char *word, const struct words *words)
{
	unsigned int amounts = 1, pers = 0;

	if (field != SPEC_WINDOW || strcmp(word, "per"))
		return false;
	for (const char *at = words->text[SPEC_WINDOW]; *at; at++) {
		amounts += *at == ',';
		pers += !strncmp(at, "per", 3);
	}
	return pers < amounts;
}

/* Splits a text such as "rate 1kpps burst 9" into the fields of a limit. */
static inline void words_split(const char *words, struct words *ret)
{
	char copy[4 * SPEC_TEXT], *rest, *word;
	int field = SPEC_FIELDS;

	*ret = (struct words){0};
	assert_true(strlen(words) < sizeof(copy));
	strcpy(copy, words);
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *text;

		if (field_of(word) < SPEC_FIELDS && !is_part(field, word, ret)) {
			field = field_of(word);
			ret->spec.text[field] = ret->text[field];
			continue;
		}
		assert_in_range(field, 0, SPEC_FIELDS - 1);
		text = ret->text[field];
		snprintf(text + strlen(text), SPEC_TEXT - strlen(text), *text ? " %s" : "%s", word);
	}
}

/* Returns a limit of a prefix from arguments of `sluice set`. */
static inline struct limit limit_of_words(const char *prefix_text, const char *text)
{
	struct sl_prefix prefix = prefix_of(prefix_text);
	struct limit limit;
	struct words words;

	words_split(text, &words);
	assert_int_equal(spec_parse_first(&words.spec, &prefix, &limit), 0);
	return limit;
}

#endif
