/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts how many packets each source sends in a second, in a histogram of its policy for each CPU.
 *
 * Only sources with a bucket are counted. A second of a source begins with a packet. It ends with
 * the first packet at least 1 s later that is charged to a shared state or refused by a limit. So a
 * packet that only spends a slice costs nothing more, but a second may be longer than 1 s by the
 * life of a slice. If this CPU stops using the bucket, the current second is not counted, because
 * the bucket does not see the rest of its packets.
 */
#ifndef SLUICE_RATE_H
#define SLUICE_RATE_H

#include "bucket.h"
#include "histogram.h"

#define NS_PER_SECOND 1000000000ULL

/* Counts a second of a source that sent this number of packets. version: its policy version. */
BPF_GLOBAL int rate_count(__u32 version, __u32 packets)
{
	__u32 number = SL_POLICY(version);
	struct sl_counters *entry = bpf_map_lookup_elem(&counters, &number);

	if (!entry)
		return 0;
	entry->rates.seconds[histogram_bucket(packets, 0, SL_RATE_BUCKETS)]++;
	entry->rates.packets += packets;
	return 0;
}

/*
 * If the current second of a source is over, counts it and begins the next second. Call this
 * function before the packet is counted in the bucket. Looks up the gate again, because another
 * pointer in the stack frame of filter() would exceed the stack of Linux 6.1.
 */
static __always_inline void rate_review(const struct packet *packet, struct sl_bucket *bucket,
					__u32 version)
{
	const struct sl_gate *gate = gate_get();
	__u32 jiffies = packet->jiffy - bucket->second_at;

	if (!gate || (__u64)jiffies * gate->jiffy_ns < NS_PER_SECOND)
		return;
	rate_count(version, bucket_packets(bucket) - bucket->second_begin);
	second_begin(bucket, packet);
}

#endif
