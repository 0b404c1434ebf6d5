// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "live/command_top.h"
#include "program/writer.h"
#include "report/report.h"
#include "top/screen.h"
#include "top/viewer.h"

#define REST 100 /* after a run of `check`, pause for 100 times the CPU time of this run */

static const char *const help[] = {
	"Tab Shift-Tab   next or previous view",
	"j k g G arrows  and Page up, down: move the cursor, which stays on its source",
	"Enter l         all about a source: its history, and the output of 'check'",
	"Esc  h          back",
	"Space           freeze the order of the sources; their numbers go on",
	"<  >            sort by another column, or by the sum of passed and dropped",
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

/* Moves the cursor to an existing row, and scrolls so that the cursor is on the screen. */
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

/* --- The pane of a source ------------------------------------------------------------------- */

/* Updates viewer->report, the output of `check` for the selected source, if it is due. */
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
		viewer_fail(viewer, mark);
	error_drop(mark); /* notices */
	viewer->report_due = uptime_ns() + (clock_read(CLOCK_THREAD_CPUTIME_ID) - begun) * REST;
}

/* Draws the rates of the selected source, from `row` on. Returns the row after them. */
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
			    viewer_may_change(viewer)
				    ? help_changes[i]
				    : "(the keys that change the gate need the right to)");
	while (row < rows)
		screen_line(row++, STYLE_PLAIN, "");
}

/*
 * Fills the grid with `count` sources from row viewer->first on. If the last refresh has not read
 * their lines, reads them now.
 */
static int sources_grid_read(struct viewer *viewer, unsigned int count)
{
	const struct live *live = viewer->live;
	const struct sl_prefix *sources = &viewer->order[viewer->first];
	struct source_line *lines = &viewer->lines[viewer->first];
	int err = viewer->line_count ? 0 : source_lines_read(live, sources, count, lines);

	return err
		       ?: grid_of_sources(&viewer->grid, live, lines, count,
					  live->wish.sorting.by_bits);
}

/* Fills the grid with the rows to draw. Stores in *ret_offset how many rows are above them. */
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
		return sources_grid_read(viewer, count);
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
		viewer_fail(viewer, mark);
		return;
	}
	if (viewer->view != VIEW_SOURCES) {
		viewer->row_count = viewer->grid.count;
		cursor_fit(viewer, height);
	}
	grid_fit(&viewer->grid, width);
	screen_line(row++, STYLE_TITLE, grid_titles(&viewer->grid, text));
	if (viewer->view == VIEW_SOURCES && !viewer->order_count && row < rows)
		screen_line(row++, STYLE_PLAIN,
			    live_is_filtered(&viewer->live->wish) ? "no source matches the filter"
								  : "no source has a bucket now");
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

/* Draws the line with the names of the views, the order and the filter. */
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
	if (live_is_filtered(wish))
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

/* Draws the last line: a question, the result of a command, or the viewer's CPU use and hints. */
static void draw_footer(const struct viewer *viewer, unsigned int row, unsigned int width,
			const char *footer)
{
	char text[2 * HEADER_LINE];
	const char *hints = viewer_may_change(viewer) && viewer->view == VIEW_SOURCES
				    ? "d deny a allow f forgive Tab / ? q"
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

void viewer_draw(struct viewer *viewer)
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
		draw_tabs(viewer, row - 1); /* draw again if draw_view() has moved the cursor */
	}
	draw_footer(viewer, rows - 1, width, header.footer);
	screen_show();
}
