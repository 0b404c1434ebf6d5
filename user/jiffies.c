// SPDX-License-Identifier: GPL-2.0
#include "jiffies.h"

#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>

/* Any frame: the program does not look at it. */
#define FRAME_BYTES 64

/* return bpf_jiffies64(); */
static int program_load(void)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "sluice_jiffies", "GPL", instructions,
			     sizeof(instructions) / sizeof(instructions[0]), NULL);
}

enum status jiffies_read(uint32_t *ret)
{
	const char frame[FRAME_BYTES] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame));
	int fd = program_load(), err = fd;

	if (fd >= 0) {
		err = bpf_prog_test_run_opts(fd, &opts);
		close(fd);
	}
	if (err < 0)
		return fail("cannot read the kernel's tick count: %s", why(err));
	*ret = opts.retval;
	return OK;
}
