/* SPDX-License-Identifier: GPL-2.0 */
/* Top: the state of the screen, which keys change (viewer.c), and how it is drawn (draw.c). */
#ifndef SLUICE_TOP_VIEWER_H
#define SLUICE_TOP_VIEWER_H

#include "top/grid.h"
#include "top/header.h"

#define TYPED 64

/* What the last line of the screen asks for. */
enum asks {
	ASKS_NOTHING,
	ASKS_FILTER,
	ASKS_TIME, /* how long to deny the source */
	ASKS_YES,  /* whether to run the command */
};

/* What the screen shows in place of a view. */
enum pane { PANE_VIEW, PANE_SOURCE, PANE_HELP };

struct viewer {
	struct live *live;
	uint64_t interval_ns;
	enum top_view view;
	enum pane pane;
	bool ends;
	bool is_frozen;
	char failure[HEADER_LINE]; /* why the last refresh failed; "" if it did not */

	struct sl_prefix order[LIVE_ROWS]; /* the sources, in the order of the screen */
	unsigned int order_count;
	struct sl_prefix selected; /* source of the cursor */
	bool follows; /* the cursor stays on its source, because the user has moved it */
	unsigned int cursor, first; /* rows of the cursor, and of the first line of the screen */
	unsigned int row_count;	    /* rows of the view */
	struct grid grid;

	char *report; /* output of `check` for the selected source */
	size_t report_size;
	uint64_t report_due;

	enum asks asks;
	char typed[TYPED];
	char *command[8]; /* arguments of the command to run, and NULL */
	char command_text[HEADER_LINE];
	char address[PREFIX_TEXT];
	char time[TYPED];
	char message[HEADER_LINE]; /* result of the last command */
};

/* Returns whether this user may change the gate: members of its group may only read it. */
bool viewer_may_change(const struct viewer *viewer);

/* Stores the last error from `mark` on, to be shown until the next refresh, and drops them. */
void viewer_fail(struct viewer *viewer, unsigned int mark);

/* Draws the whole screen. */
void viewer_draw(struct viewer *viewer);

#endif
