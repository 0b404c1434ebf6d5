/* SPDX-License-Identifier: GPL-2.0 */
/* BPF_PROG_TEST_RUN, on one CPU or on two at once. */
#ifndef SLUICE_BENCH_RUN_H
#define SLUICE_BENCH_RUN_H

#include <pthread.h>

#include "frames.h"

#define RUN_CPUS 2

struct run {
	const char *name;
	int prog;
	struct frame frame[RUN_CPUS]; /* each CPU's own; a run goes on where the one before ended */
	unsigned int cpus;
	enum expect expect;
	bool is_tc; /* a program of TC */
};

/* Before all else: finds the CPUs, and makes SIGUSR1 end a test run and nothing else. */
void run_init(void);

/* How many of the CPUs that this process may use take part: at most RUN_CPUS. */
unsigned int run_cpus(void);

/* Moves this thread to one of them, by its index. */
void run_on(unsigned int index);

/*
 * Puts this thread ahead of other processes, where that is permitted: what they take is no cost of
 * a packet. 0: as they are.
 */
#define RUN_PRIORITY 1
void run_hurry(int priority);

uint64_t clock_ns(void);
void sleep_ns(uint64_t ns);

/* Runs a frame `count` times here; it comes back as the last time left it. Negative errno. */
int frame_run(int prog, struct frame *frame, uint32_t count, uint32_t *ret_ns,
	      uint32_t *ret_verdict);

/* Ends the test run of a thread with signals until it sets `ended`, and joins the thread. */
void run_end(pthread_t thread, const bool *ended);

/* Runs `count` packets on one CPU, while the other CPUs of the run are as busy. */
int run_packets(struct run *run, uint32_t count, double *ret_ns);

#endif
