/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Top: the rows of a view as text, for the screen and for batch mode. A view only has numbers of
 * the last refresh, so the screen and batch mode print the same numbers.
 */
#ifndef SLUICE_TOP_GRID_H
#define SLUICE_TOP_GRID_H

#include "live/live.h"
#include "report/source_view.h"

enum top_view {
	VIEW_SOURCES,
	VIEW_LIMITS,
	VIEW_DEVICES,
	VIEW_REASONS,
	TOP_VIEWS,
};

extern const char *const view_names[TOP_VIEWS];

#define GRID_COLUMNS 10
#define GRID_CELL    64
/* columns of this rank get only the width that all other columns leave */
#define RANK_SPARE 5

struct grid_column {
	const char *title;
	unsigned int need; /* width of the widest cell, in characters */
	/* least width in characters; a column that would be narrower is omitted */
	unsigned int least;
	unsigned int width; /* set by grid_fit(); 0: the column is omitted */
	/*
	 * on a narrow screen, the columns of the highest rank are omitted first; rank 0 is never
	 * omitted
	 */
	unsigned int rank;
	bool is_right; /* align cells to the right, as for numbers */
};

struct grid_row {
	char cell[GRID_COLUMNS][GRID_CELL];
	struct sl_prefix source; /* the source of this row; in other views, bits is 0 */
	bool drops;		 /* packets of this row are being dropped */
};

struct grid {
	struct grid_column column[GRID_COLUMNS];
	unsigned int columns;
	struct grid_row *rows;
	unsigned int count, room;
	bool has_bars; /* print the column LEVEL as bars instead of numbers */
};

/* What a row of the view of sources shows except rates. */
struct source_line {
	struct sl_prefix source;
	char policy[PREFIX_TEXT];
	char limit[LIMIT_LABEL]; /* name of the limit to show; "" if no limit applies */
	double level;		 /* part of the limit's burst that is left; -1 without a limit */
	bool refuses;
	uint64_t retry_after_ms; /* time until `limit` passes a packet; 0: now, or never */
	uint64_t blocked_ms;
};

/* Reads the lines of `count` sources. Returns 0, or adds an error and returns a negative errno. */
int source_lines_read(const struct live *live, const struct sl_prefix *sources, unsigned int count,
		      struct source_line *ret);

/* Fills a grid with the rows of `lines`. by_bits: show rates in bits instead of packets. */
int grid_of_sources(struct grid *grid, const struct live *live, const struct source_line *lines,
		    unsigned int count, bool by_bits);

/*
 * Sorts live->rows if the order is by policy, limit, level or block: names ascending, lowest level
 * first, longest block first. Sources without a limit are last, except by policy. The sort is
 * stable. Returns 0, or adds an error and returns a negative errno.
 *
 * Stores the lines by which it sorted, in the new order, in `ret`, and their number in *ret_count.
 * A viewer prints these lines, because levels change until they are read again. In other orders,
 * stores no line.
 */
int rows_arrange(struct live *live, struct source_line ret[LIVE_ROWS], unsigned int *ret_count);

/* Fill a grid with the rows of limits, devices or reasons. sorting: order of the limits. */
int grid_of_limits(struct grid *grid, const struct live *live, const struct live_sorting *sorting);
int grid_of_devices(struct grid *grid, const struct live *live);
int grid_of_reasons(struct grid *grid, const struct live *live);

/* Sets the width of each column, so that a row fits in `width` characters; 0: no bound. */
void grid_fit(struct grid *grid, unsigned int width);

#define GRID_LINE 1024

/* Format the titles, or one row. grid_fit() has set the widths of the columns. */
const char *grid_titles(const struct grid *grid, char text[GRID_LINE]);
const char *grid_line(const struct grid *grid, const struct grid_row *row, char text[GRID_LINE]);

void grid_free(struct grid *grid);

#endif
