/* SPDX-License-Identifier: GPL-2.0 */
/* State: the verdict on a packet that arrives now, for command `check`. Charges nothing. */
#ifndef SLUICE_VERDICT_H
#define SLUICE_VERDICT_H

#include "gate/gate.h"
#include "state/source.h"

/* How the gate would treat the next packet of a key that has no state (bpf/flood.h). */
struct newcomer {
	uint32_t shown;	 /* how often the sketch has seen the key, including this packet */
	bool has_room;	 /* the key's state can get a free entry, or an entry that may be evicted */
	bool is_refused; /* the key gets no state: all states in its sets lack half a burst */
};

struct check_verdict {
	const struct gate *gate; /* must stay open while the verdict is used */
	struct packet_args packet;
	struct source source;
	enum sl_reason reason;
	const struct sl_limit *by;     /* the limit that drops the packet, or NULL */
	const struct sl_limit *limits; /* the policy's limits, in the order of charges */
	unsigned int count;
	struct limit_state states[SL_LIMITS_MAX];
	bool newcomer; /* the source has no state for a limit, or was charged to the budget */
	bool pays;  /* the packet is charged to the budget, because the source is not established */
	bool waits; /* the packet's key must wait for a state */
	bool lacks_room; /* the table has no room for the key's state, or only for an empty state */
	struct newcomer newcomers[SL_LIMITS_MAX]; /* one for each limit whose key has no state */
	unsigned int flooded; /* number of CPUs on which new sources wait for a state */
	bool passes_by;	      /* the policy has no budget, so new sources pass during a flood */
	struct limit_state budget;
	/* the first limit with `start empty`, or NULL; it drops new sources that must wait */
	const struct sl_limit *empty;
};

/* Computes a gate's verdict on a packet. The caller must call source_free() for ret->source. */
int verdict_find(const struct gate *gate, const struct packet_args *packet,
		 struct check_verdict *ret);

#endif
