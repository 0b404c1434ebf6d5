/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two clocks of the packet path. A test build (SL_TEST_CLOCK) reads both from a variable, and is otherwise the
 * program that ships.
 */
#ifndef SLUICE_CLOCK_H
#define SLUICE_CLOCK_H

#include "sluice.h"

#ifdef SL_TEST_CLOCK
volatile __u64 test_clock_ticks;
volatile __u64 test_jiffies;

static __always_inline __u64 clock_ticks(void)
{
	return test_clock_ticks;
}

static __always_inline __u64 clock_jiffies(void)
{
	return test_jiffies;
}
#else
/* The monotonic clock, in ticks. */
static __always_inline __u64 clock_ticks(void)
{
	return bpf_ktime_get_ns() * SL_TICKS_PER_NS;
}

/* The jiffies count of the kernel: all but free to read, and as coarse as CONFIG_HZ. */
static __always_inline __u64 clock_jiffies(void)
{
	return bpf_jiffies64();
}
#endif

/* The moment in the unit of struct sl_face. */
static __always_inline __u32 clock_until(void)
{
	return clock_ticks() / SL_TICKS_PER_NS >> SL_UNTIL_SHIFT;
}

#endif
