// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how many packets per second one CPU can charge to each kind of limit (include/kinds.h).
 * In one run, all packets use one state. In another run, each packet uses a random state of a
 * million. The cost of maps, the parser and the clock is not measured.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kinds.h"
#include "rules/limit.h"

#define STATES	  (1 << 20)
#define DECISIONS 20000000

static const struct limit limits[] = {
	{.spec = {.name = "bucket", .kind = SL_TOKEN_BUCKET, .rate = 10000000, .burst = 1000}},
	{.spec = {.name = "window",
		  .kind = SL_WINDOW,
		  .rate = 1000,
		  .span_ns = 1000000000,
		  .groups = 5}},
	{.spec = {.name = "shape", .kind = SL_SHAPE, .rate = 10000000, .span_ns = 200000000}},
};

/* Charges a packet to `state`, like bpf/state.h. Returns whether the packet passes. */
static bool decide(const struct sl_limit *limit, struct sl_state *state, uint64_t now)
{
	const struct kind_charge charge = {.cost = credit_cost(limit, 1, 60), .now = now};
	struct sl_state next = *state;
	struct sl_slice slice = {0};
	bool passes;

	kind_roll(limit, &next, now);
	passes = kind_charge(limit->kind, limit, &next, &slice, &charge);
	if (next.empty_at != state->empty_at)
		__sync_val_compare_and_swap(&state->empty_at, state->empty_at, next.empty_at);
	state->full_at = next.full_at;
	state->charged_at = next.charged_at;
	return passes;
}

/* Returns how many million charges a second a CPU makes to states 0 to `mask`, in random order. */
static double measure(const struct sl_limit *limit, struct sl_state *states, uint32_t mask,
		      uint64_t *ret_passed)
{
	uint64_t now = SL_TICKS_PER_SEC, seed = 88172645463325252ULL;
	struct timespec begin, end;

	for (uint32_t i = 0; i <= mask; i++)
		states[i] = kind_new(limit->kind, limit, 0, now);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < DECISIONS; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		now += 50 * SL_TICKS_PER_NS;
		*ret_passed += decide(limit, &states[seed & mask], now);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return DECISIONS / 1e6 / (end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9);
}

int main(void)
{
	static const struct machine machine = {.jiffy_ns = 4000000, .cpus = 1};
	struct sl_state *states = calloc(STATES, sizeof(*states));
	uint64_t passed = 0;

	if (!states)
		return 1;
	printf("%-8s %12s %12s  million decisions a second\n", "KIND", "ONE KEY", "1M KEYS");
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		struct sl_limit limit = limit_compile(&limits[i], SL_IPV4, &machine);
		double hot = measure(&limit, states, 0, &passed);

		printf("%-8s %12.1f %12.1f\n", limits[i].spec.name, hot,
		       measure(&limit, states, STATES - 1, &passed));
	}
	free(states);
	return !passed;
}
