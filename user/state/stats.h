/* SPDX-License-Identifier: GPL-2.0 */
/* State: all counters of a gate, and the number of entries of its maps. */
#ifndef SLUICE_STATS_H
#define SLUICE_STATS_H

#include <stdint.h>

#include "gate/gate.h"
#include "histogram.h"
#include "rules/prefix.h"

enum stats_kind {
	STATS_NONE,    /* the line counts packets that match no rule */
	STATS_ALLOW,   /* the line counts packets that a rule allows */
	STATS_DENY,    /* the line counts packets that a rule denies */
	STATS_RULE,    /* the line counts packets that one policy judges */
	STATS_DELETED, /* the line counts packets of deleted policies */
};

/* The names of enum sl_action. */
extern const char *const action_names[];

struct stats_limit {
	char name[LIMIT_LABEL];
	enum sl_action action;
	unsigned int slot; /* index of the limit in `refused` of the line's counters */
};

struct stats_line {
	enum stats_kind kind;
	char policy[PREFIX_TEXT]; /* a prefix, "none", "allow", "deny" or "deleted" */
	unsigned int number;	  /* policy number of `counters`; unset for "deleted" */
	uint64_t made_ns;	  /* uptime at which the policy was made; 0: not a policy */
	struct sl_counters counters;
	bool blocks; /* the policy has or inherits a limit that can block */
	unsigned int limits;
	/* the policy's own limits; counts include refusals in policies that inherit a limit */
	struct stats_limit limit[SL_LIMITS_MAX];
};

struct stats {
	struct stats_line *lines; /* sorted by kind, and lines of policies also by prefix */
	unsigned int count;
	unsigned int rules;	  /* number of lines whose kind is STATS_RULE */
	struct sl_counters total; /* sums of all lines by reason; `refused` has no meaning */
};

/* Reads all counters of a gate. The caller must call stats_free(). */
int stats_read(const struct gate *gate, struct stats *ret);
void stats_free(struct stats *stats);

/* Returns whether the line's counter of this reason can be above 0. */
bool stats_line_has(const struct stats_line *line, enum sl_reason reason);

/* Returns the histogram of the rates of a policy's sources, in packets per second (bpf/rate.h). */
struct histogram rates_histogram(const struct sl_rates *rates);

/* --- Occupancy ------------------------------------------------------------------------------ */

struct occupancy {
	uint32_t max_entries; /* map_max_entries() */
	uint32_t entries;
	bool counted; /* `entries` is valid; false for arrays, and maps that are too large */
};

/*
 * Stores the number of entries that users can add to a map. Excludes entries that the gate
 * reserves.
 */
int map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret);

/*
 * Stores map_max_entries(), and the number of entries in the map. Uses the number in map `gate` if
 * it exists. Otherwise counts the entries.
 */
int occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret);

#endif
