/* SPDX-License-Identifier: GPL-2.0 */
/* Top: the program sluice-top, which shows the rates of a gate on a terminal or as text. */
#ifndef SLUICE_TOP_H
#define SLUICE_TOP_H

#include "live/command_top.h"
#include "live/live.h"

#define TOP_BATCH_ROWS 20 /* number of sources that batch mode lists by default */

/* Prints each refresh on standard output, as text or as a line of JSON, until a signal ends it. */
int batch_run(struct live *live, const struct top_words *words, bool json);

/* Shows the gate on the terminal until the user quits. */
int viewer_run(struct live *live, const struct top_words *words);

#endif
