/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: SIGINT ends the reading of a capture, and the command reports what it has read. Ctrl-C
 * sends SIGINT to all programs of a pipeline. If tcpdump writes to a pipe, it then writes its last
 * packets. So if the capture is a pipe, the first SIGINT has no effect, and the end of the pipe or
 * the second SIGINT ends the reading.
 */
#ifndef SLUICE_REPLAY_INTERRUPT_H
#define SLUICE_REPLAY_INTERRUPT_H

#include <stdbool.h>

/* Catches SIGINT from now on. capture: path of the capture; "-" is standard input. */
void interrupt_begin(const char *capture);

/* Returns whether reading must end. If so, an error of the last read may be due to SIGINT. */
bool is_interrupted(void);

/* From now on, SIGINT ends this process. */
void interrupt_end(void);

#endif
