// SPDX-License-Identifier: GPL-2.0
/*
 * The packet path. Each packet takes these steps, in this order:
 *
 *    1. parse    frame -> source address                  xdp.h or skb.h, packet.h
 *    2. look up  source -> its bucket, policy version     bucket.h, or the caches of rules.h
 *    3. charge   policy version -> limits -> a reason     charge.h, state.h, table.h, flood.h
 *    4. count    by policy and by source; its duration    count.h, rate.h, duration.h
 *    5. verdict  pass or drop, by the reason; on egress perhaps a departure time
 *
 * All hooks share filter(). The entry points at the end of this file only translate between the
 * hook and filter().
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>
#include "xdp.h"
#include "skb.h"
#include "bucket.h"
#include "charge.h"
#include "count.h"
#include "duration.h"
#include "rate.h"
#include "record.h"

char LICENSE[] SEC("license") = "GPL";

#ifdef SL_TEST_CLOCK
/* The last packet and its verdict, as a struct sl_judged, for `sluice replay`. */
__u64 test_judged[sizeof(struct sl_judged) / sizeof(__u64)];
#endif

/*
 * Sets verdict->reason according to verdict->version. If that version has limits, charges the
 * packet to them.
 */
static __always_inline void judge(void *ctx, bool is_xdp, struct packet *packet,
				  struct sl_bucket *bucket, struct verdict *verdict)
{
	struct sl_policy *policy;

	if (verdict->version == SL_POLICY_VERSION(SL_POLICY_NONE)) {
		verdict->reason = SL_PASS_NO_RULE;
	} else if (verdict->version == SL_POLICY_VERSION(SL_POLICY_ALLOW)) {
		verdict->reason = SL_PASS_ALLOWED;
	} else if (verdict->version == SL_POLICY_VERSION(SL_POLICY_DENY)) {
		verdict->reason = SL_DROP_DENIED;
	} else {
		policy = bpf_map_lookup_elem(&policies, &verdict->version);
		if (!policy)
			return; /* never reached, because the map has every policy version */
		if (policy->deep && !packet->inspected && is_xdp)
			xdp_inspect(ctx, packet, policy->deep);
		else if (policy->deep && !packet->inspected)
			skb_inspect(ctx, packet, policy->deep);
		policy_charge(packet, policy,
			      bucket && bucket->policy_version == verdict->version ? bucket : NULL,
			      verdict);
	}
}

/*
 * Decides about a packet, and counts it. Returns whether the packet passes. The caller has set
 * verdict->reason to the result of the parser, which is PARSED if the frame has a source.
 */
static __always_inline bool filter(void *ctx, bool is_xdp, struct packet *packet,
				   struct verdict *verdict, struct sl_in_use *here)
{
	enum sl_reason parsed = verdict->reason;
	const struct sl_gate *gate = gate_get();
	bool passes;

	if (parsed == PARSED && gate) {
		struct sl_bucket *bucket;
		enum bucket_claim claim;

		packet_begin(packet, gate);
		verdict->is_watched = record_is_wanted(gate, packet->jiffy);
		bucket = bucket_find(packet, here);
		verdict->version = bucket ? bucket_recall(packet, bucket, gate)
					  : rule_cache_lookup(packet, gate);
		judge(ctx, is_xdp, packet, bucket, verdict);
		if (verdict->is_charged)
			bucket_review(packet, verdict, bucket);
		if (bucket && (verdict->is_charged || verdict->refused))
			rate_review(packet, bucket, verdict->version);
		claim = bucket ? BUCKET_NONE : verdict_claim(packet, verdict);
		if (bucket)
			count_source(packet, bucket, verdict->reason, verdict->refused);
		else if (claim)
			count_first(packet, claim, verdict->reason, verdict->refused);
		if (verdict->is_watched && (verdict->refused || verdict->reason >= SL_FIRST_DROP))
			packet_record(ctx, is_xdp, packet, verdict, bucket);
	} else if (parsed >= SL_FIRST_DROP && gate) {
		if (!gate->hosts && !gate->prefixes)
			verdict->reason = SL_PASS_NO_RULE;
		else if (read_once(gate->lease_until))
			packet_record(ctx, is_xdp, packet, verdict, NULL);
	}
	count_policy(packet, verdict);
#ifdef SL_TEST_CLOCK
	judged_store(packet, verdict, test_judged);
#endif
	passes = verdict->reason < SL_FIRST_DROP;
	if (!verdict->untimed)
		duration_count(passes);
	return passes;
}

static __always_inline bool xdp_filter(struct xdp_md *ctx)
{
	struct packet packet = {0};
	struct verdict verdict = {0};
	struct sl_in_use *here = in_use_get();

	if (!here)
		return false; /* unreachable */
	duration_begin(here, &verdict);
	verdict.reason = xdp_parse(ctx, &packet);
	return filter(ctx, true, &packet, &verdict, here);
}

SEC("xdp.frags")
int sluice_xdp(struct xdp_md *ctx)
{
	return xdp_filter(ctx) ? XDP_PASS : XDP_DROP;
}

/*
 * The program array with the programs that run after Sluice, and the slots of these programs. It is
 * not a map of the gate: each attachment in modes chain and array has its own, which is pinned in
 * the gate's directory links/. The slots are constants when the program is loaded.
 */
MAP(chain, PROG_ARRAY, 0, __u32, __u32);
const volatile struct sl_chain chain_slots SEC(".rodata.chain") = {0, 1};

/*
 * Replaces sluice_xdp() in modes chain and array. A packet that passes goes on to the next program
 * in map `chain`, whose verdict is final. Loaded only for a device in these modes ('?'), with frags
 * if the other programs have them.
 */
SEC("?xdp")
int sluice_chain(struct xdp_md *ctx)
{
	if (!xdp_filter(ctx))
		return XDP_DROP;
	for (__u32 slot = chain_slots.first; slot < chain_slots.end; slot++)
		bpf_tail_call(ctx, &chain, slot);
	return XDP_PASS; /* the slots are empty */
}

static __always_inline int tc_filter(struct __sk_buff *skb, bool egress)
{
	struct packet packet = {.egress = egress};
	struct verdict verdict = {0};
	struct sl_in_use *here = in_use_get();

	if (!here)
		return TC_ACT_SHOT; /* unreachable */
	duration_begin(here, &verdict);
	verdict.reason = skb_parse(skb, &packet);
	if (egress)
		verdict.departure = skb_earliest(skb);
	if (!filter(skb, false, &packet, &verdict, here))
		return TC_ACT_SHOT;
	if (egress && verdict.departure != skb_earliest(skb))
		skb_depart(skb, verdict.departure);
	/* TC_ACT_OK would skip the later programs and filters of this hook */
	return TC_ACT_UNSPEC;
}

SEC("tc")
int sluice_ingress(struct __sk_buff *skb)
{
	return tc_filter(skb, false);
}

SEC("tc")
int sluice_egress(struct __sk_buff *skb)
{
	return tc_filter(skb, true);
}
