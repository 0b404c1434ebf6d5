// SPDX-License-Identifier: GPL-2.0
#include "gate/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <bpf/bpf.h>

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
		error_add(errno, "object-unread", NULL,
			  "cannot read the BPF programs in this binary: %s", why(errno));
	return object;
}

void object_close(struct bpf_object **object)
{
	bpf_object__close(*object);
}

struct bpf_map *object_map(const struct bpf_object *object, enum gate_map map)
{
	const char *name = map == MAP_SECRET ? ".data.secret" : gate_map_names[map];

	return bpf_object__find_map_by_name(object, name);
}

/* Loads an object on the gate's maps with the programs of those hooks, and keeps their fds. */
static int object_load(struct bpf_object *object, const struct gate *gate, unsigned int hooks,
		       int fds[HOOKS])
{
	static const char *const names[HOOKS] = {
		[HOOK_XDP] = "sluice_xdp",
		[HOOK_INGRESS] = "sluice_ingress",
		[HOOK_EGRESS] = "sluice_egress",
	};
	struct bpf_program *programs[HOOKS];
	int err = 0;

	for (int hook = 0; hook < HOOKS; hook++) {
		programs[hook] = bpf_object__find_program_by_name(object, names[hook]);
		bpf_program__set_autoload(programs[hook], hooks & HOOK_BIT(hook));
	}
	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(object_map(object, map), gate->map[map]);
	if (!err)
		err = bpf_object__load(object);
	for (int hook = 0; !err && hook < HOOKS; hook++) {
		if (!(hooks & HOOK_BIT(hook)))
			continue;
		fds[hook] = fcntl(bpf_program__fd(programs[hook]), F_DUPFD_CLOEXEC, 0);
		if (fds[hook] < 0)
			err = -errno;
	}
	return err;
}

int programs_load(const struct gate *gate, unsigned int hooks, struct programs *programs)
{
	_cleanup_object_ struct bpf_object *object = NULL;
	struct programs loaded = PROGRAMS_CLOSED;
	int err;

	for (int hook = 0; hook < HOOKS; hook++)
		if (programs->fd[hook] >= 0)
			hooks &= ~HOOK_BIT(hook);
	if (!hooks)
		return 0;
	object = object_open();
	if (!object)
		return -EIO;
	err = object_load(object, gate, hooks, loaded.fd);
	if (err) {
		programs_close(&loaded);
		return error_add(err, "programs-load", NULL,
				 "cannot load the BPF programs: %s (-v shows the kernel's log)",
				 why(err));
	}
	for (int hook = 0; hook < HOOKS; hook++)
		if (hooks & HOOK_BIT(hook))
			programs->fd[hook] = loaded.fd[hook];
	return 0;
}

void programs_close(struct programs *programs)
{
	for (int hook = 0; hook < HOOKS; hook++)
		close_fd(&programs->fd[hook]);
	*programs = PROGRAMS_CLOSED;
}

/* --- Memory --------------------------------------------------------------------------------- */

/*
 * Sizes in the kernel, on 64 bits: an element of a hash map without its key, a bucket of the table,
 * a node of a trie.
 */
#define ELEMENT_BYTES 48
#define BUCKET_BYTES  16
#define NODE_BYTES    24

/* The part of a trie's key that the node already counts: the length of the prefix. */
#define LENGTH_BYTES 4

static uint64_t round_up_8(uint64_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

uint64_t map_memory(const struct bpf_map_info *info, uint32_t entries, unsigned int cpus)
{
	bool is_per_cpu = info->type == BPF_MAP_TYPE_PERCPU_ARRAY ||
			  info->type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
	uint64_t each = round_up_8(info->value_size), slots = 1;

	if (is_per_cpu) /* a copy for each CPU, and a pointer to them */
		each = sizeof(void *) + cpus * each;
	switch (info->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return info->max_entries * each;
	case BPF_MAP_TYPE_LPM_TRIE:
		/* without inner nodes, of which there are fewer than entries */
		each = NODE_BYTES + (uint64_t)info->key_size - LENGTH_BYTES + info->value_size;
		return entries * each;
	default:
		each += ELEMENT_BYTES + round_up_8(info->key_size);
		if (!(info->map_flags & BPF_F_NO_PREALLOC))
			entries = info->max_entries;
		while (slots < info->max_entries)
			slots *= 2;
		return slots * BUCKET_BYTES + entries * each;
	}
}

int gate_map_memory(const struct gate *gate, enum gate_map map, uint32_t entries, uint64_t *ret)
{
	struct bpf_map_info info;
	int err = gate_map_info(gate, map, &info);

	if (err)
		return gate_map_unread(gate, map, err);
	*ret = map_memory(&info, entries, gate->machine.cpus);
	return 0;
}

const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT])
{
	if (bytes < 1000000)
		snprintf(text, MEMORY_TEXT, "%.1f kB", bytes / 1e3);
	else if (bytes < 10000000000)
		snprintf(text, MEMORY_TEXT, "%.1f MB", bytes / 1e6);
	else
		snprintf(text, MEMORY_TEXT, "%.1f GB", bytes / 1e9);
	return text;
}
