/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every type that the packet path and the command line share: keys, values and enums of the maps.
 *
 * The layouts are the schema of a gate's pinned maps. A version that changes one raises SL_SCHEMA, so that a command
 * of another version refuses the gate instead of misreading it, and keeps the layouts of before, as user/schema4.h
 * does, so that `upgrade` can carry a gate over.
 */
#ifndef SLUICE_H
#define SLUICE_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <stdbool.h>
#include <linux/types.h>
#endif

#include "newcomers.h"

#define SL_SCHEMA 5

/* A moment or a span of time, in ticks. Moments wrap: compare them by their signed difference. */
#define SL_TICKS_PER_NS	 16ULL
#define SL_TICKS_PER_SEC (1000000000ULL * SL_TICKS_PER_NS)

/*
 * No burst takes longer to refill, and no packet costs more: 2.28 years. Keeps every signed difference far from its
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
	SL_PASS_WITHIN,	    /* every limit that matches it had the credit */
	SL_PASS_NO_LIMIT,   /* its policy has no limit that matches it */
	SL_PASS_NEWCOMER,   /* a limit that matches it has no ledger for it, as far as it knows */
	SL_PASS_ALLOWED,    /* its source is allowed */
	SL_PASS_NO_RULE,    /* no rule covers its source */
	SL_PASS_NOT_IP,	    /* neither IPv4 nor IPv6 */
	SL_PASS_SHORT,	    /* the frame ends before its EtherType */
	SL_PASS_BAD_HEADER, /* the IP header contradicts the EtherType, or itself */
	/* dropped; the first two without a source, by a gate that has rules: see bpf/packet.h */
	SL_DROP_UNREADABLE, /* the frame ends within its IP header, or cannot be read */
	SL_DROP_VLAN_DEPTH, /* more than eight VLAN tags */
	SL_DROP_OVER_LIMIT, /* a limit had no credit */
	SL_DROP_BLOCKED,    /* it is blocked for an overrun before */
	SL_DROP_OVER_BUDGET, /* a newcomer's, and the budget of its policy's newcomers had no credit */
	SL_DROP_DENIED,	     /* its source is denied */
	SL_DROP_CONTENDED, /* other CPUs won the ledger every time */
	SL_REASONS,
	SL_FIRST_DROP = SL_DROP_UNREADABLE,
};

struct sl_cell {
	__u64 packets;
	__u64 bytes;
};

/* A policy is a list of so many limits at most. */
#define SL_LIMITS_MAX 4

/* Map `counters`, per CPU, one entry a policy. They only ever grow: see `base` in struct sl_policy. */
struct sl_counters {
	struct sl_cell reason[SL_REASONS];
	struct sl_cell refused[SL_LIMITS_MAX]; /* by the limit in that slot: dropped, or observed */
};

/*
 * Policies. A policy's number indexes `counters`. Each policy owns two records in `policies`, 2n
 * and 2n + 1: a change writes the one that no packet can see and then turns to it, so a record
 * never changes under a packet's eyes. The first numbers are taken: they count, and their records
 * hold nothing but `base`.
 */
enum sl_policy_number {
	SL_POLICY_NONE,	 /* no rule covers the source; counts what has no source, too */
	SL_POLICY_ALLOW, /* the allow list */
	SL_POLICY_DENY,	 /* the deny list */
	SL_POLICY_FIRST, /* of the policies that have limits */
};
#define SL_RECORD(policy) ((policy) << 1)
#define SL_POLICY(record) ((record) >> 1)

/*
 * Addresses. The family is the first 32 bits of the key of map `prefixes` (LPM trie), so that one trie
 * serves both: `default`, the rule with no bits at all, covers both.
 */
#define SL_FAMILY_BITS 32
#define SL_FAMILY_IPV4 4
#define SL_FAMILY_IPV6 6

enum sl_family {
	SL_IPV4,
	SL_IPV6,
	SL_FAMILIES,
};

struct sl_prefix {
	__u32 bits;   /* that count: 0 for `default`, else SL_FAMILY_BITS + the prefix length */
	__u32 family; /* big endian */
	__u8 addr[16] __attribute__((aligned(8))); /* read as two words, too */
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

enum sl_action {
	SL_ACTION_DROP,
	SL_ACTION_OBSERVE, /* count what would be dropped, and pass it */
	SL_ACTION_BLOCK,   /* drop, and everything that the limit matches for a while */
};

/* What include/match.h asks for. One bit: the packet's facts must have it. */
enum sl_fact {
	SL_FACT_ANY = 1 << 0,
	SL_FACT_TCP = 1 << 1,
	SL_FACT_UDP = 1 << 2,
	SL_FACT_ICMP = 1 << 3, /* ICMP on IPv4, ICMPv6 on IPv6 */
	SL_FACT_SYN =
		1 << 4, /* a TCP header with SYN and without ACK, or that ends before its flags */
	SL_FACT_FRAGMENT = 1 << 5, /* any fragment, the first included */
	SL_FACT_PROTO = 1 << 6,	   /* the protocol is known */
	SL_FACT_PORT = 1 << 7,	   /* the destination port is */
	/*
	 * Only of packets: the transport header should be in this packet, and could not be read as far as matches
	 * ask; without SL_FACT_PROTO, not even found.
	 */
	SL_FACT_UNREAD = 1 << 8,
	/*
	 * Only of packets: a fragment of IPv6 but the first. Its sender may write any protocol there, as receivers believe
	 * the first fragment alone (RFC 8200 section 4.5); without SL_FACT_PROTO.
	 */
	SL_FACT_HIDDEN = 1 << 9,
};

/* Ports and ranges of ports that one match can list. */
#define SL_PORTS_MAX 8

struct sl_ports {
	__u16 first;
	__u16 last; /* host order, both included */
};

/* Which packets a limit is for. include/match.h is its meaning. */
struct sl_match {
	__u8 fact; /* enum sl_fact; SL_FACT_PROTO: `proto`, too */
	__u8 proto;
	__u8 ports; /* how many of `port`; 0: any */
	__u8 pad;
	__u16 vlan; /* the first id of a tag that is not 0; 0: any, or none */
	__u16 pad2;
	struct sl_ports port[SL_PORTS_MAX];
};

#define SL_NAME 16 /* room for a limit's name and its NUL */

/* A limit as its author wrote it: what `show` prints. With its match: struct limit in user/limit.h. */
struct sl_limit_spec {
	char name[SL_NAME]; /* empty: this slot is free */
	__u64 rate;
	__u64 burst;
	__u64 block_ns;	       /* of action block */
	__u32 id;	       /* the ledgers' name for it */
	__u8 rate_unit;	       /* enum sl_rate_unit */
	__u8 burst_unit;       /* enum sl_burst_unit */
	__u8 action;	       /* enum sl_action */
	__u8 per[SL_FAMILIES]; /* key length */
	__u8 key_dst;	       /* the key is the destination, and only what is sent is judged */
	__u8 start_empty;
	__u8 pad[5];
};

/*
 * A limit as the packet path reads it, for one family. user/limit.c computes it; include/credit.h is
 * its meaning.
 */
struct sl_limit {
	__u64 cost;   /* ticks a packet, or ticks << SL_BYTE_COST_SHIFT a byte */
	__u64 burst;  /* ticks: what a rested ledger holds */
	__u64 refill; /* ticks: how far a ledger refills while purses may be out */
	__u64 purse; /* ticks: the most that one CPU may hold; 0: every packet draws its own cost */
	__u64 block; /* ticks: for which an overrun is followed by drops; 0: none */
	__u64 mask[2]; /* of the address, in its byte order: what the key keeps of it */
	__u32 id;      /* the ledgers' name for it: unique while the gate lives */
	__u32 life;    /* kernel ticks for which a purse is good */
	__u8 by_bytes;
	__u8 refuse_by_tick; /* the burst is long enough to refuse for the rest of a kernel tick */
	__u8 start_empty;
	__u8 observe;
	__u8 key_dst : 1;
	__u8 apart : 1; /* a bucket's addresses may have ledgers of their own: its purse says nothing */
	__u8 shared : 1; /* sources of several buckets share a ledger */
	__u8 owes : 1; /* what passed before there was a ledger is charged to it: nobody else paid */
	__u8 slot;     /* in the policy: of its match, its purse, its counters */
	__u8 mark;     /* SL_MARK_OWN or SL_MARK_INHERITED of the slot */
	__u8 pad;
};

/*
 * A policy that inherits has its own limits, then those of the next shorter policy that covers it, and those
 * that this one inherits. An inherited limit is the same limit: it has the id, and so the ledgers, of its home,
 * the policy that it is written in, which counts what it refuses. The newcomers' budget has a home as well. A
 * change of a policy rewrites the records of all its heirs in the same generation.
 */
#define SL_HOME(policy, slot) ((policy)*SL_LIMITS_MAX + (slot))
#define SL_HOME_POLICY(home)  ((home) / SL_LIMITS_MAX)
#define SL_HOME_SLOT(home)    ((home) % SL_LIMITS_MAX)

/* What a limit that refused a packet leaves in its verdict: it is counted in its slot, or by its home. */
#define SL_MARK_OWN(slot)	(1 << (slot))
#define SL_MARK_INHERITED(slot) (1 << (SL_LIMITS_MAX + (slot)))

/* Map `policies`: the records. Packets read the limits and the matches. */
struct sl_policy {
	__u32 since; /* the generation from which it is in force; 0: the record is free */
	__u8 limits[SL_FAMILIES]; /* how many */
	__u8 deep;		  /* a match, or a key, needs more than the source */
	__u8 inherits;
	/* In the order in which they are asked: those that drop first, and narrow keys first. */
	struct sl_limit limit[SL_FAMILIES][SL_LIMITS_MAX];
	struct sl_match match[SL_LIMITS_MAX]; /* by slot */
	struct sl_limit
		newcomers;     /* the budget of all newcomers together; burst 0: they have none */
	__u32 newcomers_home;  /* the number of the policy whose budget it is; 0: this one */
	__u32 newcomers_since; /* the generation since which that policy's record has it */
	__u32 home[SL_LIMITS_MAX]; /* by slot: SL_HOME of an inherited limit; 0: its own */
	__u32 parent;		   /* the record that it inherits from; 0: none */
	__u32 pad;
	struct sl_limit_spec spec[SL_LIMITS_MAX]; /* by slot: kept while the limit has its name */
	struct sl_limit_spec newcomers_spec;
	__u32 changed[SL_LIMITS_MAX]; /* by slot: the generation since which the limit has its id */
	struct sl_prefix prefix;      /* whose policy it is */
	/*
	 * What the policy's counters showed when this rule got them, from one that is deleted: so no
	 * counter is ever reset, and no packet lost from the totals.
	 */
	struct sl_counters base;
};

/*
 * Rules: maps `hosts4` and `hosts6` (HASH) for whole addresses, `prefixes` (LPM trie) for the rest;
 * the longest one in force decides. What a rule says of its sources, in this order: a word by hand
 * (`sluice allow`, `sluice deny`) while it lasts; what the lists say that name the prefix; the limits
 * of its policy. A rule that has none of these, or no longer, is not in force: the next shorter one
 * decides. A list's deny gives way wherever a shorter rule allows the source by hand: bpf/ruleset.h.
 *
 * It is what `now` says from generation `since` on, and what `before` says until then. A change writes
 * rules with `since` one ahead of the gate's generation, then raises the generation: one store, and
 * every packet sees all of the change or none of it.
 */
enum sl_list {
	SL_LIST_NONE,
	SL_LIST_ALLOW,
	SL_LIST_DENY,
};

struct sl_face {
	__u32 record : 30; /* of the policy; 0: none */
	__u32 list : 2;	   /* enum sl_list: the word by hand */
	__u32 until; /* the end of that word, in units of 2^SL_UNTIL_SHIFT ns of uptime; 0: for good */
	__u64 lists; /* a bit for each list that names the prefix: its place in map `lists` */
};

/* 67 ms: so 32 bits last for nine years. */
#define SL_UNTIL_SHIFT 26

struct sl_rule {
	__u32 since;
	__u32 bits; /* of its own prefix: the next shorter rule is found with one less */
	struct sl_face now;
	struct sl_face before;
};

/*
 * Map `lists`: the named lists, such as a file of prefixes. The packet path does not read it; a list's word and
 * end are in struct sl_gate as well. They do not change while a rule names the list: a list that is to say
 * something else moves to another place, and so the rules that name it switch with their generation.
 */
#define SL_LISTS_MAX   32		  /* so many at once */
#define SL_LIST_PLACES (2 * SL_LISTS_MAX) /* so that one change can replace them all */
#define SL_LIST_NAME   256		  /* room for a list's name and its NUL */

struct sl_list_info {
	__u32 since;	/* the generation from which it is in force; 0: the place is free */
	__u32 gone;	/* the generation from which it no longer is; 0: it stays */
	__u32 until;	/* its end, as in struct sl_face; 0: for good */
	__u32 list;	/* enum sl_list: its word */
	__u64 replaced; /* when a command last said what is on it: seconds since the epoch */
	char name[SL_LIST_NAME];
};

/*
 * The index in `list_ends` of the list with this one bit: a perfect hash of the 64 bits, by a de Bruijn sequence.
 * BPF has no instruction that counts zeros.
 */
static inline __u32 list_end_index(__u64 bit)
{
	return bit * 0x03f79d71b4cb0a89ULL >> 58;
}

/* Map `gate`: one entry. Packets read the first line, and of unknown sources `meeting`. */
struct sl_gate {
	__u32 schema;
	__u32 generation;  /* of the rules; never 0, so that a fresh bucket is of no generation */
	__u32 tick_ns;	   /* the kernel's tick */
	__u32 hosts;	   /* rules in `hosts4` and `hosts6`: while 0, no packet asks them */
	__u32 split_rules; /* rules longer than /64: while 0, no packet asks `splits` */
	__u32 prefixes;	   /* rules in `prefixes` */
	__u32 changing;	   /* a change is under way, or died half way: the next writer undoes it */
	__u32 hand_allows; /* rules with a word by hand that allows: while 0, a list's deny stands */
	__u64 lists_allow;   /* a bit for each list that allows; the others deny */
	__u64 lists_ending;  /* a bit for each list that has an end */
	__u32 next_limit;    /* the next limit id */
	__u32 next_policy;   /* where the search for a free policy begins */
	__u32 policies_seen; /* no policy of this number or above was ever in use */
	__u32 map_ids[23];   /* of the gate's maps, in user/gate.h's order: no other map is ours */
	struct sl_meeting meeting;
	__u64 zero;			 /* see policy_charge */
	__u32 list_ends[SL_LIST_PLACES]; /* by list_end_index(): of the lists that have one */
};

/*
 * Ledgers: maps `ledgers4` and `ledgers6`. The shared, true token bucket of one limit for one key.
 */
struct sl_ledger_key4 {
	__u32 addr; /* big endian, cut to the limit's key length */
	__u32 limit;
};

struct sl_ledger_key6 {
	__u8 addr[16]; /* cut to the limit's key length */
	__u32 limit;
};

struct sl_ledger {
	__u64 zero;  /* the moment at which it was empty; changed by compare-and-swap only */
	__u64 born;  /* the moment at which it was last known to be whole, with every purse void */
	__u64 drawn; /* the moment at which it was last drawn from */
	__u64 blocked; /* the moment until which it refuses everything; 0: never was */
};

/*
 * Buckets: maps `buckets4` and `buckets6`, per CPU. What one CPU remembers of one source: see include/identity.h. A cache:
 * losing one loses its counters, and what its purses held.
 */
struct sl_bucket_key6 {
	__u64 net;
	__u64 host; /* of a source that is its whole address; else 0 */
};

struct sl_purse {
	__s64 credit; /* ticks; negative: the ledger refused a packet that needed so much */
	__u64 at;     /* when it was drawn; refused: the moment from which the ledger may say yes */
	__u64 until;  /* the last kernel tick (jiffies64) in which credit, or a refusal, is good */
};

struct sl_bucket {
	__u32 generation; /* of the rules under which `record` was found */
	__u32 record;	  /* or SL_BUCKET_SPLIT */
	__u64 until; /* the last kernel tick in which that is sure to hold: the lists have times */
	struct sl_cell passed;
	struct sl_purse purse[SL_LIMITS_MAX]; /* by slot */
	struct sl_cell dropped;
	struct sl_cell observed; /* passed, but a limit that only observes had no credit */
	__u32 owner;	   /* the policy that the purses are of: they stay while a list decides */
	__u32 owner_since; /* and its record's `since` */
};

/*
 * In a bucket's `record`: rules longer than /64 divide this /64, so each packet looks up its
 * own.
 */
#define SL_BUCKET_SPLIT 0xffffffffU

/* Map `budgets`: a ledger for each policy's budget, by its number. Map `allowances`, per CPU: its purse. */
struct sl_allowance {
	struct sl_purse purse;
	__u32 since; /* `newcomers_since` of the record that it was drawn under */
	__u32 pad;
};

_Static_assert(sizeof(struct sl_cell) == 16, "map schema");
_Static_assert(sizeof(struct sl_counters) == 16 * (SL_REASONS + SL_LIMITS_MAX), "map schema");
_Static_assert(sizeof(struct sl_match) == 40, "map schema");
_Static_assert(sizeof(struct sl_limit_spec) == 56, "map schema");
_Static_assert(sizeof(struct sl_limit) == 72, "map schema");
_Static_assert(sizeof(struct sl_policy) == 1472, "map schema");
_Static_assert(sizeof(struct sl_prefix) == 24, "map schema");
_Static_assert(sizeof(struct sl_rule) == 40, "map schema");
_Static_assert(sizeof(struct sl_list_info) == 280, "map schema");
_Static_assert(sizeof(struct sl_gate) == 536, "map schema");
_Static_assert(sizeof(struct sl_ledger_key4) == 8, "map schema");
_Static_assert(sizeof(struct sl_ledger_key6) == 20, "map schema");
_Static_assert(sizeof(struct sl_ledger) == 32, "map schema");
_Static_assert(sizeof(struct sl_bucket_key6) == 16, "map schema");
_Static_assert(sizeof(struct sl_bucket) == 168, "map schema");
_Static_assert(sizeof(struct sl_allowance) == 32, "map schema");

#endif
