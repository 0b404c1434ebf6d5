/* SPDX-License-Identifier: GPL-2.0 */
/* Top: formats numbers, bars and sparklines in few characters, in UTF-8 or ASCII. */
#ifndef SLUICE_TOP_GLYPHS_H
#define SLUICE_TOP_GLYPHS_H

#include <stdbool.h>

#include "live/live.h"
#include "report/source_view.h"

/* Size of a buffer for `columns` characters of at most 3 bytes, and a NUL. */
#define GLYPHS_TEXT(columns) (3 * (columns) + 1)

/* Selects UTF-8 or ASCII for bars and sparklines, by the locale, for the rest of the process. */
void glyphs_begin(bool is_utf8);

/* Returns the number of screen columns of a text: its characters in UTF-8, its bytes in ASCII. */
unsigned int glyphs_width(const char *text);

/*
 * Formats a rate with at most 5 characters: 0, 0.5, 9.9, 10, 99999, 100k, 1.23M. A rate above 0 is
 * never shown as 0.
 */
const char *rate_cell(float rate, char text[CELL_TEXT]);

/* Formats a part between 0 and 1 as a bar. */
#define BAR_COLUMNS 5
const char *bar_format(double part, char text[GLYPHS_TEXT(BAR_COLUMNS)]);

/* Formats the last `columns` rates of a history (at most LIVE_HISTORY), the newest at the right. */
const char *sparkline_format(const struct live_history *history, const float *rates,
			     unsigned int columns, char text[GLYPHS_TEXT(LIVE_HISTORY)]);

#endif
