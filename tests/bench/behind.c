// SPDX-License-Identifier: GPL-2.0
#include "behind.h"

#include <errno.h>
#include <bpf/bpf.h>

#define BENCH_OBJECT "build/bench/bench.bpf.o"

/* An LRU map evicts none if it has room for so many more than are in use: a part of these. */
#define SPARE_PART 8

static int entries_set(struct bpf_object *object, const struct lookup_map *map)
{
	struct bpf_map *entries = bpf_object__find_map_by_name(object, "entries");
	uint32_t spare = map->type == BPF_MAP_TYPE_ARRAY ? 0 : map->sources / SPARE_PART;
	int err = bpf_map__set_type(entries, map->type);

	if (!err)
		err = bpf_map__set_value_size(entries, map->value_size);
	return err ? err : bpf_map__set_max_entries(entries, map->sources + spare);
}

static struct bpf_object *object_load(const struct lookup_map *map)
{
	struct bpf_object *object = bpf_object__open_file(BENCH_OBJECT, NULL);
	int err = object ? 0 : -errno;

	if (!err && map)
		err = entries_set(object, map);
	if (!err)
		err = bpf_object__load(object);
	if (!err)
		return object;
	bpf_object__close(object);
	failure("cannot load %s: %s; run this where `make bench` is run", BENCH_OBJECT, why(err));
	return NULL;
}

struct bpf_object *bench_load(void)
{
	return object_load(NULL);
}

/* Closes the object where it fails. */
static struct bpf_object *behind_put(struct bpf_object *object, int prog)
{
	int slots = bpf_object__find_map_fd_by_name(object, "under_test");
	__u32 first = 0;

	if (!bpf_map_update_elem(slots, &first, &prog, BPF_ANY))
		return object;
	failure("cannot put a program behind another: %s", why(errno));
	bpf_object__close(object);
	return NULL;
}

struct bpf_object *bench_load_before(int prog)
{
	struct bpf_object *object = bench_load();

	return object ? behind_put(object, prog) : NULL;
}

struct bpf_object *bench_load_lookup(const struct lookup_map *map, int *ret_prog)
{
	bool is_array = map->type == BPF_MAP_TYPE_ARRAY;
	struct bpf_object *object = object_load(map);

	if (!object)
		return NULL;
	*ret_prog = bench_program(object, is_array ? "bench_lookup_index" : "bench_lookup");
	return behind_put(object, *ret_prog);
}

enum status bench_lookup_counts(const struct bpf_object *object, struct lookup_counts *ret)
{
	int fd = bpf_object__find_map_fd_by_name(object, ".bss");
	__u32 first = 0;

	if (bpf_map_lookup_elem(fd, &first, ret))
		return failure("cannot read the variables of %s: %s", BENCH_OBJECT, why(errno));
	return OK;
}

int bench_program(const struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}
