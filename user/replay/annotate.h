/* SPDX-License-Identifier: GPL-2.0 */
/* Replay: writes packets to a pcapng file. Each packet has a comment, which Wireshark shows. */
#ifndef SLUICE_REPLAY_ANNOTATE_H
#define SLUICE_REPLAY_ANNOTATE_H

#include <stdio.h>

#include "capture/capture.h"
#include "replaying/command_replay.h"

struct annotated {
	FILE *file; /* NULL: write no file */
	const char *path;
};

/*
 * Creates the file, or empties an existing file. Refuses to write to a file that the command reads.
 * Returns 0, or a negative errno with an error.
 */
int annotated_open(const char *path, const struct replay_words *words, struct annotated *ret);

/* Writes a packet. If that fails, annotated_close() returns the error. */
void annotated_write(struct annotated *annotated, const struct capture_packet *packet,
		     const char *comment);

/* Closes the file. Returns 0, or a negative errno if a write has failed. */
int annotated_close(struct annotated *annotated);

#endif
