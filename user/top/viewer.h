/* SPDX-License-Identifier: GPL-2.0 */
/* Top: the state of the screen. viewer.c changes the state by keys, and draw.c draws the state. */
#ifndef SLUICE_TOP_VIEWER_H
#define SLUICE_TOP_VIEWER_H

#include "top/grid.h"
#include "top/header.h"

#define TYPED 64

/* What the last line of the screen asks the user. */
enum asks {
	ASKS_NOTHING,
	ASKS_FILTER,
	ASKS_TIME, /* the user types a time for the command deny */
	ASKS_YES,  /* confirms `command` */
};

/* What the screen shows below the header: a view, the selected source, or help. */
enum pane { PANE_VIEW, PANE_SOURCE, PANE_HELP };

struct viewer {
	struct live *live;
	uint64_t interval_ns;
	enum top_view view;
	enum pane pane;
	bool ends;
	bool is_frozen;
	char failure[HEADER_LINE]; /* error of the last refresh; "" if it succeeded */

	struct sl_prefix order[LIVE_ROWS]; /* the sources, in the order on the screen */
	unsigned int order_count;
	struct source_line lines[LIVE_ROWS]; /* lines of `order` that the last refresh has read */
	unsigned int line_count;   /* 0: the last refresh has not read the lines of `order` */
	struct sl_prefix selected; /* source at the cursor */
	/*
	 * the user has moved the cursor, so it stays on its source when the rows are sorted again
	 */
	bool follows;
	unsigned int cursor, first; /* rows of the cursor, and of the first line on the screen */
	unsigned int row_count;	    /* number of rows of the view or pane */
	struct grid grid;

	char *report; /* output of `check` for source `selected` */
	size_t report_size;
	uint64_t report_due;

	enum asks asks;
	char typed[TYPED];
	/* NULL-terminated arguments of the command that the user must confirm */
	char *command[8];
	char command_text[HEADER_LINE];
	char address[PREFIX_TEXT];
	char time[TYPED];
	char message[HEADER_LINE]; /* first line of output of the last command */
};

/* Returns whether this user may change the gate. Members of the gate's group may only read it. */
bool viewer_may_change(const struct viewer *viewer);

/* Stores in viewer->failure the last error since error_count() was `mark`. Drops these errors. */
void viewer_fail(struct viewer *viewer, unsigned int mark);

/* Draws the whole screen. */
void viewer_draw(struct viewer *viewer);

#endif
