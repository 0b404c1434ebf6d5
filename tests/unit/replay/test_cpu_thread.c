// SPDX-License-Identifier: GPL-2.0
/* Tests user/replay/cpu_thread.h, which makes calls on a chosen CPU. */
#include "replay/cpu_thread.h"

#include <errno.h>
#include <sched.h>

#include "test.h"

static int cpu;
static unsigned int calls;

static void count(void *data)
{
	*(unsigned int *)data += 1;
	cpu = sched_getcpu();
}

static void sleep_longer_than_spins(void *data)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	count(data);
}

TEST(test_calls_are_made_on_the_cpu_of_the_thread)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		struct cpu_thread thread;

		if (!CPU_ISSET(i, &set))
			continue;
		assert_int_equal(cpu_thread_start(&thread, i), 0);
		calls = 0;
		for (unsigned int call = 1; call <= 100; call++) {
			cpu_thread_call(&thread, call % 50 ? count : sleep_longer_than_spins,
					&calls);
			assert_int_equal(calls, call);
			assert_int_equal(cpu, i);
		}
		cpu_thread_stop(&thread);
	}
}

TEST(test_a_cpu_that_does_not_exist)
{
	struct cpu_thread thread;

	assert_int_equal(cpu_thread_start(&thread, CPU_SETSIZE - 1), -EINVAL);
}

TESTS(NULL, NULL)
