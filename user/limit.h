/* SPDX-License-Identifier: GPL-2.0 */
/* From a limit as people write it to a limit as the packet path reads it. */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include "log.h"
#include "sluice.h"

/* The longest frame of Ethernet on most networks, in bytes. */
#define FRAME_USUAL 1514

/* What decides how a limit is split over purses. */
struct machine {
	unsigned int cpus;    /* possible CPUs: each may hold a purse */
	unsigned int tick_ns; /* the kernel's tick, 1 / CONFIG_HZ */
	unsigned int
		cpu_ids; /* one more than the highest number of a possible CPU: numbers may have gaps */
};

/* One more than the highest number in a list of CPUs as the kernel writes it, "0-3,8-11"; 0: none. */
unsigned int cpu_list_end(const char *list);

/* This machine. */
enum status machine_get(struct machine *ret);

/* A limit as its author wrote it. */
struct limit {
	struct sl_limit_spec spec;
	struct sl_match match;
};

/*
 * Whether the numbers fit each other: the burst holds what the rate counts, one packet or one byte, and does not
 * take too long to refill. A frame may cost more than the burst: include/credit.h.
 */
enum status limit_check(const struct limit *limit);

/*
 * Computes cost, burst, and how the burst is shared between ledger and purses (include/credit.h).
 * The limit is checked. Its id is the spec's; its slot is left 0.
 */
struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine);

#endif
