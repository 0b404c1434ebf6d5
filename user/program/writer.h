/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: writes the output of a command as text or as JSON, by the same calls. Each call has a
 * format for text and a key for JSON, and writes at once, so a million rows need no memory.
 *
 * 	print_object(NULL);
 * 	print_string("gate", "gate %s: ", gate->name);
 * 	print_number("rules", "%" PRIu64 " rules\n", rules);
 * 	print_end();
 */
#ifndef SLUICE_WRITER_H
#define SLUICE_WRITER_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Begins a document, which print_*() write to `out` as JSON or text. A previous document may be
 * incomplete.
 */
void print_begin(FILE *out, bool json);
bool print_is_json(void);

/* Returns whether the output of a JSON document has begun. */
bool print_is_begun(void);

/*
 * print_object(), print_row() and print_array() open an object or array in JSON. print_end() closes
 * the innermost object or array. In text output, these functions print nothing. key: NULL for the
 * document and for items of an array.
 */
void print_object(const char *key);
void print_row(const char *key); /* opens an object that JSON output prints in one line */
void print_array(const char *key);
void print_end(void);

/*
 * Print a value. format: printf format of the text, with one conversion for the value; if it is
 * NULL, text output omits the value. If `value` is NULL, prints null in JSON, and nothing in text.
 * In text, prints '?' for each unprintable byte of a string.
 */
void print_string(const char *key, const char *format, const char *value);
void print_number(const char *key, const char *format, uint64_t value); /* "%" PRIu64 */

/* Prints a number. If `is_known` is false, prints null in JSON, and nothing in text. */
void print_known(const char *key, const char *format, bool is_known, uint64_t value);

/* Print a value in JSON. Print nothing in text output. */
void print_bool(const char *key, bool value);
void print_real(const char *key, double value);
void print_null(const char *key);

/* Prints text, and nothing in JSON. */
void print_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- Memory --------------------------------------------------------------------------------- */

/* Returns false if the output since print_begin() is incomplete, because jansson had no memory. */
bool print_is_whole(void);

#endif
