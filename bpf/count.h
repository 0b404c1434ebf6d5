/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters. All are of one CPU and updated plainly: programs of one CPU do not interrupt each
 * other, as they run with bottom halves off. On PREEMPT_RT they may, and then a packet may go
 * uncounted.
 */
#ifndef SLUICE_COUNT_H
#define SLUICE_COUNT_H

#include "maps.h"
#include "packet.h"

static __always_inline void cell_add(struct sl_cell *cell, const struct packet *packet)
{
	cell->packets += packet->packets;
	cell->bytes += packet->bytes;
}

/* By policy and reason: what `stats` and `export` read. */
static __always_inline void count_policy(const struct packet *packet, __u32 policy,
					 enum sl_reason reason)
{
	struct sl_counters *entry = bpf_map_lookup_elem(&counters, &policy);

	if (entry && reason < SL_REASONS)
		cell_add(&entry->reason[reason], packet);
}

/* By source: what `sources` reads. */
static __always_inline void count_source(const struct packet *packet, struct sl_bucket *bucket,
					 enum sl_reason reason)
{
	if (bucket)
		cell_add(reason < SL_FIRST_DROP ? &bucket->passed : &bucket->dropped, packet);
}

#endif
