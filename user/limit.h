/* SPDX-License-Identifier: GPL-2.0 */
/* From a limit as people write it to a limit as the packet path reads it. */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include "log.h"
#include "sluice.h"

/* What decides how a limit is split over purses. */
struct machine {
	unsigned int cpus;    /* possible CPUs: each may hold a purse */
	unsigned int tick_ns; /* the kernel's tick, 1 / CONFIG_HZ */
};

/* This machine. */
enum status machine_get(struct machine *ret);

/*
 * Computes cost, burst, and how the burst is shared between ledger and purses (include/credit.h).
 * Fails where the burst cannot hold one packet, or takes too long to refill. The id is left 0.
 */
enum status limit_compile(const struct sl_limit_spec *spec, const struct machine *machine,
			  struct sl_limit *ret);

/* Whether the burst of a bit rate holds a frame of so many bytes; a packet rate holds any. */
bool limit_holds_frame(const struct sl_limit *limit, unsigned int frame_bytes);

#endif
