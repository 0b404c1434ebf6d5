/* SPDX-License-Identifier: GPL-2.0 */
/* Report: reads a source and its limits, and formats numbers for narrow columns. */
#ifndef SLUICE_SOURCE_VIEW_H
#define SLUICE_SOURCE_VIEW_H

#include "gate/gate.h"
#include "rules/prefix.h"
#include "state/source.h"

/* A source, and its state under each limit of its policy. */
struct source_view {
	const struct gate *gate;
	struct source source;
	struct limit_state states[SL_LIMITS_MAX];
};

/*
 * Reads a source, and its state under each limit. Reads no limits for a /64 if rules exist for
 * longer prefixes in this /64, because its addresses may have different policies. source_free()
 * frees view->source.
 */
int view_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
	      struct source_view *view);

/*
 * Returns what judges the source: the prefix of its policy, "allow", "deny" or "none"; "(several)"
 * if view_read() has read no limits because of longer prefixes.
 */
const char *view_policy(const struct source_view *view, char text[PREFIX_TEXT]);

/* Returns the part of the burst that is left, from 0 to 1, or -1 if the source's key is blocked. */
double limit_slack(const struct source_view *view, int index);

/* Returns whether the limit surely refuses the next packet that it matches. */
bool limit_refuses(const struct limit_state *state);

/*
 * Returns the index of the limit to show, or -1 if there is none. The first choice is a limit that
 * drops packets now. The second is a limit with action observe that refuses packets now. The third
 * is the limit with the smallest part of its burst left.
 */
int limit_shown(const struct source_view *view);

/*
 * Prints a source. In text, prints a row with its address (padded to `width`), counters and a
 * limit. In JSON, prints an element of an array, with all limits. print_view_head() prints the
 * column titles.
 */
void print_view_head(int width);
void print_source_view(const struct source_view *view, int width);

#define CELL_TEXT 24

/* Formats a number with at most 5 characters: 99999, 100k, 1.23M, 12.3M, 123M. */
const char *count_format(uint64_t count, char text[CELL_TEXT]);

/* Formats a time with at most 5 characters, rounded up: 999ms, 99s, 99m, 99h, 9999d. */
const char *wait_format(uint64_t ms, char text[CELL_TEXT]);

#endif
