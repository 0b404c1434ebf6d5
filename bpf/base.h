/* SPDX-License-Identifier: GPL-2.0 */
/* Macros for clang and the verifier, and the clocks of the packet path. */
#ifndef SLUICE_BASE_H
#define SLUICE_BASE_H

#include "sluice.h"

/*
 * A global BPF function. The verifier checks it once, for any arguments, so it must test each
 * pointer for NULL. It is needed if inlining would exceed the verifier's limit, or the 512 bytes of
 * stack that Linux 6.1 allows a chain of calls. Arguments and result are scalars, or pointers to
 * structures without pointers. Before Linux 6.2 an argument cannot be the key of a map lookup, so
 * the function must first copy the key to its own stack.
 */
#define BPF_GLOBAL __noinline

/* Load or store a value by a single access, like the kernel's READ_ONCE() and WRITE_ONCE(). */
#define read_once(x)	     (*(const volatile typeof(x) *)&(x))
#define write_once(x, value) (*(volatile typeof(x) *)&(x) = (value))

/*
 * clock_ticks() is the monotonic clock in ticks. clock_jiffies() is jiffies64. It costs almost no
 * time to read, but its resolution is CONFIG_HZ. A test build (SL_TEST_CLOCK) reads both from
 * variables. Its clock_pass_lookup() advances the clock by the time of a lookup.
 */
#ifdef SL_TEST_CLOCK
volatile __u64 test_clock_ticks;
volatile __u64 test_jiffies;
volatile __u64 test_lookup_ticks; /* ticks that a lookup of a bucket takes in a test */

static __always_inline __u64 clock_ticks(void)
{
	return test_clock_ticks;
}

static __always_inline __u64 clock_jiffies(void)
{
	return test_jiffies;
}

static __always_inline void clock_pass_lookup(void)
{
	if (test_lookup_ticks)
		test_clock_ticks += test_lookup_ticks;
}

/*
 * Length of the frame on the wire. `sluice replay` sets it, because a capture may have only the
 * first bytes of a frame. 0: the buffer has all bytes of the frame.
 */
volatile __u32 test_length;

static __always_inline __u32 frame_length(__u32 size)
{
	return test_length ?: size;
}
#else
/* Returns the length of a frame on the wire. size: number of bytes in the buffer. */
static __always_inline __u32 frame_length(__u32 size)
{
	return size;
}

static __always_inline __u64 clock_ticks(void)
{
	return bpf_ktime_get_ns() * SL_TICKS_PER_NS;
}

static __always_inline __u64 clock_jiffies(void)
{
	return bpf_jiffies64();
}

static __always_inline void clock_pass_lookup(void)
{
}
#endif

/* Returns the monotonic clock in units of 2^SL_UNTIL_SHIFT ns, the unit of expiries. */
static __always_inline __u32 clock_until(void)
{
	return clock_ticks() / SL_TICKS_PER_NS >> SL_UNTIL_SHIFT;
}

/* Returns the monotonic clock in units of 2^SL_SECOND_SHIFT ns, about 1 s. */
static __always_inline __u32 clock_second(void)
{
	return clock_ticks() / SL_TICKS_PER_NS >> SL_SECOND_SHIFT;
}

#endif
