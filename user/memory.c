// SPDX-License-Identifier: GPL-2.0
#include "memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <bpf/bpf.h>

/* The kernel's, on 64 bits: an element of a hash map before its key, a bucket of the table, a node of a trie. */
#define ELEMENT_BYTES 48
#define BUCKET_BYTES  16
#define NODE_BYTES    24

/* Of a trie's key: the length of the prefix, which is a part of the node. */
#define LENGTH_BYTES 4

static uint64_t round_up_8(uint64_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

static uint64_t power_of_two(uint64_t least)
{
	uint64_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

static bool is_per_cpu(const struct bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       info->type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* A value; with a copy for each CPU, the pointer to them as well. */
static uint64_t value_bytes(const struct bpf_map_info *info, unsigned int cpus)
{
	uint64_t bytes = round_up_8(info->value_size);

	return is_per_cpu(info) ? sizeof(void *) + cpus * bytes : bytes;
}

static uint64_t hash_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus)
{
	uint64_t each = ELEMENT_BYTES + round_up_8(info->key_size) + value_bytes(info, cpus);
	bool set_aside = !(info->map_flags & BPF_F_NO_PREALLOC);

	return power_of_two(info->max_entries) * BUCKET_BYTES +
	       (set_aside ? info->max_entries : entries) * each;
}

/* Without the nodes that hold no entry of their own: one less than there are entries, at most. */
static uint64_t trie_memory(const struct bpf_map_info *info, uint32_t entries)
{
	return entries * (NODE_BYTES + (uint64_t)info->key_size - LENGTH_BYTES + info->value_size);
}

uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus)
{
	switch (info->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return info->max_entries * value_bytes(info, cpus);
	case BPF_MAP_TYPE_LPM_TRIE:
		return trie_memory(info, entries);
	default:
		return hash_memory(info, entries, cpus);
	}
}

enum status gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries,
			    uint64_t *ret)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(gate->map[map], &info, &size))
		return fail("cannot read map '%s' of gate '%s': %s", gate_map_names[map],
			    gate->name, why(errno));
	*ret = map_memory(&info, entries, gate->machine.cpus);
	return OK;
}

enum status memory_available(uint64_t *ret)
{
	static const char path[] = "/proc/meminfo";
	FILE *file = fopen(path, "re");
	unsigned long long kilobytes;
	bool found = false;
	char line[128];

	if (!file)
		return fail("cannot read %s: %s", path, why(errno));
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1;
	fclose(file);
	if (!found)
		return fail("%s does not say how much memory is available", path);
	*ret = kilobytes * 1024;
	return OK;
}

const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT])
{
	if (bytes < 1000000)
		snprintf(text, MEMORY_TEXT, "%.1f kB", bytes / 1e3);
	else if (bytes < 10000000000)
		snprintf(text, MEMORY_TEXT, "%.1f MB", bytes / 1e6);
	else
		snprintf(text, MEMORY_TEXT, "%.1f GB", bytes / 1e9);
	return text;
}
