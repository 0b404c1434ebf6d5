// SPDX-License-Identifier: GPL-2.0
/*
 * Two kinds of programs. Some programs are limiters with Sluice's parser, to compare them with
 * Sluice. The other programs change the source of a frame and then call the program under test.
 */
#include "vary.h"
#include <bpf/bpf_helpers.h>
#include "xdp.h"
#include "skb.h"

char LICENSE[] SEC("license") = "GPL";

#define HOT_SOURCES 16384 /* entries of an LRU map: Sluice's default number of buckets */

SEC("xdp.frags")
int bench_empty(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/* --- A program that drops and counts real packets -------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} dropped SEC(".maps");

SEC("xdp.frags")
int bench_drop(struct xdp_md *ctx)
{
	__u32 first = 0;
	__u64 *count = bpf_map_lookup_elem(&dropped, &first);

	(void)ctx;
	if (count)
		(*count)++;
	return XDP_DROP;
}

/* --- The parser alone ------------------------------------------------------------------------ */

static __always_inline bool source_parse(struct xdp_md *ctx, struct packet *packet)
{
	*packet = (struct packet){0};
	return xdp_parse(ctx, packet) == PARSED;
}

SEC("xdp.frags")
int bench_parse(struct xdp_md *ctx)
{
	struct packet packet;

	/* Use the whole source. Otherwise the compiler would remove parts of the parser. */
	if (!source_parse(ctx, &packet) || !(packet.source.bits | packet.source.addr[3]))
		return XDP_DROP;
	return XDP_PASS;
}

/* The value of a new entry. It is too large for the BPF stack. */
static const struct sl_bucket no_bucket;

/* --- The floor: the cost of the parser, a clock, and a per-CPU map of sources ----------------- */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, HOT_SOURCES);
	__type(key, __u32);
	__type(value, struct sl_bucket);
} floor_buckets SEC(".maps");

static __always_inline void floor_count(const struct packet *packet)
{
	__u64 now = bpf_ktime_get_ns();
	struct sl_bucket *bucket = bpf_map_lookup_elem(&floor_buckets, packet->source.addr);

	if (bucket) {
		bucket->slice[0].at.borrowed = now;
		bucket->passed.packets++;
	} else {
		bpf_map_update_elem(&floor_buckets, packet->source.addr, &no_bucket, BPF_NOEXIST);
	}
}

SEC("xdp.frags")
int bench_floor(struct xdp_md *ctx)
{
	struct packet packet;

	if (!source_parse(ctx, &packet))
		return XDP_DROP;
	floor_count(&packet);
	return XDP_PASS;
}

SEC("tc")
int bench_floor_tc(struct __sk_buff *skb)
{
	struct packet packet = {.egress = true};

	if (skb_parse(skb, &packet) != PARSED)
		return TC_ACT_SHOT;
	floor_count(&packet);
	return TC_ACT_UNSPEC;
}

/* --- A bare lookup in a map of many sources --------------------------------------------------- */

/* The loader sets the type and the sizes of this map (struct sized_map in behind.h). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sl_bucket));
} entries SEC(".maps");

/* Number of lookups of missing keys, since the programs were loaded. */
__u64 missed;

/* Looks up a key, and adds an entry if the map does not contain the key. */
static __always_inline int lookup_run(const __u32 *key)
{
	__u64 *value = bpf_map_lookup_elem(&entries, key);

	if (value) {
		(*value)++;
	} else {
		bpf_map_update_elem(&entries, key, &no_bucket, BPF_NOEXIST);
		missed++;
	}
	return XDP_PASS;
}

SEC("xdp.frags")
int bench_lookup(struct xdp_md *ctx)
{
	struct packet packet;

	if (!source_parse(ctx, &packet))
		return XDP_DROP;
	return lookup_run((const __u32 *)packet.source.addr);
}

/* An array's index is the low 20 bits of an address: 1 M sources. */
#define INDEX_MASK ((1 << 20) - 1)

SEC("xdp.frags")
int bench_lookup_index(struct xdp_md *ctx)
{
	struct packet packet;
	__u32 index;

	if (!source_parse(ctx, &packet))
		return XDP_DROP;
	index = bpf_ntohl(*(const __u32 *)packet.source.addr) & INDEX_MASK;
	return lookup_run(&index);
}

/* --- The textbook limiter: a token bucket per source and CPU, exact only on one CPU ----------- */

#define NAIVE_TOKEN_NS 5 /* one token per 5 ns, which is a rate of 200 Mpps */
#define NAIVE_BURST    1000000

struct naive_bucket {
	__u64 tokens;
	__u64 at;
	struct sl_cell passed;
	struct sl_cell dropped;
};

/* If a case has many sources, the loader makes this map larger. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, HOT_SOURCES);
	__type(key, __u32);
	__type(value, struct naive_bucket);
} naive_buckets SEC(".maps");

static __always_inline void naive_count(struct sl_cell *cell, const struct packet *packet)
{
	cell->packets++;
	cell->bytes += packet->bytes;
}

SEC("xdp.frags")
int bench_naive(struct xdp_md *ctx)
{
	struct naive_bucket *bucket;
	struct packet packet;
	__u64 now, tokens;

	if (!source_parse(ctx, &packet))
		return XDP_DROP;
	now = bpf_ktime_get_ns();
	bucket = bpf_map_lookup_elem(&naive_buckets, packet.source.addr);
	if (!bucket) {
		struct naive_bucket fresh = {.tokens = NAIVE_BURST - 1, .at = now};

		naive_count(&fresh.passed, &packet);
		bpf_map_update_elem(&naive_buckets, packet.source.addr, &fresh, BPF_ANY);
		missed++;
		return XDP_PASS;
	}
	tokens = bucket->tokens + (now - bucket->at) / NAIVE_TOKEN_NS;
	bucket->at = now;
	if (tokens > NAIVE_BURST)
		tokens = NAIVE_BURST;
	bucket->tokens = tokens ? tokens - 1 : 0;
	naive_count(tokens ? &bucket->passed : &bucket->dropped, &packet);
	return tokens ? XDP_PASS : XDP_DROP;
}

/* --- Programs that change the source, and call the program under test ------------------------ */

/*
 * The program under test. Its index is constant, so the kernel compiles the tail call as a direct
 * jump.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} under_test SEC(".maps");

/*
 * Writes the next IPv4 source, or a random IPv4 source, into a frame. Then runs the program under
 * test.
 */
static __always_inline int source_vary4(struct xdp_md *ctx, bool is_walk)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct vary *vary = data + IPV4_PAYLOAD;

	if ((void *)(vary + 1) > end)
		return XDP_ABORTED;
	*(__u32 *)(data + IPV4_SOURCE) = is_walk ? vary_step4(vary) : vary_next4(vary);
	bpf_tail_call(ctx, &under_test, 0);
	return XDP_ABORTED;
}

/*
 * Writes the next IPv6 source, or a random IPv6 source, into a frame. Then runs the program under
 * test.
 */
static __always_inline int source_vary6(struct xdp_md *ctx, bool is_walk)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct vary *vary = data + IPV6_PAYLOAD;
	__u64 *source = data + IPV6_SOURCE;

	if ((void *)(vary + 1) > end)
		return XDP_ABORTED;
	source[0] = is_walk ? vary_step6(vary) : vary_next6(vary, 0);
	source[1] = is_walk ? vary->base[1] : vary_next6(vary, 1);
	bpf_tail_call(ctx, &under_test, 0);
	return XDP_ABORTED;
}

SEC("xdp.frags")
int bench_vary4(struct xdp_md *ctx)
{
	return source_vary4(ctx, false);
}

SEC("xdp.frags")
int bench_vary6(struct xdp_md *ctx)
{
	return source_vary6(ctx, false);
}

SEC("xdp.frags")
int bench_walk4(struct xdp_md *ctx)
{
	return source_vary4(ctx, true);
}

SEC("xdp.frags")
int bench_walk6(struct xdp_md *ctx)
{
	return source_vary6(ctx, true);
}
