// SPDX-License-Identifier: GPL-2.0
/*
 * A file of its own, because tests link something else for it where no packet comes meanwhile: a
 * grace period takes tens of milliseconds, and they make thousands of changes.
 */
#include "gate/outwait.h"

#include <unistd.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

void packets_outwait(void)
{
	/* the kernel waits for an RCU grace period, and programs run under RCU */
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	/* refused with nohz_full: packets take microseconds, so 100 ms is enough */
	usleep(100000);
}
