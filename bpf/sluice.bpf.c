// SPDX-License-Identifier: GPL-2.0
/*
 * Sluice's packet path: parse the frame, recall what this CPU knows of its source, charge the
 * packet to the limits of the source's policy, count it, give the verdict. One core for every hook;
 * the entries at the end only translate.
 */
#include "sluice.h"
#include <bpf/bpf_helpers.h>
#include "carry.h"
#include "count.h"
#include "policy.h"
#include "shortcut.h"
#include "skb.h"
#include "xdp.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline void inspect(void *ctx, bool is_xdp, struct packet *packet)
{
	if (packet->inspected)
		return;
	if (is_xdp)
		xdp_inspect(ctx, packet);
	else
		skb_inspect(ctx, packet);
}

/* Judges a packet by the record that decides about its source. */
static __always_inline void judge(void *ctx, bool is_xdp, struct packet *packet,
				  struct sl_bucket *bucket, struct verdict *verdict)
{
	struct sl_policy *policy;

	if (verdict->record == SL_RECORD(SL_POLICY_NONE)) {
		verdict->reason = SL_PASS_NO_RULE;
	} else if (verdict->record == SL_RECORD(SL_POLICY_ALLOW)) {
		verdict->reason = SL_PASS_ALLOWED;
	} else if (verdict->record == SL_RECORD(SL_POLICY_DENY)) {
		verdict->reason = SL_DROP_DENIED;
	} else {
		policy = bpf_map_lookup_elem(&policies, &verdict->record);
		if (!policy)
			return;
		if (policy->deep)
			inspect(ctx, is_xdp, packet);
		policy_charge(packet, policy,
			      bucket && bucket->record == verdict->record ? bucket : NULL, verdict);
	}
}

/* A rule may come into force, or go, at the next packet: no more than its number is asked for. */
static __always_inline bool gate_has_rules(const struct sl_gate *gate)
{
	return gate->hosts || gate->prefixes;
}

/* The verdict: does the packet pass? */
static __always_inline bool filter(void *ctx, bool is_xdp, struct packet *packet,
				   enum sl_reason parsed)
{
	struct verdict verdict = {.reason = parsed};
	const struct sl_gate *gate = gate_get();

	if (parsed == PARSED && gate) {
		struct sl_bucket *bucket;

		packet_begin(packet, gate);
		bucket = bucket_get(packet, gate);
		verdict.record = bucket ? bucket_recall(packet, bucket, gate)
					: shortcut_recall(packet, gate);
		judge(ctx, is_xdp, packet, bucket, &verdict);
		count_source(packet, bucket, &verdict);
	} else if (parsed >= SL_FIRST_DROP && gate && !gate_has_rules(gate)) {
		verdict.reason = SL_PASS_NO_RULE;
	}
	count_policy(packet, &verdict);
	return verdict.reason < SL_FIRST_DROP;
}

SEC("xdp.frags")
int sluice_xdp(struct xdp_md *ctx)
{
	struct packet packet = {0};
	enum sl_reason parsed = xdp_parse(ctx, &packet);

	return filter(ctx, true, &packet, parsed) ? XDP_PASS : XDP_DROP;
}

static __always_inline int tc_filter(struct __sk_buff *skb, bool egress)
{
	struct packet packet = {.egress = egress};
	enum sl_reason parsed = skb_parse(skb, &packet);

	/* TC_ACT_UNSPEC and not OK: programs and filters that others attached have their say. */
	return filter(skb, false, &packet, parsed) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
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
