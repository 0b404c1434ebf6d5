// SPDX-License-Identifier: GPL-2.0
#include "jiffies.h"

#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>

/* Writes bpf_jiffies64() into its context: what a program returns has 32 bits. */
static int program_load(void)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64},
		{.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);

	return bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "sluice_jiffies", "GPL", instructions,
			     sizeof(instructions) / sizeof(instructions[0]), &opts);
}

enum status jiffies_read(uint64_t *ret)
{
	uint64_t jiffies = 0;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &jiffies, .ctx_size_in = sizeof(jiffies));
	int fd = program_load(), err = fd;

	if (fd >= 0) {
		err = bpf_prog_test_run_opts(fd, &opts);
		close(fd);
	}
	if (err < 0)
		return fail("cannot read the kernel's tick count: %s", why(err));
	*ret = jiffies;
	return OK;
}
