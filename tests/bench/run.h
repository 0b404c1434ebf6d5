/* SPDX-License-Identifier: GPL-2.0 */
/* Runs packets by BPF_PROG_TEST_RUN, on one CPU or on two CPUs at the same time. */
#ifndef SLUICE_BENCH_RUN_H
#define SLUICE_BENCH_RUN_H

#include <pthread.h>

#include "frames.h"

#define RUN_CPUS 2

struct run {
	const char *name;
	int prog;
	/* frame of each CPU; it contains the source of the last packet */
	struct frame frame[RUN_CPUS];
	unsigned int cpus;
	enum expect expect;
	bool is_tc; /* a TC program, instead of an XDP program */
};

/*
 * Must be called first. Finds the CPUs. Installs a SIGUSR1 handler, so that SIGUSR1 interrupts
 * system calls.
 */
void run_init(void);

/* Returns how many CPUs can run packets: the CPUs of this process's affinity, at most RUN_CPUS. */
unsigned int run_cpus(void);

/* Moves this thread to CPU number `index` of the run_cpus() CPUs. */
void run_on(unsigned int index);

/*
 * Gives this thread a real-time priority, if permitted, so that other processes do not disturb the
 * measurement. Priority 0 restores normal scheduling.
 */
#define RUN_PRIORITY 1
void run_hurry(int priority);

uint64_t clock_ns(void);
void sleep_ns(uint64_t ns);

/*
 * Runs a program on a frame `count` times on this CPU. Stores the resulting bytes in `frame`.
 * Returns 0 or a negative errno.
 */
int frame_run(int prog, struct frame *frame, uint32_t count, uint32_t *ret_ns,
	      uint32_t *ret_verdict);

/* Interrupts a thread's test run by signals until `ended` is true. Then joins the thread. */
void run_end(pthread_t thread, const bool *ended);

/* Runs `count` packets on the first CPU. If run->cpus is 2, the second CPU also runs packets. */
int run_packets(struct run *run, uint32_t count, double *ret_ns);

#endif
