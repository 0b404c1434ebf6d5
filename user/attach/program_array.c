// SPDX-License-Identifier: GPL-2.0
#include "attach/program_array.h"

#include <errno.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/cleanup.h"

/*
 * Loads an XDP program that calls slot 0 of a program array. Fails with -EINVAL if the kernel lets
 * such a program not call the programs of the array.
 */
static int caller_load(int array_fd, bool has_frags)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = array_fd},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_XDP,
		    .prog_flags = has_frags ? BPF_F_XDP_HAS_FRAGS : 0);

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "sluice_probe", "GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

int array_find_frags(int array_fd, bool *ret_has_frags)
{
	int err = -EINVAL;

	for (int has_frags = 1; err == -EINVAL && has_frags >= 0; has_frags--) {
		_cleanup_close_ int caller = caller_load(array_fd, has_frags);

		*ret_has_frags = has_frags;
		err = caller < 0 ? caller : 0;
	}
	return err;
}

int array_set(int array_fd, uint32_t slot, int program_fd)
{
	return bpf_map_update_elem(array_fd, &slot, &program_fd, BPF_ANY);
}

int array_make(void)
{
	return bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "chain", sizeof(__u32), sizeof(__u32), 1,
			      NULL);
}

uint32_t array_get(int array_fd, uint32_t slot)
{
	uint32_t id;

	return bpf_map_lookup_elem(array_fd, &slot, &id) ? 0 : id;
}

int array_count(int array_fd, uint32_t *ret)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info), slot = 0, id;

	if (bpf_obj_get_info_by_fd(array_fd, &info, &size))
		return -errno;
	/* the info of a program may begin with the same number, which is then its type */
	if (bpf_map_lookup_elem(array_fd, &slot, &id) == -EINVAL)
		return -EINVAL;
	*ret = info.max_entries;
	return info.type == BPF_MAP_TYPE_PROG_ARRAY ? 0 : -EINVAL;
}

bool array_find(int array_fd, uint32_t program_id, uint32_t *ret)
{
	uint32_t count = 0, slot = 0;

	if (!program_id || array_count(array_fd, &count))
		return false;
	while (slot < count && array_get(array_fd, slot) != program_id)
		slot++;
	*ret = slot;
	return slot < count;
}
