/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: reads a source of a gate, its rule, its buckets and its counters. Also computes how each
 * limit would judge a packet that arrives now. This uses the code of the BPF programs, but charges
 * nothing.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdint.h>

#include "gate/gate.h"
#include "gate/rules.h"
#include "gate/table.h"
#include "match.h"
#include "state/buckets.h"

/* A source of packets. Its counters are sums over all CPUs. */
struct source {
	struct sl_prefix prefix;	/* the source, from prefix_source() */
	bool split;			/* the /64 of the source contains rules longer than /64 */
	struct judgement rule;		/* the rule that decides about the given address */
	const struct sl_policy *policy; /* the policy that applies to the source, or NULL */
	const struct sl_limit *limits;	/* the policy's limits, in the order of charges */
	unsigned int limit_count;
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed; /* packets that passed, but exceeded a limit that observes */
	/* buckets that have counted packets of the source; slices no longer valid are 0 */
	struct sl_bucket *buckets;
	unsigned int count;
	const struct table *table; /* table that has the states; NULL: read the map */
};

/*
 * Reads the source of an address. If the source has no bucket, its counters are 0. table: map
 * `states` in memory, for callers that read many sources, or NULL. The caller must call
 * source_free().
 */
int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret);
void source_free(struct source *source);

/* Returns a limit of source->policy as users specify it. */
struct limit source_limit(const struct source *source, const struct sl_limit *limit);

/* --- States of limits ----------------------------------------------------------------------- */

/* A packet whose verdict is computed. */
struct packet_args {
	struct sl_prefix source;      /* source address, or a whole source such as an IPv6 /64 */
	struct sl_prefix destination; /* destination address; `bits` is 0 if it is unknown */
	bool egress; /* the device sends the packet; otherwise it receives the packet */
	struct sl_facts facts;
	unsigned int bytes; /* length of the frame in bytes */
};

struct limit_state {
	bool matches; /* the limit matches the packet */
	bool known;   /* the packet's key is known; otherwise the members below are not set */
	bool fresh;   /* the key has no state */
	uint32_t age; /* age of the key's entry, in 2^34 ticks (1.07 s); 0: not established */
	enum sl_reason reason; /* SL_PASS_WITHIN, or the reason why the packet is dropped */
	bool never;	       /* the packet never passes, because it is too large */
	uint64_t remaining;    /* amount that may pass now, in packets; for a bit rate, in bytes */
	uint64_t owed;	       /* debt of a token bucket, in the unit of `remaining` */
	uint64_t retry_after_ms;	  /* time until the packet passes; 0 if it passes now */
	uint64_t remaining_after_waiting; /* `remaining` at the end of the wait */
	uint64_t full_in_ms;		  /* time until the state is full */
	uint64_t blocked_ms;		  /* time until the block ends; 0 if no block is active */
};

/* Returns a packet with this source and this size. All its other facts are unknown. */
struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes);

/* Returns whether a limit applies to a packet. */
bool packet_args_match(const struct packet_args *packet, const struct sl_policy *policy,
		       const struct sl_limit *limit);

/*
 * Computes whether one limit of a source would pass a packet at uptime `now`, in ticks. The packet
 * passes if at least one CPU would pass it.
 */
int limit_state_read(const struct gate *gate, const struct source *source,
		     const struct sl_limit *limit, const struct packet_args *packet, uint64_t now,
		     struct limit_state *ret);

/*
 * Computes whether a policy's budget would pass a packet of a new source. If so, sets `reason` to
 * SL_PASS_NEWCOMER. waits: the packet creates no state for its key.
 */
int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret);

/* Computes the result of each of the source's limits for a packet that arrives now. */
int source_states_read(const struct gate *gate, const struct source *source,
		       const struct packet_args *packet, struct limit_state ret[SL_LIMITS_MAX]);

/* Returns the key of a limit's state for an address. Its length is the limit's key length. */
struct state_key state_key_for(const struct sl_limit *limit, const struct sl_prefix *address);

/*
 * Refills the state of a limit for an address, and ends its block. Does nothing if there is no
 * state. Returns 0, or -EBUSY if every try failed because a packet was charged meanwhile.
 */
int state_fill(const struct gate *gate, const struct sl_limit *limit,
	       const struct sl_prefix *address);

/*
 * Tries to refill the state of a table entry. Returns false if a packet was charged meanwhile. If
 * the entry now has another key, changes nothing and returns true.
 */
bool state_try_fill(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, uint64_t now);

/* Returns the burst of a limit in the unit of `remaining`. */
uint64_t burst_units(const struct sl_limit *limit);

#endif
