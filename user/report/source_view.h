/* SPDX-License-Identifier: GPL-2.0 */
/* Report: a source and its limits, and numbers in few columns. */
#ifndef SLUICE_SOURCE_VIEW_H
#define SLUICE_SOURCE_VIEW_H

#include "gate/gate.h"
#include "state/source.h"

/* A source, and its state under each limit of its policy. */
struct source_view {
	const struct gate *gate;
	struct source source;
	struct limit_state states[SL_LIMITS_MAX];
};

/*
 * Reads a source, and its state under each limit. For a /64 with longer rules inside, reads no
 * limits, because its addresses may have policies of their own. source_free() frees view->source.
 */
int view_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
	      struct source_view *view);

/* Returns the part of the burst that is left, 0 to 1, or -1 if the key is blocked. */
double limit_slack(const struct source_view *view, int index);

/* Returns whether the limit is known to refuse the next packet that it matches. */
bool limit_refuses(const struct limit_state *state);

/*
 * Returns the index of the limit to print, or -1 if the source has no limit: the first limit that
 * refuses and drops; otherwise the first that refuses and observes; otherwise the limit with the
 * smallest part of its burst left.
 */
int limit_shown(const struct source_view *view);

#define CELL_TEXT 24

/* Formats a count with at most 5 characters: 99999, 100k, 1.23M, 12.3M, 123M. */
const char *count_format(uint64_t count, char text[CELL_TEXT]);

/* Formats a time with at most 5 characters, rounded up: 999ms, 99s, 99m, 99h, 9999d. */
const char *wait_format(uint64_t ms, char text[CELL_TEXT]);

#endif
