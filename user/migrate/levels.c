// SPDX-License-Identifier: GPL-2.0
#include "migrate/levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "gate/old_schema.h"
#include "gate/records.h"
#include "ways.h"

/* --- Limits by id --------------------------------------------------------------------------- */

static int id_compare(const void *a, const void *b)
{
	const struct sl_limit *const *left = a, *const *right = b;

	return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

static int family_index(const struct gate *gate, enum sl_family family, struct limit_index *index)
{
	uint32_t records = SL_RECORD(gate_policies_seen(gate));
	const struct sl_limit **limits = calloc((size_t)records * SL_LIMITS_MAX, sizeof(*limits));
	unsigned int count = 0;

	index->limits[family] = limits;
	if (!limits)
		return -ENOMEM;
	for (uint32_t record = SL_RECORD(SL_POLICY_FIRST); record < records; record++) {
		const struct sl_policy *policy = record_read(gate, record);

		for (int i = 0; policy->since && i < policy->limits[family]; i++)
			limits[count++] = &policy->limit[family][i];
	}
	qsort(limits, count, sizeof(*limits), id_compare);
	index->count[family] = count;
	return 0;
}

int limit_index_make(const struct gate *gate, struct limit_index *ret)
{
	int err = family_index(gate, SL_IPV4, ret);

	return err ?: family_index(gate, SL_IPV6, ret);
}

void limit_index_free(struct limit_index *index)
{
	free(index->limits[SL_IPV4]);
	free(index->limits[SL_IPV6]);
	*index = (struct limit_index){0};
}

/* NULL: the limit is deleted, and no packet will use its ledgers again. */
static const struct sl_limit *limit_find(const struct limit_index *index, enum sl_family family,
					 uint32_t id)
{
	const struct sl_limit wanted = {.id = id}, *one = &wanted;
	const struct sl_limit **found =
		bsearch(&one, index->limits[family], index->count[family], sizeof(one), id_compare);

	return found ? *found : NULL;
}

/* --- Maps ----------------------------------------------------------------------------------- */

struct level_maps level_maps_of(const struct gate *gate)
{
	return (struct level_maps){
		.table = gate->map[MAP_LEDGERS],
		.old = {gate->map[MAP_OLD_LEDGERS4], gate->map[MAP_OLD_LEDGERS6]},
	};
}

/* flags: those that the map needs. */
static int shaped_open(const struct pins *pins, enum gate_map map, const struct map_shape *shape,
		       uint32_t flags)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	int fd = pin_open(pins, gate_map_names[map]);

	if (fd >= 0 && map_has_shape(fd, shape) > 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
	    (info.map_flags & flags) == flags)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

struct level_maps level_maps_open(const struct pins *pins)
{
	static const struct map_shape table = {BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
					       sizeof(struct sl_line), 0};
	static const struct map_shape ipv4 = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct old_ledger_key4),
					      sizeof(struct sl_ledger), 0};
	static const struct map_shape ipv6 = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct old_ledger_key6),
					      sizeof(struct sl_ledger), 0};

	return (struct level_maps){
		.table = shaped_open(pins, MAP_LEDGERS, &table, BPF_F_MMAPABLE),
		.old = {shaped_open(pins, MAP_OLD_LEDGERS4, &ipv4, 0),
			shaped_open(pins, MAP_OLD_LEDGERS6, &ipv6, 0)},
	};
}

bool level_maps_any(const struct level_maps *maps)
{
	return maps->table >= 0 || maps->old[SL_IPV4] >= 0 || maps->old[SL_IPV6] >= 0;
}

static void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void level_maps_close(struct level_maps *maps)
{
	fd_close(maps->table);
	fd_close(maps->old[SL_IPV4]);
	fd_close(maps->old[SL_IPV6]);
	*maps = LEVEL_MAPS_NONE;
}

/* --- Walking -------------------------------------------------------------------------------- */

struct walk {
	const struct limit_index *limits;
	enum sl_family family;
	level_call *call;
	void *data;
};

/*
 * Copies a line as one key's. False: it is free, or is just being handed to another key, which
 * charges it only after this.
 */
static bool line_copy(const struct sl_line *line, struct sl_line *ret)
{
	struct ledger_key key;

	*ret = *(const volatile struct sl_line *)line;
	key = (struct ledger_key){{ret->addr[0], ret->addr[1]}, ret->limit};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ret->limit && line_is(line, &key);
}

static int line_walk(const struct walk *walk, const struct sl_line *line)
{
	enum sl_family family = line->limit & 1 ? SL_IPV4 : SL_IPV6;
	const struct sl_limit *limit = limit_find(walk->limits, family, line->limit >> 3);

	if (!limit || limit->kind != line_kind(line))
		return 0;
	return walk->call(walk->data, limit, line);
}

static int table_walk(int fd, const struct walk *walk)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	struct sl_line *lines, line;
	int err = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	lines = mmap(NULL, info.max_entries * sizeof(*lines), PROT_READ, MAP_SHARED, fd, 0);
	if (lines == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; !err && i < info.max_entries; i++)
		if (line_copy(&lines[i], &line))
			err = line_walk(walk, &line);
	munmap(lines, info.max_entries * sizeof(*lines));
	return err;
}

/* The line of a ledger of an older schema. */
static int old_walk(void *data, const void *key, const void *value)
{
	const struct walk *walk = data;
	const struct old_ledger_key4 *key4 = key;
	const struct old_ledger_key6 *key6 = key;
	bool ipv4 = walk->family == SL_IPV4;
	const struct sl_limit *limit =
		limit_find(walk->limits, walk->family, ipv4 ? key4->limit : key6->limit);
	struct sl_line line = {0};

	if (!limit)
		return 0;
	line.limit = limit->id << 3 | limit->kind << 1 | ipv4;
	if (ipv4)
		line.addr[0] = key4->addr;
	else
		memcpy(line.addr, key6->addr, sizeof(line.addr));
	memcpy(&line.ledger, value, sizeof(line.ledger));
	line.span = limit->span;
	line.made =
		line_moment(line.ledger.drawn) | LINE_CAME_BACK; /* or before; as far as known */
	return walk->call(walk->data, limit, &line);
}

int levels_walk(const struct level_maps *maps, const struct limit_index *limits, level_call *call,
		void *data)
{
	static const size_t key_sizes[SL_FAMILIES] = {sizeof(struct old_ledger_key4),
						      sizeof(struct old_ledger_key6)};
	struct walk walk = {.limits = limits, .call = call, .data = data};
	int err = maps->table >= 0 ? table_walk(maps->table, &walk) : 0;

	for (walk.family = 0; !err && walk.family < SL_FAMILIES; walk.family++)
		if (maps->old[walk.family] >= 0)
			err = map_walk(maps->old[walk.family], key_sizes[walk.family],
				       sizeof(struct sl_ledger), old_walk, &walk);
	return err;
}
