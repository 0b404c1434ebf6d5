// SPDX-License-Identifier: GPL-2.0
#include "keep/notify.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"

/*
 * How long a task may take. A reload of millions of prefixes can take longer than a watchdog's 30 s
 * on a loaded machine: 400,000 of them took 7 s.
 */
#define WORK_MAX_US (600 * UINT64_C(1000000))

void notify_ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_status(const char *status)
{
	sd_notifyf(0, "STATUS=%s", status);
}

void notify_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_read(CLOCK_MONOTONIC) / 1000);
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

uint64_t notify_watchdog_ms(void)
{
	uint64_t usec = 0;

	return sd_watchdog_enabled(0, &usec) > 0 ? usec / 2000 : 0;
}

void notify_work_begins(void)
{
	if (notify_watchdog_ms())
		sd_notifyf(0, "WATCHDOG_USEC=%" PRIu64, WORK_MAX_US);
}

void notify_work_ends(void)
{
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) > 0)
		sd_notifyf(0, "WATCHDOG_USEC=%" PRIu64, usec);
}

void notify_watchdog(void)
{
	sd_notify(0, "WATCHDOG=1");
}
