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

/* Programs under test. Programs from ON_SLUICE on are filters of a gate. */
enum subject {
	ON_EMPTY,
	ON_PARSE,
	ON_FLOOR,
	ON_NAIVE,
	ON_FLOOR_TC,
	ON_NAIVE_64K, /* the textbook limiter with a map for 64 K sources */
	ON_NAIVE_1M,
	ON_LRU_PERCPU_64K, /* a program that only looks up in a map of 64 K entries */
	ON_LRU_64K,
	ON_HASH_64K,
	ON_ARRAY_64K,
	ON_LRU_PERCPU_1M,
	ON_LRU_1M,
	ON_HASH_1M,
	ON_ARRAY_1M,
	ON_SLUICE,   /* a gate of default size with a hundred policies and a default policy */
	ON_EGRESS,   /* the gate of ON_SLUICE on hook egress, where limits can shape */
	ON_CROWD,    /* the gate of ON_SLUICE in a flood; few sources, so each gets an entry */
	ON_WATCHED,  /* the gate of ON_SLUICE while a process reads map `events` */
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

/* A limit of a case: a rate, a window or a shape. All members are NULL if there is no limit. */
struct bench_limit {
	const char *rate;
	const char *burst;
	const char *window;
	const char *shape;
	bool shared; /* whether nodes share the limit, so that its states count packets */
};

struct bench_case {
	const char *name;
	const char *source; /* text for sources_parse(); each packet has a random source */
	struct bench_limit limit[SL_LIMITS_MAX]; /* limits of the sources' policy; may be empty */
	bool deny;				 /* whether a rule denies the sources */
	enum subject subject;
	enum expect expect;  /* expected verdict of each packet; another verdict is an error */
	bool essential;	     /* whether option --quick runs the case */
	unsigned int cpus;   /* number of CPUs that send at the same time; 0 means one */
	double target;	     /* highest acceptable ratio to `against`; 0 for no target */
	const char *against; /* name of the case to compare with; NULL means "floor" */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_cases_count;

bool bench_has_limit(const struct bench_limit *limit);

/* Returns whether the case runs a TC program. Otherwise, it runs an XDP program. */
bool case_is_tc(const struct bench_case *bench);

/* Returns whether the gate knows all sources of a case before the measurement begins. */
bool case_is_established(const struct bench_case *bench);

/*
 * Chooses the cases whose names match one of the shell patterns, a list that ends with NULL, and
 * the cases that they are compared with. Without patterns, chooses all cases or, if
 * `only_essential` is set, all essential cases.
 */
void cases_choose(bool only_essential, char *const *names);
bool case_is_chosen(const struct bench_case *bench);

/* Returns whether a name matches one of the patterns, or no pattern was given. */
bool name_is_chosen(const char *name);

/* --- The programs under test, with the rules and the sources of the chosen cases ------------- */

int subjects_make(void);
void subjects_free(void);

/* Returns the fd of the program that runs the packets of a case from `source`. */
int subject_program(const struct bench_case *bench, const struct sl_prefix *source);

/* Sends a packet from each source of an established case, so that the gate evicts no source. */
int subject_refresh(const struct bench_case *bench);

/*
 * Returns how many packets of a case were counted since the last call. A gate counts packets by
 * reason. A program with a map counts only packets of new sources, other programs count none.
 */
int subject_take_counts(const struct bench_case *bench, struct sl_counters *ret);

/* --- Running and reporting ------------------------------------------------------------------- */

/* Results of a case in all rounds. */
struct result {
	double figure[ROUNDS_MAX]; /* ns per packet, or Mpps, in each round */
	unsigned int rounds;
	double as_meant; /* lowest fraction of packets with the expected verdict in a round */
};

/* How many rounds to run, and how long. */
struct plan {
	unsigned int rounds;
	double run_ns;	/* duration of a case in each round */
	double warm_ns; /* duration of a case before the first round, so that a flood is detected */
};

/* Runs the chosen cases in rounds by BPF_PROG_TEST_RUN. `results` has an element for each case. */
int cases_run(const struct plan *plan, struct result *results);

/* Prints the results of all cases that were run. */
void report_cases(const struct result *results);

/*
 * Estimates the cost of one source within its limit on 64 CPUs. Compiles the limit for 64 CPUs,
 * sends only the packets of one CPU, and counts how often this CPU borrows a slice. On 64 CPUs,
 * each borrowing would transfer a cache line from another CPU.
 */
int model_run(void);

double result_median(const struct result *result);
double result_least(const struct result *result);

/* Results of a limiter that gets real packets. */
struct veth_result {
	const struct limiter *limiter;
	char name[48]; /* name of limiter and sources, and "_2cpu" for two CPUs */
	struct result mpps;
	double passed;	 /* fraction of packets that passed the limiter in the last round */
	char remark[96]; /* why the result is missing or wrong; "" if it is right */
};

/* Sends real packets through each limiter, on one CPU and on two CPUs. The caller frees *ret. */
int veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count);
void veth_report(const struct veth_result *results, size_t count);

/* Writes all results as JSON. */
int report_json(const char *path, const struct result *results, const struct veth_result *veth,
		size_t veth_count);

#endif
