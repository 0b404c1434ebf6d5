// SPDX-License-Identifier: GPL-2.0
#include "gate/synchronize.h"

#include <unistd.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

void synchronize_programs(void)
{
	/* the kernel waits for an RCU grace period, and programs run under RCU */
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	/* refused with nohz_full: packets need microseconds, so 100 ms is enough */
	usleep(100000);
}
