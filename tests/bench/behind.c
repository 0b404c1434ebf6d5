// SPDX-License-Identifier: GPL-2.0
#include "behind.h"

#include <errno.h>
#include <bpf/bpf.h>

#define BENCH_OBJECT "build/bench/bench.bpf.o"

struct bpf_object *bench_load(void)
{
	struct bpf_object *object = bpf_object__open_file(BENCH_OBJECT, NULL);
	int err = object ? bpf_object__load(object) : -errno;

	if (!err)
		return object;
	bpf_object__close(object);
	failure("cannot load %s: %s; run this where `make bench` is run", BENCH_OBJECT, why(err));
	return NULL;
}

struct bpf_object *bench_load_before(int prog)
{
	struct bpf_object *object = bench_load();
	__u32 first = 0;
	int slots;

	if (!object)
		return NULL;
	slots = bpf_object__find_map_fd_by_name(object, "under_test");
	if (!bpf_map_update_elem(slots, &first, &prog, BPF_ANY))
		return object;
	failure("cannot put a program behind another: %s", why(errno));
	bpf_object__close(object);
	return NULL;
}

int bench_program(const struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}
