// SPDX-License-Identifier: GPL-2.0
/* The keys of sluice-top, and the commands that keys run. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "rules/value.h"
#include "top/run.h"
#include "top/screen.h"
#include "top/top.h"
#include "top/viewer.h"

#define DENY_TIME "10min" /* duration that key `d` proposes */

bool viewer_may_change(const struct viewer *viewer)
{
	return viewer->live->gate.has_secret && !viewer->live->gate.dir.reads_only;
}

void viewer_fail(struct viewer *viewer, unsigned int mark)
{
	const struct sl_error *error = error_last(mark);
	_cleanup_free_ char *text = error ? error_format(error) : NULL;

	snprintf(viewer->failure, sizeof(viewer->failure), "%s", text ?: "out of memory");
	error_drop(mark);
}

/* --- Reading -------------------------------------------------------------------------------- */

/*
 * Copies the order of the last refresh. If the cursor follows a source, moves the cursor to the
 * source's row.
 */
static void order_take(struct viewer *viewer)
{
	struct live *live = viewer->live;

	if (!viewer->is_frozen) {
		viewer->order_count = live->row_count;
		for (unsigned int i = 0; i < live->row_count; i++)
			viewer->order[i] = live->rows[i]->prefix;
	} else {
		viewer->line_count = 0; /* the lines are in the order of live->rows */
	}
	for (unsigned int i = 0;
	     i < viewer->order_count && viewer->view == VIEW_SOURCES && viewer->pane == PANE_VIEW;
	     i++)
		if (viewer->follows && viewer->selected.bits &&
		    prefix_equal(&viewer->order[i], &viewer->selected))
			viewer->cursor = i;
}

static void viewer_refresh(struct viewer *viewer)
{
	unsigned int mark = error_count();

	*viewer->failure = '\0';
	if (live_refresh(viewer->live, viewer->interval_ns) ||
	    rows_arrange(viewer->live, viewer->lines, &viewer->line_count))
		viewer_fail(viewer, mark);
	else
		order_take(viewer);
}

/* Updates the screen at once after the filter or the order has changed. */
static void viewer_choose(struct viewer *viewer)
{
	unsigned int mark = error_count();

	viewer->is_frozen = false;
	if (viewer->live->gate.state &&
	    (live_choose(viewer->live) ||
	     rows_arrange(viewer->live, viewer->lines, &viewer->line_count)))
		viewer_fail(viewer, mark);
	order_take(viewer);
}

/* --- Commands ------------------------------------------------------------------------------- */

/* Prepares command `name` for the selected source, and asks whether to run it. */
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
	else if (status && !*line)
		snprintf(viewer->message, sizeof(viewer->message), "sluice failed with status %d",
			 status);
	else
		snprintf(viewer->message, sizeof(viewer->message), "%s", *line ? line : "done");
	viewer->report_due = 0;
	viewer_refresh(viewer);
}

/* Handles a key that runs a command for the selected source, if the user may change the gate. */
static void command_begin(struct viewer *viewer, int key)
{
	struct sl_prefix prefix = viewer->selected;
	bool has_source = viewer->pane == PANE_SOURCE ||
			  (viewer->pane == PANE_VIEW && viewer->view == VIEW_SOURCES);

	if (!viewer_may_change(viewer) || !has_source || !viewer->selected.bits || *viewer->failure)
		return;
	if (key == 'f' && prefix_is_ipv6(&prefix))
		prefix.bits = SL_FAMILY_BITS + 128; /* `forgive` accepts no /64 */
	snprintf(viewer->address, sizeof(viewer->address), "%s",
		 prefix_format(&prefix, (char[PREFIX_TEXT]){0}));
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

/*
 * Denies the selected source for the time that the user typed. If the time is invalid, shows an
 * error.
 */
static void time_set(struct viewer *viewer)
{
	const struct sl_error *error;
	unsigned int mark = error_count();
	uint64_t ns;

	if (value_parse(&value_time, "for", viewer->typed, &ns)) {
		error = error_last(mark);
		snprintf(viewer->message, sizeof(viewer->message), "%s: %s", viewer->typed,
			 error ? error->text : why(ENOMEM));
		error_drop(mark);
		return;
	}
	snprintf(viewer->time, sizeof(viewer->time), "%s", viewer->typed);
	command_ask(viewer, "deny");
}

static void typed_end(struct viewer *viewer)
{
	enum asks asks = viewer->asks;

	viewer->asks = ASKS_NOTHING;
	if (asks == ASKS_FILTER) {
		filter_set(viewer);
	} else if (*viewer->typed) {
		time_set(viewer);
	}
}

/* Handles a key that answers the question in the last line. */
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

/* Moves the cursor down by `by` rows, or up if `by` is negative. */
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

/* Handles a key that changes the order, the unit or the interval. */
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

/*
 * Closes the source pane or the help, and shows the view again. Returns false if neither is open.
 */
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
	} else if (key && key < 128 && strchr("<>ru+-", key)) {
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
	/* refresh again after 250 ms, because a rate needs two refreshes */
	due = uptime_ns() + NS_PER_SEC / 4;
	while (!viewer.ends) {
		int key;

		viewer_draw(&viewer);
		key = screen_key_wait(due);
		if (key == SCREEN_END)
			break;
		if (key == SCREEN_NONE) {
			viewer_refresh(&viewer);
			due = uptime_ns() + viewer.interval_ns;
		} else if (viewer.asks && key != SCREEN_RESIZED) {
			typed_key(&viewer, key);
		} else if (key != SCREEN_RESIZED) {
			plain_key(&viewer, key);
			/* the user has chosen a shorter interval, so the next refresh is earlier */
			if (due > uptime_ns() + viewer.interval_ns)
				due = uptime_ns() + viewer.interval_ns;
		}
	}
	screen_end();
	grid_free(&viewer.grid);
	free(viewer.report);
	return 0;
}
