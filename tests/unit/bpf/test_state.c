// SPDX-License-Identifier: GPL-2.0
/* Tests bpf/state.h, which charges and refunds a state while other CPUs charge it. */
#include "test.h"

#include "state_host.h"
#include "rules/limit.h"

#define NOW (1000 * SL_TICKS_PER_SEC)

static unsigned int pauses; /* the other CPU charges the state before this access; 0: never */
static __u64 others;	    /* amount that the other CPU charges, in ticks */

static void other_charge(void)
{
	if (pauses && !--pauses)
		host_state->empty_at += others;
}

/* If another CPU charges the state during a refund, the refund is tried again. */
TEST(test_a_refund_is_repeated_until_it_counts)
{
	const struct sl_limit limit = {.kind = SL_TOKEN_BUCKET,
				       .cost = 1000,
				       .burst = SL_TICKS_PER_SEC,
				       .refill = SL_TICKS_PER_SEC,
				       .mask = {~0ULL, ~0ULL},
				       .id = 7};
	unsigned int charges = 0;

	others = 5000;
	for (unsigned int at = 1; at < 40; at++) {
		struct packet packet = host_packet(&limit, 1, NOW);

		host_begin(&limit, (struct sl_state){.empty_at = NOW - 70000, .charged_at = NOW});
		pauses = at;
		host_between = other_charge;
		entry_refund(&packet, &limit, 1000, 1);
		host_between = NULL;
		charges += !pauses;
		assert_int_equal(host_state->empty_at, NOW - 70000 - 1000 + (pauses ? 0 : others));
	}
	/* the other CPU interrupted at least two of the refunds */
	assert_true(charges >= 2);
}

/*
 * During a block of a window, `charged_at` stores the start of the block. Charges do not change it.
 */
TEST(test_a_window_does_not_turn_inside_a_block)
{
	const struct machine machine = {.cpus = 2, .jiffy_ns = 1000000};
	const struct limit window = {.spec = {.name = "all",
					      .kind = SL_WINDOW,
					      .rate = 10,
					      .span_ns = 1000000000,
					      .groups = 5,
					      .action = SL_ACTION_BLOCK,
					      .block_ns = 100000000000,
					      .id = 7,
					      .per = {32, 64}},
				     .match = {.fact = SL_FACT_ANY}};
	const struct sl_limit limit = limit_compile(&window, SL_IPV4, &machine);
	struct sl_state before = window_full(&limit, NOW);

	before.blocked_until = NOW + limit.block;
	host_begin(&limit, before);
	for (int second = 0; second < 100; second += 3) {
		struct packet packet = host_packet(&limit, 1, NOW + second * SL_TICKS_PER_SEC);

		assert_int_equal(host_ask(&limit, &packet, NULL, &(struct verdict){0}),
				 SL_DROP_BLOCKED);
		assert_memory_equal(host_state, &before, sizeof(before));
	}
}

/* A charge to a shaper stores the time of the charge in `charged_at`. */
TEST(test_a_charge_of_a_shape_stores_its_time)
{
	const struct sl_limit limit = {.kind = SL_SHAPE,
				       .cost = 1000,
				       .horizon = SL_TICKS_PER_SEC,
				       .mask = {~0ULL, ~0ULL},
				       .id = 7};

	host_begin(&limit, shape_full(NOW));
	for (int i = 1; i < 5; i++) {
		struct packet packet = host_packet(&limit, 1, NOW + i);

		assert_int_equal(host_ask(&limit, &packet, NULL, &(struct verdict){0}),
				 SL_PASS_WITHIN);
		assert_int_equal(host_state->charged_at, NOW + i);
	}
}

TESTS(NULL, NULL)
