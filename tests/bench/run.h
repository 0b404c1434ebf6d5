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
	struct frame frame[RUN_CPUS]; /* frame of each CPU; keeps the source of the last packet */
	unsigned int cpus;
	enum expect expect;
	bool is_tc; /* true if the program is a TC program, false if it is an XDP program */
};

/* Finds the CPUs, and makes SIGUSR1 end test runs only. Must be called first. */
void run_init(void);

/* Returns the number of CPUs to run packets on: those this process may use, up to RUN_CPUS. */
unsigned int run_cpus(void);

/* Moves this thread to a CPU. index: below run_cpus(). */
void run_on(unsigned int index);

/*
 * Gives this thread a real-time priority, if permitted, so that other processes do not add to the
 * cost of a packet. 0 restores the normal priority.
 */
#define RUN_PRIORITY 1
void run_hurry(int priority);

uint64_t clock_ns(void);
void sleep_ns(uint64_t ns);

/*
 * Runs a frame `count` times on this CPU. The changes that the program makes to the frame remain.
 * Returns 0 or a negative errno.
 */
int frame_run(int prog, struct frame *frame, uint32_t count, uint32_t *ret_ns,
	      uint32_t *ret_verdict);

/* Sends signals to a thread until it ends its test run and sets `ended`. Then joins the thread. */
void run_end(pthread_t thread, const bool *ended);

/* Runs `count` packets on the first CPU, and packets on the second CPU if the run uses it. */
int run_packets(struct run *run, uint32_t count, double *ret_ns);

#endif
