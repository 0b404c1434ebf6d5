/* SPDX-License-Identifier: GPL-2.0 */
/* State: all counters of a gate at one moment, and the number of entries of its maps. */
#ifndef SLUICE_STATS_H
#define SLUICE_STATS_H

#include <stdint.h>

#include "gate/gate.h"
#include "rules/prefix.h"

enum stats_kind {
	STATS_NONE,    /* packets without a rule */
	STATS_ALLOW,   /* packets that a rule allows */
	STATS_DENY,    /* packets that a rule denies */
	STATS_RULE,    /* packets of a policy */
	STATS_DELETED, /* packets of deleted policies */
};

/* The names of enum sl_action. */
extern const char *const action_names[];

/* A limit of a policy. */
struct stats_limit {
	char name[LIMIT_LABEL];
	enum sl_action action;
	unsigned int slot; /* index into `refused` of the counters of the line */
};

struct stats_line {
	enum stats_kind kind;
	char policy[PREFIX_TEXT]; /* prefix; or "none", "allow", "deny", "deleted" */
	unsigned int number;	  /* policy number of the counters; unused for "deleted" */
	struct sl_counters counters;
	bool blocks; /* a limit of the policy, its own or inherited, blocks */
	unsigned int limits;
	/* limits that are not inherited; refusals of policies that inherit them count here too */
	struct stats_limit limit[SL_LIMITS_MAX];
};

struct stats {
	struct stats_line *lines; /* sorted by kind, and policies by prefix */
	unsigned int count;
	unsigned int rules;	  /* number of lines of policies */
	struct sl_counters total; /* sums of reasons; sums of slots have no meaning */
};

/* Reads all counters, which are in per-CPU arrays. The caller calls stats_free(). */
int stats_read(const struct gate *gate, struct stats *ret);
void stats_free(struct stats *stats);

/* Returns whether packets of a line can have a reason, or had it. */
bool stats_line_has(const struct stats_line *line, enum sl_reason reason);

/* --- Occupancy ------------------------------------------------------------------------------ */

struct occupancy {
	uint32_t max_entries; /* map_max_entries() */
	uint32_t entries;
	bool counted; /* false if the map is an array, or would take too long to count */
};

/* Reads how many entries users can add to a map: its size without reserved entries. */
int map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret);

/* Reads map_max_entries(), and the number of entries: walks the map unless the gate knows it. */
int occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret);

#endif
