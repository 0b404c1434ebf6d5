/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: messages on standard error, and the exit status that belongs to them. Where the journal
 * reads standard error, each line begins with its priority, as sd-daemon(3) has it.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <stdbool.h>
#include <sys/stat.h>

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

/*
 * Print "sluice: MESSAGE" on standard error. note(): a hint that is not an error. warning(): what
 * is not as it should be, though the command goes on. inform(): what a process that goes on has
 * done.
 */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void inform(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Asks before each message but those of inform() is printed. False: it is not; NULL: all are. */
void log_filter(bool (*wanted)(void *data, const char *message), void *data);

/*
 * Whether the journal reads this open file: $JOURNAL_STREAM has its device and inode. stream: the
 * value of that variable, or NULL.
 */
bool journal_reads(const char *stream, const struct stat *st);

/* Sets whether messages of misuse() are dropped. Returns the previous setting. */
bool log_mute(bool mute);

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

/*
 * The capabilities that this process lacks, as "CAP_BPF, CAP_NET_ADMIN"; NULL: none. The text
 * lives until the next call.
 */
const char *caps_missing(void);

/* Fails, and names what is missing, unless the process has all capabilities. */
enum status caps_require(void);

#endif
