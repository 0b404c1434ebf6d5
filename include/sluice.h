/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types that the packet path and the command line share: keys, values and enums of the maps.
 *
 *   verdicts   enum sl_reason, struct sl_counters
 *   rules      struct sl_rule, sl_policy, sl_limit, sl_match; struct sl_gate: their generation
 *   state      struct sl_ledger, sl_purse, sl_bucket; newcomers.h
 *
 * The layouts are the schema of the pinned maps of a gate. A version that changes one raises
 * SL_SCHEMA, so that a command of another version refuses the gate instead of misreading it.
 * tests/unit/gate/test_schema.c has the digests of the layouts.
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

#define SL_SCHEMA 1

/*
 * Moments and spans are in ticks of 1/16 ns. Moments wrap, so they are compared by their signed
 * difference.
 */
#define SL_TICKS_PER_NS	 16ULL
#define SL_TICKS_PER_SEC (1000000000ULL * SL_TICKS_PER_NS)

/*
 * The most that a burst takes to refill, and that a packet costs: 2.28 years. It keeps every signed
 * difference far from overflow.
 */
#define SL_BURST_TICKS_MAX (1ULL << 60)

/* The cost of a byte is kept in 1/65536 tick, because a tick is too coarse above 1 gbit. */
#define SL_BYTE_COST_SHIFT 16

/*
 * Why a packet passed or was dropped. Each packet is counted under exactly one reason. The command
 * prints their names in this order.
 */
enum sl_reason {
	/* passed */
	SL_PASS_WITHIN,	    /* every limit that matches it had credit */
	SL_PASS_NO_LIMIT,   /* no limit of its policy matches it */
	SL_PASS_NEWCOMER,   /* a limit that matches it has no ledger for it yet */
	SL_PASS_ALLOWED,    /* its source is allowed */
	SL_PASS_NO_RULE,    /* no rule covers its source */
	SL_PASS_NOT_IP,	    /* neither IPv4 nor IPv6 */
	SL_PASS_SHORT,	    /* the frame ends before its EtherType */
	SL_PASS_BAD_HEADER, /* the IP header contradicts the EtherType, or itself */
	/* dropped; the first two have no source, and pass if the gate has no rules: bpf/packet.h */
	SL_DROP_UNREADABLE,   /* the frame ends within its IP header, or cannot be read */
	SL_DROP_VLAN_DEPTH,   /* more than eight VLAN tags */
	SL_DROP_OVER_LIMIT,   /* a limit had no credit */
	SL_DROP_OVERSIZE,     /* it costs more than its window ever allows */
	SL_DROP_OVER_HORIZON, /* it would have to wait longer than the horizon of its shape */
	SL_DROP_BLOCKED,      /* an earlier overrun still blocks it */
	SL_DROP_OVER_BUDGET,  /* a newcomer, for which the budget of its policy had no credit */
	SL_DROP_DENIED,	      /* its source is denied */
	SL_DROP_CONTENDED,    /* other CPUs won the ledger in every try */
	SL_REASONS,
	SL_FIRST_DROP = SL_DROP_UNREADABLE,
};

struct sl_cell {
	__u64 packets;
	__u64 bytes;
};

/* The most limits of a policy */
#define SL_LIMITS_MAX 4

/*
 * Map `counters`, per CPU, one entry a policy. Counters only grow: see `base` in struct sl_policy.
 */
struct sl_counters {
	struct sl_cell reason[SL_REASONS];
	struct sl_cell refused[SL_LIMITS_MAX]; /* by slot: refusals, observed ones included */
};

/*
 * Policies. The number of a policy indexes `counters`. Policy n owns two records in `policies`, 2n
 * and 2n + 1. A change writes the record that no packet can see and then switches to it, so the
 * record that a packet reads never changes. The first numbers are reserved for counting; their
 * records hold nothing but `base`.
 */
enum sl_policy_number {
	SL_POLICY_NONE,	 /* no rule covers the source, or the frame has none */
	SL_POLICY_ALLOW, /* the allow list */
	SL_POLICY_DENY,	 /* the deny list */
	SL_POLICY_FIRST, /* of the policies that have limits */
};
#define SL_RECORD(policy) ((policy) << 1)

/* A record of no policy. Its `base` has what maps `counters` that were replaced have counted. */
#define SL_RECORD_MOVED	  (SL_RECORD(SL_POLICY_NONE) + 1)
#define SL_POLICY(record) ((record) >> 1)

/*
 * Addresses. The family is the first 32 bits of a key of the LPM trie `prefixes`, so one trie
 * serves both families, and `default`, the rule without bits, covers both.
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
	__u32 bits; /* significant ones: 0 for `default`, else SL_FAMILY_BITS + the prefix length */
	__u32 family;				   /* big endian */
	__u8 addr[16] __attribute__((aligned(8))); /* also read as two words */
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
	SL_ACTION_BLOCK,   /* drop, and drop all that the limit matches for a time */
};

enum sl_start {
	SL_START_FULL,
	SL_START_EMPTY,
	SL_START_SHARE, /* of the burst, as large as that of each node that shares the limit */
};

enum sl_shared {
	SL_SHARED_NO,
	SL_SHARED_YES,	 /* one limit over the nodes of `sluice share` */
	SL_SHARED_BLOCK, /* and a block that begins at one begins at all */
};

/* The kinds of limit: include/kinds.h. */
enum sl_kind {
	SL_BUCKET, /* token bucket: rate and burst */
	SL_WINDOW, /* sliding window: never more than N in any T */
	SL_SHAPE,  /* departure times: rate and horizon; only packets that the device sends */
	SL_KINDS,
};

/* Facts of a packet. A match asks for one of them: include/match.h. */
enum sl_fact {
	SL_FACT_ANY = 1 << 0,
	SL_FACT_TCP = 1 << 1,
	SL_FACT_UDP = 1 << 2,
	SL_FACT_ICMP = 1 << 3,	   /* ICMP on IPv4, ICMPv6 on IPv6 */
	SL_FACT_SYN = 1 << 4,	   /* TCP with SYN and without ACK, or cut short before its flags */
	SL_FACT_FRAGMENT = 1 << 5, /* any fragment, the first included */
	SL_FACT_PROTO = 1 << 6,	   /* the protocol could be read */
	SL_FACT_PORT = 1 << 7,	   /* the destination port could be read */
	/*
	 * Never in a match: the transport header should be in this packet and could not be read as
	 * far as matches ask. Without SL_FACT_PROTO it was not even found.
	 */
	SL_FACT_UNREAD = 1 << 8,
	/*
	 * Never in a match: a fragment of IPv6 other than the first, so without SL_FACT_PROTO. Its
	 * sender may write any protocol there, as receivers believe only the first fragment (RFC
	 * 8200 section 4.5).
	 */
	SL_FACT_HIDDEN = 1 << 9,
};

/* The most ports and ranges of ports in one match */
#define SL_PORTS_MAX 8

struct sl_ports {
	__u16 first;
	__u16 last; /* host order, inclusive */
};

/* Which packets a limit is for. include/match.h defines its meaning. */
struct sl_match {
	__u8 fact;  /* enum sl_fact */
	__u8 proto; /* with SL_FACT_PROTO */
	__u8 ports; /* how many entries of `port`; 0: any port */
	__u8 pad;
	__u16 vlan; /* the id of the first tag whose id is not 0; 0: any packet */
	__u16 pad2;
	struct sl_ports port[SL_PORTS_MAX];
};

#define SL_NAME 16 /* room for the name of a limit and its NUL */

/*
 * A limit as it was written, and as `show` prints it. Its match is apart, in the policy. A limit
 * that was told two rates, of packets and of bits, is two limits of one name, in two slots.
 */
struct sl_limit_spec {
	char name[SL_NAME];    /* empty: this slot is free */
	__u64 rate;	       /* of a window: N, in packets or, with SL_RATE_BITS, in bytes */
	__u64 burst;	       /* of a bucket */
	__u64 span_ns;	       /* of a window: T; of shape: the horizon */
	__u64 block_ns;	       /* of action block */
	__u64 block_max_ns;    /* the longest block of `escalate` */
	__u32 id;	       /* as in struct sl_limit */
	__u8 kind;	       /* enum sl_kind */
	__u8 rate_unit;	       /* enum sl_rate_unit */
	__u8 burst_unit;       /* enum sl_burst_unit */
	__u8 groups;	       /* of a window: how many sub-windows T has */
	__u8 action;	       /* enum sl_action */
	__u8 escalate;	       /* by what each following block is longer; 0: it is not */
	__u8 per[SL_FAMILIES]; /* key length */
	__u8 key_dst; /* the key is the destination, and only packets that the device sends match */
	__u8 start;   /* enum sl_start */
	__u8 second;  /* the second of two limits of this name */
	__u8 shared;  /* enum sl_shared */
};

/*
 * A limit as the packet path reads it, for one family. The command computes it; include/kinds.h
 * defines its meaning. Amounts of a bucket and of shape are told in ticks, those of a window in
 * packets or bytes.
 */
struct sl_limit {
	/* a packet's, or << SL_BYTE_COST_SHIFT a byte's; of a window 1 packet, or 1 byte */
	__u64 cost;
	union {
		__u64 burst;   /* what a rested ledger holds */
		__u64 most;    /* of a window: N */
		__u64 horizon; /* of shape: the longest wait */
	};
	union {
		__u64 refill; /* how far a ledger refills while purses may hold credit */
		__u64 period; /* of a window: the longest sub-window, in ticks */
	};
	union {
		__u64 purse;  /* the most that one CPU may hold; 0: every packet draws its cost */
		__u64 factor; /* of a window: see window_scale() */
	};
	__u64 block;	 /* ticks: how long an overrun blocks; 0: not at all */
	__u64 block_max; /* ticks: the longest block, with `escalate` */
	__u64 mask[2];	 /* of the address, in network byte order: what the key keeps of it */
	__u32 id;	 /* in the keys of its ledgers: unique while the gate exists */
	__u32 life;	 /* jiffies for which a purse is good */
	__u8 kind;	 /* enum sl_kind */
	__u8 by_bytes;
	__u8 refuse_by_jiffy; /* a refusal may hold for the rest of a jiffy */
	__u8 start_empty : 1;
	__u8 start_share : 1; /* of the burst, as large as that of each node that shares */
	__u8 observe : 1;
	__u8 key_dst : 1;
	__u8 apart : 1;	 /* addresses of one bucket may have ledgers of their own */
	__u8 owes : 1;	 /* earlier packets that no ledger was charged for are charged */
	__u8 shared : 1; /* its lines count what was taken and refused */
	__u8 slot;	 /* index of its match, its purse and its counters */
	__u8 mark;	 /* SL_MARK_OWN or SL_MARK_INHERITED of the slot */
	__u8 groups;	 /* of a window: the sub-windows of T */
	__u8 bits;	 /* of a window: of one count in `past` */
	__u8 shift;	 /* of a window: such a count is in units of 2^shift */
	__u8 coarse;	 /* of a window: time is told in steps of 2^coarse ticks */
	__u8 escalate;	 /* by what each following block is longer; 0: it is not */
	__u8 steps_max;	 /* how often, until one is as long as block_max */
	__u16 span;	 /* of its lines: struct sl_line */
	__u8 unit_shift; /* of a shared limit: its lines count in units of 2^unit_shift ticks */
	__u8 pad;
};

/*
 * A policy that inherits has its own limits, then those of the next shorter policy that covers it,
 * which may be inherited in turn. The home of a limit is the policy that it is written in. An
 * inherited limit is the same limit: it has the id, and so the ledgers, that it has at home, and
 * its home counts what it refuses. The newcomers' budget has a home as well. A change of a policy
 * rewrites the records of all its heirs in the same generation.
 */
#define SL_HOME(policy, slot) ((policy)*SL_LIMITS_MAX + (slot))
#define SL_HOME_POLICY(home)  ((home) / SL_LIMITS_MAX)
#define SL_HOME_SLOT(home)    ((home) % SL_LIMITS_MAX)

/*
 * The mark in a verdict of a limit that had no credit, which is counted in its slot or at its home.
 */
#define SL_MARK_OWN(slot)	(1 << (slot))
#define SL_MARK_INHERITED(slot) (1 << (SL_LIMITS_MAX + (slot)))

/* Map `policies`: the records. Packets read the limits and the matches. */
struct sl_policy {
	__u32 since; /* the generation from which it is in force; 0: the record is free */
	__u8 limits[SL_FAMILIES]; /* how many, by family */
	__u8 deep;		  /* a match or a key needs more than the source */
	__u8 inherits;
	/*
	 * in the order of charging: those that drop, that block, that shape, that observe; each
	 * with narrow keys first
	 */
	struct sl_limit limit[SL_FAMILIES][SL_LIMITS_MAX];
	struct sl_match match[SL_LIMITS_MAX]; /* by slot */
	struct sl_limit newcomers; /* the budget of all newcomers together; burst 0: none */
	__u32 newcomers_home;	   /* the policy that the budget is written in; 0: this one */
	__u32 newcomers_since;	   /* the generation since which the record of that policy has it */
	__u32 home[SL_LIMITS_MAX]; /* by slot: SL_HOME of an inherited limit; 0: its own */
	__u32 parent;		   /* the record that it inherits from; 0: none */
	__u32 pad;
	struct sl_limit_spec spec[SL_LIMITS_MAX]; /* by slot: kept while the limit has its name */
	struct sl_limit_spec newcomers_spec;
	__u32 changed[SL_LIMITS_MAX]; /* by slot: the generation since which the limit has its id */
	struct sl_prefix prefix;      /* that has this policy */
	/*
	 * What the counters showed when this policy took over the number of a deleted one. Counters
	 * are never reset, so the totals lose no packet. If the map `counters` was replaced, less
	 * what the map of before has counted, modulo 2^64.
	 */
	struct sl_counters base;
};

/*
 * Rules are in maps `hosts4` and `hosts6` (HASH) for whole addresses, and in `prefixes` (LPM trie)
 * for the rest. The longest rule in force decides. What it says is, in this order: its entry by
 * hand (`sluice allow`, `sluice deny`) while that lasts; the lists that name the prefix; the limits
 * of its policy. A rule with none of these is not in force, and the next shorter one decides. A
 * deny by a list gives way to an allow by hand at a shorter prefix: bpf/lookup.h.
 *
 * A rule has two faces: `now` holds from generation `since` on, `before` holds until then. A change
 * writes rules with `since` one ahead of the generation of the gate, then raises that generation.
 * That is one store, so every packet sees all of the change or none of it.
 */
enum sl_list {
	SL_LIST_NONE,
	SL_LIST_ALLOW,
	SL_LIST_DENY,
};

struct sl_face {
	__u32 record : 30; /* of the policy; 0: none */
	__u32 list : 2;	   /* enum sl_list: the entry by hand */
	__u32 until;	   /* its end, in 2^SL_UNTIL_SHIFT ns of uptime; 0: none */
	__u64 lists; /* the lists that name the prefix: a bit each, by its place in map `lists` */
};

/* A unit of 67 ms, so that 32 bits last for nine years. */
#define SL_UNTIL_SHIFT 26

struct sl_rule {
	__u32 since;
	__u32 bits; /* of its own prefix: one less finds the next shorter rule */
	struct sl_face now;
	struct sl_face before;
};

/*
 * Map `lists`: the named lists, such as a file of prefixes. The packet path does not read it:
 * struct sl_gate has the access (allow or deny) and the end of each list as well. These do not
 * change while a rule names the list. A list that changes its access or end moves to another place,
 * so that the rules that name it switch with their generation.
 */
#define SL_LISTS_MAX   32
#define SL_LIST_PLACES (2 * SL_LISTS_MAX) /* enough for a change that replaces all lists */
#define SL_LIST_NAME   256		  /* room for the name of a list and its NUL */

struct sl_list_info {
	__u32 since;	/* the generation from which it is in force; 0: the place is free */
	__u32 gone;	/* the generation from which it is not in force any more; 0: none */
	__u32 until;	/* its end, as in struct sl_face; 0: none */
	__u32 list;	/* enum sl_list: its access */
	__u64 replaced; /* when a command last set what is on it: seconds since 1970 */
	char name[SL_LIST_NAME];
};

/*
 * Map `gate`: one entry. Packets read the first cache line; those without a bucket read `meeting`
 * too.
 */
struct sl_gate {
	__u32 schema;
	__u32 generation;    /* of the rules; never 0, so that a fresh bucket belongs to none */
	__u32 jiffy_ns;	     /* the length of a jiffy */
	__u32 hosts;	     /* rules in `hosts4` and `hosts6`; while 0, no packet reads them */
	__u32 split_rules;   /* rules longer than /64; while 0, no packet reads `splits` */
	__u32 prefixes;	     /* rules in `prefixes` */
	__u32 changing;	     /* a change is under way, or was killed: the next writer undoes it */
	__u32 hand_allows;   /* rules that allow by hand; while 0, a deny by a list is final */
	__u64 lists_allow;   /* a bit for each list that allows; the others deny */
	__u64 lists_ending;  /* a bit for each list that has an end */
	__u32 next_limit;    /* the next limit id */
	__u32 next_policy;   /* where the search for a free policy begins */
	__u32 policies_seen; /* all policies that were ever in use have lower numbers */
	__u32 map_ids[23];   /* the maps of this gate, in the order of the command's table */
	struct sl_meeting meeting;
	__u64 opaque_zero;		 /* always 0: see policy_charge() */
	__u32 list_ends[SL_LIST_PLACES]; /* of lists that have an end: list_ends.h */
	__u64 trial_until;  /* when the trial of new rules ends, in ns of uptime; 0: no trial */
	__u32 trial;	    /* the number of that trial, or of the last one */
	__u32 sizes_stated; /* a bit for each stated size (enum size); others grow */
	__u64 divide_at; /* from then on this node has 1/nodes of shared limits, in ticks; 0: no */
	__u32 nodes;	 /* that share limits, as `sluice share` counts them; 0: none does */
	__u32 policies;	 /* the size that was asked for; the maps may have more entries */
};

/*
 * Ledgers: the shared, true state of one limit for one key.
 */
struct sl_ledger {
	union {		      /* the truth; changed by compare-and-swap only */
		__u64 zero;   /* when it was empty */
		__u64 window; /* of a window: what counts now */
		__u64 ready;  /* of shape: when the next packet may depart */
	};
	union {
		__u64 born; /* when it was last found whole, with every purse void */
		__u64 past; /* of a window: what counted in the sub-windows before */
	};
	__u64 drawn;   /* when it was last drawn from; of a window, a moment in the current one */
	__u64 blocked; /* the moment until which it refuses everything; 0: never blocked */
};

/*
 * The same as the type of maps, for bpftool: it prints the members of a union without their names,
 * all under one. The words of any kind have the names of a bucket's there.
 */
struct sl_ledger_words {
	__u64 zero;
	__u64 born;
	__u64 drawn;
	__u64 blocked;
};

/*
 * The table of ledgers, in maps `sets` and `ledgers`: sets of eight ways. Way w of set s is line
 * 8 s + w of `ledgers`. include/ways.h explains it.
 */
#define SL_WAYS 8

struct sl_set {
	/* of the key in each way; 0: the way is free. Also read as two words */
	__u16 tag[SL_WAYS] __attribute__((aligned(8)));
	__u32 away; /* 2 for each key whose home this is and that is in its other set; 1: locked */
	__u32 pad[3]; /* two sets to a cache line */
};

/* A ledger with its key: one cache line. */
struct sl_line {
	__u64 addr[2]; /* cut to the key length of the limit; an IPv4 address: the first 32 bits */
	__u32 limit;   /* its id << 3 | its kind << 1 | IPv4; 0: the line is free */
	__u16 span;    /* the time in which it is whole again, once it was empty: short_make() */
	__u16 made;    /* when it was made: line_moment(); and LINE_CAME_BACK */
	__u32 taken;   /* of a shared limit: what was taken, purses included, and */
	__u32 refused; /* what was refused: line_tell(). Of a window: LINE_HAS_HALF, line_seen() */
	struct sl_ledger_words ledger;
};

/*
 * A bucket: what one CPU holds for one source (include/identity.h), in maps `buckets4` and
 * `buckets6`. An evicted bucket loses its counters and the credit of its slices; the state of the
 * source is in the table.
 */
struct sl_purse {
	__s64 credit; /* ticks; negative: the ledger refused a packet that needed so much */
	__u64 at;     /* when it was drawn; of a refusal, when the ledger may hold enough */
	__u64 until;  /* the last jiffy (jiffies64) in which the credit or the refusal is good;
		       * of a refusal also how many followed: credit_unasked() */
};

struct sl_bucket {
	__u32 generation;     /* the rules under which `policy_version` was found; 0: none yet */
	__u32 policy_version; /* the record in `policies`, or SL_BUCKET_SPLIT */
	__u64 until;	      /* the last jiffy in which it surely holds, because entries can end */
	struct sl_cell passed;
	struct sl_purse slice[SL_LIMITS_MAX]; /* by slot */
	struct sl_cell dropped;
	struct sl_cell observed;    /* passed, but a limit that only observes had no credit */
	__u64 source;		    /* bucket_source() of the key; differs: the bucket is void */
	__u32 state[SL_LIMITS_MAX]; /* by slot: index of the state in `ledgers`; 0: not charged */
	__u32 policy;		    /* to which the slices belong, also while a list decides */
	__u32 policy_since;	    /* `since` of its version */
	__u32 served;		    /* its packets (low bits) when a state was last charged */
	__u32 kept;		    /* BUCKET_FIRST, or twice the jiffy of its last refusal */
};

/*
 * As the policy version of a bucket: rules longer than /64 divide this /64, so each packet looks up
 * its own version.
 */
#define SL_BUCKET_SPLIT 0xffffffffU

/*
 * Budgets, by number of policy. Map `budgets` has their ledgers; map `allowances`, per CPU, their
 * purses.
 */
struct sl_allowance {
	struct sl_purse purse;
	__u32 since; /* `newcomers_since` of the record that it was drawn under */
	__u32 pad;
};

_Static_assert(__builtin_offsetof(struct sl_line, taken) == 24, "one word with `refused`");

#endif
