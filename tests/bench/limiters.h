/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate limiters of other software, set up by the commands that their users would write. Each
 * limiter sees a packet as early as it can. A packet that passes a limiter becomes an skb. A chain
 * of nftables after all limiters counts and drops it.
 */
#ifndef SLUICE_BENCH_LIMITERS_H
#define SLUICE_BENCH_LIMITERS_H

#define LIMITER_GATE "sluice-bench"

struct limiter {
	const char *name;
	const char *xdp; /* XDP program to attach; NULL if the limiter is an XDP program */
	const char *setup;
	const char *seen; /* prints how many packets the limiter saw; NULL if it has no counter */
	const char *teardown;
};

/* The limit of each source, in a format that all limiters accept. */
struct demand {
	const char *rate;
	const char *burst;
	const char *sources; /* number of sources that the limiter can track */
	const char *buckets; /* number of buckets if the hash table cannot grow */
};

/* Sets environment variables that specify the limit, for the commands of the limiters. */
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

/* Commands for the chain that drops packets which pass. end_take prints and resets their number. */
extern const char end_setup[], end_take[], end_teardown[];

#endif
