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

/* A program under test. Some subjects are gates. */
enum subject {
	ON_EMPTY,
	ON_PARSE,
	ON_FLOOR,
	ON_NAIVE,
	ON_FLOOR_TC,
	ON_NAIVE_64K, /* the textbook limiter, with a map for 64 K sources */
	ON_NAIVE_1M,
	ON_LRU_PERCPU_64K, /* a program that only looks up in a map of 64 K entries */
	ON_LRU_64K,
	ON_HASH_64K,
	ON_ARRAY_64K,
	ON_LRU_PERCPU_1M,
	ON_LRU_1M,
	ON_HASH_1M,
	ON_ARRAY_1M,
	ON_SLUICE, /* a gate of default size, with a hundred policies and a default policy */
	ON_EGRESS, /* the gate of ON_SLUICE, on hook egress, on which limits can shape */
	ON_CROWD, /* the gate of ON_SLUICE in a flood; its sources are few, so each gets an entry */
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

/* A limit has a rate, a window or a shape. All fields are NULL if there is no limit. */
struct bench_limit {
	const char *rate;
	const char *burst;
	const char *window;
	const char *shape;
	bool shared; /* whether nodes share it; its states then count packets */
};

struct bench_case {
	const char *name;
	const char *source; /* text for sources_parse(); each packet has a random one of these */
	struct bench_limit limit[SL_LIMITS_MAX]; /* limits of the source's policy; may be empty */
	bool deny; /* whether the source, or each source of its prefix, is denied */
	enum subject subject;
	enum expect expect;  /* expected verdict; another verdict is an error */
	bool essential;	     /* whether a quick run includes the case */
	unsigned int cpus;   /* number of CPUs that run packets at the same time; 0 means one */
	double target;	     /* highest acceptable ratio to `against`; 0 if there is no target */
	const char *against; /* name of the case to compare with; NULL for the floor */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_cases_count;

bool bench_has_limit(const struct bench_limit *limit);

/* Returns true if the case runs a TC program, or false if it runs an XDP program. */
bool case_is_tc(const struct bench_case *bench);

/* Returns whether all sources of the case are known before the first packet is measured. */
bool case_is_established(const struct bench_case *bench);

/*
 * Chooses the cases to run, by shell patterns of names; NULL ends the patterns. Without patterns,
 * all cases or only the essential ones run. Cases to compare with also run.
 */
void cases_choose(bool only_essential, char *const *names);
bool case_is_chosen(const struct bench_case *bench);

/* Returns whether a name matches one of the patterns. Without patterns, every name matches. */
bool name_is_chosen(const char *name);

/* --- The programs under test, with the rules and the sources of the chosen cases ------------- */

int subjects_make(void);
void subjects_free(void);

/* Returns the fd of the program that runs the packets of a case. source: the source of the case. */
int subject_program(const struct bench_case *bench, const struct sl_prefix *source);

/* Sends a packet from each source of an established case, so that the gate keeps all sources. */
int subject_refresh(const struct bench_case *bench);

/*
 * Returns the packets of a case since the last call. A gate counts them by reason. Programs with a
 * map count only packets of new sources, and other programs count none.
 */
int subject_take_counts(const struct bench_case *bench, struct sl_counters *ret);

/* --- Running and reporting ------------------------------------------------------------------- */

/* Results of a case. */
struct result {
	double figure[ROUNDS_MAX]; /* ns per packet, or Mpps, in each round */
	unsigned int rounds;
	double as_meant; /* fraction of packets with the expected verdict, in the worst round */
};

/* Number and length of the rounds. */
struct plan {
	unsigned int rounds;
	double run_ns;	/* duration of each case in a round */
	double warm_ns; /* time that each case runs before the first round, to detect a flood */
};

/* Runs the chosen cases by BPF_PROG_TEST_RUN, in rounds. results: has an element for each case. */
int cases_run(const struct plan *plan, struct result *results);

/* Prints the results of all cases that were run. */
void report_cases(const struct result *results);

/*
 * Estimates the cost of one source within its limit on 64 CPUs. Compiles the limit for 64 CPUs,
 * sends the packets that one of these CPUs gets, and counts how often it borrows a slice. Each of
 * these times, 64 CPUs would transfer a cache line from one CPU to another.
 */
int model_run(void);

double result_median(const struct result *result);
double result_least(const struct result *result);

/* Results of real packets through a limiter. */
struct veth_result {
	const struct limiter *limiter;
	char name[48]; /* name of the limiter and of the sources, and the number of CPUs */
	struct result mpps;
	double passed;	 /* fraction of packets that passed in the last round */
	char remark[96]; /* reason why the result is missing or wrong; "" if it is right */
};

/*
 * Sends real packets through Sluice and other limiters, on one CPU and on two CPUs. The caller
 * frees `ret`.
 */
int veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count);
void veth_report(const struct veth_result *results, size_t count);

/* Writes all results as JSON. */
int report_json(const char *path, const struct result *results, const struct veth_result *veth,
		size_t veth_count);

#endif
