/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Program: writes what a command reports, as text or as JSON, by the same calls. Text prints a
 * value by its format, JSON by its key. Output is written at once, so a million rows take no
 * memory, and lack of memory loses no part of a document.
 *
 *	print_object(NULL);
 *	print_string("gate", "gate %s: ", gate->name);
 *	print_number("rules", "%" PRIu64 " rules\n", rules);
 *	print_end();
 */
#ifndef SLUICE_WRITER_H
#define SLUICE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Chooses what the functions below write to standard output. Until then they write text. */
void print_begin(bool json);
bool print_is_json(void);

/* Returns whether any part of a document was printed. */
bool print_is_begun(void);

/*
 * Open an object or an array, and close the one that was opened last. Text has none of them. key:
 * NULL for the document, and for an element of an array.
 */
void print_object(const char *key);
void print_row(const char *key); /* an object of which JSON is one line */
void print_array(const char *key);
void print_end(void);

/*
 * Print a value. format: of text, for one argument of the type of the value; NULL: only JSON has
 * the value. value NULL: null, and nothing in text. Text replaces the bytes of a string that are
 * not printable.
 */
void print_string(const char *key, const char *format, const char *value);
void print_number(const char *key, const char *format, uint64_t value); /* "%" PRIu64 */

/* Prints a number that is not always known: otherwise null, and nothing in text. */
void print_known(const char *key, const char *format, bool is_known, uint64_t value);

/* Print a value of JSON. */
void print_bool(const char *key, bool value);
void print_real(const char *key, double value);
void print_null(const char *key);

/* Prints text. */
void print_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- Memory --------------------------------------------------------------------------------- */

/*
 * jansson omits a part of a tree if it gets no memory. Returns false if that has happened since
 * print_begin().
 */
bool print_is_whole(void);

#endif
