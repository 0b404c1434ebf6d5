/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: the sizes of a gate's maps, by the names in a rules file, and what a set of rules needs.
 */
#ifndef SLUICE_SIZES_H
#define SLUICE_SIZES_H

#include <stdint.h>

#include "rules/limit.h"
#include "rules/ruleset.h"

/*
 * The entries of a gate's maps. In a rules file: gate: {sources, hot, policies, hosts, prefixes}.
 */
struct gate_sizes {
	uint32_t sources;  /* ledgers, of each family */
	uint32_t hot;	   /* bucket entries, of each family */
	uint32_t policies; /* rules with limits */
	uint32_t hosts;	   /* rules of whole addresses, of each family */
	uint32_t prefixes; /* other rules */
};

/* In the order of struct gate_sizes. */
enum size {
	SIZE_SOURCES,
	SIZE_HOT,
	SIZE_POLICIES,
	SIZE_HOSTS,
	SIZE_PREFIXES,
	SIZES,
};

extern const char *const size_names[SIZES];

uint32_t *size_of(struct gate_sizes *sizes, enum size size);

/*
 * The size as users write it; 0: it is not set. `policies` is smaller than its map, because the
 * gate reserves the first numbers (enum sl_policy_number).
 */
uint32_t size_told(const struct gate_sizes *sizes, enum size size);

/* Parses a size: "65536", "64k" or "4m", 1 to 2^26. */
enum status size_parse(enum size size, const char *text, struct gate_sizes *sizes);

/*
 * The least useful value of `sources` and `hot`. The kernel hands the nodes of an LRU map to CPUs
 * 128 at a time, and a smaller map evicts sources while it is almost empty.
 */
uint32_t size_least(const struct machine *machine);

/*
 * sizes_raise() raises smaller values to size_least(), except 0. sizes_say_raised() prints which
 * ones.
 */
struct gate_sizes sizes_raise(const struct gate_sizes *said, const struct machine *machine);
void sizes_say_raised(const struct gate_sizes *said, const struct machine *machine);

/* The entries that rules take in each map. Zeroed at first. */
struct room {
	uint32_t policies;
	uint32_t prefixes;
	uint32_t hosts[SL_FAMILIES];
};

/*
 * Adds the entries that `to` takes beyond those of `from`, a rule of the same prefix; NULL: none.
 */
void room_add(struct room *room, const struct rule *from, const struct rule *to);

/* The least sizes that hold the rules; 0: a size that rules do not decide. */
struct gate_sizes room_sizes(const struct room *room);

/* The entries that a set of rules takes. */
struct room room_needed(const struct ruleset *rules);

#endif
