/* SPDX-License-Identifier: GPL-2.0 */
/* Runs commands of other tools. */
#ifndef SLUICE_BENCH_SHELL_H
#define SLUICE_BENCH_SHELL_H

#include <stdbool.h>

#define SHELL_SAID 80

/* Runs a command; `said` receives the first line of its standard error. Whether it succeeded. */
bool shell_run(const char *command, char said[SHELL_SAID]);

/* The number that a command prints; 0: none. */
unsigned long long shell_number(const char *command);

#endif
