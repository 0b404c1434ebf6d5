// SPDX-License-Identifier: GPL-2.0
#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* No word of the command line is longer, with two letters to spare. */
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
 * The optimal string alignment distance: the fewest letters to insert, delete, replace or swap with
 * a neighbour, where each place changes once. d[i][j] is the distance between the first i letters
 * of a and the first j of b.
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

		if (!strcmp(typed, words[i])) /* the word is right, and in the wrong place */
			return NULL;
		/*
		 * among equal distances the longest word: letters are omitted more often than
		 * mistyped
		 */
		if (far > best || (far == best && (!found || letters <= strlen(found))))
			continue;
		best = far;
		found = words[i];
	}
	return found;
}

/* --- Gates ---------------------------------------------------------------------------------- */

const char *gate_option(const char *gate)
{
	static char text[64]; /* a name of a gate has at most GATE_NAME letters */

	if (!strcmp(gate, GATE_USUAL))
		return "";
	snprintf(text, sizeof(text), "-g %s ", gate);
	return text;
}
