// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/top/grid.h and user/top/glyphs.h: columns that fit a screen, rates, bars and
 * sparklines.
 */
#include "test.h"
#include "top/glyphs.h"
#include "top/grid.h"

/* --- Glyphs --------------------------------------------------------------------------------- */

static const struct {
	float rate;
	const char *text;
} rates[] = {
	{0, "0"},      {0.01f, "0.1"},	 {0.5f, "0.5"},	 {9.94f, "9.9"},      {9.96f, "10"},
	{10.4f, "10"}, {99999, "99999"}, {1e5f, "100k"}, {1.234e6f, "1.23M"}, {98.7e9f, "98.7G"},
};

TEST(test_a_rate_has_at_most_five_characters_and_is_0_only_if_it_is)
{
	char text[CELL_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		assert_string_equal(rate_cell(rates[i].rate, text), rates[i].text);
	for (float rate = 0.001f; rate < 1e15f; rate *= 1.37f) {
		assert_in_range(strlen(rate_cell(rate, text)), 1, 5);
		assert_string_not_equal(text, "0");
	}
}

TEST(test_bars)
{
	static const struct {
		double part;
		const char *text;
	} bars[] = {{0, "....."}, {0.09, "....."}, {0.11, "#...."}, {0.5, "###.."}, {1, "#####"}};
	char text[GLYPHS_TEXT(BAR_COLUMNS)];

	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		assert_string_equal(bar_format(bars[i].part, text), bars[i].text);
}

/* The newest rate is on the right. The highest rate is '#'. A small rate is visible. */
TEST(test_sparklines)
{
	static struct live_history history;
	char text[GLYPHS_TEXT(LIVE_HISTORY)];

	assert_string_equal(sparkline_format(&history, history.passed, 3, text), "   ");
	history = (struct live_history){.passed = {0, 1, 500, 1000}, .count = 4};
	assert_string_equal(sparkline_format(&history, history.passed, 6, text), "   _=#");
	assert_string_equal(sparkline_format(&history, history.passed, 2, text), "=#");
	assert_string_equal(sparkline_format(&history, history.dropped, 2, text), "  ");
	/* the ring buffer of the history has wrapped */
	history.count = LIVE_HISTORY + 2;
	assert_string_equal(sparkline_format(&history, history.passed, 2, text), " _");
	assert_int_equal(strlen(sparkline_format(&history, history.passed, 999, text)),
			 LIVE_HISTORY);
}

/* --- Columns -------------------------------------------------------------------------------- */

/* The columns of grid_of_sources(), which shows sources. */
static const struct grid_column columns[] = {
	{"SOURCE", .least = 15},
	{"POLICY", .least = 7, .rank = 3},
	{"PASS/s", .least = 6, .is_right = true},
	{"WOULD/s", .least = 7, .rank = RANK_SPARE, .is_right = true},
	{"LIMIT", .least = 5, .rank = 1},
	{"BLOCKED", .least = 7, .rank = 4, .is_right = true},
};

static struct grid grid_with(struct grid_row *row, const char *source, const char *policy)
{
	const char *const cells[] = {source, policy, "123", "0", "web", "9s"};
	struct grid grid = {.columns = ARRAY_SIZE(columns), .rows = row, .count = 1};

	for (unsigned int i = 0; i < grid.columns; i++) {
		snprintf(row->cell[i], GRID_CELL, "%s", cells[i]);
		grid.column[i] = columns[i];
		grid.column[i].need = strlen(cells[i]) > strlen(columns[i].title)
					      ? strlen(cells[i])
					      : strlen(columns[i].title);
	}
	return grid;
}

static const struct {
	const char *what, *source, *policy;
	unsigned int width;
	const char *titles, *line;
} fits[] = {
	{"any width", "10.0.0.5", "default", 0,
	 "SOURCE          POLICY  PASS/s WOULD/s LIMIT BLOCKED",
	 "10.0.0.5        default    123       0 web        9s"},
	{"all fit exactly", "10.0.0.5", "default", 52,
	 "SOURCE          POLICY  PASS/s WOULD/s LIMIT BLOCKED",
	 "10.0.0.5        default    123       0 web        9s"},
	{"the spare column is left out first", "10.0.0.5", "default", 51,
	 "SOURCE          POLICY  PASS/s LIMIT BLOCKED",
	 "10.0.0.5        default    123 web        9s"},
	{"the spare column does not narrow a policy", "10.0.0.5", "203.0.113.0/24", 55,
	 "SOURCE          POLICY         PASS/s LIMIT BLOCKED",
	 "10.0.0.5        203.0.113.0/24    123 web        9s"},
	{"a policy is shortened in the middle", "10.0.0.5", "203.0.113.0/24", 46,
	 "SOURCE          POLICY    PASS/s LIMIT BLOCKED",
	 "10.0.0.5        203~.0/24    123 web        9s"},
	{"an address is not cut", "64:ff9b:1:1234:5678:9abc:def0:1234", "default", 48,
	 "SOURCE                             PASS/s LIMIT",
	 "64:ff9b:1:1234:5678:9abc:def0:1234    123 web"},
};

TEST(test_columns_that_fit)
{
	char text[GRID_LINE];

	for (size_t i = 0; i < ARRAY_SIZE(fits); i++) {
		struct grid_row row = {0};
		struct grid grid = grid_with(&row, fits[i].source, fits[i].policy);

		grid_fit(&grid, fits[i].width);
		if (strcmp(grid_titles(&grid, text), fits[i].titles))
			fail_msg("%s: '%s'", fits[i].what, text);
		if (strcmp(grid_line(&grid, &row, text), fits[i].line))
			fail_msg("%s: '%s'", fits[i].what, text);
	}
}

/* A narrow screen shows only the columns with addresses and rates. */
TEST(test_no_line_is_wider_than_the_screen)
{
	static const char *const names[] = {"a", "default", "203.0.113.0/24", "2001:db8:1234::/48"};
	char text[GRID_LINE];

	for (unsigned int width = 1; width < 120; width++) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			struct grid_row row = {0};
			struct grid grid =
				grid_with(&row, names[ARRAY_SIZE(names) - 1 - i], names[i]);
			unsigned int always, most;

			grid_fit(&grid, width);
			always = grid.column[0].width + 1 + grid.column[2].width;
			most = width > always ? width : always;
			assert_in_range(strlen(grid_titles(&grid, text)), always, most);
			assert_in_range(strlen(grid_line(&grid, &row, text)), always, most);
			assert_non_null(strstr(text, row.cell[0]));
		}
	}
}

TESTS(NULL, NULL)
