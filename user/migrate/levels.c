// SPDX-License-Identifier: GPL-2.0
#include "migrate/levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

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

int levels_open(const struct pins *pins)
{
	int fd = pin_open(pins, gate_map_names[MAP_LEDGERS]);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
	    info.type == BPF_MAP_TYPE_ARRAY && info.value_size == sizeof(struct sl_line) &&
	    info.map_flags & BPF_F_MMAPABLE)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* --- Walking -------------------------------------------------------------------------------- */

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

int levels_walk(int table, const struct limit_index *limits, level_call *call, void *data)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	struct sl_line *lines, line;
	int err = 0;

	if (bpf_obj_get_info_by_fd(table, &info, &size))
		return -errno;
	lines = mmap(NULL, info.max_entries * sizeof(*lines), PROT_READ, MAP_SHARED, table, 0);
	if (lines == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; !err && i < info.max_entries; i++) {
		const struct sl_limit *limit = NULL;

		if (line_copy(&lines[i], &line))
			limit = limit_find(limits, line.limit & 1 ? SL_IPV4 : SL_IPV6,
					   line.limit >> 3);
		if (limit && limit->kind == line_kind(&line))
			err = call(data, limit, &line);
	}
	munmap(lines, info.max_entries * sizeof(*lines));
	return err;
}
