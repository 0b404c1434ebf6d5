/* SPDX-License-Identifier: GPL-2.0 */
/* Report: prints proposed limits, as a rules file with comments or as JSON. */
#ifndef SLUICE_REPORT_SUGGEST_H
#define SLUICE_REPORT_SUGGEST_H

#include "suggest/suggest.h"

/*
 * Prints the proposals. capture: name of the capture as the user typed it, or name of the gate
 * whose counters were read.
 */
void report_suggest(const struct suggest *suggest, const char *capture);

#endif
