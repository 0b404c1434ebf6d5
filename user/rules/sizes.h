/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: the sizes of a gate's maps, by the names in a rules file, and what a set of rules needs.
 */
#ifndef SLUICE_SIZES_H
#define SLUICE_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "rules/ruleset.h"
#include "rules/value.h"

/*
 * The entries of a gate's maps. In a rules file: gate: {sources, buckets, policies, hosts,
 * prefixes}.
 */
struct gate_sizes {
	uint32_t sources;  /* states */
	uint32_t buckets;  /* entries of `buckets4`, and of `buckets6` */
	uint32_t policies; /* rules with limits */
	uint32_t hosts;	   /* rules of whole addresses, of each family */
	uint32_t prefixes; /* other rules */
};

/* In the order of struct gate_sizes. */
enum size {
	SIZE_SOURCES,
	SIZE_BUCKETS,
	SIZE_POLICIES,
	SIZE_HOSTS,
	SIZE_PREFIXES,
	SIZES,
};

/* A bit for each size. */
#define SIZE_BIT(size) (1U << (size))

extern const char *const size_names[SIZES];

uint32_t *size_of(struct gate_sizes *sizes, enum size size);

/*
 * The size as users write it; 0: it is not set. `policies` is smaller than its map, because the
 * gate reserves the first numbers (enum sl_policy_number).
 */
uint32_t size_told(const struct gate_sizes *sizes, enum size size);

/* Sets a size, as users write it. */
void size_set(struct gate_sizes *sizes, enum size which, uint32_t size);

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

/* The entries that a set of rules takes. A rule that is empty takes none. */
struct room room_needed(const struct ruleset *rules);

/* --- Growing -------------------------------------------------------------------------------- */

/* Whether each size is at least what is needed. */
bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed);

/*
 * Sizes that hold what is needed: a smaller one is at least doubled, to a power of two. `fixed` has
 * a bit (SIZE_BIT) for each size that stays. The result does not hold what is needed if one of
 * these is too small, or if no size is large enough.
 */
struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed);

/* The bits of the sizes that are not 0. */
uint32_t sizes_bits(const struct gate_sizes *sizes);

#endif
