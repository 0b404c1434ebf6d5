/* SPDX-License-Identifier: GPL-2.0 */
/* The cases of the benchmark, and the functions that prepare, run and report them. */
#ifndef SLUICE_BENCH_H
#define SLUICE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sluice.h"
#include "vary.h"

#define ROUNDS_MAX 31

/* Programs under test. ON_SLUICE and all programs after it are filters of a gate. */
enum subject {
	ON_EMPTY,
	ON_PARSE,
	ON_FLOOR,
	ON_NAIVE,
	ON_FLOOR_TC,
	ON_NAIVE_64K, /* the textbook limiter, in a map for 64 K sources */
	ON_NAIVE_1M,
	ON_LRU_PERCPU_64K, /* lookup only, in a map of this type with 64 K entries */
	ON_LRU_64K,
	ON_HASH_64K,
	ON_ARRAY_64K,
	ON_LRU_PERCPU_1M,
	ON_LRU_1M,
	ON_HASH_1M,
	ON_ARRAY_1M,
	ON_SLUICE,   /* a gate of default size with policies for default and 100 prefixes */
	ON_EGRESS,   /* the gate of ON_SLUICE on hook egress, where limits can shape */
	ON_CROWD,    /* the gate of ON_SLUICE during a flood; each source has a state */
	ON_CHAIN,    /* as ON_SLUICE, with the program of mode chain and an empty slot */
	ON_WATCHED,  /* as ON_SLUICE, while a process reads map `events` */
	ON_DENIED,   /* a gate that denies a million IPv4 hosts */
	ON_DENIED6,  /* a gate that denies a million IPv6 hosts */
	ON_64K,	     /* a gate with 64 K known sources of each family */
	ON_64K_OVER, /* a gate with 64 K known sources of each family, all above their limits */
	ON_1M,	     /* a gate with a million known sources of each family */
	SUBJECTS,
	SUBJECTS_SLUICE = ON_SLUICE, /* the first subject that is a gate */
};

enum expect {
	EXPECT_PASS,
	EXPECT_DROP,
	EXPECT_ANY,
};

/* A limit: a rate, a window or a shape. If all strings are NULL, there is no limit. */
struct bench_limit {
	const char *rate;
	const char *burst;
	const char *window;
	const char *shape;
	const char *match;
	bool shared; /* as `shared yes` of `sluice set` */
};

/* The transport header and the payload of a packet. */
struct bench_packet {
	uint8_t proto; /* protocol number of IPv4 */
	uint8_t size;
	uint8_t bytes[40];
};

struct bench_case {
	const char *name;
	/* prefixes for sources_parse(); each packet gets a random source in these prefixes */
	const char *source;
	/* what packets of a single IPv4 source have after the IP header; NULL: as frame_write() */
	const struct bench_packet *packet;
	struct bench_limit limit[SL_LIMITS_MAX]; /* limits of the policy */
	bool deny;				 /* a rule denies the sources */
	enum subject subject;
	enum expect expect; /* expected verdict of every packet */
	bool essential;	    /* option --quick runs the case */
	unsigned int cpus;  /* CPUs that send at the same time; 0: one */
	/* maximum ratio of the result to the result of `against`; 0: no maximum */
	double target;
	const char *against; /* name of the case to compare with; NULL: "floor" */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_cases_count;

bool bench_has_limit(const struct bench_limit *limit);

/* Returns whether a case runs a TC program, instead of an XDP program. */
bool case_is_tc(const struct bench_case *bench);

/* Returns whether each source of a case has a state before the measurement begins. */
bool case_is_established(const struct bench_case *bench);

/*
 * Chooses cases whose names match a shell pattern in `names`, which ends with NULL, and the cases
 * to which they are compared. Without patterns, chooses the essential cases if `only_essential`, or
 * all cases.
 */
void cases_choose(bool only_essential, char *const *names);
bool case_is_chosen(const struct bench_case *bench);

/* Returns whether a name matches a pattern given to cases_choose(), or no pattern was given. */
bool name_is_chosen(const char *name);

/* --- The programs under test, with the rules and the sources of the chosen cases ------------- */

int subjects_make(void);
void subjects_free(void);

/*
 * Returns the fd of the program to run for a case. If `source` is a prefix, the program changes the
 * source of each packet.
 */
int subject_program(const struct bench_case *bench, const struct sl_prefix *source);

/* Sends a packet from each source of a case, so that no state of these sources is evicted. */
int subject_refresh(const struct bench_case *bench);

/*
 * Stores how many packets a program has counted since the last call. A gate counts packets by
 * reason. Programs with a map of sources count packets of new sources. All other programs count
 * nothing.
 */
int subject_take_counts(const struct bench_case *bench, struct sl_counters *ret);

/* --- Running and reporting ------------------------------------------------------------------- */

/* Results of a case in all rounds. */
struct result {
	double figure[ROUNDS_MAX]; /* in each round: ns per packet, or Mpps */
	unsigned int rounds;
	double as_meant; /* smallest fraction of a round's packets with the expected verdict */
};

/* Number of rounds, and durations. */
struct plan {
	unsigned int rounds;
	double run_ns;	/* ns for which each case runs in a round */
	double warm_ns; /* ns of warm-up per case before the first round */
};

/*
 * Runs the chosen cases in rounds by BPF_PROG_TEST_RUN. Stores the results of case i in results[i].
 */
int cases_run(const struct plan *plan, struct result *results);

void report_cases(const struct result *results);

/*
 * Estimates the cost of a packet if 64 CPUs receive packets of the same source. Sends the packets
 * of one of these CPUs, and counts how often this CPU borrows a slice. Each time, the state's cache
 * line would move from another CPU.
 */
int model_run(void);

double result_median(const struct result *result);
double result_least(const struct result *result);

/* Results of a limiter that gets real packets. */
struct veth_result {
	const struct limiter *limiter;
	char name[48]; /* limiter and sources, followed by "_2cpu" for two CPUs */
	struct result mpps;
	double passed;	 /* fraction of packets that passed in the last round */
	char remark[96]; /* reason of a missing or wrong result, or "" */
};

/* Sends real packets through each limiter, on one CPU and on two. The caller frees *ret. */
int veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count);
void veth_report(const struct veth_result *results, size_t count);

int report_json(const char *path, const struct result *results, const struct veth_result *veth,
		size_t veth_count);

#endif
