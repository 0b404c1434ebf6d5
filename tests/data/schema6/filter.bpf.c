// SPDX-License-Identifier: GPL-2.0
/*
 * Stands for the programs of the version whose gates have schema 6: filters by such a gate's maps,
 * as far as the tests of its upgrade look. Denies what an entry by hand or a list denies. Otherwise
 * charges the first limit of the policy to its ledger, as that version does for a limit without
 * purses. Counts where that version does. IPv4 only; a rule decides from `now`, whatever the ends.
 */
#include "sluice.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define MAP(name_, type_, key_, value_, flags_)                                                    \
	struct {                                                                                   \
		__uint(type, type_);                                                               \
		__uint(max_entries, 1);                                                            \
		__uint(map_flags, flags_);                                                         \
		__type(key, key_);                                                                 \
		__type(value, value_);                                                             \
	} name_ SEC(".maps")

MAP(gate, BPF_MAP_TYPE_ARRAY, __u32, struct sl_gate, BPF_F_MMAPABLE);
MAP(hosts4, BPF_MAP_TYPE_HASH, __u32, struct sl_rule, BPF_F_NO_PREALLOC);
MAP(prefixes, BPF_MAP_TYPE_LPM_TRIE, struct sl_prefix, struct sl_rule, BPF_F_NO_PREALLOC);
MAP(policies, BPF_MAP_TYPE_ARRAY, __u32, struct sl_policy, BPF_F_MMAPABLE);
MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct sl_counters, 0);
MAP(ledgers4, BPF_MAP_TYPE_LRU_HASH, struct sl_ledger_key4, struct sl_ledger, 0);

#define ETH_HLEN   14
#define SOURCE_AT  12 /* in an IPv4 header */
#define ETH_P_IPV4 0x0800

static __always_inline bool decide(__u32 number, enum sl_reason reason, __u64 bytes)
{
	struct sl_counters *counted = bpf_map_lookup_elem(&counters, &number);

	if (counted) {
		counted->reason[reason].packets++;
		counted->reason[reason].bytes += bytes;
	}
	return reason < SL_FIRST_DROP;
}

/*
 * Whether the ledger of the source has credit for a packet; a source without one is a newcomer, and
 * passes.
 */
static __always_inline enum sl_reason charge(const struct sl_limit *limit, __u32 source)
{
	struct sl_ledger_key4 key = {source, limit->id};
	struct sl_ledger *ledger = bpf_map_lookup_elem(&ledgers4, &key);
	__u64 now = bpf_ktime_get_ns() * SL_TICKS_PER_NS, zero;

	if (!ledger)
		return SL_PASS_NEWCOMER;
	zero = *(volatile __u64 *)&ledger->zero;
	if ((__s64)(now - zero) > (__s64)limit->burst)
		zero = now - limit->burst;
	if ((__s64)(now - zero) < (__s64)limit->cost)
		return SL_DROP_OVER_LIMIT;
	ledger->zero = zero + limit->cost;
	ledger->drawn = now;
	return SL_PASS_WITHIN;
}

/* What a face says by its entry by hand, or else by its lists. */
static __always_inline enum sl_list access_of(const struct sl_face *face)
{
	const struct sl_gate *state;
	__u32 zero = 0;

	state = bpf_map_lookup_elem(&gate, &zero);
	if (face->list || !face->lists || !state)
		return face->list;
	return face->lists & state->lists_allow ? SL_LIST_ALLOW : SL_LIST_DENY;
}

/* Whether the packet passes. */
static __always_inline bool judge(void *data, void *end, __u64 bytes)
{
	struct sl_prefix key = {SL_FAMILY_BITS + 32, bpf_htonl(SL_FAMILY_IPV4), {0}};
	__u32 source, record;
	const struct sl_policy *policy;
	const struct sl_rule *rule;
	enum sl_list access;

	if (data + ETH_HLEN + 20 > end || *(__u16 *)(data + 12) != bpf_htons(ETH_P_IPV4))
		return decide(SL_POLICY_NONE, SL_PASS_NOT_IP, bytes);
	__builtin_memcpy(&source, data + ETH_HLEN + SOURCE_AT, sizeof(source));
	__builtin_memcpy(key.addr, &source, sizeof(source));
	rule = bpf_map_lookup_elem(&hosts4, &source);
	if (!rule)
		rule = bpf_map_lookup_elem(&prefixes, &key);
	if (!rule)
		return decide(SL_POLICY_NONE, SL_PASS_NO_RULE, bytes);
	access = access_of(&rule->now);
	if (access == SL_LIST_DENY)
		return decide(SL_POLICY_DENY, SL_DROP_DENIED, bytes);
	if (access == SL_LIST_ALLOW)
		return decide(SL_POLICY_ALLOW, SL_PASS_ALLOWED, bytes);
	record = rule->now.record;
	policy = bpf_map_lookup_elem(&policies, &record);
	if (!policy)
		return true;
	return decide(SL_POLICY(record), charge(&policy->limit[SL_IPV4][0], source), bytes);
}

SEC("xdp.frags")
int old_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	return judge(data, end, end - data) ? XDP_PASS : XDP_DROP;
}

static __always_inline int judge_skb(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	return judge(data, end, skb->len) ? -1 /* TC_ACT_UNSPEC */ : 2 /* TC_ACT_SHOT */;
}

SEC("tc")
int old_ingress(struct __sk_buff *skb)
{
	return judge_skb(skb);
}

SEC("tc")
int old_egress(struct __sk_buff *skb)
{
	return judge_skb(skb);
}
