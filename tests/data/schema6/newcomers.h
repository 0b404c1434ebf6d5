/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types of the maps that serve newcomers, keys that have no ledger yet. All have a fixed size:
 * nothing is allocated for a newcomer. A part of the schema in include/sluice.h, which includes
 * this header. bpf/newcomer.h explains admission.
 */
#ifndef SLUICE_NEWCOMERS_H
#define SLUICE_NEWCOMERS_H

#define SL_SECRETS 10

/*
 * An insertion into a map of ledgers, or of buckets, takes a token of the pool of that name:
 * include/pool.h.
 */
enum sl_pool {
	SL_POOL_LEDGERS,
	SL_POOL_BUCKETS,
	SL_POOLS,
};

/* The settings of admission. Made with the gate, and never changed. */
struct sl_meeting {
	__u64 secret[SL_SECRETS]; /* of the hash: random, so that no sender can choose collisions */
	__u32 tokens[SL_POOLS];	  /* that a pool holds at most */
	__u32 batch[SL_POOLS];	  /* that one CPU takes from it at once */
	__u32 refill[SL_POOLS];	  /* that it gets in each window, in 1/2^SL_TOKEN_SHIFT tokens */
	__u32 crowd;	    /* more newcomers than this, on one CPU in one window, are a crowd */
	__u32 window_shift; /* a window is 2^this jiffies: some 64 ms */
	__u32 sketch_mask;  /* lines of `sketch` for each CPU and pool, less one */
	__u32 known_mask;   /* entries of `known`, less one */
};

#define SL_TOKEN_SHIFT 8

/* Map `pools`, by enum sl_pool: one word, alone in its cache line. */
struct sl_pool_word {
	__u64 spent; /* changed by compare-and-swap only */
	__u64 pad[7];
};

/*
 * Map `sketch`: lines for each CPU and each pool. A slot is a fingerprint of 24 bits and a count of
 * 8 bits.
 */
#define SL_SKETCH_SLOTS 16

struct sl_sketch_line {
	__u32 slot[SL_SKETCH_SLOTS];
};

/*
 * Map `known`: the filter of known keys, include/known_filter.h. A word belongs to one epoch: it
 * has 24 bits of the filter, and above them a tag that tells the epoch.
 */
#define SL_KNOWN_BITS 24

struct sl_known {
	__u32 word[2]; /* of even epochs, of odd epochs */
};

/*
 * Map `shortcuts`: entries for each CPU. What `prefixes` answers for all of an aggregate:
 * bpf/shortcut.h.
 */
#define SL_SHORTCUTS (3 * 16384U)

#define SL_SHORTCUT_DIVIDED 0xffffffffU /* as a record: rules divide the aggregate */

struct sl_shortcut {
	__u64 aggregate; /* aggregate_name() */
	__u32 generation;
	__u32 record;
};

/* What is counted at admission. */
enum sl_event {
	SL_EVENT_MET,	    /* a packet of an unknown key; counted when its window ends */
	SL_EVENT_INSERTED,  /* a ledger or a bucket was made */
	SL_EVENT_BUSY,	    /* the kernel refused to: that part of the map was locked */
	SL_EVENT_NO_MEMORY, /* the kernel refused to: no entry could be freed */
	SL_EVENT_FAILED,    /* the kernel refused to for another reason */
	SL_EVENTS,
};

/* A count and its pace. A second here is 2^SL_SECOND_SHIFT ns. */
#define SL_SECOND_SHIFT 30

struct sl_pace {
	__u64 total;
	__u32 now;  /* in the second of struct sl_admission */
	__u32 last; /* in the one before */
};

/* Map `admission`, per CPU: the tokens that this CPU may use, and the newcomers that it meets. */
struct sl_admission {
	__u64 window;		/* the current one: pool_window() */
	__u32 tokens[SL_POOLS]; /* taken from the pool and not used yet */
	__u32 seen[SL_POOLS];	/* tokens in the pool when this CPU last read it, in this window */
	__u32 met;		/* newcomers in this window */
	__u32 second;		/* to which `now` of the events belongs */
	__u64 crowd_until;	/* the jiffy before which newcomers are a crowd */
	struct sl_pace event[SL_EVENTS];
};

_Static_assert(sizeof(struct sl_sketch_line) == 64, "map schema");
_Static_assert(sizeof(struct sl_known) == 8, "map schema");
_Static_assert(sizeof(struct sl_shortcut) == 16, "map schema");
_Static_assert(sizeof(struct sl_pool_word) == 64, "map schema");
_Static_assert(sizeof(struct sl_admission) == 120, "map schema");

#endif
