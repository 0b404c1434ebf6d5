/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SLUICE_BENCH_FRAMES_H
#define SLUICE_BENCH_FRAMES_H

#include "bench.h"

struct frame {
	uint8_t bytes[FRAME_SIZE];
};

/*
 * A UDP packet from an address, or from one within a prefix, whose payload is what vary.h needs to
 * go on from there.
 */
void frame_write(struct frame *frame, const struct sl_prefix *source, uint64_t seed);

/* What varies a source within a prefix. Different seeds take different ways. */
void vary_write(struct vary *vary, const struct sl_prefix *source, uint64_t seed);

#endif
