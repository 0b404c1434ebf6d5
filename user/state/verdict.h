/* SPDX-License-Identifier: GPL-2.0 */
/* State: the verdict on a packet now, and the state of its source, for `check`. Charges nothing. */
#ifndef SLUICE_VERDICT_H
#define SLUICE_VERDICT_H

#include "gate/gate.h"
#include "state/source.h"

/* How the next packet of a key without a state finds sketch and table (bpf/flood.h). */
struct newcomer {
	uint32_t shown;	 /* hits of the key, including that packet */
	bool has_room;	 /* a way is free or can be evicted, unless the key waits in a flood */
	bool is_refused; /* the key gets no state: all states in its sets lack half their burst */
};

struct check_verdict {
	const struct gate *gate; /* the gate, which must stay open while the verdict is used */
	struct packet_args packet;
	struct source source;
	enum sl_reason reason;
	const struct sl_limit *by;     /* the limit that drops the packet, or NULL */
	const struct sl_limit *limits; /* limits of the policy, in the order of charging */
	unsigned int count;
	struct limit_state states[SL_LIMITS_MAX];
	bool newcomer;	 /* the source is new under a matching limit, or charged to the budget */
	bool pays;	 /* the budget is charged, because the source is not established */
	bool waits;	 /* the key gets no state with this packet */
	bool lacks_room; /* a new key finds no room, or would get an empty state */
	struct newcomer newcomers[SL_LIMITS_MAX]; /* set for a limit if its key has no state */
	unsigned int flooded;			  /* number of CPUs on which new sources wait */
	bool passes_by; /* in a flood, new sources pass because the policy has no budget */
	struct limit_state budget;
	/* the limit that drops waiting new sources before the budget is charged, or NULL */
	const struct sl_limit *empty;
};

/* Finds the verdict of a gate on a packet. The caller calls source_free() for its source. */
int verdict_find(const struct gate *gate, const struct packet_args *packet,
		 struct check_verdict *ret);

#endif
