/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times one packet in SL_DURATION_SAMPLE, from its arrival at the program to its verdict. Map
 * `in_use` counts the packets, because every packet reads that map. A lookup in another map would
 * cost 1 ns. A duration includes one reading of the clock. On PREEMPT_RT the duration may be too
 * short if another packet interrupts the timed packet.
 */
#ifndef SLUICE_DURATION_H
#define SLUICE_DURATION_H

#include "base.h"
#include "context.h"
#include "histogram.h"
#include "maps.h"

/*
 * Counts a packet that arrives, and sets verdict->untimed. If the packet is timed, stores the time.
 * The store of `untimed` precedes the test, so that the verifier does not know its value.
 */
static __always_inline void duration_begin(struct sl_in_use *here, struct verdict *verdict)
{
	__u16 untimed = ++here->packets % SL_DURATION_SAMPLE;

	write_once(verdict->untimed, untimed);
	if (!untimed)
		here->timed_at = clock_ticks();
}

/* Adds the duration of a timed packet to the histogram of its verdict. */
BPF_GLOBAL int duration_count(__u32 passes)
{
	struct sl_durations *durations = durations_get();
	struct sl_in_use *here = in_use_get();
	struct sl_duration *duration;
	__s64 ticks;
	__u64 ns;

	if (!durations || !here)
		return 0;
	/* The difference may be negative, because the kernel may set its clock back by some ns. */
	ticks = clock_ticks() - here->timed_at;
	ns = ticks > 0 ? ticks / SL_TICKS_PER_NS : 0;
	duration = passes ? &durations->passed : &durations->dropped;
	duration->bucket[histogram_bucket(ns, SL_DURATION_SHIFT, SL_DURATION_BUCKETS)]++;
	duration->ns += ns;
	return 0;
}

#endif
