/* SPDX-License-Identifier: GPL-2.0 */
/* Report: prints proposed limits, as a rules file with comments or as JSON. */
#ifndef SLUICE_REPORT_SUGGEST_H
#define SLUICE_REPORT_SUGGEST_H

#include "suggest/suggest.h"

/* Prints the limits that were proposed from a capture. capture: its name as the user typed it. */
void report_suggest(const struct suggest *suggest, const char *capture);

#endif
