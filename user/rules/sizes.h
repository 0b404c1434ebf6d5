/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: the sizes of a gate's maps, and what a set of rules requires. */
#ifndef SLUICE_SIZES_H
#define SLUICE_SIZES_H

#include "rules/ruleset.h"
#include "rules/value.h"

/* The entries of a gate's maps, in the order of enum size. 0: not set. */
struct gate_sizes {
	uint32_t sources;  /* states */
	uint32_t buckets;  /* entries of `buckets4`, and of `buckets6` */
	uint32_t policies; /* rules with limits; the gate reserves the first SL_POLICY_FIRST */
	uint32_t hosts;	   /* rules of whole addresses, of each family */
	uint32_t prefixes; /* other rules */
};

enum size {
	SIZE_SOURCES,
	SIZE_BUCKETS,
	SIZE_POLICIES,
	SIZE_HOSTS,
	SIZE_PREFIXES,
	SIZES,
};

#define SIZE_BIT(size) (1U << (size))

/* The keys of `gate` in a rules file. */
extern const char *const size_names[SIZES];

static inline uint32_t *size_of(struct gate_sizes *sizes, enum size size)
{
	return &sizes->sources + size;
}

/* The size as users write it: without what the gate reserves. */
uint32_t size_specified(const struct gate_sizes *sizes, enum size size);
void size_set(struct gate_sizes *sizes, enum size which, uint32_t size);

/* The entries that rules require in each map. Zeroed at first. */
struct room {
	uint32_t policies;
	uint32_t prefixes;
	uint32_t hosts[SL_FAMILIES];
};

/* Adds what `to` requires beyond `from`, a rule of the same prefix; NULL: none. */
void room_add(struct room *room, const struct rule *from, const struct rule *to);

/* What a set of rules requires. An empty rule requires nothing. */
struct room room_needed(const struct ruleset *rules);

/* The least sizes that hold the rules; 0: a size that rules do not decide. */
struct gate_sizes room_sizes(const struct room *room);

/* Whether each size is at least what is needed. */
bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed);

/*
 * Doubles each size that is too small, or more, to a power of two. fixed: a bit (SIZE_BIT) for each
 * size that stays. The result does not hold what is needed if a fixed size is too small, or if no
 * size is large enough.
 */
struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed);

/* The bits of the sizes that are not 0. */
uint32_t sizes_bits(const struct gate_sizes *sizes);

#endif
