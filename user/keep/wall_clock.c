// SPDX-License-Identifier: GPL-2.0
#include "keep/wall_clock.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <sys/timerfd.h>

#include "base/clock.h"

/* The kernel takes a moment behind the last one of its clocks, 292 years away, for that one. */
#define NEVER_SEC INT64_MAX

int wall_clock_watch(int *ret_fd)
{
	const struct itimerspec never = {.it_value.tv_sec = NEVER_SEC};
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd >= 0 &&
	    timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL)) {
		close(fd);
		fd = -1;
	}
	*ret_fd = fd;
	return fd < 0 ? failure("cannot hear of the wall clock: %s", strerror(errno)) : OK;
}

bool wall_clock_was_set(int fd)
{
	uint64_t expirations;

	return read(fd, &expirations, sizeof(expirations)) < 0 && errno == ECANCELED;
}

uint64_t suspended_ms(void)
{
	return clock_read(CLOCK_BOOTTIME) / NS_PER_MS - clock_read(CLOCK_MONOTONIC) / NS_PER_MS;
}
