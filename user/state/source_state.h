/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: what a limit would do with a packet of a source now, computed from state and slices with
 * the arithmetic of the packet path. Reading consumes no credit.
 */
#ifndef SLUICE_SOURCE_STATE_H
#define SLUICE_SOURCE_STATE_H

#include <stdint.h>

#include "gate/gate.h"
#include "match.h"
#include "state/source.h"

/* The packet in question. */
struct packet_args {
	struct sl_prefix source;      /* its address, or a source's prefix for any packet of it */
	struct sl_prefix destination; /* no bits: not given */
	bool egress;		      /* sent, not received */
	struct sl_facts facts;
	unsigned int bytes; /* length of the frame */
};

struct limit_state {
	bool matches;			  /* the limit matches the packet */
	bool known;			  /* the packet's key is known; else the rest is not set */
	bool fresh;			  /* the key has no state yet */
	uint32_t age;			  /* of its entry, in units of `made`; 0: not established */
	enum sl_reason reason;		  /* SL_PASS_WITHIN, or why such a packet is refused */
	bool never;			  /* no wait lets it pass: it is oversize */
	uint64_t remaining;		  /* what would pass now: packets, or bytes of a bit rate */
	uint64_t owed;			  /* of a bucket: by how much it is below empty */
	uint64_t retry_after_ms;	  /* time until it would pass; 0: now */
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
 * Computes the state of the budget of a policy's newcomers, for a packet of `bytes`. It passes with
 * SL_PASS_NEWCOMER. waits: the packet's key gets no state with it.
 */
int budget_state_read(const struct gate *gate, const struct sl_policy *policy, unsigned int bytes,
		      uint64_t now, bool waits, struct limit_state *ret);

/* The limits of the source's policy in the order of charging; NULL and 0: it has none. */
const struct sl_limit *source_limits(const struct source *source, unsigned int *ret_count);

/* A limit of the source's policy, which it has, as it is written. */
struct limit source_limit(const struct source *source, const struct sl_limit *limit);

/* limit_label() of such a limit */
const char *source_label(const struct source *source, const struct sl_limit *limit,
			 char text[LIMIT_LABEL]);

/* The burst in the unit of `remaining`. */
uint64_t burst_units(const struct sl_limit *limit);

#endif
