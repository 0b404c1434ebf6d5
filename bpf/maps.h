/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The maps of a gate. Each map is pinned by its name in /sys/fs/bpf/sluice/GATE/. include/sluice.h
 * defines the types of the values. A command sets the sizes when it makes the gate.
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

/* Map `gate`: generation of the rules, numbers of rules, settings, and data of commands. */
MAP(gate, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_gate);

/*
 * Maps of rules. If a map has no room for a change of the rules, the command that makes the change
 * fails.
 */
MAP(hosts4, HASH, BPF_F_NO_PREALLOC, __u8[4], struct sl_rule);
MAP(hosts6, HASH, BPF_F_NO_PREALLOC, __u8[16], struct sl_rule);
MAP(prefixes, LPM_TRIE, BPF_F_NO_PREALLOC, struct sl_prefix, struct sl_rule);
MAP(lists, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_list_info);
/* For each /64 that contains longer rules: the number of these rules. */
MAP(splits, HASH, BPF_F_NO_PREALLOC, __u64, __u32);

MAP(policies, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_policy);
MAP(counters, PERCPU_ARRAY, 0, __u32, struct sl_counters);

/* The table of states (include/ways.h). Commands change states. Only packets insert states. */
MAP(sets, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_set);
MAP(states, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_entry);
_Static_assert(sizeof(struct sl_state_words) == sizeof(struct sl_state), "the same words");

/* The buckets of sources. bucket_key() makes the keys. */
MAP(buckets4, LRU_PERCPU_HASH, 0, __u8[4], struct sl_bucket);
MAP(buckets6, LRU_PERCPU_HASH, 0, __u8[16], struct sl_bucket);
MAP(in_use, PERCPU_ARRAY, 0, __u32, struct sl_in_use);

/*
 * Maps for sources without a bucket. `sketches` and `rule_cache` are plain arrays with a part for
 * each CPU. A per-CPU array would cost one more cache miss, because it reaches its values through a
 * pointer. A map with BPF_F_MMAPABLE begins at a page boundary, so each set of `host_cache` is one
 * cache line.
 */
MAP(admission, PERCPU_ARRAY, 0, __u32, struct sl_admission);
MAP(sketches, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_sketch);
MAP(rule_cache, ARRAY, 0, __u32, struct sl_rule_cache);
MAP(host_cache, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_host_cache_set);
/* The number of longer rules in each aggregate (include/aggregate.h). Values are 8 bytes apart. */
MAP(subrules, ARRAY, BPF_F_MMAPABLE, __u32, __u64);
MAP(budgets, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_state_words);
MAP(budget_slices, PERCPU_ARRAY, 0, __u32, struct sl_budget_slice);

/* Histograms of the durations of timed packets (bpf/duration.h). */
MAP(durations, PERCPU_ARRAY, 0, __u32, struct sl_durations);

/* Records of crossings and dropped packets, for the process that reads them (bpf/record.h). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SL_EVENTS_BYTES);
} events SEC(".maps");
MAP(offenders, ARRAY, BPF_F_MMAPABLE, __u32, struct sl_offender_set);

/* The secret of all hashes, as global data, because programs read it without a map lookup. */
__u64 hash_secret[SL_SECRETS] SEC(".data.secret");

/*
 * Looks up a key in one of two maps. Each lookup has its own branch. Otherwise clang would merge
 * both lookups into one call with a variable map, which the verifier could not replace by the
 * lookup function of the map. A packet would cost 42 ns instead of 29 ns. The empty asm with the
 * map's name keeps the calls apart.
 */
#define map_lookup(map, key)                                                                       \
	({                                                                                         \
		void *value_ = bpf_map_lookup_elem(&(map), key);                                   \
		asm volatile("# " #map : "+r"(value_));                                            \
		value_;                                                                            \
	})

/* Returns the value of map `gate`. It always exists, but the verifier requires a NULL test. */
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

static __always_inline struct sl_durations *durations_get(void)
{
	return bpf_map_lookup_elem(&durations, &(__u32){0});
}

#endif
