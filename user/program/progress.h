/* SPDX-License-Identifier: GPL-2.0 */
/* Program: shows the progress of a long command, in one line of the terminal on standard error. */
#ifndef SLUICE_PROGRESS_H
#define SLUICE_PROGRESS_H

#include <stdint.h>

/*
 * Shows the progress, such as bytes read: `done` of `total`, or 0 if the total is unknown. Shows
 * the number of `items` so far, with their name `what`. Prints at most five times a second, and
 * only if standard error is a terminal.
 */
void progress_show(uint64_t done, uint64_t total, uint64_t items, const char *what);

/* Erases the line on the terminal. */
void progress_end(void);

#endif
