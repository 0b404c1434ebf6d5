// SPDX-License-Identifier: GPL-2.0
/* Sends packets at full speed through the shipped programs. */
#include "rig.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/gate.h"

struct shipped rig_ship(const struct rig *rig, unsigned int hooks)
{
	static const char *const names[HOOKS] = {
		[HOOK_XDP] = "sluice_xdp",
		[HOOK_INGRESS] = "sluice_ingress",
		[HOOK_EGRESS] = "sluice_egress",
	};
	const char *path = getenv("SLUICE_BPF_OBJECT");
	struct bpf_program *program, *programs[HOOKS];
	struct shipped shipped;

	path = path ? path : "build/sluice.bpf.o";
	shipped.object = bpf_object__open_file(path, NULL);
	if (!shipped.object)
		fail_msg("cannot open %s: run this where `make` was run", path);
	for (int map = 0; map < GATE_MAPS; map++) {
		struct bpf_map *own = object_map(shipped.object, map);

		assert_non_null(own);
		assert_int_equal(bpf_map__reuse_fd(own, rig->gate.map[map]), 0);
	}
	/*
	 * The shipped programs have no global variables. Test builds use a global variable as
	 * clock.
	 */
	assert_null(bpf_object__find_map_by_name(shipped.object, ".bss"));
	bpf_object__for_each_program (program, shipped.object)
		bpf_program__set_autoload(program, false);
	for (int hook = 0; hook < HOOKS; hook++) {
		programs[hook] = bpf_object__find_program_by_name(shipped.object, names[hook]);
		assert_non_null(programs[hook]);
		bpf_program__set_autoload(programs[hook], hooks & HOOK_BIT(hook));
	}
	assert_int_equal(bpf_object__load(shipped.object), 0);
	for (int hook = 0; hook < HOOKS; hook++)
		shipped.prog[hook] = hooks & HOOK_BIT(hook) ? bpf_program__fd(programs[hook]) : -1;
	return shipped;
}

void shipped_free(struct shipped *shipped)
{
	bpf_object__close(shipped->object);
}

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static bool flood_goes_on(const struct flood *flood)
{
	if (flood->stop)
		return !__atomic_load_n(flood->stop, __ATOMIC_ACQUIRE);
	return flood->sent < flood->count || clock_ns() < flood->until_ns;
}

/* This function runs in a thread of its own, so it cannot use cmocka assertions. */
static void *flood_run(void *data)
{
	struct flood *flood = data;
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(flood->cpu, &only);
	flood->err = -pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
	if (flood->first)
		pthread_setschedparam(pthread_self(), SCHED_FIFO,
				      &(struct sched_param){.sched_priority = 1});
	flood->begin = clock_ns() * SL_TICKS_PER_NS;
	while (!flood->err && flood_goes_on(flood)) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = flood->frame->bytes,
			    .data_size_in = flood->frame->size, .repeat = flood->chunk);

		flood->err = bpf_prog_test_run_opts(flood->prog, &opts);
		if (!flood->err)
			flood->sent += flood->chunk;
	}
	flood->end = clock_ns() * SL_TICKS_PER_NS;
	return NULL;
}

/* --- Waiting for packets -------------------------------------------------------------------- */

static unsigned int floods; /* number of running floods */

void real_synchronize_programs(void) __asm__("__real_synchronize_programs");
void rig_synchronize_programs(void) __asm__("__wrap_synchronize_programs");

/*
 * Replaces synchronize_programs() in tests. Waits only if a flood is running, because otherwise no
 * program is running. Makes at least one system call, because tests kill a change at each system
 * call.
 */
void rig_synchronize_programs(void)
{
	if (floods)
		real_synchronize_programs();
	else
		syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
}

void flood_start(struct flood *flood)
{
	floods++;
	flood->sent = 0;
	assert_int_equal(pthread_create(&flood->thread, NULL, flood_run, flood), 0);
}

void flood_join(struct flood *flood)
{
	assert_int_equal(pthread_join(flood->thread, NULL), 0);
	floods--;
	assert_int_equal(flood->err, 0);
}
