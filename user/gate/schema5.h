/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: schema 5, the layouts of version 0.1.0 at commit 32226fc, as far as they are read. Cells,
 * prefixes, matches and limits as they are written are those of schema 4. tests/data/schema5 holds
 * all of the layouts, and a recorded gate. The layouts here never change.
 */
#ifndef SLUICE_SCHEMA5_H
#define SLUICE_SCHEMA5_H

#include "gate/schema4.h"

#define SCHEMA5_FAMILIES    2
#define SCHEMA5_LIMITS_MAX  4
#define SCHEMA5_MAPS	    20
#define SCHEMA5_LIST_PLACES 64
#define SCHEMA5_LIST_NAME   256

enum schema5_reason {
	SCHEMA5_PASS_WITHIN,
	SCHEMA5_PASS_NO_LIMIT,
	SCHEMA5_PASS_NEWCOMER,
	SCHEMA5_PASS_ALLOWED,
	SCHEMA5_PASS_NO_RULE,
	SCHEMA5_PASS_NOT_IP,
	SCHEMA5_PASS_SHORT,
	SCHEMA5_PASS_BAD_HEADER,
	SCHEMA5_DROP_UNREADABLE,
	SCHEMA5_DROP_VLAN_DEPTH,
	SCHEMA5_DROP_OVER_LIMIT,
	SCHEMA5_DROP_BLOCKED,
	SCHEMA5_DROP_OVER_BUDGET,
	SCHEMA5_DROP_DENIED,
	SCHEMA5_DROP_CONTENDED,
	SCHEMA5_REASONS,
};

struct schema5_counters {
	struct schema4_cell reason[SCHEMA5_REASONS];
	struct schema4_cell refused[SCHEMA5_LIMITS_MAX];
};

/* The compiled limit. It is not read: each version compiles its own. */
struct schema5_limit {
	__u64 words[9];
};

struct schema5_policy {
	__u32 since;
	__u8 limits[SCHEMA5_FAMILIES];
	__u8 deep;
	__u8 inherits;
	struct schema5_limit limit[SCHEMA5_FAMILIES][SCHEMA5_LIMITS_MAX];
	struct schema4_match match[SCHEMA5_LIMITS_MAX];
	struct schema5_limit newcomers;
	__u32 newcomers_home;
	__u32 newcomers_since;
	__u32 home[SCHEMA5_LIMITS_MAX];
	__u32 parent;
	__u32 pad;
	struct schema4_limit_spec spec[SCHEMA5_LIMITS_MAX];
	struct schema4_limit_spec newcomers_spec;
	__u32 changed[SCHEMA5_LIMITS_MAX];
	struct schema4_prefix prefix;
	struct schema5_counters base;
};

struct schema5_face {
	__u32 record : 30;
	__u32 list : 2;
	__u32 until;
	__u64 lists;
};

struct schema5_rule {
	__u32 since;
	__u32 bits;
	struct schema5_face now;
	struct schema5_face before;
};

struct schema5_list_info {
	__u32 since;
	__u32 gone;
	__u32 until;
	__u32 list;
	__u64 replaced;
	char name[SCHEMA5_LIST_NAME];
};

struct schema5_gate {
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
	__u32 meeting[10]; /* the last is known_mask; the others follow from the sizes */
	__u64 opaque_zero;
	__u32 list_ends[SCHEMA5_LIST_PLACES];
};

_Static_assert(sizeof(struct schema5_counters) == 304, "schema 5");
_Static_assert(sizeof(struct schema5_policy) == 1472, "schema 5");
_Static_assert(sizeof(struct schema5_rule) == 40, "schema 5");
_Static_assert(sizeof(struct schema5_list_info) == 280, "schema 5");
_Static_assert(sizeof(struct schema5_gate) == 536, "schema 5");

/* --- Conversion of what schema 6 has, too --------------------------------------------------- */

struct sl_rule schema5_rule_convert(const void *value);
struct sl_list_info schema5_list_convert(const void *value);

#endif
