/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SLUICE_BENCH_FRAMES_H
#define SLUICE_BENCH_FRAMES_H

#include "bench.h"

struct frame {
	uint8_t bytes[FRAME_SIZE];
};

/* An address, or those of a prefix. */
struct sources {
	struct sl_prefix prefix;
	unsigned int end; /* of the bits that differ from source to source, as in prefix.bits */
};

/* "192.0.2.1" or "10.0.0.0/8"; "2001:db8::/32 by /64": one address of each /64. */
int sources_parse(const char *text, struct sources *ret);

/* How many there are, at most 2^31. */
uint32_t sources_count(const struct sources *sources);

/* A UDP packet of the first source, whose payload is what vary.h needs to go on to others. */
void frame_write(struct frame *frame, const struct sources *sources, uint64_t seed);

/* What varies the source. Different seeds take different ways. */
void vary_write(struct vary *vary, const struct sources *sources, uint64_t seed);

#endif
