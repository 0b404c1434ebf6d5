// SPDX-License-Identifier: GPL-2.0
/*
 * Compares each kind of limit in include/kinds.h with a reference model. The input selects the
 * limit, the clocks, the packets and the pauses (tests/lib/kind_run.h). The input also selects how
 * other CPUs change a shared word before a CPU accesses the word.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const uint8_t *input;
static size_t input_left;

static uint64_t run_choose(uint64_t bound);

#include "kind_run.h"

/* Reads a number below `bound` from the input. Returns 0 if the input has ended. */
static uint64_t run_choose(uint64_t bound)
{
	uint64_t number = 0;

	for (uint64_t rest = bound - 1; rest && input_left; rest >>= 8, input_left--)
		number = number << 8 | *input++;
	return number % bound;
}

/*
 * Reads a byte of input. Some values send a packet on an idle CPU. Some values advance the time.
 * All other values do nothing.
 */
static void between(void)
{
	uint64_t choice = input_left ? run_choose(256) : 255;

	if (choice < 2 * RUN_CPUS) {
		if (choice / 2 < (uint64_t)run.cpus && !run.is_busy[choice / 2])
			run_packet(choice / 2);
		if (choice % 2)
			run_rest();
	} else if (choice < 24) {
		run_rest();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum sl_kind kinds[] = {SL_TOKEN_BUCKET, SL_WINDOW, SL_SHAPE};
	bool lags, races;

	input = data;
	input_left = size;
	lags = run_choose(2);
	races = run_choose(2);
	run_draw(kinds[run_choose(3)], lags, !races);
	host_between = races ? between : NULL;
	while (input_left) {
		if (run_one_in(2))
			run_rest();
		run_packet(run_choose(run.cpus));
	}
	host_between = NULL;
	run_end();
	if (run.fault) {
		fprintf(stderr, "kind %d: %s\n", run.limit.kind, run.fault);
		abort();
	}
	return 0;
}
