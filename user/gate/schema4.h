/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: schema 4, the layouts of version 0.1.0 until commit 3b3c97e, as far as they are read.
 * tests/data/schema4 holds all of them, and a recorded gate. The layouts here never change.
 */
#ifndef SLUICE_SCHEMA4_H
#define SLUICE_SCHEMA4_H

#include <linux/types.h>

#include "sluice.h"

#define SCHEMA4_FAMILIES   2
#define SCHEMA4_LIMITS_MAX 4
#define SCHEMA4_PORTS_MAX  8
#define SCHEMA4_MAPS	   18

enum schema4_reason {
	SCHEMA4_PASS_WITHIN,
	SCHEMA4_PASS_NEWCOMER,
	SCHEMA4_PASS_ALLOWED,
	SCHEMA4_PASS_NO_RULE,
	SCHEMA4_PASS_NOT_IP,
	SCHEMA4_PASS_SHORT,
	SCHEMA4_PASS_BAD_HEADER,
	SCHEMA4_PASS_VLAN_DEPTH,
	SCHEMA4_DROP_OVER_LIMIT,
	SCHEMA4_DROP_BLOCKED,
	SCHEMA4_DROP_OVER_BUDGET,
	SCHEMA4_DROP_DENIED,
	SCHEMA4_DROP_OVERSIZE,
	SCHEMA4_DROP_CONTENDED,
	SCHEMA4_REASONS,
};

struct schema4_cell {
	__u64 packets;
	__u64 bytes;
};

struct schema4_counters {
	struct schema4_cell reason[SCHEMA4_REASONS];
	struct schema4_cell refused[SCHEMA4_LIMITS_MAX];
};

struct schema4_prefix {
	__u32 bits;
	__u32 family;
	__u8 addr[16];
};

struct schema4_match {
	__u8 fact;
	__u8 proto;
	__u8 ports;
	__u8 pad;
	__u16 vlan;
	__u16 pad2;
	struct {
		__u16 first;
		__u16 last;
	} port[SCHEMA4_PORTS_MAX];
};

struct schema4_limit_spec {
	char name[16];
	__u64 rate;
	__u64 burst;
	__u64 block_ns;
	__u32 id;
	__u8 rate_unit;
	__u8 burst_unit;
	__u8 action;
	__u8 per[SCHEMA4_FAMILIES];
	__u8 key_dst;
	__u8 start_empty;
	__u8 pad[5];
};

/* The compiled limit. It is not read: each version compiles its own. */
struct schema4_limit {
	__u64 words[9];
};

struct schema4_policy {
	__u32 since;
	__u8 limits[SCHEMA4_FAMILIES];
	__u8 deep;
	__u8 pad;
	struct schema4_limit limit[SCHEMA4_FAMILIES][SCHEMA4_LIMITS_MAX];
	struct schema4_match match[SCHEMA4_LIMITS_MAX];
	struct schema4_limit newcomers;
	struct schema4_limit_spec spec[SCHEMA4_LIMITS_MAX];
	struct schema4_limit_spec newcomers_spec;
	__u32 changed[SCHEMA4_LIMITS_MAX];
	struct schema4_prefix prefix;
	struct schema4_counters base;
};

struct schema4_face {
	__u32 record : 30;
	__u32 list : 2;
	__u32 until;
};

struct schema4_rule {
	__u32 since;
	__u32 bits;
	struct schema4_face now;
	struct schema4_face before;
};

struct schema4_gate {
	__u32 schema;
	__u32 generation;
	__u32 jiffy_ns;
	__u32 hosts;
	__u32 split_rules;
	__u32 prefixes;
	__u32 changing;
	__u32 next_limit;
	__u32 next_policy;
	__u32 policies_seen;
	__u32 map_ids[22];
	__u64 secret[10]; /* from its struct sl_meeting */
	__u32 meeting[8]; /* the rest of that struct, which follows from the sizes */
	__u64 zero;
	__u64 pad;
};

_Static_assert(sizeof(struct schema4_counters) == 288, "schema 4");
_Static_assert(sizeof(struct schema4_match) == 40, "schema 4");
_Static_assert(sizeof(struct schema4_limit_spec) == 56, "schema 4");
_Static_assert(sizeof(struct schema4_policy) == 1424, "schema 4");
_Static_assert(sizeof(struct schema4_rule) == 24, "schema 4");
_Static_assert(sizeof(struct schema4_gate) == 256, "schema 4");

/* --- Conversion of what schema 5 has, too --------------------------------------------------- */

struct sl_limit_spec schema4_spec_convert(const struct schema4_limit_spec *old);
struct sl_match schema4_match_convert(const struct schema4_match *old);
struct sl_prefix schema4_prefix_convert(const struct schema4_prefix *old);

/* Adds a count of the old schema to one of this version. */
void schema4_cell_add(struct sl_cell *sum, const struct schema4_cell *cell);

#endif
