/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suggest: reads the counters of a running gate instead of packets. All packets that a source sends
 * between two readings count as if they arrived at the second reading. So a proposed burst is never
 * too small, and at most the packets of one interval.
 *
 * The counters of a source are in its bucket (bpf/bucket.h), so packets before the bucket was made
 * are missing. Counters do not contain the class of a packet. Denied sources are ignored.
 */
#ifndef SLUICE_FROM_GATE_H
#define SLUICE_FROM_GATE_H

#include "gate/gate.h"
#include "live/sources.h"
#include "suggest/suggest.h"

struct counts_reader {
	struct suggest *suggest;
	struct live_sources known; /* the counters at the previous reading */
	uint64_t ns;		   /* time of the current reading, in ns since 1970 */
	uint64_t readings;	   /* number of complete readings so far */
};

/*
 * Initializes a reader. The caller calls counts_free() even after an error. Returns 0 or a negative
 * errno.
 */
int counts_begin(struct counts_reader *reader, struct suggest *suggest);
void counts_free(struct counts_reader *reader);

/*
 * Adds the packets that a source sent since the previous reading. The first reading only stores the
 * counters. If the counters were reset since then, adds their whole values. version: policy version
 * of the source.
 */
int counts_add(struct counts_reader *reader, const struct sl_prefix *source,
	       const struct sl_cell count[LIVE_COUNTERS], uint32_t version);

/* Reads all sources of a gate at time `ns` since 1970. Returns 0 or a negative errno. */
int counts_read(struct counts_reader *reader, const struct gate *gate, uint64_t ns);

#endif
