/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate limiters to compare with Sluice, set up as their users would. A packet that passes a limiter
 * becomes an skb. An nftables chain then counts and drops it.
 */
#ifndef SLUICE_BENCH_LIMITERS_H
#define SLUICE_BENCH_LIMITERS_H

#define LIMITER_GATE "sluice-bench"

struct limiter {
	const char *name;
	const char *xdp; /* XDP program to attach; NULL: the command `setup` attaches one */
	const char *setup;
	const char *seen; /* command that prints how many packets reached the limiter, or NULL */
	const char *teardown;
};

/* The limit of each source, as texts that the commands of all limiters accept. */
struct demand {
	const char *rate;
	const char *burst;
	const char *sources; /* number of sources for which the limiter's table has room */
	/* number of buckets of the limiter's hash table; unused if the table can grow */
	const char *buckets;
};

/* Stores the limit in environment variables, which the commands of the limiters read. */
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

/*
 * Commands for an nftables chain. The chain counts and drops the packets that a limiter passed.
 * end_take prints and resets the counter.
 */
extern const char end_setup[], end_take[], end_teardown[];

#endif
