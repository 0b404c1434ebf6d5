// SPDX-License-Identifier: GPL-2.0
/*
 * Sluice's packet path: parse the frame, recall what this CPU knows of its source, charge the
 * packet to the source's limit, count it, give the verdict. One core for every hook; the entries at
 * the end only translate.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>
#include "bucket.h"
#include "count.h"
#include "skb.h"

char LICENSE[] SEC("license") = "GPL";

/* Judges a packet whose source is known. */
static __always_inline enum sl_reason judge(const struct packet *packet, __u32 *ret_record)
{
	const struct sl_gate *gate = gate_get();
	struct sl_bucket *bucket = bucket_find(packet);
	enum sl_reason reason;
	__u32 record, generation;

	if (!gate)
		return SL_PASS_NO_RULE;
	generation = *(volatile __u32 *)&gate->generation;
	if (!bucket)
		bucket = bucket_make(packet);
	if (bucket && bucket->generation == generation && bucket->policy != SL_BUCKET_SPLIT)
		record = bucket->policy;
	else
		record = bucket_judge(&packet->source, bucket, gate, generation);

	reason = bucket_charge(packet, bucket, record);
	count_source(packet, bucket, reason);
	*ret_record = record;
	return reason;
}

/* The verdict: does the packet pass? */
static __always_inline bool filter(struct packet *packet, enum sl_reason parsed)
{
	enum sl_reason reason = parsed;
	__u32 record = 0;

	if (parsed == SL_PASS_WITHIN)
		reason = judge(packet, &record);
	count_policy(packet, SL_POLICY(record), reason);
	return reason < SL_FIRST_DROP;
}

SEC("xdp.frags")
int sluice_xdp(struct xdp_md *ctx)
{
	struct cursor cursor = {(void *)(long)ctx->data, (void *)(long)ctx->data_end};
	struct packet packet = {.packets = 1, .bytes = bpf_xdp_get_buff_len(ctx)};
	enum sl_reason parsed = packet_parse(&cursor, &packet);

	return filter(&packet, parsed) ? XDP_PASS : XDP_DROP;
}

SEC("tc")
int sluice_tc(struct __sk_buff *skb)
{
	struct packet packet;
	enum sl_reason parsed = skb_parse(skb, &packet);

	/* TC_ACT_UNSPEC and not OK: programs and filters that others attached have their say. */
	return filter(&packet, parsed) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}
