/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: the verdict on a packet now, and the state of its source, for `check`. Nothing is
 * consumed.
 */
#ifndef SLUICE_VERDICT_H
#define SLUICE_VERDICT_H

#include "gate/gate.h"
#include "state/source.h"

/* A key without a state, as its next packet finds it (bpf/flood.h). */
struct newcomer {
	uint32_t shown;	 /* hits, with that packet */
	bool has_room;	 /* a way is free or can be evicted, unless the key waits in a flood */
	bool is_refused; /* its state would be empty: all states in its sets lack more than half */
};

struct check_verdict {
	const struct gate *gate; /* open while the verdict is used */
	struct packet_args packet;
	struct source source;
	enum sl_reason reason;
	const struct sl_limit *by;     /* the limit that drops the packet; NULL: none */
	const struct sl_limit *limits; /* in the order of charging */
	unsigned int count;
	struct limit_state states[SL_LIMITS_MAX];
	bool newcomer;	 /* its key has no state under a limit that matches, or the budget pays */
	bool pays;	 /* it is not established: the packet is charged to the budget as well */
	bool waits;	 /* it gets no state with this packet */
	bool lacks_room; /* no state can be evicted for it, or only an empty state */
	struct newcomer newcomers[SL_LIMITS_MAX]; /* of limits under which it has no state */
	unsigned int flooded;			  /* CPUs on which newcomers wait */
	bool passes_by; /* policy_passed_by() in a flood: newcomers pass for lack of a budget */
	struct limit_state budget;
	const struct sl_limit
		*empty; /* drops all newcomers that wait, before the budget; or NULL */
};

/* Finds the verdict of a gate on a packet. source_free() frees its source. */
int verdict_find(const struct gate *gate, const struct packet_args *packet,
		 struct check_verdict *ret);

#endif
