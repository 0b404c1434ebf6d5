/* SPDX-License-Identifier: GPL-2.0 */
/* Program: prints errors, warnings and notices on standard error, and the exit status. */
#ifndef SLUICE_MESSAGES_H
#define SLUICE_MESSAGES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Prints "sluice: OBJECT: text; hint" on standard error, for error_set_printer(). If the journal
 * reads standard error, each line begins with its priority, as sd-daemon(3) specifies.
 */
void message_print(const struct sl_error *error);

/*
 * Prints the list of errors. json: after a failure also prints the first error as JSON on standard
 * output, unless a document was printed. Returns the exit status for a result: 0, 2 if the last
 * error is a misuse, and 1 otherwise.
 */
int messages_exit_status(int err, bool json);

/*
 * Returns whether the journal reads this open file: $JOURNAL_STREAM has its device and inode.
 * stream: the value of that variable, or NULL.
 */
bool journal_reads(const char *stream, const struct stat *st);

#endif
