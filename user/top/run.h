/* SPDX-License-Identifier: GPL-2.0 */
/* Top: runs a command of sluice without a shell. */
#ifndef SLUICE_TOP_RUN_H
#define SLUICE_TOP_RUN_H

#define RUN_LINE 256

/*
 * Runs `sluice` with these arguments, which end with NULL and begin after the name, and waits for
 * it. Copies the first line that it prints, without "sluice: ". Returns the exit status, or a
 * negative errno.
 */
int sluice_run(char *const arguments[], char line[RUN_LINE]);

#endif
