// SPDX-License-Identifier: GPL-2.0
#include "occupancy.h"

#include <errno.h>
#include <bpf/bpf.h>

#include "rules.h"

/* Counting is one system call an entry: some 20 ms for so many. */
#define COUNT_MAX 65536

static bool is_array(uint32_t type)
{
	return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

/* Walks keys, taking no lock that packets wait for. False: gave up. */
static bool keys_count(int fd, uint32_t *ret)
{
	char key[2][sizeof(struct sl_prefix)]; /* the longest key of any map */
	uint32_t count = 0;
	void *last = NULL;

	while (!bpf_map_get_next_key(fd, last, key[count % 2])) {
		last = key[count % 2];
		if (++count > COUNT_MAX)
			return false;
	}
	*ret = count;
	return true;
}

static enum status map_info(const struct gate *gate, enum gate_map map, struct bpf_map_info *ret)
{
	__u32 size = sizeof(*ret);

	*ret = (struct bpf_map_info){0};
	if (bpf_obj_get_info_by_fd(gate->map[map], ret, &size))
		return fail("cannot read map '%s' of gate '%s': %s", gate_map_names[map],
			    gate->name, why(errno));
	return OK;
}

enum status map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	struct bpf_map_info info;
	enum status status = map_info(gate, map, &info);

	if (!status)
		*ret = info.max_entries;
	return status;
}

enum status occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret)
{
	const struct sl_policy *policies[SL_POLICIES_MAX];
	struct bpf_map_info info;
	struct occupancy occupancy;
	enum status status = map_info(gate, map, &info);

	if (status)
		return status;
	occupancy = (struct occupancy){.max_entries = info.max_entries, .counted = true};
	if (map == MAP_POLICIES)
		occupancy.entries = rules_list(gate, policies);
	else if (is_array(info.type))
		occupancy.entries = info.max_entries;
	else
		occupancy.counted = keys_count(gate->map[map], &occupancy.entries);
	*ret = occupancy;
	return OK;
}
