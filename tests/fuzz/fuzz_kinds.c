// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the arithmetic of every kind of limit (include/kinds.h) against its references. The input
 * chooses the limit, the clocks, and the packets and rests; see tests/lib/kind_run.h.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const uint8_t *input;
static size_t input_left;

static uint64_t run_choose(uint64_t bound);

#include "kind_run.h"

/* As many bytes as the bound needs. An input that has ended chooses 0. */
static uint64_t run_choose(uint64_t bound)
{
	uint64_t number = 0;

	for (uint64_t rest = bound - 1; rest && input_left; rest >>= 8, input_left--)
		number = number << 8 | *input++;
	return number % bound;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum sl_kind kinds[] = {SL_BUCKET, SL_WINDOW, SL_SHAPE};
	bool lags;

	input = data;
	input_left = size;
	lags = run_choose(2);
	run_draw(kinds[run_choose(3)], lags, true);
	while (input_left) {
		if (run_one_in(2))
			run_rest();
		run_packet(run_choose(run.cpus));
	}
	run_end();
	if (run.fault) {
		fprintf(stderr, "kind %d: %s\n", run.limit.kind, run.fault);
		abort();
	}
	return 0;
}
