/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types that the packet path and the command line share: keys, values and enums of the maps.
 * The layouts are the schema of a gate's pinned maps. If a release changes a layout, it raises
 * SL_SCHEMA. Then commands of other releases refuse the gate (tests/unit/gate/test_schema.c).
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

/* Times and durations are in ticks of 1/16 ns. Times wrap, so compare them by signed difference. */
#define SL_TICKS_PER_NS	 16ULL
#define SL_TICKS_PER_SEC (1000000000ULL * SL_TICKS_PER_NS)

/* Longest refill and highest cost: 2.28 years. Differences of such times fit in signed 64 bits. */
#define SL_BURST_TICKS_MAX (1ULL << 60)

/* The cost of a byte is in units of 1/65536 tick, because a tick is too coarse above 1 Gbit/s. */
#define SL_BYTE_COST_SHIFT 16

/* Why a packet passed or was dropped. Each packet is counted under exactly one reason. */
enum sl_reason {
	/* reasons to pass */
	SL_PASS_WITHIN,	    /* all limits that match the packet had enough credit */
	SL_PASS_NO_LIMIT,   /* no limit of the policy matches the packet */
	SL_PASS_NEWCOMER,   /* the source is new, and no limit or budget refused the packet */
	SL_PASS_ALLOWED,    /* the rules allow the source */
	SL_PASS_NO_RULE,    /* no rule in force covers the source */
	SL_PASS_NOT_IP,	    /* the packet is neither IPv4 nor IPv6 */
	SL_PASS_SHORT,	    /* the frame ends before its EtherType */
	SL_PASS_BAD_HEADER, /* the IP header contradicts the EtherType, or is too short */
	/*
	 * Reasons to drop. If the gate has no rules, a packet with SL_DROP_UNREADABLE or
	 * SL_DROP_VLAN_DEPTH passes (packet.h).
	 */
	SL_DROP_UNREADABLE,   /* the frame ends within its IP header, or could not be read */
	SL_DROP_VLAN_DEPTH,   /* the frame has more than eight VLAN tags */
	SL_DROP_OVER_LIMIT,   /* a limit had no credit */
	SL_DROP_OVERSIZE,     /* the packet alone exceeds a window, so it can never pass */
	SL_DROP_OVER_HORIZON, /* a shape would delay the packet beyond the horizon */
	SL_DROP_BLOCKED,      /* the packet's key is blocked, because it exceeded a limit before */
	SL_DROP_OVER_BUDGET,  /* the source is new, and the budget for new sources had no credit */
	SL_DROP_DENIED,	      /* the rules deny the source */
	/* each try to charge the state failed, because another CPU changed it first */
	SL_DROP_CONTENDED,
	SL_REASONS,
	SL_FIRST_DROP = SL_DROP_UNREADABLE,
};

struct sl_cell {
	__u64 packets;
	__u64 bytes;
};

/* Largest number of limits in a policy. */
#define SL_LIMITS_MAX 4

/*
 * Histogram of the rates of a policy's sources (include/histogram.h): for each source and second,
 * the number of packets that the source sent in that second (bpf/rate.h). Only the fastest CPUs
 * judge more than 2^22 packets in a second.
 */
#define SL_RATE_BUCKETS 24

struct sl_rates {
	__u64 seconds[SL_RATE_BUCKETS]; /* bucket i: seconds with up to 2^i packets */
	__u64 packets;			/* sum of the packets in all these seconds */
};

/* Counters of a policy on one CPU, in map `counters` by policy number. They are never reset. */
struct sl_counters {
	struct sl_cell reason[SL_REASONS];
	struct sl_cell refused[SL_LIMITS_MAX]; /* packets over a limit, by the limit's slot */
	struct sl_rates rates;
};

/*
 * The number of a policy is its index in map `counters`. Policy n has two versions in map
 * `policies`, 2n and 2n + 1. A change writes the version that packets do not use, and then switches
 * to it. Numbers below SL_POLICY_FIRST have counters, but no limits.
 */
enum sl_policy_number {
	SL_POLICY_NONE,	 /* no rule in force covers the source, or the frame has no source */
	SL_POLICY_ALLOW, /* the source is allowed */
	SL_POLICY_DENY,	 /* the source is denied */
	SL_POLICY_FIRST, /* first number of a policy that can have limits */
};
#define SL_POLICY_VERSION(policy) ((policy) << 1)

/*
 * This version belongs to no policy. Its `base` is the sum of the counters in replaced maps
 * `counters`.
 */
#define SL_POLICY_VERSION_MOVED (SL_POLICY_VERSION(SL_POLICY_NONE) + 1)
#define SL_POLICY(version)	((version) >> 1)

/*
 * The key of the LPM trie `prefixes` begins with 32 bits of address family, so one trie has both
 * families. `default`, the rule of length 0, covers both families.
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
	__u32 bits;   /* significant bits: SL_FAMILY_BITS + prefix length, or 0 for `default` */
	__u32 family; /* SL_FAMILY_IPV4 or SL_FAMILY_IPV6, in network byte order */
	__u8 addr[16] __attribute__((aligned(8))); /* aligned to be read as two words */
};

enum sl_rate_unit {
	SL_RATE_PPS,
	SL_RATE_PER_MIN,
	SL_RATE_PER_HOUR,
	SL_RATE_BITS, /* bits per second; the Ethernet header counts */
};

enum sl_burst_unit {
	SL_BURST_PACKETS,
	SL_BURST_BYTES,
	SL_BURST_NS,
};

enum sl_action {
	SL_ACTION_DROP,
	SL_ACTION_OBSERVE, /* passes every packet, but counts packets over the limit */
	SL_ACTION_BLOCK,   /* drops packets over the limit, then all that match for some time */
};

enum sl_start {
	SL_START_FULL,
	SL_START_EMPTY,
	SL_START_SHARE, /* a new state gets burst / number of nodes */
};

enum sl_shared {
	SL_SHARED_NO,
	SL_SHARED_YES,	 /* all nodes that run `sluice share` share the limit */
	SL_SHARED_BLOCK, /* like SL_SHARED_YES; if a node blocks a key, all nodes block it */
};

/* The kinds of limit (include/kinds.h). */
enum sl_kind {
	SL_TOKEN_BUCKET, /* passes packets at a rate; an idle key may then send a burst */
	SL_WINDOW,	 /* passes at most N packets or bytes in any span of T */
	SL_SHAPE,	 /* delays packets to a rate, for at most the horizon; only hook egress */
	SL_KINDS,
};

/* What the headers of a packet show. A match requires one fact (include/match.h). */
enum sl_fact {
	SL_FACT_ANY = 1 << 0,
	SL_FACT_TCP = 1 << 1,
	SL_FACT_UDP = 1 << 2,
	SL_FACT_ICMP = 1 << 3, /* the packet is ICMP on IPv4, or ICMPv6 on IPv6 */
	/* TCP with SYN and without ACK, or TCP with flags that cannot be read */
	SL_FACT_SYN = 1 << 4,
	SL_FACT_FRAGMENT = 1 << 5, /* the packet is a fragment, perhaps the first */
	SL_FACT_PROTO = 1 << 6,	   /* the transport protocol could be read */
	SL_FACT_PORT = 1 << 7,	   /* the destination port could be read */
	/*
	 * Not used in a match: the packet's transport header could not be read as far as matches
	 * need. If SL_FACT_PROTO is not set, the header was not found.
	 */
	SL_FACT_UNREAD = 1 << 8,
	/*
	 * Not used in a match: an IPv6 fragment after the first, so SL_FACT_PROTO is not set. Its
	 * sender may write any protocol into it, because receivers use the first fragment's
	 * protocol (RFC 8200 section 4.5).
	 */
	SL_FACT_HIDDEN = 1 << 9,
	SL_FACT_DETAIL = 1 << 10, /* the TCP flags or the ICMP type could be read */
	/* by the first bytes of the payload; also set if these bytes cannot be read */
	SL_FACT_QUIC = 1 << 11, /* UDP with a QUIC Initial packet of version 1 or 2 */
	SL_FACT_TLS = 1 << 12,	/* TCP with a TLS record that begins with a ClientHello */
	SL_FACT_DNS = 1 << 13,	/* UDP with a DNS query */
	SL_FACT_PAYLOAD = SL_FACT_QUIC | SL_FACT_TLS | SL_FACT_DNS,
};

/* Bits: the parts of packets that must be inspected. */
enum sl_deep {
	SL_DEEP_HEADERS = 1 << 0, /* a match or a key needs more than the source */
	SL_DEEP_PAYLOAD = 1 << 1, /* a match needs the first bytes of the payload */
};

/* The further fields that a match may compare, as bits. A packet must satisfy all of them. */
enum sl_field {
	SL_FIELD_TO = 1 << 0,	  /* `to` */
	SL_FIELD_LENGTH = 1 << 1, /* `length` */
	SL_FIELD_DSCP = 1 << 2,	  /* `dscp` */
	SL_FIELD_SPORT = 1 << 3,  /* `sport` */
	SL_FIELD_FLAGS = 1 << 4,  /* `tcp_flags` and `tcp_mask` */
	SL_FIELD_ICMP = 1 << 5,	  /* `icmp_type` */
	SL_FIELDS = (1 << 6) - 1, /* all of them */
};

/*
 * Largest number of ranges of source ports, and of destination ports, in a match. A single port is
 * a range of one port.
 */
#define SL_PORTS_MAX 8

/* A range of ports or lengths, in host order. */
struct sl_range {
	__u16 first;
	__u16 last; /* inclusive */
};

#define SL_ICMP_NONE 256 /* in `icmp_type`: no ICMP message of this family matches */

/* The packets that a limit applies to (include/match.h). */
struct sl_match {
	__u16 fact;  /* enum sl_fact */
	__u8 proto;  /* IP protocol number, if `fact` is SL_FACT_PROTO */
	__u8 fields; /* bits of enum sl_field: which of the members after `ports` are compared */
	__u16 vlan;  /* VLAN id of the packet's first tag with an id other than 0; 0: any packet */
	__u8 ports;  /* number of ranges in `port`; 0 matches any port */
	__u8 sports; /* number of ranges in `sport` */
	__u8 tcp_mask;		      /* the TCP flags that are compared */
	__u8 tcp_flags;		      /* those of `tcp_mask` that must be set */
	__u8 dscp;		      /* DSCP (RFC 2474), 0 to 63 */
	__u8 to_family;		      /* SL_FAMILY_IPV4 or SL_FAMILY_IPV6 */
	__u16 icmp_type[SL_FAMILIES]; /* type of ICMP and of ICMPv6, or SL_ICMP_NONE */
	struct sl_range length;	      /* bytes from the IP header to the end of the packet */
	__u32 to_bits;		      /* length of prefix `to` */
	__be32 to[4];		      /* destination prefix, in network byte order */
	__be32 to_mask[4];	      /* mask of prefix `to` */
	struct sl_range port[SL_PORTS_MAX];
	struct sl_range sport[SL_PORTS_MAX];
};

#define SL_NAME 16 /* size of a limit's name, including its NUL */

/*
 * A limit as the user specified it. Its match is in the policy. If a limit has a rate in packets
 * and a rate in bits, it is stored as two limits with the same name.
 */
struct sl_limit_spec {
	char name[SL_NAME]; /* name of the limit; empty if the slot is free */
	__u64 rate;	/* rate in `rate_unit`; window: N in packets, or in bytes if SL_RATE_BITS */
	__u64 burst;	/* token bucket: burst in `burst_unit` */
	__u64 span_ns;	/* window: its span T, in ns; shape: horizon, in ns */
	__u64 block_ns; /* action block: length of a block, in ns */
	__u64 block_max_ns;    /* `escalate`: length of the longest block, in ns */
	__u32 id;	       /* id of the limit, part of the keys of its states */
	__u8 kind;	       /* enum sl_kind */
	__u8 rate_unit;	       /* enum sl_rate_unit */
	__u8 burst_unit;       /* enum sl_burst_unit */
	__u8 groups;	       /* window: number of sub-windows of its span */
	__u8 action;	       /* enum sl_action */
	__u8 escalate;	       /* factor by which blocks get longer; 0: all equally long */
	__u8 per[SL_FAMILIES]; /* prefix length of the key, for each family */
	__u8 key_dst;	       /* 1 if the key is the destination address; egress only */
	__u8 start;	       /* enum sl_start */
	__u8 second;	       /* 1 if this limit is the second of two limits with the same name */
	__u8 shared;	       /* enum sl_shared */
};

/*
 * A limit as the packet path reads it, for one address family. The command line computes it from
 * struct sl_limit_spec. Amounts are in ticks. Amounts of a window are in packets or bytes.
 */
struct sl_limit {
	/* cost of a packet in ticks; by_bytes: cost of a byte << SL_BYTE_COST_SHIFT; window: 1 */
	__u64 cost;
	union {
		__u64 burst;   /* token bucket: largest level of a state */
		__u64 most;    /* window: N, the largest amount that may pass in any span of T */
		__u64 horizon; /* shape: the longest time that a packet may wait */
	};
	union {
		__u64 refill; /* token bucket: a state in use refills to at most this level */
		__u64 period; /* window: length of a sub-window, in ticks, rounded up */
	};
	union {
		__u64 slice;  /* token bucket: largest credit of a slice, in ticks; 0: no slices */
		__u64 factor; /* window: a time step as a fraction of a sub-window */
	};
	__u64 block;	 /* length of a block after an overrun, in ticks; 0: never block */
	__u64 block_max; /* length of the longest block, in ticks, if blocks escalate */
	__u64 mask[2];	 /* mask that turns an address into a key, in network byte order */
	__u32 id;	 /* id of the limit, in the keys of its states; never reused in this gate */
	__u32 life;	 /* number of jiffies for which a slice is valid */
	__u8 kind;	 /* enum sl_kind */
	__u8 by_bytes;
	__u8 refuse_by_jiffy; /* 1 if a slice may store a refusal until the jiffy ends */
	__u8 start_empty : 1;
	__u8 start_share : 1; /* 1 if `start` of the limit is SL_START_SHARE */
	__u8 observe : 1;
	__u8 key_dst : 1;
	__u8 apart : 1;	      /* 1 if two packets of the same source may have different keys */
	__u8 charge_hits : 1; /* charge a new state for the packets of its key in the sketch */
	__u8 shared : 1;      /* nodes share the limit, so entries count used and refused credit */
	__u8 slot;	      /* index of the limit in arrays such as `match` and `refused` */
	__u8 mark;	/* the limit's bit in verdict->refused (SL_MARK_OWN or SL_MARK_INHERITED) */
	__u8 groups;	/* window: number of sub-windows in its span */
	__u8 bits;	/* window: size of one count in `past`, in bits */
	__u8 shift;	/* window: a count in `past` is in units of 2^shift */
	__u8 coarse;	/* window: a time step is 2^coarse ticks */
	__u8 escalate;	/* factor by which blocks get longer; 0: all equally long */
	__u8 steps_max; /* number of escalation steps until a block has length `block_max` */
	__u16 span;	/* ticks in which an empty state refills, as short_make() stores them */
	__u8 unit_shift; /* shared limit: its entries count credit in units of 2^unit_shift ticks */
	__u8 budgeted;	 /* 1 if the policy of the limit has a budget for new sources */
};

/*
 * A policy that inherits has its own limits and all limits of its parent, the next shorter policy
 * that covers it. The parent may inherit as well. The origin of a limit is the policy that
 * specifies it. An inherited limit has the id and the states of its origin, and the origin counts
 * its refusals. A budget also has an origin. A change of a policy also rewrites all policies that
 * inherit from it, in the same generation.
 */
#define SL_ORIGIN(policy, slot) ((policy)*SL_LIMITS_MAX + (slot))
#define SL_ORIGIN_POLICY(home)	((home) / SL_LIMITS_MAX)
#define SL_ORIGIN_SLOT(home)	((home) % SL_LIMITS_MAX)

/*
 * The bit in verdict->refused that a limit sets if it refuses a packet. An inherited limit counts
 * the refusal in the slot of its origin, every other limit in its own slot.
 */
#define SL_MARK_OWN(slot)	(1 << (slot))
#define SL_MARK_INHERITED(slot) (1 << (SL_LIMITS_MAX + (slot)))

/* Value of map `policies`: one version of a policy. */
struct sl_policy {
	__u32 since; /* first generation that uses this version; 0: the version is unused */
	__u8 limits[SL_FAMILIES]; /* number of limits for each family */
	__u8 deep;		  /* bits of enum sl_deep; 0: packets are not inspected */
	__u8 inherits;
	/*
	 * Limits in the order in which packets are charged: first limits that drop, then block,
	 * shape and observe. Limits of one action are in the order of their keys, narrow keys
	 * first.
	 */
	struct sl_limit limit[SL_FAMILIES][SL_LIMITS_MAX];
	struct sl_match match[SL_LIMITS_MAX]; /* by slot */
	struct sl_limit newcomers; /* budget that new sources share; no budget if `burst` is 0 */
	__u32 newcomers_origin;	   /* policy that specifies the budget, by number; 0: this policy */
	/* generation in which the origin of the budget got this budget */
	__u32 newcomers_since;
	/* by slot: SL_ORIGIN() of the limit that this slot inherits; 0: the policy's own limit */
	__u32 origin[SL_LIMITS_MAX];
	__u32 parent; /* policy version from which this version inherits; 0: none */
	/* by slot, as bits: the limit drops, and each of its keys belongs to a single source */
	__u8 by_source[SL_FAMILIES];
	__u16 pad;
	struct sl_limit_spec spec[SL_LIMITS_MAX]; /* limits by slot; a limit keeps its slot */
	struct sl_limit_spec newcomers_spec;
	__u32 changed[SL_LIMITS_MAX]; /* by slot: generation in which the limit got its id */
	struct sl_prefix prefix;      /* the prefix to which this policy applies */
	__u64 made_ns;		      /* uptime at which the policy was made */
	/*
	 * Readers subtract `base` from the counters in map `counters`, because they are never
	 * reset. `base` is the counts of a deleted policy that had this number, minus the counts of
	 * replaced maps `counters`, modulo 2^64.
	 */
	struct sl_counters base;
};

/*
 * Rules for whole addresses are in the hash maps `hosts4` and `hosts6`, all other rules in the LPM
 * trie `prefixes`. The longest rule that covers a source and is in force decides. The runtime entry
 * of the rule (`sluice allow`, `sluice deny`) decides until it expires. Otherwise the lists that
 * contain the prefix decide. Otherwise the limits of the policy decide. A rule is in force if it
 * has a runtime entry, a list or a policy. A runtime allow overrides a list's deny at a longer
 * prefix (lookup.h).
 *
 * A rule is double buffered: `cur` is in force from generation `since` on, `prev` before. A change
 * first writes its rules with a `since` that is one ahead of the gate's generation, and then raises
 * that generation by a single store. So every packet sees all of the change or none of it.
 */
enum sl_access {
	SL_ACCESS_NONE,
	SL_ACCESS_ALLOW,
	SL_ACCESS_DENY,
};

struct sl_rule_content {
	__u32 version : 30; /* policy version; 0: the rule has no policy */
	__u32 access : 2;   /* enum sl_access of the runtime entry */
	__u32 until; /* expiry of the runtime entry, in 2^SL_UNTIL_SHIFT ns of uptime; 0: never */
	__u64 list_mask; /* a bit for each list that contains the prefix, by index in map `lists` */
	/*
	 * The prefix can expire on two lists (list_ends.h). `list_until` is the later expiry, in
	 * the unit of `until`; 0: none. `timed` has the indexes of both lists, and the earlier
	 * expiry.
	 */
	__u32 list_until;
	__u32 timed;
};

/* Unit of expiries: 2^26 ns, or 67 ms. So 32 bits are enough for nine years. */
#define SL_UNTIL_SHIFT 26

struct sl_rule {
	__u32 since;
	__u32 bits; /* as in struct sl_prefix; a lookup with bits - 1 finds the next shorter rule */
	struct sl_rule_content cur;
	struct sl_rule_content prev;
};

/*
 * A named list, such as a file of prefixes, in map `lists`. Packets read the list's access and
 * expiry in struct sl_gate. Both are constant while a rule refers to the list. To change them, a
 * command moves the list to another index, so all its rules change in one generation.
 */
#define SL_LISTS_MAX 32
/* twice the number of lists, so that one change can replace all lists */
#define SL_LIST_PLACES (2 * SL_LISTS_MAX)
#define SL_LIST_NAME   256 /* size of a list's name, including its NUL */

struct sl_list_info {
	__u32 since;	/* first generation in which the list is in force; 0: this index is free */
	__u32 gone;	/* first generation after the list's removal; 0: not removed */
	__u32 until;	/* expiry of the list, as sl_rule_content.until; 0: never */
	__u32 access;	/* enum sl_access */
	__u64 replaced; /* time of the last write of the list's file or prefixes, in s since 1970 */
	char name[SL_LIST_NAME];
};

/* --- New keys ------------------------------------------------------------------------------- */

/*
 * Number of 64-bit words in the secret of all hashes (identity.h). The secret has its own map,
 * because some processes may read a gate but not the secret.
 */
#define SL_SECRETS 10

/*
 * Map `sketches` counts packets of keys that have no state (sketch.h). Each CPU has 4096 cache
 * lines in the map.
 */
#define SL_SKETCH_LINES 4096U
#define SL_SKETCH_SLOTS 16

struct sl_sketch {
	__u32 slot[SL_SKETCH_SLOTS]; /* fingerprint of a key (24 bits), and its count (8 bits) */
} __attribute__((aligned(64)));

/* Sizes and settings that are fixed when the gate is made. */
struct sl_params {
	__u32 flood_threshold; /* a flood has more packets of new keys in an interval than this */
	__u32 interval_shift;  /* an interval is 2^interval_shift jiffies, about 64 ms */
	__u32 set_mask;	       /* number of sets in the table of states, minus 1 */
	__u32 host_mask;       /* number of sets in the host cache, minus 1 */
	__u32 sources;	       /* number of sources that the user requested */
	__u32 buckets;
	__u32 sketch_mask; /* number of lines that each CPU has in the sketch, minus 1 */
};

/*
 * Map `rule_cache` stores the policy version of an aggregate, if the rules in map `prefixes` give
 * all its addresses the same version (bpf/rules.h). Each CPU has SL_RULE_CACHE_SIZE entries.
 */
#define SL_RULE_CACHE_SIZE (3 * 16384U)

#define SL_RULE_CACHE_SPLIT 0xffffffffU /* value of `version`: the aggregate has longer rules */

struct sl_rule_cache {
	__u64 aggregate; /* the aggregate, as aggregate_name() numbers it */
	__u32 generation;
	__u32 version;
};

/*
 * Map `host_cache` is shared by all CPUs. It stores what `hosts4` and `hosts6` return for an
 * address, by a 64-bit digest of the address. If two CPUs write an entry at once, it may have the
 * digest of one address and the answer of the other. So the digest is stored xored with the answer:
 * then a mixed entry matches no address.
 */
#define SL_HOST_WAYS 4

struct sl_host_cache {
	__u64 sealed; /* the digest of the address xor `answer` */
	__u64 answer; /* generation (upper half) and policy version (lower half); 0: free */
};

struct sl_host_cache_set {
	struct sl_host_cache way[SL_HOST_WAYS];
} __attribute__((aligned(64)));

/* Events that are counted when a new key needs an entry, or a source needs a bucket. */
enum sl_event {
	/* a packet of a new key; it is counted at the end of the interval in which it arrived */
	SL_EVENT_NEW_KEY,
	SL_EVENT_INSERTED,	  /* a new key got an entry */
	SL_EVENT_EVICTED,	  /* a new key got the entry of a state that was not full */
	SL_EVENT_BUSY,		  /* no entry for a new key: another CPU had locked the set */
	SL_EVENT_NO_ROOM,	  /* no entry for a new key: each eviction would lose too much */
	SL_EVENT_BUCKET_INSERTED, /* a CPU has given a source a bucket */
	SL_EVENT_BUCKET_BUSY,	  /* no bucket for a source: the kernel had locked the map */
	SL_EVENT_BUCKET_NO_ROOM,  /* no bucket for a source: the kernel found no entry to evict */
	SL_EVENTS,
};

/*
 * Rations limit the new buckets of sources that are not hot: one bucket per ration, CPU and jiffy.
 */
enum sl_ration {
	SL_RATION_LIMITED, /* sources with packets over a limit, even if the limit only observes */
	SL_RATION_OTHER,   /* sources without limits, and denied or allowed sources */
	SL_RATIONS,
};

/*
 * Counts of one kind of event. In these counts, a second is 2^SL_SECOND_SHIFT ns, which is 1.07 s.
 */
#define SL_SECOND_SHIFT 30

struct sl_event_count {
	__u64 total;
	__u32 now;  /* events in the current second (`second` of struct sl_admission) */
	__u32 last; /* events in the previous second */
};

/*
 * Value of map `admission`, per CPU: counts of new keys, and of the entries that they get.
 * `flood_until` and `new_keys` have index 0 for policies without a budget, and index 1 for policies
 * with a budget.
 */
struct sl_admission {
	__u64 interval;	      /* number of the current interval: flood_interval() */
	__u64 flood_until[2]; /* jiffy at which the flood is over */
	__u32 new_keys[2];    /* packets of new keys in the current interval */
	__u32 second;	      /* number of the current second; a second has 2^SL_SECOND_SHIFT ns */
	__u32 sampled;	      /* counts packets that have no bucket, to sample some */
	__u64 inserted_at[SL_RATIONS]; /* jiffy of the last new bucket under each ration */
	__u64 evicted; /* credit missing from all evicted states, in 1/16 of a full burst */
	struct sl_event_count event[SL_EVENTS];
	__u32 record_second; /* second to which `crossings` and `samples` belong */
	__u32 crossings;     /* crossings in second `record_second`, with or without a record */
	__u32 samples;	     /* samples in second `record_second`, with or without a record */
	__u32 examined;	     /* refusals in jiffy `examined_at` that were due for examination */
	__u64 examined_at;
	__u64 crossings_lost; /* crossings that got no record (bpf/record.h) */
};

/* --- The gate and its states ---------------------------------------------------------------- */

/*
 * Value of map `gate`. Every packet reads its first cache line. A packet without a bucket also
 * reads `params`.
 */
struct sl_gate {
	__u32 schema;
	__u32 generation; /* generation of the rules; never 0, because a new bucket has 0 */
	__u32 jiffy_ns;	  /* length of a jiffy, in ns */
	__u32 hosts; /* number of rules in `hosts4` and `hosts6`; if 0, packets skip these maps */
	__u32 split_rules;    /* number of rules longer than /64; if 0, packets skip map `splits` */
	__u32 prefixes;	      /* number of rules in `prefixes` */
	__u32 changing;	      /* 1 from the start of a change until it is completed or undone */
	__u32 runtime_allows; /* number of runtime allows, which override denies of lists */
	__u64 lists_allow;    /* a bit for each list that allows; all other lists deny */
	__u64 lists_ending;   /* a bit for each list that expires */
	__u64 lease_until;    /* jiffy at which the lease of the reader of `events` ends; 0: none */
	__u32 next_limit;     /* id of the next new limit */
	__u32 next_policy;    /* policy number at which the search for a free policy begins */
	__u32 policies_seen;  /* highest policy number ever used, plus 1 */
	__u32 map_ids[24];    /* kernel ids of the maps, in the order of the command line's table */
	struct sl_params params;
	__u64 opaque_zero; /* always 0; the verifier cannot know this (policy_charge()) */
	__u32 list_ends[SL_LIST_PLACES]; /* expiry of each list, at list_end_index() */
	__u64 trial_until;  /* uptime at which the trial of a change ends, in ns; 0: no trial */
	__u32 trial;	    /* number of the latest trial */
	__u32 sizes_stated; /* sizes that the user specified, as bits (enum size) */
	__u64 divide_at;    /* time from which each node uses 1/nodes of a shared limit; 0: never */
	__u32 nodes;	    /* number of nodes that share limits by `sluice share`; 0: none */
	__u32 policies;	    /* policies that the user requested; the maps may have room for more */
	__u32 noted;	    /* notes that commands have printed, as bits (enum gate_note) */
	__u32 lease_by;	    /* pid of the reader of map `events`; valid until `lease_until` */
	__u32 samples;	    /* dropped packets that a CPU may record in a second */
	__u32 sample_bytes; /* bytes to record of each dropped packet */
};

/* The slots of a program array that Sluice's program calls, in order, after a packet has passed. */
#define SL_CHAIN_SLOTS 16 /* at most; the kernel counts calls of empty slots, up to 33 */

struct sl_chain {
	__u32 first; /* index of the first slot */
	__u32 end;   /* index after the last slot */
};

/* The state of one limit for one key, shared by all CPUs. All times are in ticks. */
struct sl_state {
	/* This word decides about packets. It changes only by compare-and-swap. */
	union {
		__u64 empty_at; /* token bucket: when the bucket was empty */
		__u64 window;	/* window: index of the current sub-window, and the total */
		__u64 ready_at; /* shape: earliest departure of the next packet */
	};
	union {
		/* token bucket: last time at which the state was full and no slice was valid */
		__u64 full_at;
		__u64 past; /* window: counts of the sub-windows before the current one */
	};
	__u64 charged_at;    /* time of the last charge; window: a time in the current sub-window */
	__u64 blocked_until; /* end of the current or last block; 0: never blocked */
};

/*
 * The words of struct sl_state, as a type for maps: bpftool does not print names in anonymous
 * unions. Every kind of limit uses these words, although the names are those of a token bucket.
 */
struct sl_state_words {
	__u64 empty_at;
	__u64 full_at;
	__u64 charged_at;
	__u64 blocked_until;
};

/* The table of states (ways.h): way w of set s in map `sets` is entry 8s + w in map `states`. */
#define SL_WAYS 8

struct sl_set {
	/* tag of the key in each way; 0: free way; aligned to be read as two 64-bit words */
	__u16 tag[SL_WAYS] __attribute__((aligned(8)));
	__u32 displaced; /* bit 0: the set is locked; bits 1-31: number of its keys in other sets */
	__u32 pad[3];	 /* padding, so that two sets fill a cache line */
};

/* An entry of the table: a key and its state, in one cache line. */
struct sl_entry {
	__u64 addr[2]; /* the key's masked address; an IPv4 address is in the first 32 bits */
	__u32 limit;   /* limit id << 3 | kind << 1 | is IPv4; 0 if the entry is free */
	__u16 span;    /* ticks in which an empty state refills, as short_make() stores them */
	__u16 made;    /* time of the insertion, with flags ENTRY_CAME_BACK and ENTRY_ESTABLISHED */
	union {
		__u64 word;
		struct {
			__u32 taken; /* credit that was used: entry_count_shared() */
			__u32 refused;
		} shared; /* counters of a shared limit */
		struct {
			__u32 half; /* ENTRY_HAS_HALF if at most half of the window is used, or 0 */
			__u32 seen; /* time of the key's last packet, in units of entry_seen() */
		} window;
	} count;
	struct sl_state_words state;
};

/*
 * A bucket is what one CPU stores for one source (identity.h), in maps `buckets4` and `buckets6`.
 * If the kernel evicts a bucket, its counters and the credit in its slices are lost, but the states
 * of the source remain.
 */
struct sl_slice {
	__s64 credit; /* ticks of credit; after a refusal: minus the level that the packet needed */
	union {
		__u64 borrowed; /* time at which the credit was borrowed, in ticks */
		__u64 ready;	/* after a refusal: time at which the state may have the credit */
		__u64 departs;	/* shape: departure time of the packet */
	} at;
	__u64 until; /* last jiffy in which the slice is valid; upper bits: credit_unasked() */
};

struct sl_bucket {
	__u32 generation;     /* generation of the rules that gave `policy_version`; 0: none */
	__u32 policy_version; /* policy version that decides about the source, or SL_BUCKET_SPLIT */
	__u64 until;	      /* last jiffy in which `policy_version` is valid */
	struct sl_cell passed;
	struct sl_slice slice[SL_LIMITS_MAX]; /* by slot */
	struct sl_cell dropped;
	struct sl_cell observed; /* packets over a limit that observes; they passed */
	__u64 seal[2]; /* complement of the bucket's key; any other value makes the bucket void */
	__u32 state[SL_LIMITS_MAX]; /* by slot: index of the limit's state in map `states`, or 0 */
	__u32 policy;		    /* number of the policy under which the slices were borrowed */
	__u32 policy_since;	    /* `since` of the policy version to which the slices belong */
	__u32 served; /* number of the source's packets when a state was last charged */
	__u32 kept;   /* BUCKET_FIRST, or 2 x the jiffy of the last refused packet of the source */
	__u32 second_at;    /* jiffy in which the current second of the source began (bpf/rate.h) */
	__u32 second_begin; /* number of the source's packets before that second */
	__u64 refusal; /* jiffy, reason and limits of the last refusal that bpf/record.h examined */
};

/* Value of `policy_version` if a /64 contains longer rules, so each packet needs a lookup. */
#define SL_BUCKET_SPLIT 0xffffffffU

/*
 * Value of map `in_use`, per CPU. A bit of `word`, selected by a hash of the source, is set if this
 * CPU uses the bucket of the source. If the bit is clear, the packet path skips the lookup of a
 * bucket.
 */
#define SL_IN_USE_BITS (1U << 16)

struct sl_in_use {
	__u64 word[SL_IN_USE_BITS / 64];
	__u64 first;	/* number of sources on this CPU that got one of the first buckets */
	__u64 packets;	/* counts packets on this CPU, to time one in SL_DURATION_SAMPLE */
	__u64 timed_at; /* arrival time of the last timed packet, in ticks */
	/*
	 * Zeros, to initialize a new bucket. They are in a map because a bucket is too large for
	 * the BPF stack.
	 */
	__u64 zero[sizeof(struct sl_bucket) / 8];
};

/*
 * The slice of a policy's budget on one CPU, in map `budget_slices`. The key is the policy number.
 */
struct sl_budget_slice {
	struct sl_slice slice;
	__u32 since;  /* `newcomers_since` of the policy version that borrowed the slice */
	__u32 low_at; /* last jiffy in which the budget was below its reserve (credit_is_low()) */
};

/* --- How long decisions take ----------------------------------------------------------------- */

/*
 * Each CPU measures the duration of one packet in 4096. The two readings of the clock cost 50 ns.
 */
#define SL_DURATION_SAMPLE 4096

/* Buckets of the histograms of durations, in ns (include/histogram.h). */
#define SL_DURATION_SHIFT   5
#define SL_DURATION_BUCKETS 16

struct sl_duration {
	__u64 bucket[SL_DURATION_BUCKETS]; /* number of timed packets in each bucket */
	__u64 ns;			   /* sum of all timed durations, in ns */
};

/* Value of map `durations`, per CPU: durations of packets from their arrival to their verdict. */
struct sl_durations {
	struct sl_duration passed;
	struct sl_duration dropped;
};

/* --- Records for a reader of map `events` ---------------------------------------------------- */

/*
 * Size of ring buffer `events`, in bytes. It has room for 3600 crossings, or 160 samples of whole
 * packets.
 */
#define SL_EVENTS_BYTES (1 << 18)

/* Largest number of crossings that a CPU records in a second. */
#define SL_CROSSINGS_PER_SECOND 128

/*
 * Largest number of refusals that a CPU examines in a jiffy. Refusals of sources with a bucket do
 * not count.
 */
#define SL_EXAMINED_PER_JIFFY 32

enum sl_record_kind {
	SL_RECORD_CROSSING, /* struct sl_crossing */
	SL_RECORD_SAMPLE,   /* struct sl_sample */
};

/* The first members of every record in map `events`. */
struct sl_record {
	__u64 ns; /* time of the record, by CLOCK_MONOTONIC */
	struct sl_prefix source;
	__u32 version; /* policy version that decided about the packet */
	__u32 limit;   /* id of the limit that refused the packet; 0: none */
	__u32 origin;  /* policy and slot that define `limit`, as SL_ORIGIN() */
	__u32 cpu;
	__u32 ifindex; /* index of the device in its network namespace */
	__u8 kind;     /* enum sl_record_kind */
	/* enum sl_reason; SL_PASS_WITHIN if the limit only observes */
	__u8 reason;
	__u8 slot;   /* slot of the limit in the policy of the source */
	__u8 egress; /* 1 if the device sends the packet */
};

/*
 * A crossing: a limit refuses a packet of a key that was within the limit, or begins to block the
 * key.
 */
struct sl_crossing {
	struct sl_record record;
	__u64 blocked_until; /* end of the key's block, in the unit of `ns`; 0: not blocked */
};

/* Largest sizes of a sample's packet, in bytes. Short samples use less of the ring buffer. */
#define SL_SAMPLE_SHORT 128
#define SL_SAMPLE_LONG	1514

/* A sample: the first bytes of a dropped packet. */
struct sl_sample {
	struct sl_record record;
	__u32 size;	  /* size of the frame, without the tag in `vlan_tci` */
	__u32 length;	  /* number of bytes in `bytes` */
	__u16 vlan_tci;	  /* TCI of the VLAN tag that the device removed from the frame */
	__u16 vlan_proto; /* EtherType of the tag in `vlan_tci`, in network byte order; 0: no tag */
	__u32 pad;
	__u8 bytes[]; /* the first `length` bytes of the frame */
};

/*
 * Map `offenders` contains keys that are over a limit. A key is over its limit until the limit
 * refuses no packet of the key for a whole second (2^SL_SECOND_SHIFT ns). Packets change the map
 * only while map `events` has a reader.
 */
#define SL_OFFENDER_SETS 4096
#define SL_OFFENDER_WAYS 4

struct sl_offender {
	__u32 recorded; /* second in which a crossing of the key was last recorded */
	__u32 mark;	/* bits of a hash of the key and its limit; 0: the way is free */
	__u32 refused;	/* second in which the key was last refused */
	__u32 pad;
};

struct sl_offender_set {
	struct sl_offender way[SL_OFFENDER_WAYS];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct sl_offender_set) == 64, "one cache line");
_Static_assert(sizeof(struct sl_sketch) == 64, "one cache line");
_Static_assert(sizeof(struct sl_host_cache_set) == 64, "one cache line");

#endif
