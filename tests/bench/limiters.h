/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate limiters of other software, set up by the commands that their users would write. Each
 * limiter sees a packet as early as it can. Packets that pass a limiter become skbs, and are
 * counted and dropped by a chain of nftables that runs after all limiters.
 */
#ifndef SLUICE_BENCH_LIMITERS_H
#define SLUICE_BENCH_LIMITERS_H

#define LIMITER_GATE "sluice-bench"

struct limiter {
	const char *name;
	const char *xdp; /* XDP program to attach; NULL if the limiter is one */
	const char *setup;
	const char *seen; /* prints how many packets the limiter saw; NULL: it cannot count */
	const char *teardown;
};

/* The limit for each source, in a notation that all limiters accept. */
struct demand {
	const char *rate;
	const char *burst;
	const char *sources; /* number of sources that the limiter can track */
	const char *buckets; /* number of buckets of a hash table that cannot grow */
};

/* Passes the demand to the commands of the limiters as environment variables. */
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

/* Commands for the chain that drops all packets. end_take prints how many since it last ran. */
extern const char end_setup[], end_take[], end_teardown[];

#endif
