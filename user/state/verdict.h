/* SPDX-License-Identifier: GPL-2.0 */
/* State: the verdict on a packet that arrives now, for command `check`. Charges nothing. */
#ifndef SLUICE_VERDICT_H
#define SLUICE_VERDICT_H

#include "gate/gate.h"
#include "state/source.h"

/* What the next packet of a key without a state would find in sketch and table (bpf/flood.h). */
struct newcomer {
	uint32_t shown;	 /* hits of the key in the sketch, including this packet */
	bool has_room;	 /* whether a way for the key's state is free or can be evicted */
	bool is_refused; /* the key gets no state: all states in its sets lack half their burst */
};

struct check_verdict {
	const struct gate *gate; /* must stay open while the verdict is used */
	struct packet_args packet;
	struct source source;
	enum sl_reason reason;
	const struct sl_limit *by;     /* the limit that drops the packet, or NULL */
	const struct sl_limit *limits; /* the policy's limits, in the order of charging them */
	unsigned int count;
	struct limit_state states[SL_LIMITS_MAX];
	bool newcomer;	 /* the source is new for a matching limit, or charged to the budget */
	bool pays;	 /* whether the budget is charged, because the source is not established */
	bool waits;	 /* whether the packet's key gets no state with this packet */
	bool lacks_room; /* whether a new key finds no room, or would get an empty state */
	struct newcomer newcomers[SL_LIMITS_MAX]; /* for limits whose key has no state */
	unsigned int flooded;			  /* number of CPUs on which new sources wait */
	bool passes_by; /* whether new sources pass in a flood, because the policy has no budget */
	struct limit_state budget;
	/* first limit whose new states start empty, so it drops waiting new sources; or NULL */
	const struct sl_limit *empty;
};

/* Computes a gate's verdict on a packet. The caller calls source_free() for ret->source. */
int verdict_find(const struct gate *gate, const struct packet_args *packet,
		 struct check_verdict *ret);

#endif
