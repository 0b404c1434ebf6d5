/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters. All are of one CPU and updated plainly: programs of one CPU do not interrupt each
 * other, as they run with bottom halves off. On PREEMPT_RT they may, and then a packet may go
 * uncounted.
 */
#ifndef SLUICE_COUNT_H
#define SLUICE_COUNT_H

#include "policy.h"

static __always_inline void cell_add(struct sl_cell *cell, const struct packet *packet)
{
	cell->packets += packet->packets;
	cell->bytes += packet->bytes;
}

/* By policy, reason and limit: what `stats` and `export` read. */
static __always_inline void count_policy(const struct packet *packet, const struct verdict *verdict)
{
	__u32 number = SL_POLICY(verdict->record);
	struct sl_counters *entry = bpf_map_lookup_elem(&counters, &number);

	if (!entry || verdict->reason >= SL_REASONS)
		return;
	cell_add(&entry->reason[verdict->reason], packet);
	if (!verdict->refused)
		return;
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (verdict->refused >> slot & 1)
			cell_add(&entry->refused[slot], packet);
}

/* By source: what `sources` reads. */
static __always_inline void count_source(const struct packet *packet, struct sl_bucket *bucket,
					 const struct verdict *verdict)
{
	if (!bucket)
		return;
	if (verdict->reason >= SL_FIRST_DROP)
		cell_add(&bucket->dropped, packet);
	else
		cell_add(&bucket->passed, packet);
	if (verdict->reason < SL_FIRST_DROP && verdict->refused)
		cell_add(&bucket->observed, packet);
}

#endif
