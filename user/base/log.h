/* SPDX-License-Identifier: GPL-2.0 */
/* What goes wrong, said in one line on standard error, and the exit status that goes with it. */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <stdbool.h>

/*
 * What every function that can fail returns, up to main: the exit status of the process. The
 * function that meets the trouble says so; its callers clean up and pass the status on.
 */
enum status {
	OK = 0,
	FAILED = 1,  /* the world said no */
	MISUSED = 2, /* the words were wrong */
};

/* Says "sluice: MESSAGE" and returns FAILED. */
enum status failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says "sluice: MESSAGE" and returns MISUSED. */
enum status misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says "sluice: MESSAGE" on standard error: something the user should know, and no failure. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Where what is being read stands, "rules.yaml:3:7": said at the head of each message until it is NULL. The
 * text is the caller's, and lives as long. Returns the place before.
 */
const char *log_place(const char *place);

/*
 * What an errno of bpf(2) and its kin means to a user: names the missing capability, or a full
 * memory or map. err: positive or negative. The text lives until the next call.
 */
const char *why(int err);

/* Lets libbpf talk on standard error (-v); else it is silent. */
void log_libbpf(bool verbose);

/* --- Capabilities --------------------------------------------------------------------------- */

/* The names of those that this process lacks, as "CAP_BPF and CAP_NET_ADMIN"; NULL: none. */
const char *caps_missing(void);

/* Fails, naming what is missing, unless the process has all of them. */
enum status caps_require(void);

#endif
