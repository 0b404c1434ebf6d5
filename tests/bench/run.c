// SPDX-License-Identifier: GPL-2.0
#include "run.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/*
 * Number of packets in a run on the second CPU. The run never sends all of them, because a signal
 * ends it earlier.
 */
#define BESIDE_PACKETS 100000000U

/*
 * Time in ns after which the second CPU sends packets. Before that, the kernel waits for an RCU
 * grace period.
 */
#define BESIDE_START_NS 60000000

static unsigned int cpu_numbers[RUN_CPUS];

static unsigned int cpu_count;

unsigned int run_cpus(void)
{
	return cpu_count;
}

static void nothing(int signal)
{
	(void)signal; /* so that a signal interrupts system calls with EINTR */
}

void run_init(void)
{
	struct sigaction action = {.sa_handler = nothing};
	cpu_set_t mine;

	sigaction(SIGUSR1, &action, NULL);
	CPU_ZERO(&mine);
	sched_getaffinity(0, sizeof(mine), &mine);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && cpu_count < RUN_CPUS; cpu++)
		if (CPU_ISSET(cpu, &mine))
			cpu_numbers[cpu_count++] = cpu;
}

void run_on(unsigned int index)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu_numbers[index], &only);
	pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
}

void run_hurry(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	pthread_setschedparam(pthread_self(), priority ? SCHED_FIFO : SCHED_OTHER, &param);
}

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

int frame_run(int prog, struct frame *frame, uint32_t count, uint32_t *ret_ns,
	      uint32_t *ret_verdict)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->bytes,
		    .data_size_in = sizeof(frame->bytes), .data_out = frame->bytes,
		    .data_size_out = sizeof(frame->bytes), .repeat = count);
	int err = bpf_prog_test_run_opts(prog, &opts);

	if (!err) {
		*ret_ns = opts.duration;
		*ret_verdict = opts.retval;
	}
	return err;
}

void run_end(pthread_t thread, const bool *ended)
{
	while (!__atomic_load_n(ended, __ATOMIC_ACQUIRE)) {
		pthread_kill(thread, SIGUSR1);
		sleep_ns(1000000);
	}
	pthread_join(thread, NULL);
}

/* --- The other CPU --------------------------------------------------------------------------- */

struct beside {
	pthread_t thread;
	struct run *run;
	int err;
	bool ended;
};

static void *beside_run(void *data)
{
	struct beside *beside = data;
	uint32_t ns, verdict;

	run_on(1);
	run_hurry(RUN_PRIORITY);
	beside->err =
		frame_run(beside->run->prog, &beside->run->frame[1], BESIDE_PACKETS, &ns, &verdict);
	__atomic_store_n(&beside->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static int beside_start(struct beside *beside, struct run *run)
{
	int err;

	*beside = (struct beside){.run = run};
	err = pthread_create(&beside->thread, NULL, beside_run, beside);
	if (err)
		return error_add(EIO, "bench", NULL, "cannot start a thread: %s", why(err));
	sleep_ns(BESIDE_START_NS);
	return 0;
}

/*
 * Stops the second CPU. Fails if the second CPU had already stopped, because part of the
 * measurement then had only one CPU.
 */
static int beside_end(struct beside *beside)
{
	bool early = __atomic_load_n(&beside->ended, __ATOMIC_ACQUIRE);

	run_end(beside->thread, &beside->ended);
	if (early || beside->err != -EINTR)
		return error_add(EIO, "bench", NULL, "%s: the other CPU ended early: %s",
				 beside->run->name,
				 beside->err ? why(beside->err) : "too few packets");
	return 0;
}

/* --- Both ------------------------------------------------------------------------------------ */

static int verdict_check(const struct run *run, uint32_t verdict)
{
	uint32_t pass = run->is_tc ? (uint32_t)TC_ACT_UNSPEC : XDP_PASS;
	uint32_t drop = run->is_tc ? TC_ACT_SHOT : XDP_DROP;
	uint32_t wanted = run->expect == EXPECT_DROP ? drop : pass;

	if ((verdict != pass && verdict != drop) ||
	    (run->expect != EXPECT_ANY && verdict != wanted))
		return error_add(EIO, "bench", NULL,
				 "%s: a packet %s, so the figure would be of something else",
				 run->name, verdict == pass ? "passed" : "was dropped");
	return 0;
}

int run_packets(struct run *run, uint32_t count, double *ret_ns)
{
	int status = 0, end = 0;
	struct beside beside;
	uint32_t ns = 0, verdict = 0;
	int err;

	run_on(0);
	if (run->cpus > 1)
		status = beside_start(&beside, run);
	if (status)
		return status;
	run_hurry(RUN_PRIORITY);
	err = frame_run(run->prog, &run->frame[0], count, &ns, &verdict);
	run_hurry(0);
	if (run->cpus > 1)
		end = beside_end(&beside);
	if (err)
		return error_add(EIO, "bench", NULL, "%s: cannot run packets: %s", run->name,
				 why(err));
	if (!end)
		end = verdict_check(run, verdict);
	if (!end)
		*ret_ns = ns;
	return end;
}
