/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: old forms of the functions of error.h, which each folder replaces; and what an errno means.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <errno.h>
#include <stdbool.h>
#include "base/error.h"

/* Old: return -errno, and error_add() or error_misuse(). */
enum { OK = 0, FAILED = -EIO, MISUSED = -EINVAL };

/* Old: error_add(), error_misuse(), error_notice(), error_warn(), error_inform(). */
int failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
int misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void inform(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The meaning of an errno of bpf(2) and similar calls: names the missing capability, or a full
 * memory or map. err: positive or negative. The text lives until the next call.
 */
const char *why(int err);

/* Prints the messages of libbpf on standard error (-v), or drops them. */
void log_libbpf(bool verbose);

/* --- Capabilities --------------------------------------------------------------------------- */

/*
 * The capabilities that this process lacks, as "CAP_BPF, CAP_NET_ADMIN"; NULL: none. The text
 * lives until the next call.
 */
const char *caps_missing(void);

/* Fails, and names what is missing, unless the process has all capabilities. */
int caps_require(void);

#endif
