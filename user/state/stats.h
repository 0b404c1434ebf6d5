/* SPDX-License-Identifier: GPL-2.0 */
/* All counters of a gate at one look: what `stats` and `export` tell. */
#ifndef SLUICE_STATS_H
#define SLUICE_STATS_H

#include <stdint.h>

#include "gate/counters.h"
#include "gate/gate.h"
#include "rules/prefix.h"

enum stats_kind {
	STATS_NONE,    /* packets that no rule covers */
	STATS_ALLOW,   /* the allow list */
	STATS_DENY,    /* the deny list */
	STATS_RULE,    /* a rule's limits */
	STATS_DELETED, /* rules that were */
};

/* The names of enum sl_action. */
extern const char *const action_names[];

/* A limit of a rule. */
struct stats_limit {
	char name[SL_NAME];
	enum sl_action action;
	unsigned int slot; /* of `refused` in the line's counters */
};

struct stats_line {
	enum stats_kind kind;
	char policy[PREFIX_TEXT]; /* a rule's prefix; else "none", "allow", "deny", "deleted" */
	unsigned int number;	  /* of its counters; "deleted" has none */
	struct sl_counters counters;
	bool blocks; /* one of its limits, or of those that it inherits */
	unsigned int limits;
	struct stats_limit
		limit[SL_LIMITS_MAX]; /* its own: what these refuse, its heirs' packets among it */
};

struct stats {
	struct stats_line *lines; /* in the order of the kinds; rules by prefix */
	unsigned int count;
	unsigned int rules;	  /* lines that are rules */
	struct sl_counters total; /* by reason only: slots of different policies have no sum */
};

/* Reads per-CPU arrays only. The caller frees it with stats_free(). */
enum status stats_read(const struct gate *gate, struct stats *ret);
void stats_free(struct stats *stats);

/* Whether a line has anything to say of a reason: it can occur there, or it did. */
bool stats_line_has(const struct stats_line *line, enum sl_reason reason);

/* What it means that a limit refused a packet: "drop" or "would-drop". */
const char *stats_limit_verdict(const struct stats_limit *limit);

/* Whether a line has counted anything. */
bool stats_line_counted(const struct stats_line *line);

/* --- Occupancy ------------------------------------------------------------------------------ */

struct occupancy {
	uint32_t max_entries; /* of maps by policy: policies that have limits */
	uint32_t entries;
	bool counted; /* else counting would take too long: the kernel keeps no count to read */
};

/* The entries that a map has room for: cheap. */
enum status map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret);

/* That, and how many there are: walks the map where the gate does not know. */
enum status occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret);

#endif
