/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: adds what the sources of a running gate sent between two readings of their counters. All
 * packets of a source between two readings count as if they came at once, at the second reading. So
 * a burst is at most what a source sent in one interval, and never too small. No packet is read.
 *
 * Only sources with a bucket have counters (bpf/bucket.h), and only packets since then are counted.
 * Counters do not have the class of a packet. Denied sources are left out.
 */
#ifndef SLUICE_FROM_GATE_H
#define SLUICE_FROM_GATE_H

#include "gate/gate.h"
#include "live/sources.h"
#include "suggest/suggest.h"

struct counts_reader {
	struct suggest *suggest;
	struct live_sources known; /* the counters at the last reading */
	uint64_t ns;		   /* time of the present reading, since 1970 */
	uint64_t readings;	   /* complete readings so far */
};

/* Begins. The caller calls counts_free() even after an error. Returns 0 or a negative errno. */
int counts_begin(struct counts_reader *reader, struct suggest *suggest);
void counts_free(struct counts_reader *reader);

/*
 * Adds the packets of a source since the last reading. In the first reading, only stores the
 * counters. If the counters began again, adds all packets. version: policy version of the source.
 */
int counts_add(struct counts_reader *reader, const struct sl_prefix *source,
	       const struct sl_cell count[LIVE_COUNTERS], uint32_t version);

/* Reads all sources of a gate at time `ns` since 1970. Returns 0 or a negative errno. */
int counts_read(struct counts_reader *reader, const struct gate *gate, uint64_t ns);

#endif
