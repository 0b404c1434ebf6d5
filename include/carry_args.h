/* SPDX-License-Identifier: GPL-2.0 */
/* The arguments of the programs in bpf/carry_programs.h, which only the command calls. */
#ifndef SLUICE_CARRY_ARGS_H
#define SLUICE_CARRY_ARGS_H

#include "sluice.h"

/* A ledger that was copied to another table, and that packets went on to charge in the old one. */
struct sl_carry_ledger {
	struct sl_line last;	 /* as it is now, in the old table */
	struct sl_ledger copied; /* as it was copied */
	__u64 debit;		 /* what `last` was charged since, in the unit of its kind */
	struct sl_limit limit;	 /* of both */
	__u64 now;		 /* uptime in ticks */
	__u32 most;		 /* the most that may be lost for it: loss_rank() of itself */
	__u32 pad;
};

/* What policy `number` counted in the old map. */
struct sl_carry_counters {
	__u32 number;
	__u32 pad;
	struct sl_counters counters;
};

#endif
