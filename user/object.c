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

/* An fd that outlives the object; -1 and errno: there is none. */
static int program_keep(const struct bpf_object *object, const char *name)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	return fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
}

enum status programs_load(const struct gate *gate, struct programs *ret)
{
	struct bpf_object *object = object_open();
	struct programs programs = PROGRAMS_CLOSED;
	int err = 0;

	if (!object)
		return FAILED;
	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(object_map(object, map), gate->map[map]);
	if (!err)
		err = bpf_object__load(object);
	if (!err) {
		programs.xdp = program_keep(object, "sluice_xdp");
		programs.tc = program_keep(object, "sluice_tc");
		if (programs.xdp < 0 || programs.tc < 0)
			err = -errno;
	}
	bpf_object__close(object);
	if (err) {
		programs_close(&programs);
		return fail("cannot load the BPF programs: %s (-v shows the kernel's log)",
			    why(err));
	}
	*ret = programs;
	return OK;
}

void programs_close(struct programs *programs)
{
	if (programs->xdp >= 0)
		close(programs->xdp);
	if (programs->tc >= 0)
		close(programs->tc);
	*programs = PROGRAMS_CLOSED;
}
