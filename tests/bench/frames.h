/* SPDX-License-Identifier: GPL-2.0 */
/* The sources of a case, and frames whose source is changed by a BPF program (vary.h). */
#ifndef SLUICE_BENCH_FRAMES_H
#define SLUICE_BENCH_FRAMES_H

#include "bench.h"

struct frame {
	uint8_t bytes[FRAME_SIZE];
};

/* The sources in a prefix. Their addresses differ in all bits from prefix.bits up to `end`. */
struct sources {
	struct sl_prefix prefix;
	unsigned int end; /* the addresses differ in bits prefix.bits to end - 1 */
};

/*
 * Parses "192.0.2.1", "10.0.0.0/8" or "2001:db8::/32 by /64", which has one source in each /64.
 * Returns 0 or a negative errno.
 */
int sources_parse(const char *text, struct sources *ret);

/* Returns the number of sources, at most 2^31. */
uint32_t sources_count(const struct sources *sources);

/* Writes a UDP packet of the first source in `sources`, with a struct vary as its payload. */
void frame_write(struct frame *frame, const struct sources *sources, uint64_t seed);

/* Replaces the transport header and the payload of an IPv4 packet. */
void frame_replace(struct frame *frame, const struct bench_packet *packet);

/* Initializes a struct vary for these sources. `seed` selects the sequence of random sources. */
void vary_write(struct vary *vary, const struct sources *sources, uint64_t seed);

#endif
