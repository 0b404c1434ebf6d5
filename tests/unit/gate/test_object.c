// SPDX-License-Identifier: GPL-2.0
/* user/gate/object.h: what maps take, as `sluice help attach` says it, and how a size is told. */
#include "test.h"
#include "gate/object.h"
#include "sluice.h"

#define ENTRIES (1U << 20)

static struct bpf_map_info info_of(uint32_t type, uint32_t key_size, uint32_t value_size)
{
	return (struct bpf_map_info){
		.type = type,
		.key_size = key_size,
		.value_size = value_size,
		.max_entries = ENTRIES,
	};
}

/* A source and limit takes 68 bytes of the table: 90.7 where three quarters of it are in use. */
static void test_memory_of_states_does_not_grow_with_cpus(void **state)
{
	struct bpf_map_info states = info_of(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_entry));
	struct bpf_map_info sets = info_of(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct sl_set));

	(void)state;
	sets.max_entries /= SL_WAYS;
	for (unsigned int cpus = 1; cpus <= 128; cpus *= 2)
		assert_int_equal(map_memory(&states, 0, cpus) + map_memory(&sets, 7, cpus),
				 68ULL * ENTRIES);
}

/* A bucket has a value for each CPU, whether it is used or not. */
static void test_memory_of_buckets_grows_with_cpus(void **state)
{
	struct bpf_map_info buckets =
		info_of(BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, sizeof(struct sl_bucket));

	(void)state;
	for (unsigned int cpus = 1; cpus <= 128; cpus *= 2)
		assert_int_equal(map_memory(&buckets, 0, cpus), (80ULL + 208 * cpus) * ENTRIES);
}

/* What is not set aside takes nothing until it is there; the table of the hash does. */
static void test_rules_take_memory_when_they_are_there(void **state)
{
	struct bpf_map_info hosts = info_of(BPF_MAP_TYPE_HASH, 4, sizeof(struct sl_rule));
	struct bpf_map_info prefixes =
		info_of(BPF_MAP_TYPE_LPM_TRIE, sizeof(struct sl_prefix), sizeof(struct sl_rule));

	(void)state;
	hosts.map_flags = prefixes.map_flags = BPF_F_NO_PREALLOC;
	assert_int_equal(map_memory(&hosts, 0, 2), 16ULL * ENTRIES);
	assert_int_equal(map_memory(&hosts, 1000, 2), 16ULL * ENTRIES + 112 * 1000);
	hosts.max_entries++; /* the table has a power of two */
	assert_int_equal(map_memory(&hosts, 0, 2), 32ULL * ENTRIES);
	assert_int_equal(map_memory(&prefixes, 0, 2), 0);
	assert_int_equal(map_memory(&prefixes, 1000, 2), 100 * 1000);
}

static void test_memory_of_arrays_is_set_aside(void **state)
{
	struct bpf_map_info plain = info_of(BPF_MAP_TYPE_ARRAY, 4, 12);
	struct bpf_map_info copies = info_of(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 12);

	(void)state;
	assert_int_equal(map_memory(&plain, 0, 8), 16ULL * ENTRIES);
	assert_int_equal(map_memory(&copies, 0, 8), (8ULL + 8 * 16) * ENTRIES);
}

static void test_memory_is_told_in_kb_mb_or_gb(void **state)
{
	char text[MEMORY_TEXT];

	(void)state;
	assert_string_equal(memory_format(0, text), "0.0 kB");
	assert_string_equal(memory_format(999900, text), "999.9 kB");
	assert_string_equal(memory_format(1000000, text), "1.0 MB");
	assert_string_equal(memory_format(58720256, text), "58.7 MB");
	assert_string_equal(memory_format(9999900000, text), "9999.9 MB");
	assert_string_equal(memory_format(10000000000, text), "10.0 GB");
	assert_string_equal(memory_format(UINT64_MAX, text), "18446744073.7 GB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_of_states_does_not_grow_with_cpus),
		cmocka_unit_test(test_memory_of_buckets_grows_with_cpus),
		cmocka_unit_test(test_rules_take_memory_when_they_are_there),
		cmocka_unit_test(test_memory_of_arrays_is_set_aside),
		cmocka_unit_test(test_memory_is_told_in_kb_mb_or_gb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
