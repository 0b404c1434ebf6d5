// SPDX-License-Identifier: GPL-2.0
#include "behind.h"

#include <errno.h>
#include <bpf/bpf.h>

#include "rules/prefix.h"
#include "run.h"

#define BENCH_OBJECT "build/bench/bench.bpf.o"

/*
 * Size of an LRU map: twice the number of sources. With one entry per source, the map would evict
 * sources, because CPUs take free entries in batches of 128.
 */
#define ENTRIES_PER_SOURCE 2

static int map_size(struct bpf_object *object, const struct sized_map *wanted)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, wanted->name);
	int err = bpf_map__set_type(map, wanted->type);

	if (!err && wanted->value_size)
		err = bpf_map__set_value_size(map, wanted->value_size);
	return err ?: bpf_map__set_max_entries(map, ENTRIES_PER_SOURCE * wanted->sources);
}

static struct bpf_object *object_load(const struct sized_map *map)
{
	struct bpf_object *object = bpf_object__open_file(BENCH_OBJECT, NULL);
	int err = object ? 0 : -errno;

	if (!err && map)
		err = map_size(object, map);
	err = err ?: bpf_object__load(object);
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

/* Makes `prog` the program that bench.bpf.c calls. On failure, closes `object`. */
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

int bench_missed(const struct bpf_object *object, __u64 *ret)
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

/* --- Known sources --------------------------------------------------------------------------- */

/*
 * Wait this time in ns after a change of the flood threshold. It is several 64 ms intervals, so a
 * flood ends in this time.
 */
#define NOTICE_NS 300000000

/* A flood threshold so high that no flood is detected. Sums with it do not overflow. */
#define EVERYBODY (1U << 30)

int sources_walk(const struct bpf_object *object, const char *sources)
{
	struct sources parsed;
	uint32_t ns, verdict;
	struct frame frame;
	const char *program;
	int err;

	if (sources_parse(sources, &parsed))
		return -EIO;
	run_on(0);
	frame_write(&frame, &parsed, 0);
	program = prefix_is_ipv4(&parsed.prefix) ? "bench_walk4" : "bench_walk6";
	err = frame_run(bench_program(object, program), &frame, sources_count(&parsed), &ns,
			&verdict);
	return err ? error_add(EIO, "bench", NULL, "%s: cannot run packets: %s", sources, why(err))
		   : 0;
}

int establish(struct gate *gate, const struct bpf_object *object, const char *sources)
{
	struct sl_params *params = &gate->state->params;
	uint32_t usual = params->flood_threshold;
	int status;

	params->flood_threshold = EVERYBODY;
	sleep_ns(NOTICE_NS);
	status = sources_walk(object, sources);
	params->flood_threshold = usual;
	sleep_ns(NOTICE_NS);
	return status;
}
