/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: errors, warnings and notices as values. The library never prints.
 *
 * A function that fails returns a negative errno and adds a `struct sl_error` to the list of its
 * thread. Warnings and notices are added to the same list. A caller that can go on after a failure
 * takes the error from the list; the program prints what is left, by its printer.
 */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#include <errno.h>
#include <stdbool.h>

enum sl_severity {
	SL_ERROR,
	SL_WARNING, /* the command continues, but something is wrong */
	SL_NOTICE,  /* a hint */
	SL_INFO,    /* a service did something */
};

struct sl_error {
	const char *id; /* a literal, "no-such-limit"; programs and tests compare it */
	enum sl_severity severity;
	bool is_misuse; /* an argument or a file is wrong: exit status 2 */
	char *object;	/* what the error is about; "": nothing */
	char *text;	/* what is wrong */
	char *hint;	/* what to do; "": no advice */
};

/*
 * Add an error and return it: error_add() returns -abs(err), error_misuse() returns -EINVAL.
 * object: NULL if there is none. format: "what is wrong; what to do". The first "; " of the format
 * ends the text. Bytes that are not printable are replaced by '?'.
 */
int error_add(int err, const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int error_misuse(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Add a warning, a notice, or a line about what a service did. */
void error_warn(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_notice(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_inform(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns the number of items in the list. The value marks a place for the functions below. */
unsigned int error_count(void);

/* Returns an item of the list; it lives until it is dropped. */
const struct sl_error *error_get(unsigned int index);

/* Returns the last item with severity SL_ERROR from `mark` on, or NULL. */
const struct sl_error *error_last(unsigned int mark);

/* Removes the items from `mark` on. */
void error_drop(unsigned int mark);

/* Removes one item. */
void error_remove(unsigned int index);

/* Puts a place in a file, "rules.yaml:3:7", before the objects of the items from `mark` on. */
void error_place(unsigned int mark, const char *place);

/* Formats "OBJECT: text; hint". The caller frees the text. NULL: out of memory. */
char *error_format(const struct sl_error *error);

/* --- Errno and capabilities ----------------------------------------------------------------- */

/*
 * Returns the meaning of an errno of bpf(2) and similar calls, positive or negative: names the
 * missing capability, or a full memory or map. The text lives until the next call.
 */
const char *why(int err);

/*
 * Returns the capabilities that this process lacks, as "CAP_BPF, CAP_NET_ADMIN"; NULL: none. The
 * text lives until the next call.
 */
const char *caps_missing(void);

/* Fails, and names what is missing, unless the process has all capabilities. */
int caps_require(void);

/* --- Printing ------------------------------------------------------------------------------- */

/* Sets the function of this program that prints an item. NULL: items are dropped. */
void error_set_printer(void (*print)(const struct sl_error *error));

/* Prints the list and empties it. Services call it after each round. */
void error_flush(void);

#endif
