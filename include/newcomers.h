/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the maps keep for newcomers, sources that have no ledger yet: nothing is allocated for one. A part of the schema
 * in include/sluice.h, which includes this; bpf/newcomer.h is what it serves.
 */
#ifndef SLUICE_NEWCOMERS_H
#define SLUICE_NEWCOMERS_H

#define SL_SECRETS 10

/* How newcomers are met: see bpf/newcomer.h. Made with the gate, and never changed. */
enum sl_pool {
	SL_POOL_LEDGERS,
	SL_POOL_BUCKETS,
	SL_POOLS,
};

struct sl_meeting {
	__u64 secret[SL_SECRETS]; /* of the hash: random, so that nobody can choose what collides */
	__u32 tokens[SL_POOLS];	  /* insertions that a pool holds at most: see include/pool.h */
	__u32 batch[SL_POOLS];	  /* that one CPU takes from it at once */
	__u32 refill[SL_POOLS];	  /* that it gets in each window, in 1/2^SL_TOKEN_SHIFT */
	__u32 crowd; /* packets of unknown sources, on one CPU in one window, that are no crowd yet */
	__u32 window_shift; /* a window is 2^this jiffies: some 64 ms */
	__u32 sketch_mask;  /* lines of `sketch` for each CPU and pool, less one */
	__u32 known_mask;   /* entries of `known`, less one */
};

#define SL_TOKEN_SHIFT 8

/* Map `pools`, by enum sl_pool: one word, in a cache line that holds nothing else. */
struct sl_pool_word {
	__u64 spent; /* changed by compare-and-swap only */
	__u64 pad[7];
};

/* Map `sketch`: for each CPU, and each pool, so many lines. A slot: a fingerprint of 24 bits, and a count of 8. */
#define SL_SKETCH_SLOTS 16

struct sl_sketch_line {
	__u32 slot[SL_SKETCH_SLOTS];
};

/*
 * Map `known`: a Bloom filter, in blocks, of those that have been charged in this epoch or the one before. A word is of
 * one epoch: 24 bits, and above them a tag that tells which.
 */
#define SL_KNOWN_BITS 24

struct sl_known {
	__u32 word[2]; /* of the even epochs, and of the odd ones */
};

/* Map `shortcuts`: for each CPU so many. What `prefixes` says of all addresses of a block: see include/block.h. */
#define SL_SHORTCUTS (3 * 16384U)

#define SL_SHORTCUT_DIVIDED 0xffffffffU /* for its record: rules divide the block */

struct sl_shortcut {
	__u64 aggregate; /* aggregate_name() */
	__u32 generation;
	__u32 record;
};

/* What happens at the meeting of newcomers. */
enum sl_event {
	SL_EVENT_MET, /* a packet of somebody without a bucket or a ledger; told by whole windows */
	SL_EVENT_INSERTED,  /* a ledger or a bucket was made */
	SL_EVENT_BUSY,	    /* the kernel refused to: that part of the map was at work already */
	SL_EVENT_NO_MEMORY, /* it had no entry to give */
	SL_EVENT_FAILED,    /* any other cause */
	SL_EVENTS,
};

/* Counted, and at which pace: a second here is 2^SL_SECOND_SHIFT ns. */
#define SL_SECOND_SHIFT 30

struct sl_pace {
	__u64 total;
	__u32 now;  /* in the second of struct sl_admission */
	__u32 last; /* in the one before */
};

/* Map `admission`, per CPU: how many insertions this CPU may make, and how many packets ask for one. */
struct sl_admission {
	__u64 window;		/* jiffies >> window_shift, and 1 */
	__u32 tokens[SL_POOLS]; /* taken from the pool, and left */
	__u32 seen[SL_POOLS];	/* what the pool had when this CPU last looked, in this window */
	__u32 met;		/* packets of unknown sources in this window */
	__u32 second;		/* of the events' pace */
	__u64 crowd_until;	/* the jiffy before which newcomers are a crowd */
	struct sl_pace event[SL_EVENTS];
};

_Static_assert(sizeof(struct sl_sketch_line) == 64, "map schema");
_Static_assert(sizeof(struct sl_known) == 8, "map schema");
_Static_assert(sizeof(struct sl_shortcut) == 16, "map schema");
_Static_assert(sizeof(struct sl_pool_word) == 64, "map schema");
_Static_assert(sizeof(struct sl_admission) == 120, "map schema");

#endif
