/* SPDX-License-Identifier: GPL-2.0 */
/* The sizes of a gate by name, as `gate` in a rules file has them. */
#ifndef SLUICE_SIZES_H
#define SLUICE_SIZES_H

#include <stdint.h>

#include "rules/limit.h"
#include "rules/ruleset.h"

/* What the maps of a gate hold. In a rules file: gate: {sources, hot, policies, hosts, prefixes}. */
struct gate_sizes {
	uint32_t sources;  /* ledgers, of each family */
	uint32_t hot;	   /* buckets, of each family */
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
 * The size as users say it; 0: it is not said. That of `policies` is smaller than the map, because
 * the gate keeps the first numbers for itself (enum sl_policy_number).
 */
uint32_t size_told(const struct gate_sizes *sizes, enum size size);

/* Parses what is said of one: "65536", "64k" or "4m", 1 to 2^26. */
enum status size_parse(enum size size, const char *text, struct gate_sizes *sizes);

/*
 * The least of `sources` and `hot` that is of use: the kernel hands nodes of such a map to CPUs 128 at a time, and a
 * smaller one forgets sources while it is almost empty.
 */
uint32_t size_least(const struct machine *machine);

/* Raises what is below that; 0 stays. And says which sizes it has raised. */
struct gate_sizes sizes_raise(const struct gate_sizes *said, const struct machine *machine);
void sizes_say_raised(const struct gate_sizes *said, const struct machine *machine);

/* Rules counted as maps hold them. Begins zeroed. */
struct room {
	uint32_t policies;
	uint32_t prefixes;
	uint32_t hosts[SL_FAMILIES];
};

/* Adds what `to` takes beyond what `from`, a rule of the same prefix, does; NULL: there is none. */
void room_add(struct room *room, const struct rule *from, const struct rule *to);

/* The least sizes that hold it; 0: of what rules do not decide. */
struct gate_sizes room_sizes(const struct room *room);

/* What the rules take up. */
struct room room_needed(const struct ruleset *rules);

#endif
