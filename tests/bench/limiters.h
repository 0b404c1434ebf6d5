/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What limits real packets, in the commands that their users would write. A limiter sees packets of
 * a receiving device as early as it can. What it lets through goes the same way in every case: up
 * the stack as an skb, into a chain of nftables behind all of them, which counts and drops it.
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

/* What limiters are asked for: each source a rate, in words that all of them read. */
struct demand {
	const char *rate;
	const char *burst;
	const char *sources; /* to be remembered */
	const char *buckets; /* of a hash table that does not grow */
};

/* Hands it to the commands of the limiters, as variables of the environment. */
void limiters_ask(const struct demand *demand);

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
