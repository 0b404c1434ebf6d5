// SPDX-License-Identifier: GPL-2.0
#include "uptime.h"

#include "sluice.h"

#define NS_PER_SEC 1000000000ULL

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

uint64_t uptime_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t uptime_ticks(void)
{
	return uptime_ns() * SL_TICKS_PER_NS;
}

/* Beyond what 32 bits hold: the last moment that they do, nine years after boot. */
uint32_t until_after(uint64_t ns)
{
	uint64_t end, unit = 1ULL << SL_UNTIL_SHIFT;

	if (__builtin_add_overflow(uptime_ns() + unit - 1, ns, &end))
		return UINT32_MAX;
	end >>= SL_UNTIL_SHIFT;
	return end > UINT32_MAX ? UINT32_MAX : end; /* not 0: the machine is up */
}

uint32_t until_at(time_t when)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), moment;

	if (when <= 0 || (uint64_t)when <= now / NS_PER_SEC)
		return 1;
	if (__builtin_mul_overflow((uint64_t)when, NS_PER_SEC, &moment))
		return UINT32_MAX;
	return until_after(moment - now);
}

/* Rounded up, as the end itself is: what is read back from a file does not end sooner. */
time_t until_time(uint32_t until)
{
	uint64_t end = clock_ns(CLOCK_REALTIME) - uptime_ns() + ((uint64_t)until << SL_UNTIL_SHIFT);

	return (end + NS_PER_SEC - 1) / NS_PER_SEC;
}

uint64_t until_left_ns(uint32_t until)
{
	uint64_t end = (uint64_t)until << SL_UNTIL_SHIFT, now = uptime_ns();

	return end > now ? end - now : 0;
}
