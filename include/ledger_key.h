/* SPDX-License-Identifier: GPL-2.0 */
/* The key of a ledger. A pure function, shared by the packet path and the command line. */
#ifndef SLUICE_LEDGER_KEY_H
#define SLUICE_LEDGER_KEY_H

#include "identity.h"

union ledger_key {
	struct sl_ledger_key4 ipv4;
	struct sl_ledger_key6 ipv6;
};

/* The key that a limit charges an address by. */
static inline void ledger_key_make(const struct sl_limit *limit, const __u64 addr[2], bool ipv4,
				   union ledger_key *ret)
{
	__u64 cut[2];
	__u32 word;

	if (ipv4) {
		__builtin_memcpy(&word, addr, sizeof(word));
		ret->ipv4.addr = word & (__u32)limit->mask[0];
		ret->ipv4.limit = limit->id;
	} else {
		identity_key(addr, limit->mask, cut);
		__builtin_memcpy(ret->ipv6.addr, cut, sizeof(cut));
		ret->ipv6.limit = limit->id;
	}
}

#endif
