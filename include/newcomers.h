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
 * Map `newcomers`: how often keys without a ledger have shown themselves. Each CPU has a part of so
 * many lines, whatever the other sizes are: include/sketch.h.
 */
#define SL_SKETCH_LINES 4096U
#define SL_SKETCH_SLOTS 16

struct sl_sketch {
	__u32 slot[SL_SKETCH_SLOTS]; /* a fingerprint above a count; 0: free */
} __attribute__((aligned(64)));

/* The settings of admission. Made with the gate, and never changed. */
struct sl_meeting {
	__u64 secret[SL_SECRETS]; /* of the hash: random, so that no sender can choose collisions */
	__u32 crowd;	    /* more newcomers than this, on one CPU in one window, are a crowd */
	__u32 window_shift; /* a window is 2^this jiffies: some 64 ms */
	__u32 set_mask;	    /* sets of the table, less one */
	__u32 host_mask;    /* sets of shortcuts to hosts, less one */
	__u32 sources;	    /* the sizes that these were made for, as they were asked for */
	__u32 buckets;
	__u32 sketch_mask; /* lines of each CPU's sketch, less one */
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

/*
 * Map `host_shortcuts`, of all CPUs: what `hosts4` and `hosts6` answer for an address. A digest of
 * 64 bits stands for the address. Two packets may write to one entry at once, so the digest is
 * sealed with the answer: a mixture of both fits no address.
 */
#define SL_HOST_WAYS 4

struct sl_host_shortcut {
	__u64 sealed; /* the digest of the address, xor `answer` */
	__u64 answer; /* the generation above the record; 0: free */
};

struct sl_host_set {
	struct sl_host_shortcut way[SL_HOST_WAYS];
} __attribute__((aligned(64)));

/* What is counted at admission. */
enum sl_event {
	SL_EVENT_MET,		  /* a packet of an unknown key; counted when its window ends */
	SL_EVENT_INSERTED,	  /* a ledger was made */
	SL_EVENT_FORGOTTEN,	  /* one that was not whole was given up for it */
	SL_EVENT_BUSY,		  /* none was made: another CPU was at work on its set */
	SL_EVENT_NO_ROOM,	  /* none was made: every ledger of its sets tells too much */
	SL_EVENT_BUCKET_INSERTED, /* a source got a bucket */
	SL_EVENT_BUCKET_BUSY,	  /* it got none: the kernel's map was locked */
	SL_EVENT_BUCKET_NO_ROOM,  /* it got none: the kernel's map had no entry to evict */
	SL_EVENTS,
};

/* A count and its pace. A second here is 2^SL_SECOND_SHIFT ns. */
#define SL_SECOND_SHIFT 30

struct sl_pace {
	__u64 total;
	__u32 now;  /* in the second of struct sl_admission */
	__u32 last; /* in the one before */
};

/* Map `admission`, per CPU: the newcomers that this CPU meets, and what it made of them. */
struct sl_admission {
	__u64 window;	   /* the current one: window_of() */
	__u64 crowd_until; /* the jiffy before which newcomers are a crowd */
	__u32 met;	   /* newcomers in this window */
	__u32 second;	   /* to which `now` of the events belongs */
	__u32 first;	   /* buckets that the first sources of this CPU got */
	__u32 sampled;	   /* packets of hot sources that have no bucket */
	__u64 inserted_at; /* the jiffy of the last insertion for a source that is not hot */
	__u64 lost;	   /* by ledgers that were forgotten: in 1/16 of a burst */
	struct sl_pace event[SL_EVENTS];
};

/*
 * Map `in_use`, per CPU: a bit for each source whose bucket this CPU uses, by a hash. So a packet of
 * another source need not look for a bucket.
 */
#define SL_IN_USE_BITS (1U << 16)

struct sl_in_use {
	__u64 word[SL_IN_USE_BITS / 64];
};

_Static_assert(sizeof(struct sl_sketch) == 64, "one cache line");
_Static_assert(sizeof(struct sl_host_set) == 64, "one cache line");

#endif
