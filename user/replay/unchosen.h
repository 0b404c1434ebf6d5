/* SPDX-License-Identifier: GPL-2.0 */
/* Replay: explains why a choice selects no packet of a capture. */
#ifndef SLUICE_REPLAY_UNCHOSEN_H
#define SLUICE_REPLAY_UNCHOSEN_H

#include "capture/capture.h"

/*
 * Adds an error with the reason why no packet was chosen, and the option to change. id: id of the
 * error. name: name of the capture.
 */
void unchosen_explain(const struct capture_totals *totals, const struct capture_choice *choice,
		      const char *id, const char *name);

#endif
