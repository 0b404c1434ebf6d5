/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What limits real packets, in the commands that their users would write: each source one packet a
 * second, burst 5. A limiter sees packets of a receiving device as early as it can. What it lets
 * through goes the same way in every case: up the stack as an skb, into a chain of nftables behind
 * all of them, which counts and drops it.
 */
#ifndef SLUICE_BENCH_LIMITERS_H
#define SLUICE_BENCH_LIMITERS_H

#define LIMITER_GATE "sluice-bench"

struct limiter {
	const char *name;
	const char *xdp; /* of bench.bpf.c: what stands in the driver, if the limiter does not */
	const char *setup;
	const char
		*seen; /* prints the packets it saw; NULL: those passed, or dropped by bench_drop */
	const char *teardown;
};

enum {
	LIMITER_DROP,
	LIMITER_NONE,
	LIMITER_SLUICE,
	LIMITER_SLUICE_BUDGET,
	LIMITER_SLUICE_TC,
	LIMITER_NFT,
	LIMITER_IPTABLES,
	LIMITERS,
};

extern const struct limiter limiters[LIMITERS];

/* Where all packets end that pass; `end_take` prints how many did since it was last asked. */
extern const char end_setup[], end_take[], end_teardown[];

#endif
