/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: a source as a gate has it: the rule that decides about it, its buckets and counters, and
 * what a limit would do with its packets now, by the arithmetic of the packet path. Reading
 * consumes no credit.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdint.h>

#include "gate/gate.h"
#include "gate/rules.h"
#include "gate/table.h"
#include "match.h"
#include "state/buckets.h"

/* A source, summed over all CPUs. */
struct source {
	struct sl_prefix prefix;	/* prefix_source() of its address */
	bool split;			/* rules longer than /64 divide it */
	struct judgement rule;		/* the rule of the address that was given */
	const struct sl_policy *policy; /* the policy that limits it; NULL: none */
	const struct sl_limit *limits;	/* of the policy, in the order of charging */
	unsigned int limit_count;
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed; /* passed, although a limit that observes had no credit */
	/* of each CPU that uses one, without slices that the next packet would find void */
	struct sl_bucket *buckets;
	unsigned int count;
	const struct table *table; /* its states are read from it; NULL: from the map */
};

/*
 * Reads the source of an address. A source without a bucket is no error; its counters are 0. table:
 * NULL, or the table in memory, for a caller that reads many sources. source_free() frees it.
 */
int source_read(const struct gate *gate, const struct table *table, const struct sl_prefix *address,
		struct source *ret);
void source_free(struct source *source);

/* Returns a limit of the source's policy as it is written. */
struct limit source_limit(const struct source *source, const struct sl_limit *limit);

/* --- States of limits ----------------------------------------------------------------------- */

/* The packet in question. */
struct packet_args {
	struct sl_prefix source;      /* its address, or a source's prefix for any packet of it */
	struct sl_prefix destination; /* no bits: not given */
	bool egress;		      /* sent, not received */
	struct sl_facts facts;
	unsigned int bytes; /* length of the frame */
};

struct limit_state {
	bool matches;		 /* the limit matches the packet */
	bool known;		 /* the packet's key is known; otherwise the rest is not set */
	bool fresh;		 /* the key has no state yet */
	uint32_t age;		 /* of its entry, in units of `made`; 0: not established */
	enum sl_reason reason;	 /* SL_PASS_WITHIN, or why such a packet is refused */
	bool never;		 /* no wait lets it pass: it is oversize */
	uint64_t remaining;	 /* what would pass now: packets, or bytes of a bit rate */
	uint64_t owed;		 /* of a token bucket: by how much it is below empty */
	uint64_t retry_after_ms; /* time until it would pass; 0: now */
	uint64_t remaining_after_waiting; /* what would pass then, it included */
	uint64_t full_in_ms;		  /* time until nothing is charged any more */
	uint64_t blocked_ms;		  /* remaining time of a block */
};

/* Any packet of a source: only its address is known. */
struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes);

/*
 * Computes the state of a limit of the source's policy, of its family. A packet passes if it would
 * on any CPU. now: uptime in ticks.
 */
int limit_state_read(const struct gate *gate, const struct source *source,
		     const struct sl_limit *limit, const struct packet_args *packet, uint64_t now,
		     struct limit_state *ret);

/*
 * Computes the state of a policy's budget for new sources, for a packet of `bytes`. It passes with
 * SL_PASS_NEWCOMER. waits: the packet's key gets no state with it.
 */
int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret);

/* The same of each limit of the source, now. */
int source_states_read(const struct gate *gate, const struct source *source,
		       const struct packet_args *packet, struct limit_state ret[SL_LIMITS_MAX]);

/* The key of the state of a limit for an address, which is cut to the length of the limit's keys. */
struct state_key state_key_for(const struct sl_limit *limit, const struct sl_prefix *address);

/*
 * Fills the state of a limit for an address: what is charged to it is forgiven, and a block ends.
 * Without a state there is nothing to forgive.
 */
int state_fill(const struct gate *gate, const struct sl_limit *limit,
	       const struct sl_prefix *address);

/*
 * Tries that on an entry of the table, while packets charge it. Returns false if a packet was
 * charged meanwhile, and true for an entry of another key, which stays as it is.
 */
bool state_try_fill(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, uint64_t now);

/* The burst in the unit of `remaining`. */
uint64_t burst_units(const struct sl_limit *limit);

#endif
