/* SPDX-License-Identifier: GPL-2.0 */
/* Top: runs a command of sluice without a shell. */
#ifndef SLUICE_TOP_RUN_H
#define SLUICE_TOP_RUN_H

#define RUN_LINE 256

/*
 * Runs `sluice` with these arguments (NULL-terminated, without argv[0]), and waits until it ends.
 * Copies to `line` the first line that it prints, without "sluice: ". Returns the exit status, or a
 * negative errno.
 */
int sluice_run(char *const arguments[], char line[RUN_LINE]);

#endif
