/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Per-CPU counters. Updates need no atomics, because programs on one CPU run with bottom halves
 * off. On PREEMPT_RT a program may interrupt another program, so a count may be lost.
 */
#ifndef SLUICE_COUNT_H
#define SLUICE_COUNT_H

#include "bucket.h"
#include "charge.h"

static __always_inline void count_add(struct sl_cell *cell, const struct packet *packet)
{
	cell->packets += packet->packets;
	cell->bytes += packet->bytes;
}

/*
 * Counts a packet for each inherited limit that refused it. Uses the counters of the policy that
 * defines the limit.
 */
BPF_GLOBAL int count_inherited(const struct packet *packet, __u32 version, __u32 refused)
{
	const struct sl_policy *policy = bpf_map_lookup_elem(&policies, &version);

	if (!packet)
		return 0;
	for (int slot = 0; policy && slot < SL_LIMITS_MAX; slot++) {
		__u32 home = policy->origin[slot], number = SL_ORIGIN_POLICY(home);
		struct sl_counters *entry;

		if (!(refused & SL_MARK_INHERITED(slot)))
			continue;
		entry = bpf_map_lookup_elem(&counters, &number);
		if (entry)
			count_add(&entry->refused[SL_ORIGIN_SLOT(home)], packet);
	}
	return 0;
}

/* Counts a packet for each limit that refused it. entry: counters of the policy that decided. */
static __always_inline void count_refused(const struct packet *packet,
					  const struct verdict *verdict, struct sl_counters *entry)
{
	for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (verdict->refused & SL_MARK_OWN(slot))
			count_add(&entry->refused[slot], packet);
	if (verdict->refused >= SL_MARK_INHERITED(0))
		count_inherited(packet, verdict->version, verdict->refused);
}

static __always_inline void count_policy(const struct packet *packet, const struct verdict *verdict)
{
	__u32 number = SL_POLICY(verdict->version);
	struct sl_counters *entry = bpf_map_lookup_elem(&counters, &number);

	if (!entry || verdict->reason >= SL_REASONS)
		return;
	count_add(&entry->reason[verdict->reason], packet);
	if (verdict->refused)
		count_refused(packet, verdict, entry);
}

static __always_inline void count_source(const struct packet *packet, struct sl_bucket *bucket,
					 enum sl_reason reason, __u32 refused)
{
	if (reason >= SL_FIRST_DROP || refused)
		bucket_refuse(bucket, packet);
	if (reason >= SL_FIRST_DROP) {
		count_add(&bucket->dropped, packet);
		return;
	}
	count_add(&bucket->passed, packet);
	if (refused)
		count_add(&bucket->observed, packet);
}

/* Makes this CPU use a bucket for the source of a packet, and counts the packet in the bucket. */
BPF_GLOBAL int count_first(const struct packet *packet, __u32 claim, __u32 reason, __u32 refused)
{
	struct sl_bucket *bucket;

	if (!packet)
		return 0;
	bucket = bucket_start(packet, claim);
	if (bucket)
		count_source(packet, bucket, reason, refused);
	return 0;
}

#endif
