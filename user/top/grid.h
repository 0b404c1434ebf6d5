/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Top: the rows of a view as text, for the screen and for batch mode. A view reads the numbers of
 * one refresh, so that both print the same.
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
#define RANK_SPARE   5 /* rank of columns that must not narrow other columns */

struct grid_column {
	const char *title;
	unsigned int need;  /* columns that the widest cell needs */
	unsigned int least; /* fewest columns; if they do not fit, the column is left out */
	unsigned int width; /* set by grid_fit(); 0 leaves it out */
	unsigned int rank;  /* columns of a higher rank are left out first; 0 never */
	bool is_right;	    /* numbers are on the right */
};

struct grid_row {
	char cell[GRID_COLUMNS][GRID_CELL];
	struct sl_prefix source; /* the source of the row; bits 0 in other views */
	bool drops;		 /* packets are dropped now */
};

struct grid {
	struct grid_column column[GRID_COLUMNS];
	unsigned int columns;
	struct grid_row *rows;
	unsigned int count, room;
	bool has_bars; /* levels are bars instead of numbers */
};

/* The columns of a source that are not rates. */
struct source_line {
	const struct live_source *rates; /* NULL if the source has vanished */
	char policy[PREFIX_TEXT];
	char limit[LIMIT_LABEL]; /* the limit that refuses, or has least left; "" if none */
	double level;		 /* part of its burst that is left; -1 if there is no limit */
	bool refuses;
	bool observes;		 /* the limit only observes */
	uint64_t retry_after_ms; /* time until it passes a packet; 0 if it does or never will */
	uint64_t blocked_ms;
};

/* Reads what a source shows. table: from live_table_open(). */
int source_line_read(const struct live *live, const struct table *table,
		     const struct sl_prefix *source, struct source_line *ret);

/* Fills a grid with the sources. by_bits: show bits instead of packets. */
int grid_of_sources(struct grid *grid, const struct live *live, const struct sl_prefix *sources,
		    unsigned int count, bool by_bits);

/* Fill a grid with other views. sorting: for limits. */
int grid_of_limits(struct grid *grid, const struct live *live, const struct live_sorting *sorting);
int grid_of_devices(struct grid *grid, const struct live *live);
int grid_of_reasons(struct grid *grid, const struct live *live);

/* Chooses the width of each column, so that a row has at most `width` columns; 0: any number. */
void grid_fit(struct grid *grid, unsigned int width);

#define GRID_LINE 1024

/* Formats the titles, or a row, after grid_fit(). */
const char *grid_titles(const struct grid *grid, char text[GRID_LINE]);
const char *grid_line(const struct grid *grid, const struct grid_row *row, char text[GRID_LINE]);

void grid_free(struct grid *grid);

#endif
