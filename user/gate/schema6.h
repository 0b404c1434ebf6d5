/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: schema 6, the layouts of version 0.1.0 at commit 0ac1efc, as far as they are read. Cells,
 * prefixes and matches are those of schema 4, rules and lists those of schema 5. Policies and
 * counters are those of schema 7, too. tests/data/schema6 holds all of the layouts, and a recorded
 * gate. The layouts here never change.
 */
#ifndef SLUICE_SCHEMA6_H
#define SLUICE_SCHEMA6_H

#include "gate/schema5.h"

#define SCHEMA6_FAMILIES    2
#define SCHEMA6_LIMITS_MAX  4
#define SCHEMA6_MAPS	    20
#define SCHEMA6_LIST_PLACES 64

enum schema6_reason {
	SCHEMA6_PASS_WITHIN,
	SCHEMA6_PASS_NO_LIMIT,
	SCHEMA6_PASS_NEWCOMER,
	SCHEMA6_PASS_ALLOWED,
	SCHEMA6_PASS_NO_RULE,
	SCHEMA6_PASS_NOT_IP,
	SCHEMA6_PASS_SHORT,
	SCHEMA6_PASS_BAD_HEADER,
	SCHEMA6_DROP_UNREADABLE,
	SCHEMA6_DROP_VLAN_DEPTH,
	SCHEMA6_DROP_OVER_LIMIT,
	SCHEMA6_DROP_OVERSIZE,
	SCHEMA6_DROP_OVER_HORIZON,
	SCHEMA6_DROP_BLOCKED,
	SCHEMA6_DROP_OVER_BUDGET,
	SCHEMA6_DROP_DENIED,
	SCHEMA6_DROP_CONTENDED,
	SCHEMA6_REASONS,
};

enum schema6_kind {
	SCHEMA6_BUCKET,
	SCHEMA6_WINDOW,
	SCHEMA6_SHAPE,
};

struct schema6_counters {
	struct schema4_cell reason[SCHEMA6_REASONS];
	struct schema4_cell refused[SCHEMA6_LIMITS_MAX];
};

struct schema6_limit_spec {
	char name[16];
	__u64 rate;
	__u64 burst;
	__u64 span_ns;
	__u64 block_ns;
	__u64 block_max_ns;
	__u32 id;
	__u8 kind;
	__u8 rate_unit;
	__u8 burst_unit;
	__u8 groups;
	__u8 action;
	__u8 escalate;
	__u8 per[SCHEMA6_FAMILIES];
	__u8 key_dst;
	__u8 start; /* 1: empty; else of schema 7 alone */
	__u8 second;
	__u8 shared; /* of schema 7 alone */
};

/* The compiled limit. It is not read: each version compiles its own. */
struct schema6_limit {
	__u64 words[11];
};

struct schema6_policy {
	__u32 since;
	__u8 limits[SCHEMA6_FAMILIES];
	__u8 deep;
	__u8 inherits;
	struct schema6_limit limit[SCHEMA6_FAMILIES][SCHEMA6_LIMITS_MAX];
	struct schema4_match match[SCHEMA6_LIMITS_MAX];
	struct schema6_limit newcomers;
	__u32 newcomers_home;
	__u32 newcomers_since;
	__u32 home[SCHEMA6_LIMITS_MAX];
	__u32 parent;
	__u32 pad;
	struct schema6_limit_spec spec[SCHEMA6_LIMITS_MAX];
	struct schema6_limit_spec newcomers_spec;
	__u32 changed[SCHEMA6_LIMITS_MAX];
	struct schema4_prefix prefix;
	struct schema6_counters base;
};

struct schema6_gate {
	__u32 schema;
	__u32 generation;
	__u32 jiffy_ns;
	__u32 hosts;
	__u32 split_rules;
	__u32 prefixes;
	__u32 changing;
	__u32 hand_allows;
	__u64 lists_allow;
	__u64 lists_ending;
	__u32 next_limit;
	__u32 next_policy;
	__u32 policies_seen;
	__u32 map_ids[23];
	__u64 secret[10];
	__u32 meeting[10]; /* follows from the sizes */
	__u64 opaque_zero;
	__u32 list_ends[SCHEMA6_LIST_PLACES];
	__u64 trial_until;
	__u32 trial;
	__u32 sizes_stated;
};

_Static_assert(sizeof(struct schema6_counters) == 336, "schema 6");
_Static_assert(sizeof(struct schema6_limit_spec) == 72, "schema 6");
_Static_assert(sizeof(struct schema6_policy) == 1728, "schema 6");
_Static_assert(sizeof(struct schema6_gate) == 552, "schema 6");

/* --- Conversion of what schema 7 has, too --------------------------------------------------- */

struct sl_counters schema6_counters_convert(const void *value);
void schema6_policy_convert(const void *value, struct sl_policy *ret);

#endif
