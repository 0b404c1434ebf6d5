/* SPDX-License-Identifier: GPL-2.0 */
/* Replay: writes packets to a pcapng file, each with a comment that Wireshark shows. */
#ifndef SLUICE_REPLAY_ANNOTATE_H
#define SLUICE_REPLAY_ANNOTATE_H

#include <stdio.h>

#include "capture/capture.h"

struct annotated {
	FILE *file; /* NULL if nothing is written */
	const char *path;
};

/* Creates the file, or empties it. Refuses the file that `capture` names. */
int annotated_open(const char *path, const char *capture, struct annotated *ret);

/* Writes a packet. An error of the file is reported by annotated_close(). */
void annotated_write(struct annotated *annotated, const struct capture_packet *packet,
		     const char *comment);

/* Closes the file. Returns 0, or a negative errno if it is not complete. */
int annotated_close(struct annotated *annotated);

#endif
