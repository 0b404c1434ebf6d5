// SPDX-License-Identifier: GPL-2.0
#include "object.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sluice.skel.h"

struct bpf_object *object_open(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "sluice");
	struct bpf_object *object;
	const void *bytes;
	size_t size;

	bytes = sluice__elf_bytes(&size);
	object = bpf_object__open_mem(bytes, size, &opts);
	if (!object)
		fail("cannot read the BPF programs in this binary: %s", why(errno));
	return object;
}

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map)
{
	return bpf_object__find_map_by_name(object, gate_map_names[map]);
}

static const char *const program_names[HOOKS] = {
	[HOOK_XDP] = "sluice_xdp",
	[HOOK_INGRESS] = "sluice_ingress",
	[HOOK_EGRESS] = "sluice_egress",
};

static const char *const carrier_names[] = {"sluice_carry_ledger", "sluice_carry_counters"};

#define CARRIERS 2

/* An fd that outlives the object; -1 and errno: there is none. */
static int program_keep(const struct bpf_object *object, const char *name)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	return fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
}

/* Chooses what bpf_object__load() loads. */
static void programs_choose(const struct bpf_object *object, const char *const names[], int count)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, false);
	for (int i = 0; i < count; i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(object, names[i]), true);
}

static void fds_close(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Loads programs on the gate's maps. On failure all fds are -1. */
static enum status object_load(const struct gate *gate, const char *const names[], int count,
			       int *ret_fds)
{
	struct bpf_object *object = object_open();
	int err = 0;

	if (!object)
		return FAILED;
	programs_choose(object, names, count);
	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(object_map(object, map), gate->map[map]);
	if (!err)
		err = bpf_object__load(object);
	for (int i = 0; !err && i < count; i++) {
		ret_fds[i] = program_keep(object, names[i]);
		if (ret_fds[i] < 0)
			err = -errno;
	}
	bpf_object__close(object);
	if (!err)
		return OK;
	fds_close(ret_fds, count);
	return fail("cannot load the BPF programs: %s (-v shows the kernel's log)", why(err));
}

enum status programs_load(const struct gate *gate, struct programs *ret)
{
	*ret = PROGRAMS_CLOSED;
	return object_load(gate, program_names, HOOKS, ret->fd);
}

void programs_close(struct programs *programs)
{
	fds_close(programs->fd, HOOKS);
}

enum status carriers_load(const struct gate *gate, struct carriers *ret)
{
	int fds[CARRIERS] = {-1, -1};
	enum status status = object_load(gate, carrier_names, CARRIERS, fds);

	*ret = (struct carriers){fds[0], fds[1]};
	return status;
}

void carriers_close(struct carriers *carriers)
{
	fds_close(&carriers->ledger, 1);
	fds_close(&carriers->counters, 1);
}
