// SPDX-License-Identifier: GPL-2.0
#include "replay/cpu_thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleep after reading a number this many times, about 20 us. Most calls take less time. */
#define SPINS 20000

/* Waits until the value of a number is no longer `old`. */
static void number_wait(struct shared_number *number, uint32_t old)
{
	for (unsigned int i = 0; __atomic_load_n(&number->value, __ATOMIC_SEQ_CST) == old; i++) {
		if (i < SPINS)
			continue;
		__atomic_store_n(&number->sleeps, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &number->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
	}
	__atomic_store_n(&number->sleeps, 0, __ATOMIC_SEQ_CST);
}

/*
 * Raises the value. If `sleeps` is 0, no thread needs to be woken: a thread that sets it later does
 * not sleep, because the kernel compares the value again.
 */
static void number_raise(struct shared_number *number)
{
	__atomic_add_fetch(&number->value, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&number->sleeps, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &number->value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *thread_run(void *data)
{
	struct cpu_thread *thread = data;

	for (;;) {
		number_wait(&thread->requested, thread->completed.value);
		if (!thread->call)
			return NULL;
		thread->call(thread->data);
		number_raise(&thread->completed);
	}
}

int cpu_thread_start(struct cpu_thread *thread, int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t set;
	int error;

	*thread = (struct cpu_thread){0};
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	error = pthread_attr_init(&attributes);
	if (error)
		return -error;
	error = pthread_attr_setaffinity_np(&attributes, sizeof(set), &set)
			?: pthread_create(&thread->id, &attributes, thread_run, thread);
	pthread_attr_destroy(&attributes);
	return -error;
}

static void call_request(struct cpu_thread *thread, cpu_call *call, void *data)
{
	thread->call = call;
	thread->data = data;
	number_raise(&thread->requested);
}

void cpu_thread_call(struct cpu_thread *thread, cpu_call *call, void *data)
{
	uint32_t completed = thread->completed.value;

	call_request(thread, call, data);
	number_wait(&thread->completed, completed);
}

void cpu_thread_stop(struct cpu_thread *thread)
{
	call_request(thread, NULL, NULL);
	pthread_join(thread->id, NULL);
}
