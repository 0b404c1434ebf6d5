/* SPDX-License-Identifier: GPL-2.0 */
/* The arguments of the programs in bpf/carry_programs.h, which only the command calls. */
#ifndef SLUICE_CARRY_ARGS_H
#define SLUICE_CARRY_ARGS_H

#include "sluice.h"

/* The key of a ledger: struct sl_ledger_key4 or struct sl_ledger_key6. */
struct sl_carry_key {
	__u32 words[sizeof(struct sl_ledger_key6) / sizeof(__u32)];
	__u32 pad;
};

/* A ledger that was copied to another map, and that packets went on to charge in the old one. */
struct sl_carry_ledger {
	struct sl_carry_key key;
	__u32 family;		 /* enum sl_family */
	__u32 kind;		 /* enum sl_kind of its limit */
	struct sl_ledger copied; /* as it was copied */
	struct sl_ledger last;	 /* as it is now, in the old map */
	__u64 debit;		 /* what `last` was charged since, in the unit of its kind */
};

/* What policy `number` counted in the old map. */
struct sl_carry_counters {
	__u32 number;
	__u32 pad;
	struct sl_counters counters;
};

#endif
