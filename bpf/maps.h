/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The maps of a gate, pinned by name in /sys/fs/bpf/sluice/GATE/. Their keys and values are in
 * include/sluice.h and include/newcomers.h. The command sets their sizes when it loads them.
 */
#ifndef SLUICE_MAPS_H
#define SLUICE_MAPS_H

#include "sluice.h"
#include "compiler.h"

/* The generation of the rules, the settings of admission, and what commands store. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_gate);
} gate SEC(".maps");

/* Rules by whole address. A command refuses a change that would exceed a map of rules. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u8[4]);
	__type(value, struct sl_rule);
} hosts4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u8[16]);
	__type(value, struct sl_rule);
} hosts6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sl_prefix);
	__type(value, struct sl_rule);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_LIST_PLACES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_list_info);
} lists SEC(".maps");

/* The number of rules longer than /64 in each /64 that has any. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} splits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_policy);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_counters);
} counters SEC(".maps");

_Static_assert(sizeof(struct sl_state_words) == sizeof(struct sl_state), "the same words");

/* The table of states: include/ways.h. Commands map both, and change states, but do not insert. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_set);
} sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_entry);
} states SEC(".maps");

/* Keys: the address, big endian; for an IPv6 source bucket_key6(). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, __u8[4]);
	__type(value, struct sl_bucket);
} buckets4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, __u8[16]);
	__type(value, struct sl_bucket);
} buckets6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_in_use);
} in_use SEC(".maps");

/*
 * --- New sources: bpf/flood.h, bpf/rules.h, bpf/charge.h -------------------------------------
 *
 * `newcomers` and `rule_cache` are arrays with a part for each CPU, because an entry of a per-CPU
 * array costs a pointer and one more cache miss.
 */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_admission);
} admission SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_sketch);
} newcomers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_rule_cache);
} rule_cache SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE); /* page-aligned, so that sets are cache lines */
	__type(key, __u32);
	__type(value, struct sl_host_cache_set);
} host_cache SEC(".maps");

/* The number of rules within each aggregate: include/aggregate.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64); /* the kernel keeps array values 8 bytes apart */
} subrules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_state_words);
} budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_budget_slice);
} budget_slices SEC(".maps");

/* The secret of all hashes: include/digest.h. Global data, which programs read without a lookup. */
__u64 hash_secret[SL_SECRETS] SEC(".data.secret");

/*
 * A lookup in one of two maps that are used alike. clang would merge both lookups into one call
 * with a variable map, which the verifier cannot replace by the map's own function: 42 ns a packet
 * instead of 29. The empty asm differs by map and keeps the calls apart.
 */
#define map_lookup(map, key)                                                                       \
	({                                                                                         \
		void *value_ = bpf_map_lookup_elem(&(map), key);                                   \
		asm volatile("# " #map : "+r"(value_));                                            \
		value_;                                                                            \
	})

/* Returns the one entry of map `gate`. It always exists, but the verifier requires a test. */
static __always_inline const struct sl_gate *gate_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&gate, &first);
}

#endif
