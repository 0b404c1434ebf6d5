/* SPDX-License-Identifier: GPL-2.0 */
/* What the command asks of the programs in bpf/carry.h, which run only when it calls them. */
#ifndef SLUICE_CARRIED_H
#define SLUICE_CARRIED_H

#include "sluice.h"

/* The key of a ledger: struct sl_ledger_key4 or struct sl_ledger_key6. */
struct sl_carry_key {
	__u32 words[sizeof(struct sl_ledger_key6) / sizeof(__u32)];
	__u32 pad;
};

/* A ledger that was copied, and charged on in the map that it was copied from. */
struct sl_carry_ledger {
	struct sl_carry_key key;
	__u64 family; /* enum sl_family */
	struct sl_ledger copied;
	struct sl_ledger last;
	__u64 debit; /* ticks: by how much less `last` held */
};

/* What policy `number` counted elsewhere. */
struct sl_carry_counters {
	__u32 number;
	__u32 pad;
	struct sl_counters counters;
};

#endif
