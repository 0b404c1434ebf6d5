// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/gate/maps.h. map_memory() returns the memory use of maps, and memory_format() formats
 * it.
 */
#include "test.h"

#include <linux/bpf.h>

#include "base/array.h"
#include "gate/maps.h"
#include "sluice.h"

#define M (1U << 20)

TEST(test_memory)
{
	static const struct {
		const char *name;
		uint32_t type, key, value, max, flags, entries, cpus;
		uint64_t bytes;
	} cases[] = {
		{"a state needs 64 bytes, with any number of CPUs", BPF_MAP_TYPE_ARRAY, 4,
		 sizeof(struct sl_entry), M, 0, 0, 128, 64ULL * M},
		{"its tag needs 4 bytes more", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_set),
		 M / SL_WAYS, 0, 7, 128, 4ULL * M},
		{"a bucket has a value for each CPU, used or not", BPF_MAP_TYPE_LRU_PERCPU_HASH, 4,
		 sizeof(struct sl_bucket), M, 0, 0, 64, (80ULL + 224 * 64) * M},
		{"a host needs memory when it exists", BPF_MAP_TYPE_HASH, 4, sizeof(struct sl_rule),
		 M, BPF_F_NO_PREALLOC, 1000, 2, 16ULL * M + 112 * 1000},
		{"a hash table has a power of two", BPF_MAP_TYPE_HASH, 4, sizeof(struct sl_rule),
		 M + 1, BPF_F_NO_PREALLOC, 0, 2, 32ULL * M},
		{"a prefix needs memory when it exists", BPF_MAP_TYPE_LPM_TRIE,
		 sizeof(struct sl_prefix), sizeof(struct sl_rule), M, BPF_F_NO_PREALLOC, 1000, 2,
		 100 * 1000},
		{"values are rounded up to 8 bytes", BPF_MAP_TYPE_ARRAY, 4, 12, M, 0, 0, 8,
		 16ULL * M},
		{"and have a copy for each CPU", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 12, M, 0, 0, 8,
		 (8ULL + 8 * 16) * M},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct bpf_map_info info = {
			.type = cases[i].type,
			.key_size = cases[i].key,
			.value_size = cases[i].value,
			.max_entries = cases[i].max,
			.map_flags = cases[i].flags,
		};
		uint64_t bytes = map_memory(&info, cases[i].entries, cases[i].cpus);

		if (bytes != cases[i].bytes)
			fail_msg("%s: %lu bytes, not %lu", cases[i].name, bytes, cases[i].bytes);
	}
}

TEST(test_memory_is_formatted_in_kb_mb_or_gb)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0.0 kB"},
		{999900, "999.9 kB"},
		{1000000, "1.0 MB"},
		{9999900000, "9999.9 MB"},
		{10000000000, "10.0 GB"},
		{UINT64_MAX, "18446744073.7 GB"},
	};
	char text[MEMORY_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(memory_format(cases[i].bytes, text), cases[i].text);
}

TESTS(NULL, NULL)
