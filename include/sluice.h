/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every type that the packet path and the command line share: keys, values and enums of the maps.
 *
 * The layouts are the schema of a gate's pinned maps. Whoever changes one raises SL_SCHEMA, so that
 * a command of another version refuses the gate instead of misreading it.
 */
#ifndef SLUICE_H
#define SLUICE_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <stdbool.h>
#include <linux/types.h>
#endif

#define SL_SCHEMA 1

/* A moment or a span of time, in ticks. Moments wrap: compare them by their signed difference. */
#define SL_TICKS_PER_NS	 16ULL
#define SL_TICKS_PER_SEC (1000000000ULL * SL_TICKS_PER_NS)

/*
 * No burst takes longer to refill: 2.28 years. Keeps every signed difference far from its
 * limits.
 */
#define SL_BURST_TICKS_MAX (1ULL << 60)

/* A byte's cost is kept in 1/65536 tick: one tick is too coarse above 1 gbit. */
#define SL_BYTE_COST_SHIFT 16

/*
 * Why a packet passed or was dropped. Each packet is counted under exactly one reason.
 * The names that people and scripts see are in user/counters.c, in this order.
 */
enum sl_reason {
	/* passed */
	SL_PASS_WITHIN,	    /* its limit had the credit */
	SL_PASS_NO_RULE,    /* no rule covers its source */
	SL_PASS_NOT_IP,	    /* neither IPv4 nor IPv6 */
	SL_PASS_SHORT,	    /* the frame ends before the end of its IP header */
	SL_PASS_BAD_HEADER, /* the IP header contradicts the EtherType, or itself */
	SL_PASS_VLAN_DEPTH, /* more than two VLAN tags */
	/* dropped */
	SL_DROP_OVER_LIMIT, /* its limit had no credit */
	SL_DROP_OVERSIZE,   /* it costs more than the whole burst */
	SL_DROP_CONTENDED,  /* other CPUs won the ledger every time */
	SL_DROP_NO_MEMORY,  /* the kernel refused to make a ledger */
	SL_REASONS,
	SL_FIRST_DROP = SL_DROP_OVER_LIMIT,
};

struct sl_cell {
	__u64 packets;
	__u64 bytes;
};

/* Map `counters`, per CPU, one entry a policy. They only ever grow: see `base` in struct sl_policy. */
struct sl_counters {
	struct sl_cell reason[SL_REASONS];
};

/*
 * Policies. A policy's number indexes `counters`. Each policy owns two records in `policies`, 2n
 * and 2n + 1: a change writes the one that no packet can see and then turns to it, so a record
 * never changes under a packet's eyes.
 */
#define SL_POLICIES_MAX	  1024
#define SL_POLICY_NONE	  0U /* no rule covers the source; counts what has no source, too */
#define SL_POLICY_FIRST	  1U
#define SL_RECORDS_MAX	  (2 * SL_POLICIES_MAX)
#define SL_POLICY(record) ((record) >> 1)

/*
 * Rules: map `prefixes` (LPM trie), from a prefix to a policy record. One trie serves both
 * families, with the family as the first 32 bits of the key: `default`, the rule with no bits at
 * all, covers both.
 */
#define SL_FAMILY_BITS 32
#define SL_FAMILY_IPV4 4
#define SL_FAMILY_IPV6 6

struct sl_prefix {
	__u32 bits;   /* that count: 0 for `default`, else SL_FAMILY_BITS + the prefix length */
	__u32 family; /* big endian */
	__u8 addr[16];
};

enum sl_rate_unit {
	SL_RATE_PPS,
	SL_RATE_PER_MIN,
	SL_RATE_PER_HOUR,
	SL_RATE_BITS, /* bits per second of frame length, Ethernet header included */
};

enum sl_burst_unit {
	SL_BURST_PACKETS,
	SL_BURST_BYTES,
	SL_BURST_NS,
};

/* A limit as its author wrote it: what `show` prints. */
struct sl_limit_spec {
	__u64 rate;
	__u64 burst;
	__u32 rate_unit;  /* enum sl_rate_unit */
	__u32 burst_unit; /* enum sl_burst_unit */
};

/*
 * A limit as the packet path reads it. user/limit.c computes it; include/credit.h is its
 * meaning.
 */
struct sl_limit {
	__u64 cost;   /* ticks a packet, or ticks << SL_BYTE_COST_SHIFT a byte */
	__u64 burst;  /* ticks: what a rested ledger holds */
	__u64 refill; /* ticks: how far a ledger refills while purses may be out */
	__u64 purse; /* ticks: the most that one CPU may hold; 0: every packet draws its own cost */
	__u32 id;    /* the ledgers' name for it: unique while the gate lives */
	__u32 life;  /* kernel ticks for which a purse is good */
	__u8 by_bytes;
	__u8 refuse_by_tick; /* the burst is long enough to refuse for the rest of a kernel tick */
	__u8 pad[6];
	struct sl_limit_spec spec;
};

/* Map `policies`: the records. Packets read only the limit. */
struct sl_policy {
	__u32 since; /* the generation from which it is in force; 0: the record is free */
	__u32 pad;
	struct sl_prefix prefix; /* whose policy it is */
	struct sl_limit limit;
	/*
	 * What the policy's counters showed when this rule got them, from one that is deleted: so no
	 * counter is ever reset, and no packet lost from the totals.
	 */
	struct sl_counters base;
};

/*
 * A rule holds `policy` from generation `since` on, and `before` until then. A change writes rules
 * with `since` one ahead of the gate's generation, then raises the generation: one store, and every
 * packet sees all of the change or none of it.
 */
struct sl_rule {
	__u32 since;
	__u32 policy;  /* record; 0: none */
	__u32 before;  /* record; 0: none */
	__u8 is_rule;  /* under `policy`: else it only awaits its removal */
	__u8 was_rule; /* under `before`: else undoing the change removes it */
	__u16 bits;    /* of its own prefix: tells an exact match from a shorter one */
};

/* Map `gate`: one entry. Packets read only the generation. */
struct sl_gate {
	__u32 schema;
	__u32 generation;  /* of the rules; never 0, so that a fresh bucket is of no generation */
	__u32 changing;	   /* a change is under way, or died half way: the next writer undoes it */
	__u32 next_limit;  /* the next limit id */
	__u32 next_policy; /* where the search for a free policy begins */
	__u32 policies_seen; /* no policy of this number or above was ever in use */
	__u32 split_rules;   /* rules longer than /64: while 0, no packet asks `splits` */
	__u32 map_ids[16];   /* of the gate's maps, in user/gate.h's order: no other map is ours */
	__u32 pad[9];
};

/*
 * Ledgers: maps `ledgers4` and `ledgers6`. The shared, true token bucket of one limit for one key.
 */
struct sl_ledger_key4 {
	__u8 addr[4];
	__u32 limit;
};

struct sl_ledger_key6 {
	__u8 addr[16]; /* cut to the limit's key length: /64 */
	__u32 limit;
};

struct sl_ledger {
	__u64 zero;  /* the moment at which it was empty; changed by compare-and-swap only */
	__u64 born;  /* the moment at which it was last known to be whole, with every purse void */
	__u64 drawn; /* the moment at which it was last drawn from */
};

/*
 * Buckets: maps `buckets4` and `buckets6`, per CPU. What one CPU remembers of one source: an IPv4
 * address, or an IPv6 /64. A cache: losing one loses no truth but its counters.
 */
struct sl_purse {
	__s64 credit; /* ticks; negative: the ledger refused a packet of that cost */
	__u64 at;     /* when it was drawn; refused: the moment from which the ledger may say yes */
	__u64 until;  /* the last kernel tick (jiffies64) in which credit, or a refusal, is good */
};

struct sl_bucket {
	__u32 generation; /* of the rules under which `policy` was found */
	__u32 policy;	  /* record, or SL_BUCKET_SPLIT */
	struct sl_purse purse;
	struct sl_cell passed;
	struct sl_cell dropped;
};

/*
 * In a bucket's `policy`: rules longer than /64 divide this /64, so each packet looks up its
 * own.
 */
#define SL_BUCKET_SPLIT 0xffffffffU

_Static_assert(sizeof(struct sl_cell) == 16, "map schema");
_Static_assert(sizeof(struct sl_limit) == 72, "map schema");
_Static_assert(sizeof(struct sl_policy) == 264, "map schema");
_Static_assert(sizeof(struct sl_prefix) == 24, "map schema");
_Static_assert(sizeof(struct sl_rule) == 16, "map schema");
_Static_assert(sizeof(struct sl_gate) == 128, "map schema");
_Static_assert(sizeof(struct sl_ledger_key4) == 8, "map schema");
_Static_assert(sizeof(struct sl_ledger_key6) == 20, "map schema");
_Static_assert(sizeof(struct sl_ledger) == 24, "map schema");
_Static_assert(sizeof(struct sl_bucket) == 64, "one cache line: the hot path reads one");

#endif
