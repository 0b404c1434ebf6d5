/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two clocks of the packet path. A test build (SL_TEST_CLOCK) reads them from variables and is
 * otherwise the program that ships.
 *
 *  clock_ticks     the monotonic clock, in ticks of 1/16 ns
 *  clock_jiffies   the kernel's jiffies64: almost free to read, and as coarse as CONFIG_HZ
 *  clock_until     the monotonic clock, in the unit of struct sl_rule_content
 */
#ifndef SLUICE_CLOCKS_H
#define SLUICE_CLOCKS_H

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
static __always_inline __u64 clock_ticks(void)
{
	return bpf_ktime_get_ns() * SL_TICKS_PER_NS;
}

static __always_inline __u64 clock_jiffies(void)
{
	return bpf_jiffies64();
}
#endif

static __always_inline __u32 clock_until(void)
{
	return clock_ticks() / SL_TICKS_PER_NS >> SL_UNTIL_SHIFT;
}

#endif
