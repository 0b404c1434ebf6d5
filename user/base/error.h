/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: errors, warnings and notices as values, because the library never prints. A function that
 * fails adds a `struct sl_error` to its thread's list, and returns a negative errno. A caller that
 * can continue after a failure removes the error from the list. The program prints the list when
 * the command ends.
 */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#include <errno.h>
#include <stdbool.h>

enum sl_severity {
	SL_ERROR,
	SL_WARNING, /* reports a problem that does not stop the command */
	SL_NOTICE,  /* reports an effect that the user may not expect */
	SL_INFO,    /* reports a step that a service has done */
};

struct sl_error {
	const char *id; /* string literal for programs and tests, such as "no-such-limit" */
	enum sl_severity severity;
	bool is_misuse; /* an argument or a file is wrong, so the program exits with status 2 */
	char *object;	/* the device, prefix, limit or file that the error is about, or "" */
	char *text;	/* what is wrong */
	char *hint;	/* what the user can do, or "" */
};

/*
 * Add an error. error_add() returns -abs(err), or -EIO if err is 0. error_misuse() returns -EINVAL.
 * object: may be NULL. format: "what is wrong; what to do". The part of the format before the first
 * "; " is the text, the rest is the hint. Each unprintable byte becomes '?'.
 */
int error_add(int err, const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int error_misuse(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Add a warning, a notice, or information about a service. */
void error_warn(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_notice(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_inform(const char *id, const char *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Returns the number of items in the list. If the caller passes this number as `mark` to a function
 * below, the function handles only items that were added later.
 */
unsigned int error_count(void);

/* Returns an item of the list, which is valid until it is removed. */
const struct sl_error *error_get(unsigned int index);

/* Returns the last error from index `mark` on, or NULL. */
const struct sl_error *error_last(unsigned int mark);

/* Removes the items from index `mark` on. */
void error_drop(unsigned int mark);

/* Removes the item at an index. */
void error_remove(unsigned int index);

/*
 * Inserts a position such as "rules.yaml:3:7" before the object of each error from index `mark` on.
 */
void error_place(unsigned int mark, const char *place);

/* Formats "OBJECT: text; hint". The caller frees the result, which is NULL if out of memory. */
char *error_format(const struct sl_error *error);

/* --- Errno and capabilities ----------------------------------------------------------------- */

/*
 * Returns a text for the errno of a system call such as bpf(2). The text names a missing
 * capability, or says that memory or a map is full. `err` may be positive or negative. The text is
 * valid until the next call.
 */
const char *why(int err);

/*
 * Returns the capabilities that this process lacks, such as "CAP_BPF, CAP_NET_ADMIN", or NULL if it
 * has all. The text is valid until the next call.
 */
const char *caps_missing(void);

/* Returns whether this process is in a user namespace other than the host's. */
bool in_user_namespace(void);

/* Returns 0, or adds an error and returns -EPERM if in_user_namespace(). */
int host_users_require(void);

/*
 * Returns 0 if this process has all required capabilities in the host's user namespace. Otherwise
 * adds an error that names what is missing, and returns -EPERM.
 */
int caps_require(void);

/* --- Printing ------------------------------------------------------------------------------- */

/* Sets the function that prints each item. With NULL, items are not printed. */
void error_set_printer(void (*print)(const struct sl_error *error));

/* Prints all items of the list, and empties it. */
void error_flush(void);

#endif
