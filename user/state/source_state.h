/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a source stands with a limit: what would come of a packet now, told from ledger and purses
 * with the packet path's own arithmetic. Nothing is consumed.
 */
#ifndef SLUICE_SOURCE_STATE_H
#define SLUICE_SOURCE_STATE_H

#include <stdint.h>

#include "gate/gate.h"
#include "match.h"
#include "state/source.h"

/* A packet to ask about. */
struct packet_args {
	struct sl_prefix source; /* its address; a source's prefix stands for any packet of it */
	struct sl_prefix destination; /* no bits: not said */
	bool egress;		      /* it is sent, and not received */
	struct sl_facts facts;
	unsigned int bytes; /* of the frame */
};

struct standing {
	bool matches;		 /* the limit is for this packet */
	bool known;		 /* what its key is; else nothing below is */
	bool fresh;		 /* it has no ledger yet: no such packet came */
	enum sl_reason reason;	 /* of such a packet: SL_PASS_WITHIN, or why it is refused */
	uint64_t remaining;	 /* packets, or bytes of a bit rate */
	uint64_t retry_after_ms; /* until it would pass: 0: now */
	uint64_t blocked_ms;	 /* for which everything is refused still */
};

/* Any packet of a source: what is behind its addresses is not known. */
struct packet_args packet_args_of_source(const struct source *source, unsigned int bytes);

/* limit: of the source's policy, for its family. It passes if it would on any one CPU. */
enum status standing_read(const struct gate *gate, const struct source *source,
			  const struct sl_limit *limit, const struct packet_args *packet,
			  uint64_t now, struct standing *ret);

/*
 * How the budget of a policy's newcomers stands, to a packet of so many bytes: it passes with SL_PASS_NEWCOMER.
 */
enum status standing_read_budget(const struct gate *gate, const struct sl_policy *policy,
				 unsigned int bytes, uint64_t now, struct standing *ret);

/* The limits of the source's policy in the order of asking; it has none: NULL, and 0. */
const struct sl_limit *source_limits(const struct source *source, unsigned int *ret_count);

/* The limit in words; source: has a policy, of which it is one. */
struct limit source_limit(const struct source *source, const struct sl_limit *limit);

/* The burst in what `remaining` counts. */
uint64_t burst_units(const struct sl_limit *limit);

/* --- Ledgers -------------------------------------------------------------------------------- */

/*
 * Reads the ledger of a limit for an address, which is cut to the limit's key length. None:
 * `ret_found` is false, and `ret` is what a packet at `now` would make.
 */
enum status ledger_read(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address, uint64_t now, struct sl_ledger *ret,
			bool *ret_found);

/* Replaces it by a full one, from now on. */
enum status ledger_fill(const struct gate *gate, const struct sl_limit *limit,
			const struct sl_prefix *address);

#endif
