/* SPDX-License-Identifier: GPL-2.0 */
/* The cases, and the functions that prepare, run and report them. */
#ifndef SLUICE_BENCH_H
#define SLUICE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sluice.h"
#include "vary.h"

#define ROUNDS_MAX 31

/* What runs. */
enum subject {
	ON_EMPTY,
	ON_PARSE,
	ON_FLOOR,
	ON_NAIVE,
	ON_FLOOR_TC,
	ON_NAIVE_64K, /* the textbook limiter with a map for as many sources */
	ON_NAIVE_1M,
	ON_LRU_PERCPU_64K, /* a bare lookup in a map of that type, with as many entries */
	ON_LRU_64K,
	ON_HASH_64K,
	ON_ARRAY_64K,
	ON_LRU_PERCPU_1M,
	ON_LRU_1M,
	ON_HASH_1M,
	ON_ARRAY_1M,
	ON_SLUICE,   /* a gate of the default sizes, with a hundred policies and a default */
	ON_EGRESS,   /* the same on hook egress, where limits can shape */
	ON_CROWD,    /* the same, for a flood from so few sources that all become known */
	ON_DENIED,   /* one with a million denied hosts of IPv4 */
	ON_DENIED6,  /* one with as many of IPv6 */
	ON_64K,	     /* one with as many known sources of each family */
	ON_64K_OVER, /* the same, and each source is over its limit */
	ON_1M,	     /* one with a million known sources of each family */
	SUBJECTS,
	SUBJECTS_SLUICE = ON_SLUICE, /* the first of those that are gates */
};

enum expect {
	EXPECT_PASS,
	EXPECT_DROP,
	EXPECT_ANY,
};

/* One of rate, window and shape; none of them: no limit. */
struct bench_limit {
	const char *rate;
	const char *burst;
	const char *window;
	const char *shape;
	bool shared; /* with other machines: its lines count what is taken and refused */
};

struct bench_case {
	const char *name;
	const char *source; /* as sources_parse() has it; of a prefix: a random one each time */
	struct bench_limit
		limit[SL_LIMITS_MAX]; /* of the source's prefix; none: other rules decide */
	bool deny;		      /* the source, or each source of its prefix */
	enum subject subject;
	enum expect expect;  /* else the figure would be of something else */
	bool essential;	     /* also in a quick run */
	unsigned int cpus;   /* at once; 0: one */
	double target;	     /* ratio that is aimed at; 0: none */
	const char *against; /* the case that the target's ratio is to; NULL: the floor */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_cases_count;

bool bench_has_limit(const struct bench_limit *limit);

/* Whether its program is one of TC. */
bool case_is_tc(const struct bench_case *bench);

/* Whether all its sources are known to the gate, or in the map, from the beginning. */
bool case_is_established(const struct bench_case *bench);

/*
 * Chooses what runs by names, each a pattern as in a shell, up to a NULL. Without names all cases
 * run, or the essential ones. The cases that these are compared with run as well.
 */
void cases_choose(bool only_essential, char *const *names);
bool case_is_chosen(const struct bench_case *bench);

/* Whether a name was given that matches this one, or none at all. */
bool name_is_chosen(const char *name);

/* --- The programs under test, with the rules and the sources of the chosen cases ------------- */

int subjects_make(void);
void subjects_free(void);

/* Returns the fd of the program of a case with this source. */
int subject_program(const struct bench_case *bench, const struct sl_prefix *source);

/* Sends a packet of each source of an established case, so that it stays known. */
int subject_refresh(const struct bench_case *bench);

/*
 * Counts the packets of a case since the last call: of a gate by reason, of a map of bench.bpf.c
 * only those of new sources, of other subjects none.
 */
int subject_take_counts(const struct bench_case *bench, struct sl_counters *ret);

/* --- Running and reporting ------------------------------------------------------------------- */

/* What a case gave: one figure a round. */
struct result {
	double figure[ROUNDS_MAX];
	unsigned int rounds;
	double as_meant; /* the least part of a round's packets that were judged as the case says */
};

/* A case's run takes so long in each round, whatever a packet costs. */
struct plan {
	unsigned int rounds;
	double run_ns;
	double warm_ns; /* before the first round: floods need time to be recognised */
};

/* BPF_PROG_TEST_RUN of the chosen cases, in rounds. `results`: one for each case. */
int cases_run(const struct plan *plan, struct result *results);

/* Prints the table of the cases that were run. */
void report_cases(const struct result *results);

/*
 * Prints what one source within its limit would cost on 64 CPUs. Its limit is split for 64, and the
 * share of one CPU is sent, at its pace: each change of the state is counted, which on 64 CPUs is a
 * draw from a cache line that another CPU has just written.
 */
int model_run(void);

double result_median(const struct result *result);
double result_least(const struct result *result);

/* Real packets through one limiter. */
struct veth_result {
	const struct limiter *limiter;
	char name[48]; /* the limiter's, and what is sent through it */
	struct result mpps;
	double passed;	 /* the part of them that it let through, in the last round */
	char remark[96]; /* why there is no figure, or why not to trust it */
};

/*
 * Sends real packets through Sluice and other limiters, each on one CPU and on two. The caller
 * frees `ret`.
 */
int veth_run(unsigned int rounds, struct veth_result **ret, size_t *ret_count);
void veth_report(const struct veth_result *results, size_t count);

/* Writes all results as JSON. */
int report_json(const char *path, const struct result *results, const struct veth_result *veth,
		size_t veth_count);

#endif
