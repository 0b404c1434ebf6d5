// SPDX-License-Identifier: GPL-2.0
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"

/* ncurses defines these names as macros, but other headers use them */
#undef lines
#undef columns

#define ESCAPE_MS 25 /* time in which the bytes after the ESC of a key's sequence arrive, in ms */

/*
 * Signals without a handler that restores the terminal and then ends the process. A signalfd
 * reports the first three.
 */
static const int survived[] = {SIGINT,	SIGTERM, SIGHUP,  SIGCHLD, SIGCONT,
			       SIGTSTP, SIGTTIN, SIGTTOU, SIGURG,  SIGWINCH};

static struct {
	bool is_begun;
	int signals; /* signalfd that is readable after SIGINT, SIGTERM or SIGHUP */
	bool has_colors;
	/* terminal settings for the signal handler crash(), which may not call ncurses */
	struct termios before;
	char restore[256];
	size_t restore_length;
} screen = {.signals = -1};

/* --- Restoring ------------------------------------------------------------------------------ */

/* Signal handler: restores the terminal by async-signal-safe calls, then dies by the signal. */
static void crash(int signal_number)
{
	ssize_t written = write(STDOUT_FILENO, screen.restore, screen.restore_length);

	(void)written;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Callback of tputs() for each byte: appends the byte to `restore`. */
static int restore_put(int byte)
{
	if (screen.restore_length < sizeof(screen.restore))
		screen.restore[screen.restore_length++] = byte;
	return byte;
}

/* Stores in `restore` the sequences that end ncurses' screen, colors and hidden cursor. */
static void restore_prepare(void)
{
	const char *const sequences[] = {exit_attribute_mode, cursor_normal, keypad_local,
					 exit_ca_mode};

	screen.restore_length = 0;
	for (size_t i = 0; i < ARRAY_SIZE(sequences); i++)
		if (sequences[i])
			tputs(sequences[i], 1, restore_put);
	if (!exit_ca_mode)
		restore_put('\n');
}

static void signals_prepare(void)
{
	struct sigaction action = {.sa_handler = crash, .sa_flags = SA_RESETHAND | SA_NODEFER}, old;
	sigset_t signals, others;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	screen.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	sigemptyset(&others);
	for (size_t i = 0; i < ARRAY_SIZE(survived); i++)
		sigaddset(&others, survived[i]);
	for (int number = 1; number <= SIGRTMAX; number++)
		if (!sigismember(&others, number) && !sigaction(number, NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(number, &action, NULL);
}

/* --- Begin and end -------------------------------------------------------------------------- */

static void colors_begin(void)
{
	const char *no_color = getenv("NO_COLOR");

	screen.has_colors = !(no_color && *no_color) && has_colors() && start_color() == OK &&
			    use_default_colors() == OK;
	if (!screen.has_colors)
		return;
	init_pair(STYLE_DROPS, COLOR_RED, -1);
	init_pair(STYLE_WARNS, COLOR_YELLOW, -1);
}

/* Disables Ctrl-S, because it would block a write while signals are blocked. */
static void flow_end(void)
{
	struct termios settings;

	if (tcgetattr(STDIN_FILENO, &settings))
		return;
	settings.c_iflag &= ~(tcflag_t)IXON;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
	def_prog_mode();
}

void screen_end(void)
{
	if (!screen.is_begun)
		return;
	screen.is_begun = false;
	endwin();
	if (screen.signals >= 0)
		close(screen.signals);
	screen.signals = -1;
}

int screen_begin(void)
{
	char *terminal = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_misuse("no-terminal", NULL,
				    "standard input and output must be a terminal; to print text: "
				    "'sluice top -b'");
	if (!tcgetattr(STDIN_FILENO, &screen.before) && newterm(terminal, stdout, stdin)) {
		screen.is_begun = true;
		if (!cursor_address) /* on a terminal such as TERM=dumb, ncurses writes garbage */
			screen_end();
	}
	if (!screen.is_begun)
		return error_misuse(
			"no-terminal", NULL,
			"the terminal '%s' cannot be used; to print text: 'sluice top -b'",
			terminal ? terminal : "");
	set_escdelay(ESCAPE_MS);
	cbreak();
	flow_end();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	colors_begin();
	restore_prepare();
	signals_prepare();
	return 0;
}

/* --- Drawing -------------------------------------------------------------------------------- */

void screen_size(unsigned int *ret_rows, unsigned int *ret_columns)
{
	int rows, width;

	getmaxyx(stdscr, rows, width);
	*ret_rows = rows > 0 ? rows : 0;
	*ret_columns = width > 0 ? width : 0;
}

static int attributes_of(enum style style)
{
	switch (style) {
	case STYLE_TITLE:
		return A_BOLD | A_UNDERLINE;
	case STYLE_SELECTED:
		return A_REVERSE;
	case STYLE_DROPS:
	case STYLE_WARNS:
		return A_BOLD | (screen.has_colors ? COLOR_PAIR(style) : 0);
	default:
		return A_NORMAL;
	}
}

void screen_line(unsigned int row, enum style style, const char *text)
{
	unsigned int rows, width;

	screen_size(&rows, &width);
	if (row >= rows)
		return;
	move(row, 0);
	attrset(attributes_of(style));
	/* cut the text to the width in characters, because addnstr() counts bytes */
	for (const char *c = text; *c && (unsigned int)getcurx(stdscr) < width;) {
		int length = 1;

		while (((unsigned char)c[length] & 0xc0) == 0x80)
			length++;
		if (addnstr(c, length) == ERR || getcury(stdscr) != (int)row)
			break;
		c += length;
	}
	if (getcury(stdscr) == (int)row) {
		if (style == STYLE_SELECTED) /* highlight the whole line */
			for (unsigned int column = getcurx(stdscr); column < width; column++)
				mvaddch(row, column, ' ');
		else
			clrtoeol();
	}
	attrset(A_NORMAL);
}

void screen_show(void)
{
	refresh();
}

void screen_cursor(unsigned int row, int column)
{
	curs_set(column >= 0);
	if (column >= 0)
		move(row, column);
}

void screen_redraw(void)
{
	clearok(stdscr, TRUE);
}

/* --- Keys ----------------------------------------------------------------------------------- */

/* Converts a key code of ncurses to a character or enum screen_key. */
static int key_of(int key)
{
	static const struct {
		int curses, key;
	} keys[] = {
		{KEY_UP, SCREEN_UP},	      {KEY_DOWN, SCREEN_DOWN},
		{KEY_PPAGE, SCREEN_PAGE_UP},  {KEY_NPAGE, SCREEN_PAGE_DOWN},
		{KEY_HOME, SCREEN_HOME},      {KEY_END, SCREEN_BOTTOM},
		{KEY_BTAB, SCREEN_BACK_TAB},  {KEY_BACKSPACE, SCREEN_BACKSPACE},
		{127, SCREEN_BACKSPACE},      {'\b', SCREEN_BACKSPACE},
		{KEY_ENTER, SCREEN_ENTER},    {'\r', SCREEN_ENTER},
		{'\n', SCREEN_ENTER},	      {27, SCREEN_ESCAPE},
		{KEY_RESIZE, SCREEN_RESIZED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].curses == key)
			return keys[i].key;
	return key < 256 ? key : SCREEN_NONE;
}

int screen_key_wait(uint64_t until)
{
	for (;;) {
		struct pollfd polled[] = {
			{.fd = STDIN_FILENO, .events = POLLIN},
			{.fd = screen.signals, .events = POLLIN},
		};
		int key = getch(); /* may return a key that ncurses has read before */
		uint64_t now = uptime_ns();
		struct timespec wait = {0};

		if (key != ERR && key_of(key) != SCREEN_NONE)
			return key_of(key);
		if (key != ERR)
			continue;
		if (now >= until)
			return SCREEN_NONE;
		wait = (struct timespec){(until - now) / NS_PER_SEC, (until - now) % NS_PER_SEC};
		if (ppoll(polled, 2, &wait, NULL) < 0 && errno != EINTR)
			return SCREEN_END;
		if (polled[1].revents || polled[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return SCREEN_END;
	}
}
