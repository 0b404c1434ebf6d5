/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Top: the terminal, by ncurses. It is restored at the end of the process, also after a signal that
 * kills the process, except SIGKILL. A style only repeats what the text shows.
 */
#ifndef SLUICE_TOP_SCREEN_H
#define SLUICE_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

enum style {
	STYLE_PLAIN,
	STYLE_TITLE,	/* titles of columns */
	STYLE_SELECTED, /* the row of the cursor */
	STYLE_DROPS,	/* packets are dropped */
	STYLE_WARNS,	/* there is a flood, or a finding */
};

/* Takes over the terminal. Returns 0, or an error if standard input or output is not a terminal. */
int screen_begin(void);
void screen_end(void);

void screen_size(unsigned int *ret_rows, unsigned int *ret_columns);

/* Writes a text at the beginning of a line, cut to the width of the screen, and clears the rest. */
void screen_line(unsigned int row, enum style style, const char *text);

/* Shows all lines that were written since the last call. */
void screen_show(void);

/* Moves the cursor of the terminal, or hides it if `column` is negative. */
void screen_cursor(unsigned int row, int column);

/* Draws the screen again from nothing. */
void screen_redraw(void);

enum screen_key {
	SCREEN_NONE, /* the time is over, or the size of the terminal has changed */
	SCREEN_END,  /* a signal ends the process, or the terminal is gone */
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
	SCREEN_RESIZED,
};

/* Waits for a key until an uptime, in ns. Returns a character, or a value of enum screen_key. */
int screen_key_wait(uint64_t until);

#endif
