/* SPDX-License-Identifier: GPL-2.0 */
/* Base: words of messages: the nearest keyword, plural forms, the option that names a gate. */
#ifndef SLUICE_TEXT_H
#define SLUICE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The word nearest to what was typed, ignoring case: at most two letters missing, added, wrong or
 * swapped with a neighbour, and at most half of the letters. NULL: no word is that near, or one is
 * equal.
 */
const char *nearly_find(const char *typed, const char *const words[], size_t count);

/* The index of a word; -1: it is none of them. */
int word_find(const char *const words[], int count, const char *word);

/* Whether it is UTF-8 without control characters, as a file of text can have it. */
bool text_is_printable(const char *text);

/* Replaces each byte that is not printable ASCII by '?'. */
void text_make_printable(char *text);

#define WORD_TYPED  256			  /* characters of a word; more are left out */
#define WORD_QUOTED (4 * WORD_TYPED + 16) /* with what protects them */

/*
 * Writes a word as a shell reads it: in quotes where it has more than letters. Quotes cannot hold
 * characters that command a terminal, so printf(1) makes these.
 */
const char *word_quote(const char *word, char text[WORD_QUOTED]);

/* The same. Lives until the next call. */
const char *word_typed(const char *word);

/*
 * The same as an operand of our commands: behind `--` where it would be taken for an option. Lives
 * until the next call.
 */
const char *operand_typed(const char *word);

/* --- Numbers -------------------------------------------------------------------------------- */

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* --- Gates ---------------------------------------------------------------------------------- */

#define GATE_USUAL "main" /* the gate of a command without -g */

/*
 * The option "-g GATE " that a command in a message needs; "" for GATE_USUAL. Lives until the next
 * call.
 */
const char *gate_option(const char *gate);

#endif
