/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: writes the output of a command, as text or as JSON, by the same calls. Text uses the
 * format of a value, JSON its key. Output is not collected first, so a million rows need no memory.
 *
 *	print_object(NULL);
 *	print_string("gate", "gate %s: ", gate->name);
 *	print_number("rules", "%" PRIu64 " rules\n", rules);
 *	print_end();
 */
#ifndef SLUICE_WRITER_H
#define SLUICE_WRITER_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Begins a document: the functions below write it to `out`, as text or as JSON. The document before
 * it may be incomplete.
 */
void print_begin(FILE *out, bool json);
bool print_is_json(void);

/* Returns whether any part of a JSON document was printed. */
bool print_is_begun(void);

/*
 * Open an object or an array, and close the last opened object or array. They print nothing in
 * text. key: NULL for the document, and for an element of an array.
 */
void print_object(const char *key);
void print_row(const char *key); /* opens an object that JSON prints in one line */
void print_array(const char *key);
void print_end(void);

/*
 * Print a value. format: printf format for text, with one conversion of the value's type; if NULL,
 * text prints nothing. If value is NULL, JSON prints null, and text nothing. In text, bytes of
 * strings that are not printable are replaced.
 */
void print_string(const char *key, const char *format, const char *value);
void print_number(const char *key, const char *format, uint64_t value); /* "%" PRIu64 */

/* Prints a number. If it is not known, JSON prints null, and text nothing. */
void print_known(const char *key, const char *format, bool is_known, uint64_t value);

/* Print a value in JSON, and nothing in text. */
void print_bool(const char *key, bool value);
void print_real(const char *key, double value);
void print_null(const char *key);

/* Prints text, and nothing in JSON. */
void print_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- Memory --------------------------------------------------------------------------------- */

/*
 * Returns false if jansson failed to allocate memory since print_begin(). It then omits parts of
 * the tree.
 */
bool print_is_whole(void);

#endif
