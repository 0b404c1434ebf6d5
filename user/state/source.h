/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: a source in a gate: the rule that applies to it, its buckets and counters, and how a limit
 * would decide about its packets now, computed with the code of the packet path. Reading consumes
 * no credit.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdint.h>

#include "gate/gate.h"
#include "gate/rules.h"
#include "gate/table.h"
#include "match.h"
#include "state/buckets.h"

/* A source. Counters are sums over all CPUs. */
struct source {
	struct sl_prefix prefix;	/* the source, from prefix_source() */
	bool split;			/* the gate has rules longer than /64 within this /64 */
	struct judgement rule;		/* the rule of the address that the caller gave */
	const struct sl_policy *policy; /* the policy that applies to the source, or NULL */
	const struct sl_limit *limits;	/* limits of the policy, in the order of charging */
	unsigned int limit_count;
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed; /* packets that passed although an observing limit had no credit */
	/* buckets of CPUs that have used them, without slices that are void for the next packet */
	struct sl_bucket *buckets;
	unsigned int count;
	const struct table *table; /* table with the states; if NULL, the map is read */
};

/*
 * Reads the source of an address. If the source has no bucket, its counters are 0. table: the table
 * in memory, for callers that read many sources, or NULL. The caller calls source_free().
 */
int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret);
void source_free(struct source *source);

/* Returns a limit of the policy in the form in which it was written. */
struct limit source_limit(const struct source *source, const struct sl_limit *limit);

/* --- States of limits ----------------------------------------------------------------------- */

/* The packet to decide about. */
struct packet_args {
	struct sl_prefix source;      /* address; or a source, for any of its packets */
	struct sl_prefix destination; /* destination address; `bits` is 0 if it is unknown */
	bool egress;		      /* the device sends the packet, instead of receiving it */
	struct sl_facts facts;
	unsigned int bytes; /* length of the frame */
};

struct limit_state {
	bool matches; /* the limit matches the packet */
	bool known;   /* the packet's key is known; otherwise the members below are not set */
	bool fresh;   /* the key has no state */
	uint32_t age; /* age of the key's entry, in units of `made`; 0 if not established */
	enum sl_reason reason; /* SL_PASS_WITHIN, or the reason why the packet is dropped */
	bool never;	       /* the packet never passes, because it is too large */
	uint64_t remaining;    /* amount that may pass now: packets, or bytes for a bit rate */
	uint64_t owed;	       /* debt of a token bucket below empty, in the unit of `remaining` */
	uint64_t retry_after_ms;	  /* time until the packet passes; 0 if it passes now */
	uint64_t remaining_after_waiting; /* `remaining` after `retry_after_ms` */
	uint64_t full_in_ms;		  /* time until the state is full */
	uint64_t blocked_ms;		  /* remaining time of a block */
};

/* Returns a packet of which only the source and the size are known. */
struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes);

/*
 * Computes the state of a limit of the source's policy and family. The packet passes if it would
 * pass on any CPU. now: uptime in ticks.
 */
int limit_state_read(const struct gate *gate, const struct source *source,
		     const struct sl_limit *limit, const struct packet_args *packet, uint64_t now,
		     struct limit_state *ret);

/*
 * Computes the state of a policy's budget for new sources, for a packet of `bytes`. Its reason is
 * SL_PASS_NEWCOMER if the packet passes. waits: the key of the packet does not get a state with it.
 */
int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret);

/* Computes the state of each limit of the source, now. */
int source_states_read(const struct gate *gate, const struct source *source,
		       const struct packet_args *packet, struct limit_state ret[SL_LIMITS_MAX]);

/* Returns the key of the state of a limit for an address, cut to the key length of the limit. */
struct state_key state_key_for(const struct sl_limit *limit, const struct sl_prefix *address);

/*
 * Fills the state of a limit for an address, and ends a block. Does nothing if there is no state.
 * Returns 0, or -EBUSY if packets were charged during each try.
 */
int state_fill(const struct gate *gate, const struct sl_limit *limit,
	       const struct sl_prefix *address);

/*
 * Tries to fill the state of an entry of the table, while packets charge it. Returns false if a
 * packet was charged meanwhile. If the entry has another key, changes nothing and returns true.
 */
bool state_try_fill(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, uint64_t now);

/* Returns the burst in the unit of `remaining`. */
uint64_t burst_units(const struct sl_limit *limit);

#endif
