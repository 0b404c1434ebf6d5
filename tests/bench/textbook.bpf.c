// SPDX-License-Identifier: GPL-2.0
/*
 * Three textbook rate limiters as XDP programs, for scripts/beside-others. Each has a fault. The
 * limit of an IPv4 source is RATE packets per second with a burst of BURST packets.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define RATE	     1000
#define BURST	     1000
#define SOURCES	     65536
#define NSEC_PER_SEC 1000000000ULL

char LICENSE[] SEC("license") = "GPL";

struct token_bucket {
	__u64 filled_at; /* ns */
	__u64 tokens;	 /* tokens in units of 1/NSEC_PER_SEC packet */
};

struct second {
	__u64 began_at; /* ns */
	__u64 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, SOURCES);
	__type(key, __u32);
	__type(value, struct token_bucket);
} per_cpu_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SOURCES);
	__type(key, __u32);
	__type(value, struct token_bucket);
} shared_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SOURCES);
	__type(key, __u32);
	__type(value, struct second);
} seconds SEC(".maps");

/* Reads the source of a frame. Returns false if the frame is not IPv4. */
static __always_inline bool source_read(struct xdp_md *ctx, __u32 *source)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(0x0800))
		return false;
	*source = ip->saddr;
	return true;
}

static __always_inline int bucket_charge(struct xdp_md *ctx, void *buckets)
{
	__u64 now = bpf_ktime_get_ns(), tokens;
	struct token_bucket *bucket;
	__u32 source;

	if (!source_read(ctx, &source))
		return XDP_PASS;
	bucket = bpf_map_lookup_elem(buckets, &source);
	if (!bucket) {
		struct token_bucket full = {now, (BURST - 1) * NSEC_PER_SEC};

		bpf_map_update_elem(buckets, &source, &full, BPF_ANY);
		return XDP_PASS;
	}
	tokens = bucket->tokens + (now - bucket->filled_at) * RATE;
	if (tokens > BURST * NSEC_PER_SEC)
		tokens = BURST * NSEC_PER_SEC;
	bucket->filled_at = now;
	if (tokens < NSEC_PER_SEC) {
		bucket->tokens = tokens;
		return XDP_DROP;
	}
	bucket->tokens = tokens - NSEC_PER_SEC;
	return XDP_PASS;
}

/* A limiter with a fault: on each CPU, a source has the whole limit. */
SEC("xdp")
int per_cpu_bucket(struct xdp_md *ctx)
{
	return bucket_charge(ctx, &per_cpu_buckets);
}

/* A limiter with a fault: two CPUs can spend the same tokens. */
SEC("xdp")
int shared_bucket(struct xdp_md *ctx)
{
	return bucket_charge(ctx, &shared_buckets);
}

/*
 * A limiter with a fault: a source can send its whole limit at the end of one second, and again at
 * the start of the next second.
 */
SEC("xdp")
int one_second(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct second *second;
	__u32 source;

	if (!source_read(ctx, &source))
		return XDP_PASS;
	second = bpf_map_lookup_elem(&seconds, &source);
	if (!second) {
		struct second first = {now, 1};

		bpf_map_update_elem(&seconds, &source, &first, BPF_ANY);
		return XDP_PASS;
	}
	if (now - second->began_at >= NSEC_PER_SEC) {
		second->began_at = now;
		second->packets = 0;
	}
	return __sync_fetch_and_add(&second->packets, 1) < RATE ? XDP_PASS : XDP_DROP;
}
