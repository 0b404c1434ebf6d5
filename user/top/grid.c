// SPDX-License-Identifier: GPL-2.0
#include "top/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "rules/limit.h"
#include "top/glyphs.h"

const char *const view_names[TOP_VIEWS] = {"sources", "limits", "devices", "reasons"};

/* --- Building ------------------------------------------------------------------------------- */

static void grid_begin(struct grid *grid, const struct grid_column *columns, unsigned int count)
{
	grid->count = 0;
	grid->columns = count;
	for (unsigned int i = 0; i < count; i++) {
		grid->column[i] = columns[i];
		grid->column[i].need = strlen(columns[i].title);
	}
}

/* Appends an empty row to the grid. Returns NULL if there is no memory. */
static struct grid_row *row_add(struct grid *grid)
{
	struct grid_row *row;

	if (!array_grow(grid->rows, grid->count, grid->room)) {
		error_add(ENOMEM, "no-memory", NULL, "out of memory for %u rows", grid->count + 1);
		return NULL;
	}
	row = &grid->rows[grid->count++];
	*row = (struct grid_row){0};
	return row;
}

static void cell_set(struct grid *grid, struct grid_row *row, unsigned int column, const char *text)
{
	unsigned int width;

	snprintf(row->cell[column], GRID_CELL, "%s", text);
	text_make_printable(row->cell[column]); /* a name may contain any byte */
	width = glyphs_width(row->cell[column]);
	if (width > grid->column[column].need)
		grid->column[column].need = width;
}

static void cell_set_rate(struct grid *grid, struct grid_row *row, unsigned int column, float rate)
{
	char text[CELL_TEXT];

	cell_set(grid, row, column, rate_cell(rate, text));
}

void grid_free(struct grid *grid)
{
	free(grid->rows);
	*grid = (struct grid){0};
}

/* --- Sources -------------------------------------------------------------------------------- */

/* Copies the limit at `index` into the line. */
static void line_set_limit(struct source_line *line, const struct source_view *view, int index)
{
	const struct limit_state *state = &view->states[index];
	const struct sl_limit *limit = &view->source.limits[index];
	double slack = limit_slack(view, index);

	limit_label(&view->source.policy->spec[limit->slot], line->limit);
	line->level = slack < 0 ? 0 : slack > 1 ? 1 : slack;
	line->refuses = limit_refuses(state);
	line->retry_after_ms = line->refuses && !state->never ? state->retry_after_ms : 0;
	line->blocked_ms = state->blocked_ms;
}

static int source_line_read(const struct live *live, const struct table *table,
			    const struct sl_prefix *source, struct source_line *ret)
{
	struct source_line line = {.source = *source, .level = -1};
	struct source_view view;
	int err = view_read(&live->gate, table, source, &view), shown;
	char text[PREFIX_TEXT];

	if (err)
		return err;
	snprintf(line.policy, sizeof(line.policy), "%s", view_policy(&view, text));
	shown = limit_shown(&view);
	if (shown >= 0)
		line_set_limit(&line, &view, shown);
	source_free(&view.source);
	*ret = line;
	return 0;
}

int source_lines_read(const struct live *live, const struct sl_prefix *sources, unsigned int count,
		      struct source_line *ret)
{
	struct table table = TABLE_CLOSED;
	int err = live_table_open(live, sources, count, &table);

	for (unsigned int i = 0; !err && i < count; i++)
		err = source_line_read(live, &table, &sources[i], &ret[i]);
	live_table_close(live, &table);
	return err;
}

struct arranged {
	const struct live_source *source;
	struct source_line line;
	unsigned int place; /* index of the row in live->rows before the rows are sorted */
};

/* Callback of qsort_r(): compares sources by the order of `data`, a struct live_sorting. */
static int arranged_order(const void *a, const void *b, void *data)
{
	const struct arranged *left = a, *right = b;
	const struct live_sorting *sorting = data;
	const struct source_line *one = &left->line, *other = &right->line;
	int order = 0;

	if (sorting->order == LIVE_BY_POLICY)
		order = strcmp(one->policy, other->policy);
	else if ((one->level < 0) != (other->level < 0))
		return one->level < 0 ? 1 : -1;
	else if (sorting->order == LIVE_BY_LIMIT)
		order = strcmp(one->limit, other->limit);
	else if (sorting->order == LIVE_BY_LEVEL)
		order = (one->level > other->level) - (one->level < other->level);
	else
		order = (one->blocked_ms < other->blocked_ms) -
			(one->blocked_ms > other->blocked_ms);
	if (order)
		return sorting->is_reversed ? -order : order;
	return (left->place > right->place) - (left->place < right->place);
}

int rows_arrange(struct live *live, struct source_line ret[LIVE_ROWS], unsigned int *ret_count)
{
	unsigned int count = live->row_count;
	struct sl_prefix sources[LIVE_ROWS];
	_cleanup_free_ struct arranged *list = NULL;
	int err;

	*ret_count = 0;
	if (live->wish.sorting.order <= LIVE_BY_ALL || !count)
		return 0;
	list = calloc(count, sizeof(*list));
	if (!list)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for %u rows", count);
	for (unsigned int i = 0; i < count; i++)
		sources[i] = live->rows[i]->prefix;
	err = source_lines_read(live, sources, count, ret);
	if (err)
		return err;
	for (unsigned int i = 0; i < count; i++)
		list[i] = (struct arranged){live->rows[i], ret[i], i};
	qsort_r(list, count, sizeof(*list), arranged_order, &live->wish.sorting);
	for (unsigned int i = 0; i < count; i++) {
		live->rows[i] = list[i].source;
		ret[i] = list[i].line;
	}
	*ret_count = count;
	return 0;
}

enum { SOURCE, POLICY, PASS, DROP, WOULD, BITS, LIMIT, LEVEL, BLOCKED, SOURCE_COLUMNS };

/* rates: NULL if the source has no bucket */
static void source_row_fill(struct grid *grid, struct grid_row *row, const struct source_line *line,
			    const struct live_source *rates, bool by_bits)
{
	char text[PREFIX_TEXT], cell[CELL_TEXT], bar[GLYPHS_TEXT(BAR_COLUMNS)];

	cell_set(grid, row, SOURCE, prefix_format(&row->source, text));
	cell_set(grid, row, POLICY, line->policy);
	for (int i = 0; i < LIVE_COUNTERS; i++) {
		const struct live_rate *rate = rates ? &rates->rate[i] : NULL;

		if (!rates || rates->is_new)
			cell_set(grid, row, PASS + i, rates ? "new" : "gone");
		else
			cell_set_rate(grid, row, PASS + i, by_bits ? rate->bits : rate->packets);
	}
	if (rates && !rates->is_new)
		cell_set_rate(grid, row, BITS,
			      by_bits ? rates->rate[LIVE_PASSED].packets +
						rates->rate[LIVE_DROPPED].packets
				      : rates->rate[LIVE_PASSED].bits +
						rates->rate[LIVE_DROPPED].bits);
	else
		cell_set(grid, row, BITS, "-");
	row->drops = rates && rates->rate[LIVE_DROPPED].packets > 0;
	/* columns with numbers: on a narrow screen, other columns are omitted before these */
	if (rates && rates->rate[LIVE_OBSERVED].packets > 0)
		grid->column[WOULD].rank = 2;
	if (line->blocked_ms)
		grid->column[BLOCKED].rank = 2;
	cell_set(grid, row, LIMIT, *line->limit ? line->limit : "-");
	snprintf(cell, sizeof(cell), "%d%%", (int)(100 * line->level));
	cell_set(grid, row, LEVEL,
		 line->level < 0  ? "-"
		 : grid->has_bars ? bar_format(line->level, bar)
				  : cell);
	cell_set(grid, row, BLOCKED, line->blocked_ms ? wait_format(line->blocked_ms, cell) : "-");
}

int grid_of_sources(struct grid *grid, const struct live *live, const struct source_line *lines,
		    unsigned int count, bool by_bits)
{
	const struct grid_column columns[SOURCE_COLUMNS] = {
		[SOURCE] = {"SOURCE", .least = 15},
		[POLICY] = {"POLICY", .least = 7, .rank = 3},
		[PASS] = {by_bits ? "PASSb/s" : "PASS/s", .least = 6, .is_right = true},
		[DROP] = {by_bits ? "DROPb/s" : "DROP/s", .least = 6, .is_right = true},
		[WOULD] = {by_bits ? "WOULDb/s" : "WOULD/s", .least = 7, .rank = RANK_SPARE,
			   .is_right = true},
		[BITS] = {by_bits ? "PKT/s" : "BIT/s", .least = 5, .is_right = true},
		[LIMIT] = {"LIMIT", .least = 5, .rank = 1},
		[LEVEL] = {"LEVEL", .least = BAR_COLUMNS, .rank = 2},
		[BLOCKED] = {"BLOCKED", .least = 7, .rank = 4, .is_right = true},
	};

	grid_begin(grid, columns, SOURCE_COLUMNS);
	for (unsigned int i = 0; i < count; i++) {
		const struct live_source *rates =
			live_source_find(&live->sources, &lines[i].source);
		struct grid_row *row = row_add(grid);

		if (!row)
			return -ENOMEM;
		row->source = lines[i].source;
		source_row_fill(grid, row, &lines[i], rates && !rates->is_gone ? rates : NULL,
				by_bits);
	}
	return 0;
}

/* --- Limits --------------------------------------------------------------------------------- */

/* A row of the view of limits: a policy, or one of its limits. */
struct limit_line {
	const struct live_line *of;
	int limit; /* index in the policy's limits; -1: the policy itself */
	unsigned int place;
};

static float limit_rate(const struct limit_line *line, const struct live_sorting *sorting)
{
	const struct live_rate none = {0};
	const struct live_rate *refused =
		line->limit < 0 ? &none
				: &line->of->refused[line->of->line->limit[line->limit].slot];
	const struct live_rate *rates[LIVE_ORDERS] = {
		[LIVE_BY_PASSED] = &line->of->passed,
		[LIVE_BY_DROPPED] = &line->of->dropped,
		[LIVE_BY_OBSERVED] = refused,
		[LIVE_BY_ALL] = refused,
	};
	const struct live_rate *rate = rates[sorting->order] ?: &none;

	return sorting->by_bits ? rate->bits : rate->packets;
}

static int limit_order(const void *a, const void *b, void *data)
{
	const struct limit_line *left = a, *right = b;
	const struct live_sorting *sorting = data;
	float one = limit_rate(left, sorting), other = limit_rate(right, sorting);
	int order = one != other ? (one > other ? -1 : 1)
				 : (left->place > right->place) - (left->place < right->place);

	return sorting->is_reversed ? -order : order;
}

static bool limit_line_matches(const struct limit_line *line, const char *text)
{
	const struct stats_line *of = line->of->line;

	return strstr(of->policy, text) ||
	       (line->limit >= 0 && strstr(of->limit[line->limit].name, text));
}

/* Sets a cell to a quantile of the rates of a policy's sources. */
static void cell_set_quantile(struct grid *grid, struct grid_row *row, unsigned int column,
			      const struct histogram *histogram, unsigned int per_mille)
{
	uint64_t bound = histogram_quantile(histogram, per_mille);
	bool is_bounded = bound != HISTOGRAM_UNBOUNDED;
	char rate[CELL_TEXT], text[CELL_TEXT + 2];

	if (!bound)
		return;
	if (!is_bounded)
		bound = histogram_bound(histogram, histogram->buckets - 2);
	snprintf(text, sizeof(text), "%s%s", is_bounded ? "" : ">", rate_cell(bound, rate));
	cell_set(grid, row, column, text);
}

static int limit_row_fill(struct grid *grid, const struct limit_line *line)
{
	const struct stats_line *of = line->of->line;
	const struct stats_limit *limit = line->limit < 0 ? NULL : &of->limit[line->limit];
	struct grid_row *row = row_add(grid);

	if (!row)
		return -ENOMEM;
	cell_set(grid, row, 0, of->policy);
	cell_set(grid, row, 1, limit ? limit->name : "-");
	cell_set(grid, row, 2, limit ? action_names[limit->action] : "-");
	for (int i = 3; i <= 8; i++)
		cell_set(grid, row, i, "-");
	if (limit) {
		cell_set_rate(grid, row, 5, line->of->refused[limit->slot].packets);
		cell_set_rate(grid, row, 6, line->of->refused[limit->slot].bits);
		row->drops = line->of->refused[limit->slot].packets > 0;
	} else {
		struct histogram histogram = rates_histogram(&of->counters.rates);

		cell_set_rate(grid, row, 3, line->of->passed.packets);
		cell_set_rate(grid, row, 4, line->of->dropped.packets);
		cell_set_quantile(grid, row, 7, &histogram, 990);
		cell_set_quantile(grid, row, 8, &histogram, 1000);
		row->drops = line->of->dropped.packets > 0;
	}
	return 0;
}

int grid_of_limits(struct grid *grid, const struct live *live, const struct live_sorting *sorting)
{
	static const struct grid_column columns[] = {
		{"POLICY", .least = 7},
		{"LIMIT", .least = 5},
		{"ACTION", .least = 7},
		{"PASS/s", .least = 6, .is_right = true},
		{"DROP/s", .least = 6, .is_right = true},
		{"REFUSED/s", .least = 9, .is_right = true},
		{"REFUSED-BIT/s", .least = 13, .rank = 1, .is_right = true},
		{"SRC-P99", .least = 7, .rank = 2, .is_right = true},
		{"SRC-MAX", .least = 7, .rank = 2, .is_right = true},
	};
	unsigned int lines = live->lines ? live->stats.count : 0, count = 0;
	struct limit_line *list = calloc(lines + 1, (SL_LIMITS_MAX + 1) * sizeof(*list));
	int err = list ? 0
		       : error_add(ENOMEM, "no-memory", NULL, "out of memory for %u limits", lines);

	grid_begin(grid, columns, ARRAY_SIZE(columns));
	for (unsigned int i = 0; !err && i < lines; i++) {
		const struct stats_line *of = live->lines[i].line;

		for (int j = -1; j < (int)of->limits; j++) {
			list[count] = (struct limit_line){&live->lines[i], j, count};
			count += limit_line_matches(&list[count], live->wish.text);
		}
	}
	if (count)
		qsort_r(list, count, sizeof(*list), limit_order, (void *)sorting);
	for (unsigned int i = 0; !err && i < count && i < LIVE_ROWS; i++)
		err = limit_row_fill(grid, &list[i]);
	free(list);
	return err;
}

/* --- Devices and reasons -------------------------------------------------------------------- */

int grid_of_devices(struct grid *grid, const struct live *live)
{
	static const struct grid_column columns[] = {
		{"DEVICE", .least = 6},
		{"HOOK", .least = 7},
		{"MODE", .least = 7},
		{"STATE", .least = 8},
		{"IFINDEX", .least = 7, .is_right = true},
		{"NETNS", .least = 5},
	};
	char number[CELL_TEXT], netns[NETNS_NAME];

	grid_begin(grid, columns, ARRAY_SIZE(columns));
	for (unsigned int i = 0; i < live->seen.count; i++) {
		const struct attachment *a = &live->seen.all[i];
		const char *name = netns_name(a->netns, netns) ? netns : "(unnamed)";
		struct grid_row *row = row_add(grid);

		if (!row)
			return -ENOMEM;
		snprintf(number, sizeof(number), "%u", a->ifindex);
		cell_set(grid, row, 0, name_shown(a->device));
		cell_set(grid, row, 1, hook_names[a->hook]);
		cell_set(grid, row, 2, mode_names[a->mode]);
		cell_set(grid, row, 3, a->program_id ? "attached" : "gone");
		cell_set(grid, row, 4, number);
		cell_set(grid, row, 5, *name ? name_shown(name) : "-");
	}
	return 0;
}

/* Callback of qsort_r(): compares reasons by their rates, higher rates first. */
static int reason_order(const void *a, const void *b, void *data)
{
	const struct live_rate *rates = data;
	int left = *(const int *)a, right = *(const int *)b;
	float one = rates[left].packets, other = rates[right].packets;

	return one != other ? (one > other ? -1 : 1) : left - right;
}

int grid_of_reasons(struct grid *grid, const struct live *live)
{
	static const struct grid_column columns[] = {
		{"VERDICT", .least = 7},
		{"REASON", .least = 12},
		{"PKT/s", .least = 6, .is_right = true},
		{"BIT/s", .least = 6, .is_right = true},
		{"PACKETS", .least = 12, .is_right = true},
		{"BYTES", .least = 14, .rank = 1, .is_right = true},
	};
	int reasons[SL_REASONS];
	char text[CELL_TEXT];

	for (int i = 0; i < SL_REASONS; i++)
		reasons[i] = i;
	qsort_r(reasons, SL_REASONS, sizeof(*reasons), reason_order, (void *)live->total.reason);
	grid_begin(grid, columns, ARRAY_SIZE(columns));
	for (int i = 0; i < SL_REASONS; i++) {
		int reason = reasons[i];
		const struct live_rate *rate = &live->total.reason[reason];
		const struct sl_cell *total = &live->stats.total.reason[reason];
		struct grid_row *row = row_add(grid);

		if (!row)
			return -ENOMEM;
		cell_set(grid, row, 0, reason < SL_FIRST_DROP ? "pass" : "drop");
		cell_set(grid, row, 1, reason_names[reason]);
		cell_set_rate(grid, row, 2, rate->packets);
		cell_set_rate(grid, row, 3, rate->bits);
		snprintf(text, sizeof(text), "%llu", total->packets);
		cell_set(grid, row, 4, text);
		snprintf(text, sizeof(text), "%llu", total->bytes);
		cell_set(grid, row, 5, text);
		row->drops = reason >= SL_FIRST_DROP && rate->packets > 0;
	}
	return 0;
}

/* --- Widths --------------------------------------------------------------------------------- */

/* Returns the initial width of a column, at least `least` and the width of its title. */
static unsigned int width_least(const struct grid_column *column)
{
	unsigned int title = strlen(column->title);
	unsigned int least = column->least > title ? column->least : title;

	/* columns of rank 0 are as wide as their widest cell, so that addresses are not cut */
	return !column->rank && column->need > least ? column->need : least;
}

/*
 * Sets each column of ranks `from` to `to` to its least width. Skips columns that do not fit on the
 * screen.
 */
static void columns_place(struct grid *grid, unsigned int from, unsigned int to, unsigned int width,
			  unsigned int *used)
{
	for (unsigned int rank = from; rank <= to; rank++) {
		for (unsigned int i = 0; i < grid->columns; i++) {
			struct grid_column *column = &grid->column[i];
			unsigned int least = width_least(column);

			if (column->rank != rank || (rank && width && *used + least > width))
				continue;
			column->width = least;
			*used += least + 1;
		}
	}
}

/* Widens columns to their widest cells while the screen has room. Begins with rank 0. */
static void columns_widen(struct grid *grid, unsigned int width, unsigned int *used)
{
	for (unsigned int rank = 0; rank <= RANK_SPARE; rank++) {
		for (unsigned int i = 0; i < grid->columns; i++) {
			struct grid_column *column = &grid->column[i];

			while (column->rank == rank && column->width &&
			       column->width < column->need && (!width || *used <= width)) {
				column->width++;
				++*used;
			}
		}
	}
}

void grid_fit(struct grid *grid, unsigned int width)
{
	unsigned int used = 0; /* width of all columns so far, each with a space after it */

	for (unsigned int i = 0; i < grid->columns; i++)
		grid->column[i].width = 0;
	columns_place(grid, 0, RANK_SPARE - 1, width, &used);
	columns_widen(grid, width, &used);
	columns_place(grid, RANK_SPARE, RANK_SPARE, width, &used);
	columns_widen(grid, width, &used);
}

/* Appends a cell to a line, padded to the column's width. Shortens long text to START~END. */
static size_t cell_put(const struct grid_column *column, const char *cell, char *text, size_t room)
{
	unsigned int width = glyphs_width(cell);
	int pad = width < column->width ? column->width - width : 0;
	int tail = column->width > 8 ? 5 : 2;

	if (width > column->width && column->width > 3) /* wide cells have only ASCII characters */
		return snprintf(text, room, "%.*s~%s", (int)column->width - tail - 1, cell,
				cell + strlen(cell) - tail);
	return snprintf(text, room, "%*s%s%*s", column->is_right ? pad : 0, "", cell,
			column->is_right ? 0 : pad, "");
}

static const char *line_put(const struct grid *grid, const struct grid_row *row,
			    char text[GRID_LINE])
{
	size_t length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < grid->columns && length < GRID_LINE - 2 * GRID_CELL; i++) {
		const struct grid_column *column = &grid->column[i];

		if (!column->width)
			continue;
		if (length)
			text[length++] = ' ';
		length += cell_put(column, row ? row->cell[i] : column->title, text + length,
				   GRID_LINE - length);
	}
	while (length && text[length - 1] == ' ')
		text[--length] = '\0';
	return text;
}

const char *grid_titles(const struct grid *grid, char text[GRID_LINE])
{
	return line_put(grid, NULL, text);
}

const char *grid_line(const struct grid *grid, const struct grid_row *row, char text[GRID_LINE])
{
	return line_put(grid, row, text);
}
