/* SPDX-License-Identifier: GPL-2.0 */
/* Program: shows the progress of a long command, in one line of the terminal on standard error. */
#ifndef SLUICE_PROGRESS_H
#define SLUICE_PROGRESS_H

#include <stdint.h>

/*
 * Shows that `done` of `total` units of work are done, at most five times a second. Prints nothing
 * if standard error is not a terminal. total: 0 if unknown. items: number of `what` so far.
 */
void progress_show(uint64_t done, uint64_t total, uint64_t items, const char *what);

/* Erases the line on the terminal. */
void progress_end(void);

#endif
