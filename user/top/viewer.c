// SPDX-License-Identifier: GPL-2.0
/* The screen of sluice-top: what it shows, and its keys. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "program/writer.h"
#include "report/report.h"
#include "top/grid.h"
#include "top/header.h"
#include "top/run.h"
#include "top/screen.h"
#include "top/top.h"

#define TYPED	  64
#define DENY_TIME "10min" /* proposed by the question of `d` */
#define REST	  100	  /* a report of `check` rests for this many times its CPU time */

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
	char *command[8]; /* the command to run, after the name of the gate */
	char command_text[HEADER_LINE];
	char address[PREFIX_TEXT];
	char time[TYPED];
	char message[HEADER_LINE]; /* result of the last command */
};

static const char *const help[] = {
	"Tab Shift-Tab   next or previous view",
	"j k g G arrows  and Page up, down: move the cursor, which stays on its source",
	"Enter l         all about a source: its history, and the output of 'check'",
	"Esc  h          back",
	"Space           freeze the order of the sources; their numbers go on",
	"<  >            sort by source, passed, dropped, would-drop or busiest",
	"r               reverse the order",
	"/               filter: a prefix, or a part of the name of a policy or limit",
	"u               sources in packets or in bits per second",
	"+  -            longer or shorter interval",
	"Ctrl-L          draw the screen again",
	"q               quit",
};

static const char *const help_changes[] = {
	"d  a  f         deny for a time, allow, or forgive a source, after a question",
};

/* --- Reading -------------------------------------------------------------------------------- */

/* Returns whether this user may change the gate: members of its group may only read it. */
static bool may_change(const struct viewer *viewer)
{
	return viewer->live->gate.has_secret && !viewer->live->gate.dir.reads_only;
}

/* Takes the order of the sources from the last refresh, and puts the cursor on its source. */
static void order_take(struct viewer *viewer)
{
	struct live *live = viewer->live;

	if (!viewer->is_frozen) {
		viewer->order_count = live->row_count;
		for (unsigned int i = 0; i < live->row_count; i++)
			viewer->order[i] = live->rows[i]->prefix;
	}
	for (unsigned int i = 0;
	     i < viewer->order_count && viewer->view == VIEW_SOURCES && viewer->pane == PANE_VIEW;
	     i++)
		if (viewer->follows && viewer->selected.bits &&
		    prefix_equal(&viewer->order[i], &viewer->selected))
			viewer->cursor = i;
}

/* Moves the cursor into the rows, and the rows so that the cursor is on the screen. */
static void cursor_fit(struct viewer *viewer, unsigned int height)
{
	unsigned int last = viewer->row_count ? viewer->row_count - 1 : 0;

	if (viewer->cursor > last)
		viewer->cursor = last;
	if (viewer->first > viewer->cursor)
		viewer->first = viewer->cursor;
	if (height && viewer->cursor >= viewer->first + height)
		viewer->first = viewer->cursor - height + 1;
	if (viewer->row_count < viewer->first + height)
		viewer->first = viewer->row_count > height ? viewer->row_count - height : 0;
	if (viewer->view == VIEW_SOURCES && viewer->pane == PANE_VIEW)
		viewer->selected =
			viewer->order_count ? viewer->order[viewer->cursor] : (struct sl_prefix){0};
}

/* Stores the error of a failed call, to be shown until the next refresh. */
static void failure_take(struct viewer *viewer, unsigned int mark)
{
	const struct sl_error *error = error_last(mark);
	_cleanup_free_ char *text = error ? error_format(error) : NULL;

	snprintf(viewer->failure, sizeof(viewer->failure), "%s", text ?: "out of memory");
	error_drop(mark);
}

static void viewer_refresh(struct viewer *viewer)
{
	unsigned int mark = error_count();

	*viewer->failure = '\0';
	if (live_refresh(viewer->live, viewer->interval_ns))
		failure_take(viewer, mark);
	else
		order_take(viewer);
}

/* Applies a changed filter or order without waiting for the next refresh. */
static void viewer_choose(struct viewer *viewer)
{
	unsigned int mark = error_count();

	viewer->is_frozen = false;
	if (viewer->live->gate.state && live_choose(viewer->live))
		failure_take(viewer, mark);
	order_take(viewer);
}

/* --- The pane of a source ------------------------------------------------------------------- */

/* Writes the report of `check` for the selected source. */
static void report_refresh(struct viewer *viewer)
{
	struct check_args args = {.source = viewer->selected};
	uint64_t begun = clock_read(CLOCK_THREAD_CPUTIME_ID);
	unsigned int mark = error_count();
	struct packet_args packet;
	FILE *stream;
	int err;

	if (uptime_ns() < viewer->report_due || *viewer->failure)
		return;
	free(viewer->report);
	viewer->report = NULL;
	stream = open_memstream(&viewer->report, &viewer->report_size);
	if (!stream)
		return;
	print_begin(stream, false);
	packet_build(&args, &packet);
	err = report_check(&viewer->live->gate, &packet);
	print_begin(stdout, false);
	fclose(stream);
	if (err)
		failure_take(viewer, mark);
	error_drop(mark); /* notices */
	viewer->report_due = uptime_ns() + (clock_read(CLOCK_THREAD_CPUTIME_ID) - begun) * REST;
}

/* Writes the history of a source. Returns the next row of the screen. */
static unsigned int draw_history(const struct viewer *viewer, unsigned int row, unsigned int spark)
{
	const struct live_source *source =
		live_source_find(&viewer->live->sources, &viewer->selected);
	const struct live_history *history = live_history_of(viewer->live, &viewer->selected);
	static const struct live_history none;
	char text[HEADER_LINE], line[GLYPHS_TEXT(LIVE_HISTORY)], packets[CELL_TEXT],
		bits[CELL_TEXT];

	history = history ?: &none;
	for (int i = LIVE_PASSED; i <= LIVE_DROPPED; i++) {
		const struct live_rate *rate = source ? &source->rate[i] : &(struct live_rate){0};

		snprintf(text, sizeof(text), "%-6s%6s%6sb %s", i == LIVE_PASSED ? "pass" : "drop",
			 rate_cell(rate->packets, packets), rate_cell(rate->bits, bits),
			 sparkline_format(history,
					  i == LIVE_PASSED ? history->passed : history->dropped,
					  spark, line));
		screen_line(row++,
			    i == LIVE_DROPPED && rate->packets > 0 ? STYLE_DROPS : STYLE_PLAIN,
			    text);
	}
	return row;
}

static void draw_source(struct viewer *viewer, unsigned int row, unsigned int rows,
			unsigned int spark)
{
	const char *line;
	unsigned int skipped = 0, lines = 0;

	report_refresh(viewer);
	row = draw_history(viewer, row, spark);
	for (line = viewer->report ?: ""; *line; lines++)
		line += strcspn(line, "\n") + (strchr(line, '\n') != NULL);
	viewer->row_count = lines;
	viewer->cursor = viewer->first = viewer->cursor + rows > lines + row
						 ? (lines + row > rows ? lines + row - rows : 0)
						 : viewer->cursor;
	for (line = viewer->report ?: ""; *line && row < rows;) {
		size_t length = strcspn(line, "\n");
		char text[HEADER_LINE];

		snprintf(text, sizeof(text), "%.*s", (int)length, line);
		if (skipped++ >= viewer->first)
			screen_line(row++, STYLE_PLAIN, text);
		line += length + (line[length] == '\n');
	}
	while (row < rows)
		screen_line(row++, STYLE_PLAIN, "");
}

/* --- Drawing -------------------------------------------------------------------------------- */

static void draw_help(const struct viewer *viewer, unsigned int row, unsigned int rows)
{
	for (size_t i = 0; i < ARRAY_SIZE(help) && row < rows; i++)
		screen_line(row++, STYLE_PLAIN, help[i]);
	for (size_t i = 0; i < ARRAY_SIZE(help_changes) && row < rows; i++)
		screen_line(row++, STYLE_PLAIN,
			    may_change(viewer)
				    ? help_changes[i]
				    : "(the keys that change the gate need the right to)");
	while (row < rows)
		screen_line(row++, STYLE_PLAIN, "");
}

/* Fills the grid with the rows that are on the screen. Returns the row of the first of them. */
static int grid_read(struct viewer *viewer, unsigned int height, unsigned int *ret_offset)
{
	struct live *live = viewer->live;
	unsigned int count;

	*ret_offset = 0;
	viewer->grid.count = 0;
	if (viewer->view == VIEW_SOURCES) {
		viewer->row_count = viewer->order_count;
		cursor_fit(viewer, height);
		count = viewer->order_count - viewer->first;
		count = count < height ? count : height;
		*ret_offset = viewer->first;
		live_watch(live, &viewer->order[viewer->first], count);
		return grid_of_sources(&viewer->grid, live, &viewer->order[viewer->first], count,
				       live->wish.sorting.by_bits);
	}
	return viewer->view == VIEW_LIMITS
		       ? grid_of_limits(&viewer->grid, live, &live->wish.sorting)
	       : viewer->view == VIEW_DEVICES ? grid_of_devices(&viewer->grid, live)
					      : grid_of_reasons(&viewer->grid, live);
}

static void draw_view(struct viewer *viewer, unsigned int row, unsigned int rows,
		      unsigned int width)
{
	unsigned int height = rows > row + 1 ? rows - row - 1 : 0, offset;
	unsigned int mark = error_count();
	char text[GRID_LINE];

	if (grid_read(viewer, height, &offset)) {
		failure_take(viewer, mark);
		return;
	}
	if (viewer->view != VIEW_SOURCES) {
		viewer->row_count = viewer->grid.count;
		cursor_fit(viewer, height);
	}
	grid_fit(&viewer->grid, width);
	screen_line(row++, STYLE_TITLE, grid_titles(&viewer->grid, text));
	for (unsigned int i = viewer->first; row < rows; i++) {
		const struct grid_row *line =
			i - offset < viewer->grid.count ? &viewer->grid.rows[i - offset] : NULL;

		screen_line(row++,
			    line && i == viewer->cursor ? STYLE_SELECTED
			    : line && line->drops	? STYLE_DROPS
							: STYLE_PLAIN,
			    line ? grid_line(&viewer->grid, line, text) : "");
	}
}

/* Writes the line of the views. */
static void draw_tabs(const struct viewer *viewer, unsigned int row)
{
	const struct live_wish *wish = &viewer->live->wish;
	char text[HEADER_LINE], prefix[PREFIX_TEXT];
	size_t length = 0;

	if (viewer->pane == PANE_SOURCE) {
		snprintf(text, sizeof(text), "source %s%s",
			 prefix_format(&viewer->selected, prefix),
			 live_source_find(&viewer->live->sources, &viewer->selected)
				 ? ""
				 : "  (it has no bucket now)");
		screen_line(row, STYLE_PLAIN, text);
		return;
	}
	for (int view = 0; view < TOP_VIEWS; view++)
		length += snprintf(text + length, sizeof(text) - length,
				   view == (int)viewer->view ? "[%s] " : " %s  ", view_names[view]);
	length += snprintf(text + length, sizeof(text) - length, " sort %s%s",
			   top_orders[wish->sorting.order],
			   wish->sorting.is_reversed ? " reversed" : "");
	if (wish->within.bits || *wish->text)
		length += snprintf(text + length, sizeof(text) - length, "  filter %s",
				   wish->within.bits ? prefix_format(&wish->within, prefix)
						     : wish->text);
	if (viewer->view == VIEW_SOURCES && viewer->order_count)
		length += snprintf(text + length, sizeof(text) - length, "  %u/%u",
				   viewer->cursor + 1, viewer->live->matching);
	if (viewer->is_frozen)
		snprintf(text + length, sizeof(text) - length, "  FROZEN");
	screen_line(row, STYLE_PLAIN, text);
}

/* Writes the last line: a question, the result of a command, or the cost. */
static void draw_footer(const struct viewer *viewer, unsigned int row, unsigned int width,
			const char *footer)
{
	char text[2 * HEADER_LINE];
	const char *hints = may_change(viewer) && viewer->view == VIEW_SOURCES
				    ? "d deny a allow f forgive ? help"
				    : "Tab view / filter ? help q quit";
	int cursor = -1;

	if (viewer->asks == ASKS_FILTER)
		cursor = snprintf(text, sizeof(text), "filter by prefix, policy or limit: %s",
				  viewer->typed);
	else if (viewer->asks == ASKS_TIME)
		cursor = snprintf(text, sizeof(text), "deny %s for: %s", viewer->address,
				  viewer->typed);
	else if (viewer->asks == ASKS_YES)
		cursor = snprintf(text, sizeof(text), "run '%s'? y/n ", viewer->command_text);
	else if (*viewer->message)
		snprintf(text, sizeof(text), "%s", viewer->message);
	else if (strlen(footer) + strlen(hints) + 2 <= width)
		snprintf(text, sizeof(text), "%s%*s%s", footer,
			 (int)(width - strlen(footer) - strlen(hints)), "", hints);
	else
		snprintf(text, sizeof(text), "%s", footer);
	screen_line(row, STYLE_PLAIN, text);
	screen_cursor(row, cursor < 0 ? -1 : cursor < (int)width ? cursor : (int)width - 1);
}

static void draw(struct viewer *viewer)
{
	unsigned int rows, width, row = 0, spark, shown;
	struct header header;

	screen_size(&rows, &width);
	if (!rows)
		return;
	spark = width > 30 ? width - 20 : 10;
	header_build(viewer->live, viewer->interval_ns, spark, &header);
	shown = rows >= 20 ? HEADER_ROWS : rows >= 12 ? HEADER_REASONS : 0;
	for (unsigned int i = 0; i < shown; i++)
		screen_line(row++,
			    i == HEADER_DROPPED && header.drops ? STYLE_DROPS
			    : (i == HEADER_NEW || i == HEADER_FINDING) && header.warns
				    ? STYLE_WARNS
				    : STYLE_PLAIN,
			    header.line[i]);
	draw_tabs(viewer, row++);
	if (*viewer->failure) {
		screen_line(row++, STYLE_WARNS, viewer->failure);
		while (row < rows)
			screen_line(row++, STYLE_PLAIN, "");
	} else if (viewer->pane == PANE_HELP) {
		draw_help(viewer, row, rows - 1);
	} else if (viewer->pane == PANE_SOURCE) {
		draw_source(viewer, row, rows - 1, spark);
	} else {
		draw_view(viewer, row, rows - 1, width);
		draw_tabs(viewer, row - 1); /* the cursor may have moved */
	}
	draw_footer(viewer, rows - 1, width, header.footer);
	screen_show();
}

/* --- Commands ------------------------------------------------------------------------------- */

/* Prepares a command about the selected source, and asks whether to run it. */
static void command_ask(struct viewer *viewer, const char *name)
{
	bool is_deny = !strcmp(name, "deny");
	char *words[] = {"-g",
			 viewer->live->name,
			 (char *)name,
			 viewer->address,
			 is_deny ? "for" : NULL,
			 is_deny ? viewer->time : NULL};

	memset(viewer->command, 0, sizeof(viewer->command));
	memcpy(viewer->command, words, sizeof(words));
	snprintf(viewer->command_text, sizeof(viewer->command_text), "sluice -g %s %s %s%s%s",
		 viewer->live->name, name, viewer->address, is_deny ? " for " : "",
		 is_deny ? viewer->time : "");
	viewer->asks = ASKS_YES;
}

static void command_run(struct viewer *viewer)
{
	char line[RUN_LINE];
	int status = sluice_run(viewer->command, line);

	if (status < 0)
		snprintf(viewer->message, sizeof(viewer->message), "cannot run sluice: %s",
			 strerror(-status));
	else
		snprintf(viewer->message, sizeof(viewer->message), "%s%s", line,
			 status	 ? ""
			 : *line ? ""
				 : "done");
	viewer->report_due = 0;
	viewer_refresh(viewer);
}

/* Begins a command for the selected source, if there is one and the user has the right. */
static void command_begin(struct viewer *viewer, int key)
{
	bool has_source = viewer->pane == PANE_SOURCE ||
			  (viewer->pane == PANE_VIEW && viewer->view == VIEW_SOURCES);

	if (!may_change(viewer) || !has_source || !viewer->selected.bits || *viewer->failure)
		return;
	snprintf(viewer->address, sizeof(viewer->address), "%s",
		 prefix_format(&viewer->selected, (char[PREFIX_TEXT]){0}));
	if (key == 'd') {
		snprintf(viewer->typed, sizeof(viewer->typed), "%s", DENY_TIME);
		viewer->asks = ASKS_TIME;
	} else {
		command_ask(viewer, key == 'a' ? "allow" : "forgive");
	}
}

/* --- Typing --------------------------------------------------------------------------------- */

static void filter_set(struct viewer *viewer)
{
	struct live_wish *wish = &viewer->live->wish;
	unsigned int mark = error_count();
	struct sl_prefix prefix = {0};

	wish->within = (struct sl_prefix){0};
	snprintf(wish->text, sizeof(wish->text), "%s", viewer->typed);
	if (strpbrk(viewer->typed, ".:/") && !prefix_parse(viewer->typed, &prefix)) {
		wish->within = prefix_source(&prefix);
		*wish->text = '\0';
	}
	error_drop(mark);
	viewer_choose(viewer);
}

static void typed_end(struct viewer *viewer)
{
	enum asks asks = viewer->asks;

	viewer->asks = ASKS_NOTHING;
	if (asks == ASKS_FILTER) {
		filter_set(viewer);
	} else if (*viewer->typed) {
		snprintf(viewer->time, sizeof(viewer->time), "%s", viewer->typed);
		command_ask(viewer, "deny");
	}
}

/* Handles a key while the last line asks for something. */
static void typed_key(struct viewer *viewer, int key)
{
	size_t length = strlen(viewer->typed);

	if (viewer->asks == ASKS_YES) {
		viewer->asks = ASKS_NOTHING;
		if (key == 'y' || key == 'Y')
			command_run(viewer);
	} else if (key == SCREEN_ESCAPE) {
		viewer->asks = ASKS_NOTHING;
	} else if (key == SCREEN_ENTER) {
		typed_end(viewer);
	} else if (key == SCREEN_BACKSPACE && length) {
		viewer->typed[length - 1] = '\0';
	} else if (key == 'U' - '@') { /* Ctrl-U */
		*viewer->typed = '\0';
	} else if (key >= ' ' && key <= '~' && length + 1 < TYPED) {
		viewer->typed[length] = key;
		viewer->typed[length + 1] = '\0';
	}
}

/* --- Keys ----------------------------------------------------------------------------------- */

/* Moves the cursor by some rows. */
static void cursor_move(struct viewer *viewer, int by)
{
	unsigned int last = viewer->row_count ? viewer->row_count - 1 : 0;

	viewer->follows = true;
	if (by < 0)
		viewer->cursor -=
			(unsigned int)-by < viewer->cursor ? (unsigned int)-by : viewer->cursor;
	else
		viewer->cursor += (unsigned int)by < last - viewer->cursor ? (unsigned int)by
									   : last - viewer->cursor;
	if (viewer->view == VIEW_SOURCES && viewer->pane == PANE_VIEW && viewer->order_count)
		viewer->selected = viewer->order[viewer->cursor];
}

static bool moving_key(struct viewer *viewer, int key)
{
	unsigned int rows, width;
	int page;

	screen_size(&rows, &width);
	page = rows > HEADER_ROWS + 4 ? rows - HEADER_ROWS - 4 : 1;
	switch (key) {
	case SCREEN_UP:
	case 'k':
		cursor_move(viewer, -1);
		return true;
	case SCREEN_DOWN:
	case 'j':
		cursor_move(viewer, 1);
		return true;
	case SCREEN_PAGE_UP:
	case 'B' - '@':
		cursor_move(viewer, -page);
		return true;
	case SCREEN_PAGE_DOWN:
	case 'F' - '@':
		cursor_move(viewer, page);
		return true;
	case SCREEN_HOME:
	case 'g':
		cursor_move(viewer, -LIVE_ROWS);
		return true;
	case SCREEN_BOTTOM:
	case 'G':
		cursor_move(viewer, LIVE_ROWS);
		return true;
	}
	return false;
}

static void view_set(struct viewer *viewer, int view)
{
	viewer->view = (view + TOP_VIEWS) % TOP_VIEWS;
	viewer->pane = PANE_VIEW;
	viewer->cursor = viewer->first = 0;
	order_take(viewer);
}

/* Changes the order, the filter or the interval. */
static void wish_key(struct viewer *viewer, int key)
{
	static const uint64_t intervals[] = {200, 500, 1000, 2000, 5000, 10000, 30000, 60000};
	struct live_sorting *sorting = &viewer->live->wish.sorting;
	size_t at = 0;

	while (at + 1 < ARRAY_SIZE(intervals) && intervals[at] * NS_PER_MS < viewer->interval_ns)
		at++;
	if (key == '<')
		sorting->order = (sorting->order + LIVE_ORDERS - 1) % LIVE_ORDERS;
	else if (key == '>')
		sorting->order = (sorting->order + 1) % LIVE_ORDERS;
	else if (key == 'r')
		sorting->is_reversed = !sorting->is_reversed;
	else if (key == 'u')
		sorting->by_bits = !sorting->by_bits;
	else if (key == '+' && at + 1 < ARRAY_SIZE(intervals))
		viewer->interval_ns = intervals[at + 1] * NS_PER_MS;
	else if (key == '-' && at)
		viewer->interval_ns = intervals[at - 1] * NS_PER_MS;
	if (strchr("<>ru", key))
		viewer_choose(viewer);
}

/* Goes back from a pane to the view. Returns false if the view is shown. */
static bool pane_leave(struct viewer *viewer)
{
	if (viewer->pane == PANE_VIEW)
		return false;
	viewer->pane = PANE_VIEW;
	viewer->cursor = viewer->first = 0;
	order_take(viewer);
	return true;
}

static void pane_enter(struct viewer *viewer, enum pane pane)
{
	if (pane == PANE_SOURCE && (viewer->view != VIEW_SOURCES || !viewer->selected.bits))
		return;
	viewer->pane = pane;
	viewer->follows = true;
	viewer->cursor = viewer->first = 0;
	viewer->report_due = 0;
}

static void plain_key(struct viewer *viewer, int key)
{
	*viewer->message = '\0';
	if (moving_key(viewer, key))
		return;
	if (key == 'q')
		viewer->ends = !pane_leave(viewer);
	else if (key == SCREEN_ESCAPE || key == 'h')
		pane_leave(viewer);
	else if (key == '\t')
		view_set(viewer, viewer->view + 1);
	else if (key == SCREEN_BACK_TAB)
		view_set(viewer, viewer->view - 1);
	else if (key == SCREEN_ENTER || key == 'l')
		pane_enter(viewer, PANE_SOURCE);
	else if (key == '?')
		pane_enter(viewer, PANE_HELP);
	else if (key == ' ')
		viewer->is_frozen = !viewer->is_frozen;
	else if (key == 'L' - '@')
		screen_redraw();
	else if (key == 'd' || key == 'a' || key == 'f')
		command_begin(viewer, key);
	else if (key == '/') {
		*viewer->typed = '\0';
		viewer->asks = ASKS_FILTER;
	} else if (key < 128 && strchr("<>ru+-", key)) {
		wish_key(viewer, key);
	}
}

int viewer_run(struct live *live, const struct top_words *words)
{
	static struct viewer viewer;
	uint64_t due;
	int err;

	viewer = (struct viewer){.live = live, .interval_ns = words->interval_ns};
	viewer.grid.has_bars = true;
	err = screen_begin();
	if (err)
		return err;
	viewer_refresh(&viewer);
	due = uptime_ns() + NS_PER_SEC / 4; /* the first rates soon */
	while (!viewer.ends) {
		int key;

		draw(&viewer);
		key = screen_key_wait(due);
		if (key == SCREEN_END)
			break;
		if (key == SCREEN_NONE) {
			viewer_refresh(&viewer);
			due = uptime_ns() + viewer.interval_ns;
		} else if (viewer.asks) {
			typed_key(&viewer, key);
		} else {
			plain_key(&viewer, key);
		}
	}
	screen_end();
	grid_free(&viewer.grid);
	free(viewer.report);
	return 0;
}
