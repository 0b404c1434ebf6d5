// SPDX-License-Identifier: GPL-2.0
/* Measures what a packet costs: bench [--quick]. Prints tables, and writes build/bench.json. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model.h"
#include "report.h"
#include "rounds.h"
#include "run.h"
#include "veth.h"

#define BENCH_JSON "build/bench.json"

static const struct plan whole = {.rounds = 9, .run_ns = 120e6, .warm_ns = 1000e6};
static const struct plan quick = {
	.rounds = 5, .run_ns = 60e6, .warm_ns = 300e6, .only_essential = true};

#define VETH_ROUNDS 7

static enum status bench(const struct plan *plan)
{
	struct result *results = calloc(bench_cases_count, sizeof(*results));
	enum status status = results ? caps_require() : failure("no memory");
	struct veth_result *veth = NULL;
	size_t veth_count = 0;

	if (!status)
		status = cases_run(plan, results);
	if (!status)
		report_cases(results);
	if (!status && !plan->only_essential)
		status = model_run();
	if (!status && !plan->only_essential)
		status = veth_run(VETH_ROUNDS, &veth, &veth_count);
	if (!status && veth)
		veth_report(veth, veth_count);
	if (!status)
		status = report_json(BENCH_JSON, results, veth, veth_count);
	free(veth);
	free(results);
	return status;
}

int main(int argc, char **argv)
{
	bool is_quick = argc == 2 && !strcmp(argv[1], "--quick");

	if (argc > 1 && !is_quick)
		return misuse("usage: bench [--quick]");
	setvbuf(stdout, NULL, _IOLBF, 0); /* a table as soon as it is ready */
	run_init();
	return bench(is_quick ? &quick : &whole);
}
