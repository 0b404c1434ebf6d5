/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Top: shows text on the terminal, by ncurses. Restores the terminal when the process ends, except
 * after SIGKILL. Styles only emphasize: the text is complete without colors.
 */
#ifndef SLUICE_TOP_SCREEN_H
#define SLUICE_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

enum style {
	STYLE_PLAIN,
	STYLE_TITLE,	/* titles of columns */
	STYLE_SELECTED, /* the row with the cursor */
	STYLE_DROPS,	/* row of a source, limit or reason with dropped packets */
	STYLE_WARNS,	/* row about a flood of new sources, or about a finding */
};

/*
 * Initializes the terminal. Returns 0, or an error if standard input or output is not a terminal.
 */
int screen_begin(void);
void screen_end(void);

void screen_size(unsigned int *ret_rows, unsigned int *ret_columns);

/*
 * Writes a text as line `row` of the screen. Cuts it to the width, and clears the rest of the line.
 */
void screen_line(unsigned int row, enum style style, const char *text);

/* Shows on the terminal what was written since the last call. */
void screen_show(void);

/* Moves the terminal's cursor. If `column` is negative, hides the cursor. */
void screen_cursor(unsigned int row, int column);

/* Clears the terminal, and shows the whole screen again. */
void screen_redraw(void);

enum screen_key {
	SCREEN_NONE, /* no key until the time `until` */
	SCREEN_END,  /* a signal asks the process to end, or the terminal was closed */
	SCREEN_UP = 256,
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_BOTTOM,
	SCREEN_BACK_TAB,
	SCREEN_BACKSPACE,
	SCREEN_ENTER,
	SCREEN_ESCAPE,
	SCREEN_RESIZED, /* the size of the terminal has changed */
};

/* Waits for a key until uptime `until`, in ns. Returns a character or an enum screen_key. */
int screen_key_wait(uint64_t until);

#endif
