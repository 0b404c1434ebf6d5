// SPDX-License-Identifier: GPL-2.0
#include "grace.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

void packets_outwait(void)
{
	/* The kernel waits for an RCU grace period; programs run under RCU. */
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	/*
	 * Refused with nohz_full. No packet takes microseconds as long as this takes milliseconds.
	 */
	usleep(100000);
}
