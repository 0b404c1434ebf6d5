/* SPDX-License-Identifier: GPL-2.0 */
/* Program: shows the progress of a long command, in one line of the terminal on standard error. */
#ifndef SLUICE_PROGRESS_H
#define SLUICE_PROGRESS_H

#include <stdint.h>

/*
 * Shows progress at most five times a second, if standard error is a terminal. done: amount of work
 * that is done, such as bytes read. total: total amount, or 0 if it is unknown. items: number of
 * items so far; `what` is their name.
 */
void progress_show(uint64_t done, uint64_t total, uint64_t items, const char *what);

/* Erases the line on the terminal. */
void progress_end(void);

#endif
