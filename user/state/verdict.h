/* SPDX-License-Identifier: GPL-2.0 */
/* What would come of a packet now, and how its source stands. Nothing is consumed. */
#ifndef SLUICE_VERDICT_H
#define SLUICE_VERDICT_H

#include "gate/gate.h"
#include "state/source.h"
#include "state/source_state.h"

struct verdict {
	const struct gate *gate; /* open as long as the verdict is used */
	struct packet_args packet;
	struct source source;
	enum sl_reason reason;
	const struct sl_limit *by;     /* the limit that drops it; NULL: none does */
	const struct sl_limit *limits; /* in the order of asking */
	unsigned int count;
	struct standing standings[SL_LIMITS_MAX];
	bool newcomer;	      /* it has no ledger under a limit that matches, or waits */
	bool waits;	      /* the packet path takes it for new there, and does not let it in */
	bool unheard;	      /* although it has a ledger: it was silent for too long */
	unsigned int flooded; /* CPUs on which newcomers wait */
	unsigned int crowded; /* those on which no bucket is looked for, unless it is known */
	bool known;
	bool known_to[SL_LIMITS_MAX]; /* by limit: to some it is another's key that is */
	bool passes_by; /* there is a flood, and its policy has no budget for it: policy_passed_by() */
	struct standing budget;
	const struct sl_limit
		*empty; /* drops all that waits, so that no budget is asked; or NULL */
};

/* What the gate says of the packet; the owner frees it. */
enum status verdict_find(const struct gate *gate, const struct packet_args *packet,
			 struct verdict *ret);
void verdict_free(struct verdict *verdict);

const char *verdict_word(const struct verdict *verdict);

#endif
