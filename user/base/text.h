/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: texts of messages. The name of a device, namespace, file or list may contain any bytes.
 * name_shown() makes a name printable. word_typed() and operand_typed() quote a name for a shell.
 */
#ifndef SLUICE_TEXT_H
#define SLUICE_TEXT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Returns the word that a user probably meant by `typed`. Ignores case. Accepts up to two missing,
 * extra, wrong or swapped letters, but at most half of all letters. If the first letter is wrong,
 * accepts only one mistake. Returns NULL if no word is similar, or if `typed` is one of the words.
 */
const char *nearly_find(const char *typed, const char *const words[], size_t count);

/* Returns the index of a word in an array, or -1 if the array does not contain it. */
int word_find(const char *const words[], int count, const char *word);

/* Decodes a text's first character (UTF-8). Returns its length in bytes, or 0 if it is invalid. */
size_t text_character(const char *text, uint32_t *ret);

/* Returns whether a text is UTF-8 without control characters. */
bool text_is_printable(const char *text);

/* Replaces each byte of a control character, and each byte that is not valid UTF-8, by '?'. */
void text_make_printable(char *text);

/*
 * Returns a printable copy of a name. The copy is valid until this function, word_typed() or
 * operand_typed() has been called WORDS_LIVE times more.
 */
const char *name_shown(const char *name);

#define WORDS_LIVE 8
#define WORD_TYPED PATH_MAX /* longest word in bytes; a longer word is cut off */
/* buffer size of the quoted name of a file, in bytes */
#define NAME_TYPED (4 * (NAME_MAX + 1) + 16)

/*
 * Returns a word, quoted for a shell if needed. For a word with control characters, returns a call
 * of printf(1), because such characters would act on the terminal. The result is valid as long as a
 * result of name_shown().
 */
const char *word_typed(const char *word);

/* Like word_typed(), for an operand of sluice: puts "-- " before a word that begins with '-'. */
const char *operand_typed(const char *word);

/* --- Numbers -------------------------------------------------------------------------------- */

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* --- Gates ---------------------------------------------------------------------------------- */

#define GATE_USUAL "main" /* gate of a command without -g */

/* Returns the option "-g GATE " for a message, or "" for GATE_USUAL. Valid until the next call. */
const char *gate_option(const char *gate);

#endif
