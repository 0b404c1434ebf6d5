/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types that the packet path and the command line share: keys, values and enums of the maps.
 * Their layouts are the schema of a gate's pinned maps: a version that changes a layout raises
 * SL_SCHEMA, so that a command of another version refuses the gate (tests/unit/gate/test_schema.c).
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

/* Times and spans are in ticks of 1/16 ns. Times wrap: compare them by signed difference. */
#define SL_TICKS_PER_NS	 16ULL
#define SL_TICKS_PER_SEC (1000000000ULL * SL_TICKS_PER_NS)

/*
 * Longest refill of a burst and highest cost of a packet, 2.28 years: signed differences never
 * overflow.
 */
#define SL_BURST_TICKS_MAX (1ULL << 60)

/* The cost of a byte is in 1/65536 tick, because a tick is too coarse above 1 Gbit/s. */
#define SL_BYTE_COST_SHIFT 16

/* Why a packet passed or was dropped: each packet counts under one reason. */
enum sl_reason {
	/* passed */
	SL_PASS_WITHIN,	    /* every limit that matches it had credit */
	SL_PASS_NO_LIMIT,   /* no limit of its policy matches it */
	SL_PASS_NEWCOMER,   /* the newcomers' budget had credit, or a limit has no state yet */
	SL_PASS_ALLOWED,    /* its source is allowed */
	SL_PASS_NO_RULE,    /* no rule covers its source */
	SL_PASS_NOT_IP,	    /* neither IPv4 nor IPv6 */
	SL_PASS_SHORT,	    /* the frame ends before its EtherType */
	SL_PASS_BAD_HEADER, /* the IP header contradicts the EtherType, or itself */
	/* dropped; the first two have no source, and pass if the gate has no rules: packet.h */
	SL_DROP_UNREADABLE,   /* the frame ends within its IP header, or cannot be read */
	SL_DROP_VLAN_DEPTH,   /* more than eight VLAN tags */
	SL_DROP_OVER_LIMIT,   /* a limit had no credit */
	SL_DROP_OVERSIZE,     /* it costs more than N of its window */
	SL_DROP_OVER_HORIZON, /* it would wait longer than the horizon of its shape */
	SL_DROP_BLOCKED,      /* an earlier overrun still blocks it */
	SL_DROP_OVER_BUDGET,  /* a newcomer, and its policy's budget had no credit */
	SL_DROP_DENIED,	      /* its source is denied */
	SL_DROP_CONTENDED,    /* other CPUs won every try to charge the state */
	SL_REASONS,
	SL_FIRST_DROP = SL_DROP_UNREADABLE,
};

struct sl_cell {
	__u64 packets;
	__u64 bytes;
};

/* Limits per policy. */
#define SL_LIMITS_MAX 4

/* Map `counters`, per CPU, by policy. Counters only grow: see `base` in struct sl_policy. */
struct sl_counters {
	struct sl_cell reason[SL_REASONS];
	struct sl_cell refused[SL_LIMITS_MAX]; /* by slot; includes observed refusals */
};

/*
 * The number of a policy indexes `counters`. Policy n has two versions in `policies`, 2n and 2n +
 * 1. A change writes the version that no packet can see and then switches to it. The first numbers
 * only count; their versions only use `base`.
 */
enum sl_policy_number {
	SL_POLICY_NONE,	 /* no rule covers the source, or the frame has none */
	SL_POLICY_ALLOW, /* the allow list */
	SL_POLICY_DENY,	 /* the deny list */
	SL_POLICY_FIRST, /* policies with limits begin here */
};
#define SL_POLICY_VERSION(policy) ((policy) << 1)

/* The version of no policy. Its `base` has the counts of replaced maps `counters`. */
#define SL_POLICY_VERSION_MOVED (SL_POLICY_VERSION(SL_POLICY_NONE) + 1)
#define SL_POLICY(version)	((version) >> 1)

/*
 * Addresses. The family is the first 32 bits of a key of the LPM trie `prefixes`, so one trie
 * serves both families, and `default`, the rule of 0 bits, covers both.
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
	__u32 bits;   /* significant: 0 for `default`, otherwise SL_FAMILY_BITS + prefix length */
	__u32 family; /* big endian */
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
	SL_ACTION_BLOCK,   /* drop, and then drop all that the limit matches for a time */
};

enum sl_start {
	SL_START_FULL,
	SL_START_EMPTY,
	SL_START_SHARE, /* the burst divided by the number of nodes that share the limit */
};

enum sl_shared {
	SL_SHARED_NO,
	SL_SHARED_YES,	 /* one limit over the nodes of `sluice share` */
	SL_SHARED_BLOCK, /* and a block at one node blocks at all nodes */
};

/* The kinds of limit: include/kinds.h. */
enum sl_kind {
	SL_TOKEN_BUCKET, /* token bucket: rate and burst */
	SL_WINDOW,	 /* sliding window: at most N in any T */
	SL_SHAPE,	 /* departure times: rate and horizon; egress only */
	SL_KINDS,
};

/* Facts of a packet. A match requires one of them: include/match.h. */
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
	 * Never in a match: the transport header should be in this packet, and could not be read as
	 * far as matches need. Without SL_FACT_PROTO it was not found.
	 */
	SL_FACT_UNREAD = 1 << 8,
	/*
	 * Never in a match: a later IPv6 fragment, so without SL_FACT_PROTO. Its sender may write
	 * any protocol there, because receivers use only the first fragment (RFC 8200 section 4.5).
	 */
	SL_FACT_HIDDEN = 1 << 9,
};

/* Ports and port ranges per match. */
#define SL_PORTS_MAX 8

struct sl_ports {
	__u16 first;
	__u16 last; /* host order, inclusive */
};

/* Which packets a limit applies to: include/match.h. */
struct sl_match {
	__u8 fact;  /* enum sl_fact */
	__u8 proto; /* with SL_FACT_PROTO */
	__u8 ports; /* entries of `port`; 0: any port */
	__u8 pad;
	__u16 vlan; /* the id of the first tag whose id is not 0; 0: any packet */
	__u16 pad2;
	struct sl_ports port[SL_PORTS_MAX];
};

#define SL_NAME 16 /* room for the name of a limit and its NUL */

/*
 * A limit as it was specified, and as `show` prints it; its match is in the policy. A limit with
 * two rates, packets and bits, is two limits of one name, in two slots.
 */
struct sl_limit_spec {
	char name[SL_NAME];    /* empty: this slot is free */
	__u64 rate;	       /* window: N in packets, or in bytes with SL_RATE_BITS */
	__u64 burst;	       /* token bucket */
	__u64 span_ns;	       /* window: T; shape: the horizon */
	__u64 block_ns;	       /* action block */
	__u64 block_max_ns;    /* the longest block of `escalate` */
	__u32 id;	       /* as in struct sl_limit */
	__u8 kind;	       /* enum sl_kind */
	__u8 rate_unit;	       /* enum sl_rate_unit */
	__u8 burst_unit;       /* enum sl_burst_unit */
	__u8 groups;	       /* window: sub-windows of T */
	__u8 action;	       /* enum sl_action */
	__u8 escalate;	       /* factor of each following block; 0: none */
	__u8 per[SL_FAMILIES]; /* key length */
	__u8 key_dst;	       /* the key is the destination; egress only */
	__u8 start;	       /* enum sl_start */
	__u8 second;	       /* the second of two limits of this name */
	__u8 shared;	       /* enum sl_shared */
};

/*
 * A limit as the packet path reads it, for one family, computed by the command. Amounts are in
 * ticks for token bucket and shape, in packets or bytes for a window.
 */
struct sl_limit {
	/* of a packet, or of a byte << SL_BYTE_COST_SHIFT; window: 1 */
	__u64 cost;
	union {
		__u64 burst;   /* the level of a full state */
		__u64 most;    /* window: N */
		__u64 horizon; /* shape: the longest wait */
	};
	union {
		__u64 refill; /* how far a state refills while slices may hold credit */
		__u64 period; /* window: the longest sub-window, in ticks */
	};
	union {
		__u64 slice;  /* most credit of one CPU; 0: each packet is charged to the state */
		__u64 factor; /* window: window_scale() */
	};
	__u64 block;	 /* ticks that an overrun blocks; 0: no block */
	__u64 block_max; /* ticks: the longest block, with `escalate` */
	__u64 mask[2];	 /* of the address, in network byte order: the bits of the key */
	__u32 id;	 /* in the keys of its states: unique while the gate exists */
	__u32 life;	 /* jiffies for which a slice is valid */
	__u8 kind;	 /* enum sl_kind */
	__u8 by_bytes;
	__u8 refuse_by_jiffy; /* a refusal may hold for the rest of a jiffy */
	__u8 start_empty : 1;
	__u8 start_share : 1; /* SL_START_SHARE */
	__u8 observe : 1;
	__u8 key_dst : 1;
	__u8 apart : 1;	      /* addresses of one bucket may have separate states */
	__u8 charge_hits : 1; /* a new key's earlier packets are charged */
	__u8 shared : 1;      /* its entries count what was taken and refused */
	__u8 slot;	      /* index of its match, slice and counters */
	__u8 mark;	      /* SL_MARK_OWN or SL_MARK_INHERITED of the slot */
	__u8 groups;	      /* window: sub-windows of T */
	__u8 bits;	      /* window: bits of one count in `past` */
	__u8 shift;	      /* window: unit of that count: 2^shift */
	__u8 coarse;	      /* window: unit of time: 2^coarse ticks */
	__u8 escalate;	      /* factor of each following block; 0: none */
	__u8 steps_max;	      /* steps until a block is as long as block_max */
	__u16 span;	      /* of its entries: struct sl_entry */
	__u8 unit_shift;      /* shared limit: unit of its counts: 2^unit_shift ticks */
	__u8 budgeted;	      /* 1: its policy has a newcomers' budget */
};

/*
 * A policy that inherits has its own limits, then the limits of the next shorter policy that covers
 * it, including inherited ones. The origin of a limit is the policy that specifies it. An inherited
 * limit keeps its id, so it shares the states of its origin, which also counts its refusals. The
 * budget has an origin as well. A change of a policy rewrites the versions of all its children in
 * the same generation.
 */
#define SL_ORIGIN(policy, slot) ((policy)*SL_LIMITS_MAX + (slot))
#define SL_ORIGIN_POLICY(home)	((home) / SL_LIMITS_MAX)
#define SL_ORIGIN_SLOT(home)	((home) % SL_LIMITS_MAX)

/* Marks of limits without credit in a verdict: counted in the limit's slot, or at its origin. */
#define SL_MARK_OWN(slot)	(1 << (slot))
#define SL_MARK_INHERITED(slot) (1 << (SL_LIMITS_MAX + (slot)))

/* Map `policies`: policy versions. Packets read the limits and the matches. */
struct sl_policy {
	__u32 since; /* the generation from which it is in force; 0: the version is free */
	__u8 limits[SL_FAMILIES]; /* number by family */
	__u8 deep;		  /* a match or a key needs more than the source */
	__u8 inherits;
	/* in charging order: drop, block, shape, observe; within each, narrow keys first */
	struct sl_limit limit[SL_FAMILIES][SL_LIMITS_MAX];
	struct sl_match match[SL_LIMITS_MAX]; /* by slot */
	struct sl_limit newcomers;   /* the budget of all newcomers together; burst 0: none */
	__u32 newcomers_origin;	     /* origin of the budget; 0: this policy */
	__u32 newcomers_since;	     /* the generation since which the origin has it */
	__u32 origin[SL_LIMITS_MAX]; /* by slot: SL_ORIGIN of an inherited limit; 0: own limit */
	__u32 parent;		     /* the version that it inherits from; 0: none */
	/* by slot: limits that drop and count by source or finer */
	__u8 by_source[SL_FAMILIES];
	__u16 pad;
	struct sl_limit_spec spec[SL_LIMITS_MAX]; /* by slot: kept while the limit has its name */
	struct sl_limit_spec newcomers_spec;
	__u32 changed[SL_LIMITS_MAX]; /* by slot: the generation since which the limit has its id */
	struct sl_prefix prefix;      /* the prefix of this policy */
	/*
	 * The counters when this policy got the number of a deleted policy: counters are never
	 * reset. If the map `counters` was replaced: minus the counts of the old map, modulo 2^64.
	 */
	struct sl_counters base;
};

/*
 * Rules are in maps `hosts4` and `hosts6` (HASH) for whole addresses, and in `prefixes` (LPM trie)
 * for the rest. The longest rule in force decides, by the first of: its runtime entry (`sluice
 * allow`, `sluice deny`) until that expires; the lists that contain the prefix; the limits of its
 * policy. A rule with none of these is not in force. A runtime allow overrides a list's deny at a
 * longer prefix: lookup.h.
 *
 * A rule is double buffered: `cur` holds from generation `since` on, `prev` until then. A change
 * writes rules with `since` one ahead of the generation of the gate, then raises that generation by
 * one store, so every packet sees all of the change or none of it.
 */
enum sl_access {
	SL_ACCESS_NONE,
	SL_ACCESS_ALLOW,
	SL_ACCESS_DENY,
};

struct sl_rule_content {
	__u32 version : 30; /* policy version; 0: none */
	__u32 access : 2;   /* enum sl_access: the runtime entry */
	__u32 until;	    /* its expiry, in 2^SL_UNTIL_SHIFT ns of uptime; 0: none */
	__u64 list_mask;    /* bits of the lists that contain the prefix, by index in map `lists` */
	/* expiry of the prefix on one of these lists, in addition to the list's expiry; 0: none */
	__u32 list_until;
	__u32 timed; /* index of this list */
};

/* 67 ms, so that 32 bits last for nine years. */
#define SL_UNTIL_SHIFT 26

struct sl_rule {
	__u32 since;
	__u32 bits; /* of its own prefix; bits - 1 finds the next shorter rule */
	struct sl_rule_content cur;
	struct sl_rule_content prev;
};

/*
 * Map `lists`: the named lists, such as a file of prefixes. Packets read the access and the expiry
 * of a list in struct sl_gate. These do not change while a rule names the list: a list that changes
 * them moves to another index, so that its rules switch with their generation.
 */
#define SL_LISTS_MAX   32
#define SL_LIST_PLACES (2 * SL_LISTS_MAX) /* room for a change that replaces all lists */
#define SL_LIST_NAME   256		  /* room for the name of a list and its NUL */

struct sl_list_info {
	__u32 since;	/* the generation from which it is in force; 0: free */
	__u32 gone;	/* the generation from which it is not in force; 0: none */
	__u32 until;	/* its expiry, as in struct sl_rule_content; 0: none */
	__u32 access;	/* enum sl_access: its access */
	__u64 replaced; /* when its file was written, or its prefixes set: seconds since 1970 */
	char name[SL_LIST_NAME];
};

/* --- New keys ------------------------------------------------------------------------------- */

/*
 * Words of the secret of all hashes (identity.h). It has a map of its own, because readers of a
 * gate must not know it.
 */
#define SL_SECRETS 10

/* Map `sketches`: how often keys without a state were seen (sketch.h). Lines of each CPU. */
#define SL_SKETCH_LINES 4096U
#define SL_SKETCH_SLOTS 16

struct sl_sketch {
	__u32 slot[SL_SKETCH_SLOTS]; /* a fingerprint above a count; 0: free */
} __attribute__((aligned(64)));

/* The settings of admission. Set when the gate is made, and never changed. */
struct sl_params {
	__u32 flood_threshold; /* more packets of new keys per CPU and interval: a flood */
	__u32 interval_shift;  /* an interval is 2^this jiffies: about 64 ms */
	__u32 set_mask;	       /* sets of the table - 1 */
	__u32 host_mask;       /* sets of the host cache - 1 */
	__u32 sources;	       /* the sizes that were asked for */
	__u32 buckets;
	__u32 sketch_mask; /* lines of each CPU's sketch - 1 */
};

/* Map `rule_cache`: per CPU, what `prefixes` returns for a whole aggregate: bpf/rules.h. */
#define SL_RULE_CACHE_SIZE (3 * 16384U)

#define SL_RULE_CACHE_SPLIT 0xffffffffU /* as a version: rules split the aggregate */

struct sl_rule_cache {
	__u64 aggregate; /* aggregate_name() */
	__u32 generation;
	__u32 version;
};

/*
 * Map `host_cache`, shared by all CPUs: what `hosts4` and `hosts6` return for an address, by a
 * 64-bit digest of it. Two packets may write one entry at once, so the digest is stored xor the
 * answer: a mixture of both matches no address.
 */
#define SL_HOST_WAYS 4

struct sl_host_cache {
	__u64 sealed; /* the digest of the address xor `answer` */
	__u64 answer; /* the generation above the version; 0: free */
};

struct sl_host_cache_set {
	struct sl_host_cache way[SL_HOST_WAYS];
} __attribute__((aligned(64)));

/* Events of admission. */
enum sl_event {
	SL_EVENT_NEW_KEY,	  /* a packet of a new key; counted when its interval ends */
	SL_EVENT_INSERTED,	  /* an entry was inserted */
	SL_EVENT_EVICTED,	  /* for it a state that was not full was evicted */
	SL_EVENT_BUSY,		  /* not inserted: another CPU locked the set */
	SL_EVENT_NO_ROOM,	  /* not inserted: every candidate costs too much to evict */
	SL_EVENT_BUCKET_INSERTED, /* a source got a bucket */
	SL_EVENT_BUCKET_BUSY,	  /* no bucket: the kernel's map was locked */
	SL_EVENT_BUCKET_NO_ROOM,  /* no bucket: the kernel's map had no entry to evict */
	SL_EVENTS,
};

/* Insertions for sources that are not hot: one in a jiffy for each ration. */
enum sl_ration {
	SL_RATION_LIMITED, /* refused or observed by a limit */
	SL_RATION_OTHER,   /* denied, allowed, or not limited */
	SL_RATIONS,
};

/* A count and its rate. A second here is 2^SL_SECOND_SHIFT ns. */
#define SL_SECOND_SHIFT 30

struct sl_event_count {
	__u64 total;
	__u32 now;  /* in the second of struct sl_admission */
	__u32 last; /* in the second before */
};

/* Map `admission`, per CPU: the new keys that this CPU sees, and the results. */
struct sl_admission {
	__u64 interval;	      /* the current interval: flood_interval() */
	__u64 flood_until[2]; /* the first jiffy after the flood, without and with a budget */
	__u32 new_keys[2];    /* packets of new keys in this interval, without and with a budget */
	__u32 second;	      /* the second that `now` of the events counts */
	__u32 sampled;	      /* packets without a bucket that charged a state, or were refused */
	__u64 inserted_at[SL_RATIONS]; /* the jiffy of the last insertion of each ration */
	__u64 evicted;		       /* deficit of evicted states, in 1/16 of a burst */
	struct sl_event_count event[SL_EVENTS];
};

/* --- The gate and its states ---------------------------------------------------------------- */

/* Map `gate`: one entry. Packets read the first cache line, and without a bucket also `params`. */
struct sl_gate {
	__u32 schema;
	__u32 generation;    /* of the rules; never 0, which a new bucket has */
	__u32 jiffy_ns;	     /* the length of a jiffy */
	__u32 hosts;	     /* rules in `hosts4` and `hosts6`; while 0, no packet reads them */
	__u32 split_rules;   /* rules longer than /64; while 0, no packet reads `splits` */
	__u32 prefixes;	     /* rules in `prefixes` */
	__u32 changing;	     /* a change is in progress, or was killed: the next writer undoes it */
	__u32 hand_allows;   /* rules with a runtime allow; while 0, a deny by a list is final */
	__u64 lists_allow;   /* a bit for each list that allows; the others deny */
	__u64 lists_ending;  /* a bit for each list that expires */
	__u32 next_limit;    /* the next limit id */
	__u32 next_policy;   /* the search for a free policy begins here */
	__u32 policies_seen; /* above all policies that were ever in use */
	__u32 map_ids[23];   /* ids of the maps, in the order of the command's table */
	struct sl_params params;
	__u64 opaque_zero;		 /* always 0: see policy_charge() */
	__u32 list_ends[SL_LIST_PLACES]; /* of lists that expire: list_ends.h */
	__u64 trial_until;  /* when the trial of new rules ends, in ns of uptime; 0: no trial */
	__u32 trial;	    /* number of that trial, or of the last trial */
	__u32 sizes_stated; /* a bit for each specified size (enum size); the other maps grow */
	__u64 divide_at; /* ticks: from then on this node has 1/nodes of shared limits; 0: never */
	__u32 nodes;	 /* nodes that `sluice share` counts; 0: limits are not shared */
	__u32 policies;	 /* the requested size; the maps may have more entries */
	__u32 noted;	 /* a bit for each note that was printed: enum gate_note */
};

/* The state of one limit for one key, shared by all CPUs. */
struct sl_state {
	union {			/* decides; changed only by compare-and-swap */
		__u64 empty_at; /* when the token bucket was empty */
		__u64 window;	/* window: what counts now */
		__u64 ready_at; /* shape: when the next packet may depart */
	};
	union {
		__u64 full_at; /* when it was last full, with no slice valid */
		__u64 past;    /* window: counts of the sub-windows before */
	};
	__u64 charged_at; /* when it was last charged; window: a time in the current sub-window */
	__u64 blocked_until; /* the time until which it refuses everything; 0: never blocked */
};

/*
 * The same words as the type of maps: bpftool prints no names in an anonymous union. Any kind has
 * the names of a token bucket there.
 */
struct sl_state_words {
	__u64 empty_at;
	__u64 full_at;
	__u64 charged_at;
	__u64 blocked_until;
};

/*
 * The table of states, in maps `sets` and `states`: ways.h. Way w of set s is entry 8s+w of
 * `states`.
 */
#define SL_WAYS 8

struct sl_set {
	/* of the key in each way; 0: the way is free. Also read as two words */
	__u16 tag[SL_WAYS] __attribute__((aligned(8)));
	__u32 displaced; /* 2 for each of its keys that is in the secondary set; 1: locked */
	__u32 pad[3];	 /* two sets to a cache line */
};

/* An entry: a key and its state, in one cache line. */
struct sl_entry {
	__u64 addr[2]; /* masked by the limit; an IPv4 address: the first 32 bits */
	__u32 limit;   /* id << 3 | kind << 1 | IPv4; 0: the entry is free */
	__u16 span;    /* the time in which an empty state refills: short_make() */
	__u16 made;    /* when: entry_moment(); and ENTRY_CAME_BACK, ENTRY_ESTABLISHED */
	union {
		__u64 word;
		struct {
			__u32 taken; /* including slices; see entry_count_shared() */
			__u32 refused;
		} shared; /* shared limit */
		struct {
			__u32 half; /* ENTRY_HAS_HALF */
			__u32 seen; /* when the last packet came: entry_seen() */
		} window;
	} count;
	struct sl_state_words state;
};

/*
 * A bucket: what one CPU holds for one source (identity.h), in maps `buckets4` and `buckets6`. An
 * evicted bucket loses its counters and the credit of its slices, but no state.
 */
struct sl_slice {
	__s64 credit; /* ticks; negative: the state refused a packet that needed so much */
	union {
		__u64 borrowed; /* when the credit was borrowed */
		__u64 ready;	/* refusal: when the state may hold enough */
		__u64 departs;	/* shape: when the packet departs */
	} at;
	__u64 until; /* the last valid jiffy64; refusal: also a count, credit_unasked() */
};

struct sl_bucket {
	__u32 generation;     /* the rules that gave `policy_version`; 0: none yet */
	__u32 policy_version; /* the version in `policies`, or SL_BUCKET_SPLIT */
	__u64 until;	      /* the last jiffy before an entry may expire */
	struct sl_cell passed;
	struct sl_slice slice[SL_LIMITS_MAX]; /* by slot */
	struct sl_cell dropped;
	struct sl_cell observed;    /* passed, but without credit of a limit that observes */
	__u64 seal[2];		    /* complement of the key; if it differs, the bucket is void */
	__u32 state[SL_LIMITS_MAX]; /* by slot: index of the state in `states`; 0: not charged */
	__u32 policy;		    /* of the slices, also while a list decides */
	__u32 policy_since;	    /* `since` of its version */
	__u32 served;		    /* its packets (low bits) at the last charge of a state */
	__u32 kept;		    /* BUCKET_FIRST, or twice the jiffy of its last refusal */
};

/* Policy version of a bucket whose /64 is split by longer rules: each packet looks up its own. */
#define SL_BUCKET_SPLIT 0xffffffffU

/*
 * Map `in_use`, per CPU: a bit for each source whose bucket this CPU uses, by a hash, so that a
 * packet of another source needs no lookup of a bucket.
 */
#define SL_IN_USE_BITS (1U << 16)

struct sl_in_use {
	__u64 word[SL_IN_USE_BITS / 64];
	__u64 first; /* buckets given to the first sources of this CPU */
	__u64 zero[sizeof(struct sl_bucket) /
		   8]; /* the value of a new bucket, for which the stack is short */
};

/*
 * Budgets, by policy: their states in map `budgets`, their slices in map `budget_slices`, per CPU.
 */
struct sl_budget_slice {
	struct sl_slice slice;
	__u32 since;  /* `newcomers_since` of the version when it was borrowed */
	__u32 low_at; /* the last jiffy in which keys without a state were refused */
};

_Static_assert(sizeof(struct sl_sketch) == 64, "one cache line");
_Static_assert(sizeof(struct sl_host_cache_set) == 64, "one cache line");

#endif
