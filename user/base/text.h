/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: words of messages: the nearest keyword, plural forms, the option that names a gate. Names
 * that others chose are printed by name_shown(), and typed into a shell by word_typed() and
 * operand_typed().
 */
#ifndef SLUICE_TEXT_H
#define SLUICE_TEXT_H

#include <limits.h>
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

/* Returns the index of a word, or -1. */
int word_find(const char *const words[], int count, const char *word);

/*
 * Reads a character of UTF-8 (RFC 3629). Returns its length in bytes, or 0 if the text begins with
 * none.
 */
size_t text_character(const char *text, uint32_t *ret);

/* Whether it is UTF-8 without control characters, as a file of text can have it. */
bool text_is_printable(const char *text);

/* Replaces each byte of a control character, and each byte that is not UTF-8, by '?'. */
void text_make_printable(char *text);

/*
 * Returns a printable copy of the name of a device, a namespace, a file or a list. The copy lives
 * until the next WORDS_LIVE calls of this function, word_typed() and operand_typed().
 */
const char *name_shown(const char *name);

#define WORDS_LIVE 8
#define WORD_TYPED PATH_MAX		     /* bytes of a word; the rest is cut off */
#define NAME_TYPED (4 * (NAME_MAX + 1) + 16) /* room for a typed name of at most NAME_MAX bytes */

/*
 * Returns a word as it is typed into a shell, quoted if necessary. Control characters would act on
 * the terminal, so they become a call of printf(1). The text lives as long as that of name_shown().
 */
const char *word_typed(const char *word);

/* word_typed() for an operand of sluice: after `--` if sluice would parse it as an option. */
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
