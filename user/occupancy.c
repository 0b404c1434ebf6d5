// SPDX-License-Identifier: GPL-2.0
#include "occupancy.h"

#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "gate_lists.h"
#include "lists.h"
#include "rules.h"

/* Counting is one system call an entry: some 20 ms for so many. */
#define COUNT_MAX 65536

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

/* The gate knows how many hosts both maps hold: one that is too large to count has the rest. */
static bool hosts_count(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	enum gate_map other = map == MAP_HOSTS4 ? MAP_HOSTS6 : MAP_HOSTS4;
	uint32_t both = gate->state->hosts, others;

	if (!both) {
		*ret = 0;
		return true;
	}
	if (keys_count(gate->map[map], ret))
		return true;
	if (!keys_count(gate->map[other], &others) || others > both)
		return false;
	*ret = both - others;
	return true;
}

static enum status policies_count(const struct gate *gate, uint32_t *ret)
{
	const struct sl_policy **policies;
	unsigned int count;
	enum status status = rules_policies(gate, &policies, &count);

	if (status)
		return status;
	free(policies);
	*ret = count;
	return OK;
}

static uint32_t lists_in_use(const struct gate *gate)
{
	struct sl_list_info lists[SL_LIST_PLACES];

	lists_copy(gate, lists);
	return lists_count(lists);
}

static bool is_by_policy(enum gate_map map)
{
	return map == MAP_POLICIES || map == MAP_COUNTERS || map == MAP_BUDGETS ||
	       map == MAP_ALLOWANCES;
}

enum status map_max_entries(const struct gate *gate, enum gate_map map, uint32_t *ret)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (is_by_policy(map)) { /* not records, nor the gate's own policies */
		*ret = gate->policies_max - SL_POLICY_FIRST;
		return OK;
	}
	if (map == MAP_LISTS) { /* the other places are for changes */
		*ret = SL_LISTS_MAX;
		return OK;
	}
	if (bpf_obj_get_info_by_fd(gate->map[map], &info, &size))
		return fail("cannot read map '%s' of gate '%s': %s", gate_map_names[map],
			    gate->name, why(errno));
	*ret = info.max_entries;
	return OK;
}

enum status occupancy_read(const struct gate *gate, enum gate_map map, struct occupancy *ret)
{
	struct occupancy occupancy = {.counted = true};
	enum status status = map_max_entries(gate, map, &occupancy.max_entries);

	if (status)
		return status;
	if (map == MAP_POLICIES || map == MAP_COUNTERS)
		status = policies_count(gate, &occupancy.entries);
	else if (map == MAP_HOSTS4 || map == MAP_HOSTS6)
		occupancy.counted = hosts_count(gate, map, &occupancy.entries);
	else if (map == MAP_PREFIXES)
		occupancy.entries = gate->state->prefixes;
	else if (map == MAP_LISTS)
		occupancy.entries = lists_in_use(gate);
	else if (map == MAP_GATE)
		occupancy.entries = 1;
	else
		occupancy.counted = keys_count(gate->map[map], &occupancy.entries);
	if (!status)
		*ret = occupancy;
	return status;
}
