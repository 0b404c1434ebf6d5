/* SPDX-License-Identifier: GPL-2.0 */
/* State: all counters of a gate at one time, and how full its maps are. */
#ifndef SLUICE_STATS_H
#define SLUICE_STATS_H

#include <stdint.h>

#include "gate/gate.h"
#include "rules/prefix.h"

enum stats_kind {
	STATS_NONE,    /* packets that no rule covers */
	STATS_ALLOW,   /* allow entries */
	STATS_DENY,    /* deny entries */
	STATS_RULE,    /* a policy */
	STATS_DELETED, /* deleted policies */
};

/* The names of enum sl_action. */
extern const char *const action_names[];

/* A limit of a policy. */
struct stats_limit {
	char name[LIMIT_LABEL];
	enum sl_action action;
	unsigned int slot; /* index into `refused` of the line's counters */
};

struct stats_line {
	enum stats_kind kind;
	char policy[PREFIX_TEXT]; /* a policy's prefix; else "none", "allow", "deny", "deleted" */
	unsigned int number;	  /* policy number of its counters; "deleted" has none */
	struct sl_counters counters;
	bool blocks; /* one of its limits blocks, own or inherited */
	unsigned int limits;
	/* its own limits; their refusals include packets of policies that inherit them */
	struct stats_limit limit[SL_LIMITS_MAX];
};

struct stats {
	struct stats_line *lines; /* by kind; policies by prefix */
	unsigned int count;
	unsigned int rules;	  /* lines of policies */
	struct sl_counters total; /* reasons only: slots of different policies have no sum */
};

/* Reads all counters, from per-CPU arrays only. stats_free() frees them. */
int stats_read(const struct gate *gate, struct stats *ret);
void stats_free(struct stats *stats);

/* Whether a reason can occur in a line, or did. */
bool stats_line_has(const struct stats_line *line, enum sl_reason reason);

/* --- Occupancy ------------------------------------------------------------------------------ */

struct occupancy {
	uint32_t max_entries; /* for maps with an entry for each policy: the policies that fit */
	uint32_t entries;
	bool counted; /* false: an array, or a map that takes too long to count */
};

/* Reads the number of entries that a map can hold. */
int map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret);

/* The same, and the number of its entries. Walks the map unless the gate has the count. */
int occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret);

#endif
