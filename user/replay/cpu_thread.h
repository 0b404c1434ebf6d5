/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay: a thread that is pinned to a CPU, and makes calls for another thread. Moving a thread to
 * another CPU takes much longer than a call by a thread of that CPU.
 */
#ifndef SLUICE_REPLAY_CPU_THREAD_H
#define SLUICE_REPLAY_CPU_THREAD_H

#include <pthread.h>
#include <stdint.h>

typedef void cpu_call(void *data);

struct shared_number {
	uint32_t value;
	uint32_t sleeps; /* 1 if a thread may sleep until the value changes */
};

struct cpu_thread {
	pthread_t id;
	cpu_call *call; /* the current call; NULL ends the thread */
	void *data;
	struct shared_number requested, completed; /* numbers of calls, which wrap */
};

/* Starts a thread on a CPU. Returns 0 or a negative errno. */
int cpu_thread_start(struct cpu_thread *thread, int cpu);

/* Calls call(data) on the CPU of the thread, and waits for its end. */
void cpu_thread_call(struct cpu_thread *thread, cpu_call *call, void *data);

void cpu_thread_stop(struct cpu_thread *thread);

#endif
