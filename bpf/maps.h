/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The maps of a gate, pinned by name in /sys/fs/bpf/sluice/GATE/. Their types are in
 * include/sluice.h. The command sets their sizes.
 */
#ifndef SLUICE_MAPS_H
#define SLUICE_MAPS_H

#include "sluice.h"
#include "base.h"

#define MAP(name, kind, flags, key_type, value_type)                                               \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_##kind);                                                 \
		__uint(max_entries, 1);                                                            \
		__uint(map_flags, flags);                                                          \
		__type(key, key_type);                                                             \
		__type(value, value_type);                                                         \
	} name SEC(".maps")

/* The generation of the rules, the settings of admission, and what commands store. */
MAP(gate, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_gate);

/* Rules. A command refuses a change that would exceed a map. */
MAP(hosts4, HASH, BPF_F_NO_PREALLOC, __u8[4], struct sl_rule);
MAP(hosts6, HASH, BPF_F_NO_PREALLOC, __u8[16], struct sl_rule);
MAP(prefixes, LPM_TRIE, BPF_F_NO_PREALLOC, struct sl_prefix, struct sl_rule);
MAP(lists, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_list_info);
/* The number of rules longer than /64 in each /64 that has any. */
MAP(splits, HASH, BPF_F_NO_PREALLOC, __u64, __u32);

MAP(policies, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_policy);
MAP(counters, PERCPU_ARRAY, 0, __u32, struct sl_counters);

/* The table of states: include/ways.h. Commands map both, and change states, but do not insert. */
MAP(sets, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_set);
MAP(states, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_entry);
_Static_assert(sizeof(struct sl_state_words) == sizeof(struct sl_state), "the same words");

/* Keys: bucket_key(). */
MAP(buckets4, LRU_PERCPU_HASH, 0, __u8[4], struct sl_bucket);
MAP(buckets6, LRU_PERCPU_HASH, 0, __u8[16], struct sl_bucket);
MAP(in_use, PERCPU_ARRAY, 0, __u32, struct sl_in_use);

/*
 * New sources. `sketches` and `rule_cache` are arrays with a part for each CPU, because an entry of
 * a per-CPU array costs a pointer and one more cache miss. A map that can be mapped is page-aligned,
 * so the sets of `host_cache` are cache lines.
 */
MAP(admission, PERCPU_ARRAY, 0, __u32, struct sl_admission);
MAP(sketches, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_sketch);
MAP(rule_cache, ARRAY, 0, __u32, struct sl_rule_cache);
MAP(host_cache, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_host_cache_set);
/* The number of rules within each aggregate: include/aggregate.h. */
MAP(subrules, ARRAY, BPF_F_MMAPABLE, __u32, __u64);
MAP(budgets, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_state_words);
MAP(budget_slices, PERCPU_ARRAY, 0, __u32, struct sl_budget_slice);

/* The secret of all hashes. Global data, which programs read without a lookup. */
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

/* The entries of maps that have one: they always exist, but the verifier requires a test. */
static __always_inline const struct sl_gate *gate_get(void)
{
	return bpf_map_lookup_elem(&gate, &(__u32){0});
}

static __always_inline struct sl_admission *admission_get(void)
{
	return bpf_map_lookup_elem(&admission, &(__u32){0});
}

static __always_inline struct sl_in_use *in_use_get(void)
{
	return bpf_map_lookup_elem(&in_use, &(__u32){0});
}

#endif
