/* SPDX-License-Identifier: GPL-2.0 */
/* Program: prints how far a long command is, in one line of the terminal on standard error. */
#ifndef SLUICE_PROGRESS_H
#define SLUICE_PROGRESS_H

#include <stdint.h>

/*
 * Prints the part of the work that is done, at most five times a second. Prints nothing if standard
 * error is no terminal. total: 0 if it is unknown. items: number of `what` so far.
 */
void progress_show(uint64_t done, uint64_t total, uint64_t items, const char *what);

/* Removes the line from the terminal. */
void progress_end(void);

#endif
