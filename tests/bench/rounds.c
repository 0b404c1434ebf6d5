// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include "bench.h"

#include <stdlib.h>

#include "run.h"

/* Packets in a first short run, which estimates the cost of a packet. */
#define TRIAL_PACKETS 20000

struct work {
	struct run run;
	uint32_t packets; /* packets in each round; 0: the case is not run */
	uint32_t sources;
};

/*
 * Warm-up packets per source. After 4 packets per source on average, 98 % of a million random
 * sources are known.
 */
#define PACKETS_TO_KNOW 4

/*
 * If a case has more sources than this, the sources are not known to the gate before the
 * measurement.
 */
#define KNOWN_SOURCES_MOST (1U << 20)

static int work_begin(struct work *work, const struct bench_case *bench, uint64_t seed)
{
	struct sources sources;
	int status = sources_parse(bench->source, &sources);

	work->run = (struct run){
		.name = bench->name,
		.expect = EXPECT_ANY,
		.cpus = bench->cpus ? bench->cpus : 1,
		.is_tc = case_is_tc(bench),
	};
	if (status)
		return status;
	work->sources = sources_count(&sources);
	work->run.prog = subject_program(bench, &sources.prefix);
	for (unsigned int i = 0; i < RUN_CPUS; i++) {
		frame_write(&work->run.frame[i], &sources, seed * RUN_CPUS + i);
		if (bench->packet)
			frame_replace(&work->run.frame[i], bench->packet);
	}
	return 0;
}

/* Runs packets before the first round, to compute the number of packets in a round. */
static int work_warm(struct work *work, const struct plan *plan, enum expect expect)
{
	double packets = work->sources > KNOWN_SOURCES_MOST ? 0 : PACKETS_TO_KNOW * work->sources;
	int status;
	double ns;

	status = run_packets(&work->run, TRIAL_PACKETS, &ns);
	if (!status && packets < plan->warm_ns / (ns + 1))
		packets = plan->warm_ns / (ns + 1);
	if (!status)
		status = run_packets(&work->run, packets, &ns);
	work->packets = plan->run_ns / (ns + 1);
	work->run.expect = expect;
	return status;
}

static int works_begin(struct work *works, const struct plan *plan)
{
	int status = 0;

	for (size_t i = 0; !status && i < bench_cases_count; i++) {
		const struct bench_case *bench = &bench_cases[i];

		if (!case_is_chosen(bench) || bench->cpus > run_cpus())
			continue;
		status = work_begin(&works[i], bench, i + 1)
				 ?: work_warm(&works[i], plan, bench->expect);
	}
	return status;
}

/* Returns whether a case expects packets with this reason. */
static bool reason_is_meant(const struct bench_case *bench, enum sl_reason reason)
{
	if (bench->expect == EXPECT_PASS)
		return reason == SL_PASS_WITHIN;
	if (bench->expect == EXPECT_DROP)
		return reason == (bench->deny ? SL_DROP_DENIED : SL_DROP_OVER_LIMIT);
	return true;
}

static int counts_check(const struct bench_case *bench, uint64_t packets, struct result *result)
{
	uint64_t all = 0, unmeant = 0;
	struct sl_counters counts;
	double part;

	if (subject_take_counts(bench, &counts))
		return -EIO;
	for (int reason = 0; reason < SL_REASONS; reason++) {
		all += counts.reason[reason].packets;
		if (!reason_is_meant(bench, reason))
			unmeant += counts.reason[reason].packets;
	}
	part = 1 - (double)unmeant / (all > packets ? all : packets);
	if (result->rounds == 1 || part < result->as_meant)
		result->as_meant = part;
	return 0;
}

static int case_run(const struct bench_case *bench, struct work *work, struct result *result)
{
	int status = subject_refresh(bench);
	struct sl_counters before;

	if (!status)
		status = subject_take_counts(bench, &before)
				 ?: run_packets(&work->run, work->packets,
						&result->figure[result->rounds++]);
	return status ?: counts_check(bench, work->packets, result);
}

static int round_run(struct work *works, struct result *results)
{
	int status = 0;

	for (size_t i = 0; !status && i < bench_cases_count; i++)
		if (works[i].packets)
			status = case_run(&bench_cases[i], &works[i], &results[i]);
	return status;
}

int cases_run(const struct plan *plan, struct result *results)
{
	struct work *works = calloc(bench_cases_count, sizeof(*works));
	int status = works ? subjects_make() : error_add(EIO, "bench", NULL, "no memory");

	if (!status)
		status = works_begin(works, plan);
	for (unsigned int round = 0; !status && round < plan->rounds; round++)
		status = round_run(works, results);
	subjects_free();
	free(works);
	return status;
}
