/* SPDX-License-Identifier: GPL-2.0 */
/* Replay: prints what a replay has counted, as text or JSON. */
#ifndef SLUICE_REPLAY_SHOW_H
#define SLUICE_REPLAY_SHOW_H

#include "replay/replay.h"

/* Prints the report. In text, merges the intervals of the tallies. */
int show(struct replay *replay);

#endif
