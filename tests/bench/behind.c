// SPDX-License-Identifier: GPL-2.0
#include "behind.h"

#include <errno.h>
#include <bpf/bpf.h>

#define BENCH_OBJECT "build/bench/bench.bpf.o"

/*
 * Entries for each source, so that an LRU map evicts none: it gives its free entries to CPUs in
 * batches of 128, and a CPU evicts when it gets no batch.
 */
#define ENTRIES_PER_SOURCE 2

static int map_size(struct bpf_object *object, const struct sized_map *wanted)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, wanted->name);
	int err = bpf_map__set_type(map, wanted->type);

	if (!err && wanted->value_size)
		err = bpf_map__set_value_size(map, wanted->value_size);
	return err ? err : bpf_map__set_max_entries(map, ENTRIES_PER_SOURCE * wanted->sources);
}

static struct bpf_object *object_load(const struct sized_map *map)
{
	struct bpf_object *object = bpf_object__open_file(BENCH_OBJECT, NULL);
	int err = object ? 0 : -errno;

	if (!err && map)
		err = map_size(object, map);
	if (!err)
		err = bpf_object__load(object);
	if (!err)
		return object;
	bpf_object__close(object);
	error_add(EIO, "bench", NULL, "cannot load %s: %s; run this where `make bench` is run",
		  BENCH_OBJECT, why(err));
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
	error_add(EIO, "bench", NULL, "cannot put a program behind another: %s", why(errno));
	bpf_object__close(object);
	return NULL;
}

struct bpf_object *bench_load_before(int prog)
{
	struct bpf_object *object = bench_load();

	return object ? behind_put(object, prog) : NULL;
}

struct bpf_object *bench_load_sized(const struct sized_map *map, int *ret_prog)
{
	struct bpf_object *object = object_load(map);

	if (!object)
		return NULL;
	*ret_prog = bench_program(object, map->program);
	return behind_put(object, *ret_prog);
}

int bench_missed(const struct bpf_object *object, uint64_t *ret)
{
	int fd = bpf_object__find_map_fd_by_name(object, ".bss");
	__u32 first = 0;

	if (bpf_map_lookup_elem(fd, &first, ret))
		return error_add(EIO, "bench", NULL, "cannot read the variables of %s: %s",
				 BENCH_OBJECT, why(errno));
	return 0;
}

int bench_program(const struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}
