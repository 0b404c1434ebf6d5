/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: proposes a limit for each policy of a running gate. Reads the histogram of rates in the
 * counters of each policy (struct sl_rates), and no packets. A value of the histogram is the number
 * of packets that a source sent through one CPU in a second (bpf/rate.h), a source-second. All
 * results are upper bounds, because the histogram stores only powers of 2.
 *
 * If a source sends at most R packets in each of its seconds, a limit with rate R and burst 2R
 * refuses none of them. The seconds of a source do not overlap and last at least 1 s. So a span of
 * T seconds is in at most T + 2 of them, and has at most RT + 2R packets.
 */
#ifndef SLUICE_FROM_GATE_H
#define SLUICE_FROM_GATE_H

#include "gate/gate.h"
#include "state/stats.h"
#include "suggest/suggest.h"

/* A policy, and the limit that is proposed for it. */
struct gate_proposal {
	char policy[PREFIX_TEXT];
	enum suggest_refusal refusal;
	uint64_t span_ns;	      /* time since the policy began to count */
	uint64_t seconds;	      /* number of source-seconds */
	uint64_t packets;	      /* packets in all source-seconds */
	uint64_t judged;	      /* packets that the policy has judged */
	uint64_t p50, p99, p999, max; /* quantiles of the packets in a source-second */
	struct limit limit;
	uint64_t exceeded; /* source-seconds that may have more packets than the limit's rate */
};

struct gate_proposals {
	struct gate_proposal *items; /* one for each policy, sorted by prefix */
	unsigned int count;
	unsigned int proposed; /* number of policies for which a limit is proposed */
};

/*
 * Proposes a limit from the counters of a policy. span_ns: time since the policy began to count.
 * Sets all members of the result except `policy`.
 */
void rates_propose(const struct sl_counters *counters, uint64_t span_ns,
		   const struct suggest_settings *settings, struct gate_proposal *ret);

/*
 * Reads the counters of a gate, and proposes a limit for each policy. The caller must call
 * gate_proposals_free(). Returns 0 or a negative errno.
 */
int gate_propose(const struct gate *gate, const struct suggest_settings *settings,
		 struct gate_proposals *ret);
void gate_proposals_free(struct gate_proposals *proposals);

#endif
