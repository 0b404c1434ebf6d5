/* SPDX-License-Identifier: GPL-2.0 */
/* Replay: the command `suggest` of sluice-replay. It reads a capture twice. */
#ifndef SLUICE_REPLAY_SUGGEST_H
#define SLUICE_REPLAY_SUGGEST_H

#include "program/program.h"

/* Runs command `suggest` of sluice-replay. Returns 0 or a negative errno. */
int suggest_command(const struct context *context, const void *args);

#endif
