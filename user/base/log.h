/* SPDX-License-Identifier: GPL-2.0 */
/* Base: messages on standard error, and the exit status that belongs to them. */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <stdbool.h>

/*
 * The result of every function that can fail, and the exit status of the process. The function that
 * meets the error prints it; its callers clean up and return the status.
 */
enum status {
	OK = 0,
	FAILED = 1,  /* the system refused, or something is missing */
	MISUSED = 2, /* the arguments or a file are wrong */
};

/* Prints "sluice: MESSAGE" on standard error and returns FAILED. */
enum status failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "sluice: MESSAGE" on standard error and returns MISUSED. */
enum status misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "sluice: MESSAGE" on standard error: a hint that is not an error. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Sets the place in a file, "rules.yaml:3:7", that each message begins with; NULL: none. The text
 * stays the caller's, and must live as long as it is set. Returns the place set before.
 */
const char *log_place(const char *place);

/*
 * The meaning of an errno of bpf(2) and similar calls: names the missing capability, or a full
 * memory or map. err: positive or negative. The text lives until the next call.
 */
const char *why(int err);

/* Prints the messages of libbpf on standard error (-v), or drops them. */
void log_libbpf(bool verbose);

/* --- Capabilities --------------------------------------------------------------------------- */

/* The capabilities that this process lacks, as "CAP_BPF and CAP_NET_ADMIN"; NULL: none. */
const char *caps_missing(void);

/* Fails, and names what is missing, unless the process has all capabilities. */
enum status caps_require(void);

#endif
