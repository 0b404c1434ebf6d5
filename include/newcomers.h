/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types of the maps that serve newcomers, keys without a state: a part of the schema in
 * include/sluice.h. All have a fixed size; nothing is allocated for a newcomer.
 */
#ifndef SLUICE_NEWCOMERS_H
#define SLUICE_NEWCOMERS_H

/*
 * Words of the secret of all hashes (include/digest.h). It is random, so that no sender can choose
 * collisions, and has a map of its own, because readers of a gate must not know it.
 */
#define SL_SECRETS 10

/*
 * Map `newcomers`: how often keys without a state were seen (include/sketch.h). Each CPU has so
 * many lines, whatever the sizes of other maps.
 */
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

/* Map `admission`, per CPU: the newcomers that this CPU sees, and the results. */
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

/*
 * Map `in_use`, per CPU: a bit for each source whose bucket this CPU uses, by a hash. A packet of
 * another source then needs no lookup of a bucket.
 */
#define SL_IN_USE_BITS	(1U << 16)
#define SL_BUCKET_WORDS 26

struct sl_in_use {
	__u64 word[SL_IN_USE_BITS / 64];
	__u64 first;		     /* buckets given to the first sources of this CPU */
	__u64 zero[SL_BUCKET_WORDS]; /* the value of a new bucket, for which the stack is short */
};

_Static_assert(sizeof(struct sl_sketch) == 64, "one cache line");
_Static_assert(sizeof(struct sl_host_cache_set) == 64, "one cache line");

#endif
