/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The maps of a gate. Keys and values are in include/sluice.h. Sizes are set at load:
 * user/gate_sizes.c. All are pinned by name in /sys/fs/bpf/sluice/GATE/.
 */
#ifndef SLUICE_MAPS_H
#define SLUICE_MAPS_H

#include "sluice.h"
#include "compiler.h"

/* The generation of the rules; everything else in it is the writers'. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_gate);
} gate SEC(".maps");

/* The rules. Full: a change is refused. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* the address, big endian */
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

/* The named lists: user space's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_LIST_PLACES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_list_info);
} lists SEC(".maps");

/* The /64s that rules longer than /64 divide, with how many do. */
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

/* Full: the source that was heard least recently is forgotten, and comes back with a full burst. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct sl_ledger_key4);
	__type(value, struct sl_ledger);
} ledgers4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct sl_ledger_key6);
	__type(value, struct sl_ledger);
} ledgers6 SEC(".maps");

/*
 * Full: a source's counters are forgotten; its next packet is judged by the rules and its
 * ledger.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* the address, big endian */
	__type(value, struct sl_bucket);
} buckets4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct sl_bucket_key6);
	__type(value, struct sl_bucket);
} buckets6 SEC(".maps");

/* --- Newcomers: bpf/newcomer.h, bpf/shortcut.h, bpf/budget.h -------------------------------- */

/*
 * `sketch` and `shortcuts` have a part for each CPU, and are no per-CPU arrays: there each entry costs a pointer, and
 * its memory is one more cache miss away.
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
	__type(key, __u32);
	__type(value, struct sl_pool_word);
} pools SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_sketch_line);
} sketch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_known);
} known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_shortcut);
} shortcuts SEC(".maps");

/* How many rules divide each block. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64); /* the kernel keeps array values 8 bytes apart */
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sl_ledger);
} budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_allowance);
} allowances SEC(".maps");

/*
 * A lookup of a map by name. clang would merge the lookups of two maps into one call with a
 * variable map, and for that the verifier can no longer call the map's own function: measured, 42
 * ns a packet instead of 29. The empty asm differs from map to map, and so keeps the calls apart.
 */
#define map_lookup(map, key)                                                                       \
	({                                                                                         \
		void *value_ = bpf_map_lookup_elem(&(map), key);                                   \
		asm volatile("# " #map : "+r"(value_));                                            \
		value_;                                                                            \
	})

/* The gate's entry: an array map of one, so never NULL; the verifier wants to be told. */
static __always_inline const struct sl_gate *gate_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&gate, &zero);
}

#endif
