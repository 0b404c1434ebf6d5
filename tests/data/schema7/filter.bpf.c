// SPDX-License-Identifier: GPL-2.0
/*
 * Stands for the programs of the version whose gates have schema 7: filters by such a gate's maps,
 * as far as the tests of its upgrade look. Denies what an entry by hand or a list denies. Otherwise
 * charges the first limit of the policy to its ledger in the table, as that version does for a limit
 * without purses. Counts where that version does. IPv4 only; a rule decides from `now`, whatever the ends.
 */
#include "digest.h"

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
MAP(sets, BPF_MAP_TYPE_ARRAY, __u32, struct sl_set, BPF_F_MMAPABLE);
MAP(ledgers, BPF_MAP_TYPE_ARRAY, __u32, struct sl_line, BPF_F_MMAPABLE);

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

/* The line of a key in one set; NULL: it has none there. */
static __always_inline struct sl_line *set_find(__u32 number, __u16 tag, const __u64 addr[2],
						__u32 limit)
{
	const struct sl_set *set = bpf_map_lookup_elem(&sets, &number);

	for (__u32 way = 0; set && way < SL_WAYS; way++) {
		__u32 at = number * SL_WAYS + way;
		struct sl_line *line = bpf_map_lookup_elem(&ledgers, &at);

		if (line && set->tag[way] == tag && line->addr[0] == addr[0] &&
		    line->limit == limit)
			return line;
	}
	return NULL;
}

/* As table_find() of that version: in the home of the key, or in its other set. */
static __always_inline struct sl_line *line_find(const struct sl_limit *limit, __u32 source)
{
	const __u64 addr[2] = {source & (__u32)limit->mask[0]};
	__u32 zero = 0, key = limit->id << 3 | limit->kind << 1 | 1, home;
	const struct sl_gate *state = bpf_map_lookup_elem(&gate, &zero);
	struct sl_line *line;
	struct digest digest;
	__u16 tag;

	if (!state)
		return NULL;
	digest = digest_key(&state->meeting, addr, key);
	home = digest.place & state->meeting.set_mask;
	tag = digest.mark >> 16 & ~1;
	if (!tag)
		tag = 2;
	line = set_find(home, tag, addr, key);
	home = (home ^ ((__u32)(tag >> 1) * 0x9e3779b1U >> 8 | 1)) & state->meeting.set_mask;
	return line ? line : set_find(home, tag | 1, addr, key);
}

/*
 * Whether the ledger of the source has credit for a packet; a source without one is a newcomer, and
 * passes.
 */
static __always_inline enum sl_reason charge(const struct sl_limit *limit, __u32 source)
{
	struct sl_line *line = line_find(limit, source);
	__u64 now = bpf_ktime_get_ns() * SL_TICKS_PER_NS, zero;

	if (!line)
		return SL_PASS_NEWCOMER;
	zero = *(volatile __u64 *)&line->ledger.zero;
	if ((__s64)(now - zero) > (__s64)limit->burst)
		zero = now - limit->burst;
	if ((__s64)(now - zero) < (__s64)limit->cost)
		return SL_DROP_OVER_LIMIT;
	line->ledger.zero = zero + limit->cost;
	line->ledger.drawn = now;
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
