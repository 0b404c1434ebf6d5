// SPDX-License-Identifier: GPL-2.0
/*
 * bench [--quick] [NAME...]: measures the cost of a packet in the cases whose names match a shell
 * pattern NAME, or in all cases. Prints tables and writes build/bench.json.
 */
#include "program/program.h"
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run.h"

#define BENCH_JSON "build/bench.json"

static const struct plan whole = {.rounds = 9, .run_ns = 120e6, .warm_ns = 1000e6};
static const struct plan quick = {.rounds = 5, .run_ns = 60e6, .warm_ns = 300e6};

#define VETH_ROUNDS 7

static int bench(bool is_quick, bool is_whole)
{
	struct result *results = calloc(bench_cases_count, sizeof(*results));
	int status = results ? caps_require() : error_add(EIO, "bench", NULL, "no memory");
	struct veth_result *veth = NULL;
	size_t veth_count = 0;

	if (!status)
		status = cases_run(is_quick ? &quick : &whole, results);
	if (!status)
		report_cases(results);
	if (!status && is_whole)
		status = model_run();
	if (!status && !is_quick)
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
	bool is_quick = argc > 1 && !strcmp(argv[1], "--quick");
	char **names = argv + 1 + is_quick;
	int err;

	error_set_printer(message_print);
	if (argc > 1 && !is_quick && *argv[1] == '-') {
		error_misuse("bench", NULL, "usage: bench [--quick] [NAME...]");
		error_flush();
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0); /* so that a pipe gets each line at once */
	run_init();
	cases_choose(is_quick, names);
	err = bench(is_quick, !is_quick && !*names);
	error_flush();
	return err ? 1 : 0;
}
