// SPDX-License-Identifier: GPL-2.0
#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Longest word to compare, in letters. The longest keyword has 22 letters. */
#define LETTERS_MAX 24

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static bool letters_equal(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Returns the optimal string alignment distance of two words: the least number of edits. An edit
 * inserts, deletes or replaces a letter, or swaps two neighbours. d[i][j] is the distance between
 * the first i letters of a and the first j letters of b.
 */
static unsigned int distance(const char *a, size_t rows, const char *b, size_t columns)
{
	unsigned int d[LETTERS_MAX + 1][LETTERS_MAX + 1];

	for (size_t i = 0; i <= rows; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= columns; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= rows; i++)
		for (size_t j = 1; j <= columns; j++) {
			bool equal = letters_equal(a[i - 1], b[j - 1]);

			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
					d[i - 1][j - 1] + !equal);
			if (i > 1 && j > 1 && letters_equal(a[i - 1], b[j - 2]) &&
			    letters_equal(a[i - 2], b[j - 1]))
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[rows][columns];
}

const char *nearly_find(const char *typed, const char *const words[], size_t count)
{
	size_t length = strlen(typed);
	unsigned int best = least(2, length / 2) + 1;
	const char *found = NULL;

	if (length > LETTERS_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t letters = strlen(words[i]);
		unsigned int far =
			letters > LETTERS_MAX ? best : distance(typed, length, words[i], letters);

		/* two mistakes, one of them in the first letter, are rarely typing mistakes */
		if (far > 1 &&
		    !letters_equal(typed[strspn(typed, "-")], words[i][strspn(words[i], "-")]))
			continue;
		/* `typed` is a known word, so it is not misspelled */
		if (!strcmp(typed, words[i]))
			return NULL;
		/*
		 * if words are equally similar, prefer the longest, because users omit letters more
		 * often than they add letters
		 */
		if (far > best || (far == best && (!found || letters <= strlen(found))))
			continue;
		best = far;
		found = words[i];
	}
	return found;
}

/* --- Characters ----------------------------------------------------------------------------- */

size_t text_character(const char *text, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = *bytes >= 0xf0 ? 4 : *bytes >= 0xe0 ? 3 : 2;
	uint32_t code = *bytes & (0x7f >> length);

	*ret = *bytes;
	if (*bytes < 0x80)
		return 1;
	if (*bytes < 0xc0 || *bytes >= 0xf8)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	*ret = code;
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/* Returns the length of a text's first character, or 0 if it is invalid or not printable. */
static size_t printable_length(const char *text)
{
	uint32_t code;
	size_t length = text_character(text, &code);

	return code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : length;
}

bool text_is_printable(const char *text)
{
	for (size_t length; *text; text += length) {
		length = printable_length(text);
		if (!length)
			return false;
	}
	return true;
}

void text_make_printable(char *text)
{
	size_t length;

	for (; *text; text += length) {
		length = printable_length(text);
		if (length)
			continue;
		*text = '?';
		length = 1;
	}
}

/* --- Names and words of others ---------------------------------------------------------------- */

/* Buffer size of a quoted word: 4 characters for each byte in octal, plus quotes and printf. */
#define ROOM (4 * WORD_TYPED + 32)

static char *room_next(void)
{
	static _Thread_local char rooms[WORDS_LIVE][ROOM];
	static _Thread_local unsigned int next;

	return rooms[next++ % WORDS_LIVE];
}

const char *name_shown(const char *name)
{
	char *text = room_next();

	snprintf(text, ROOM, "%s", name);
	text_make_printable(text);
	return text;
}

static void quotes_write(const char *word, char *end)
{
	*end++ = '\'';
	for (size_t i = 0; word[i] && i < WORD_TYPED; i++)
		if (word[i] == '\'')
			end = stpcpy(end, "'\\''");
		else
			*end++ = word[i];
	strcpy(end, "'");
}

/*
 * Quotes a word for printf(1). Writes each byte other than a letter or digit as an octal number,
 * because %, \ and a leading - are special. If the word ends in a newline, writes $'...' (bash,
 * POSIX.1-2024), because a shell drops newlines at the end of $(...).
 */
static void octal_write(const char *word, char *end)
{
	bool ends_line = word[strlen(word) - 1] == '\n';

	end = stpcpy(end, ends_line ? "$'" : "\"$(printf '");
	for (size_t i = 0; word[i] && i < WORD_TYPED; i++)
		if (isalnum((unsigned char)word[i]))
			*end++ = word[i];
		else
			end += sprintf(end, "\\%03o", (unsigned int)(unsigned char)word[i]);
	strcpy(end, ends_line ? "'" : "')\"");
}

static void word_write(const char *word, char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_.,@%+=:/";

	if (!text_is_printable(word))
		octal_write(word, text);
	else if (!*word || word[strspn(word, safe)])
		quotes_write(word, text);
	else
		snprintf(text, WORD_TYPED + 1, "%s", word);
}

const char *word_typed(const char *word)
{
	char *text = room_next();

	word_write(word, text);
	return text;
}

const char *operand_typed(const char *word)
{
	char *text = room_next();
	size_t lead = word[0] == '-' && word[1] ? sizeof("-- ") - 1 : 0;

	memcpy(text, "-- ", lead);
	word_write(word, text + lead);
	return text;
}

/* --- Gates ---------------------------------------------------------------------------------- */

int word_find(const char *const words[], int count, const char *word)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

const char *gate_option(const char *gate)
{
	static _Thread_local char text[64]; /* for "-g GATE " with GATE_NAME bytes */

	if (!strcmp(gate, GATE_USUAL))
		return "";
	snprintf(text, sizeof(text), "-g %s ", gate);
	return text;
}
