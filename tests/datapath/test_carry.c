// SPDX-License-Identifier: GPL-2.0
/*
 * A resize as the packet path sees it, with the injected clock: what a source gets from old and new
 * maps together.
 */
#include <stdlib.h>

#include "rig.h"

#include "credit.h"
#include "gate/gate_make.h"
#include "migrate/carry.h"
#include "rules/sizes.h"
#include "shape_model.h"
#include "window_model.h"

/*
 * The gate that is replaced and the one that replaces it, each with programs of its own and one
 * time.
 */
struct pair {
	struct rig *old;
	struct rig new;
	struct carry *carry;
	uint32_t *number;
	struct frame frame;
	uint64_t passed;
	uint64_t began;
};

static const char source[] = "203.0.113.66";

static void pair_make(struct pair *pair, struct rig *rig, enum hook hook, bool fresh_buckets)
{
	struct gate_sizes sizes;
	bool fresh[GATE_MAPS] = {
		[MAP_LEDGERS4] = true,		[MAP_LEDGERS6] = true,
		[MAP_COUNTERS] = true,		[MAP_POLICIES] = true,
		[MAP_BUCKETS4] = fresh_buckets, [MAP_BUCKETS6] = fresh_buckets,
	};
	uint32_t policies = rig->gate.policies_max;

	*pair = (struct pair){.old = rig, .frame = frame_from(source, 64)};
	assert_int_equal(gate_sizes_read(&rig->gate, &sizes), OK);
	pair->new.programs = PROGRAMS_CLOSED;
	assert_int_equal(gate_make_next(&rig->gate, &sizes, fresh, &pair->new.gate), OK);
	memcpy(pair->new.gate.policies, rig->gate.policies,
	       SL_RECORD(policies) * sizeof(struct sl_policy));
	rig_load(&pair->new, HOOK_BIT(hook));
	rig_clock_start(&pair->new, rig_now(rig));
	*pair->new.clock_jiffies = *rig->clock_jiffies;
	pair->new.phase = rig->phase;
	pair->number = calloc(policies, sizeof(*pair->number));
	assert_non_null(pair->number);
	for (uint32_t number = 0; number < policies; number++)
		pair->number[number] = number;
}

static void pair_copy(struct pair *pair)
{
	assert_int_equal(carry_begin(&pair->old->gate, &pair->new.gate, pair->number, &pair->carry),
			 OK);
}

static void pair_free(struct pair *pair)
{
	carry_free(pair->carry);
	free(pair->number);
	programs_close(&pair->new.programs);
	gate_close(&pair->new.gate);
}

static void pair_forward(struct pair *pair, uint64_t ticks)
{
	rig_clock_forward(pair->old, ticks);
	rig_clock_forward(&pair->new, ticks);
}

/* The source sends until it is refused. Its burst counts from its first packet. */
static void pair_drain(struct pair *pair, struct rig *rig)
{
	if (!pair->passed)
		pair->began = rig_now(rig);
	while (rig_run(rig, HOOK_XDP, pair->frame.bytes, pair->frame.size))
		pair->passed++;
}

enum side {
	OLD = 1,
	NEW = 2,
	BOTH = OLD | NEW,
};

/* Drains one side or the other, as often as not, at moments that are at most `step` apart. */
static void pair_drain_for(struct pair *pair, uint64_t ticks, uint64_t step, enum side sides)
{
	while (ticks) {
		uint64_t forward = 1 + rand() % step;

		forward = forward < ticks ? forward : ticks;
		pair_forward(pair, forward);
		ticks -= forward;
		if (sides & OLD && (sides == OLD || rand() % 2))
			pair_drain(pair, pair->old);
		if (sides & NEW && (sides == NEW || rand() % 2))
			pair_drain(pair, &pair->new);
	}
}

/* What a source may have got by now, in packets: the burst and rate x t. */
static uint64_t pair_allowed(const struct pair *pair)
{
	const struct sl_limit *limit = rig_limit(pair->old, source);

	return (limit->burst + rig_now(pair->old) - pair->began) / limit->cost;
}

static const struct {
	const char *rate;
	const char *burst;
} limits[] = {
	{"1kpps", "10"}, {"1kpps", "1000"}, {"10kpps", "4000"}, /* with purses */
};

/*
 * Any pattern of charges before the copy, behind it, to both while devices are switched, and to the
 * new one before the rest is carried over: once that is paid for, the source has got what it may,
 * less what it could have got between the switch and the carrying at most.
 */
static void test_one_burst_over_a_resize(void **state)
{
	struct rig *rig = rig_begin(state);

	for (unsigned int seed = 0; seed < 36; seed++) {
		const struct sl_limit *limit;
		uint64_t since, until, step, overlap, allowed, slack;
		struct pair pair;

		srand(seed);
		rig_empty(rig);
		rig_clock_start(rig, 3600 * SEC);
		rig_set(rig, "default", limits[seed % 3].rate, limits[seed % 3].burst);
		limit = rig_limit(rig, source);
		step = limit->burst / 2;
		pair_make(&pair, rig, HOOK_XDP, seed & 1);
		pair_drain_for(&pair, rand() % (3 * limit->burst), step, OLD);
		pair_copy(&pair);
		pair_drain_for(&pair, rand() % (2 * limit->burst), step, OLD);
		since = rig_now(rig);
		overlap = rand() % limit->burst;
		pair_drain_for(&pair, overlap, 1 + overlap / 4, BOTH);
		pair_drain_for(&pair, rand() % limit->burst, step, NEW);
		assert_int_equal(carry_end(pair.carry, since), OK);
		assert_int_equal(carry_lost(pair.carry), 0);
		until = rig_now(rig);
		pair_drain_for(&pair, 8 * limit->burst, step, NEW);
		pair_forward(&pair, JIFFY); /* a refusal lasts for a jiffy */
		pair_drain(&pair, &pair.new);

		allowed = pair_allowed(&pair);
		slack = (until - since + 2 * credit_purses(limit)) / limit->cost + 1;
		if (pair.passed > allowed || pair.passed + slack < allowed)
			fail_msg("seed %u: passed %lu, allowed %lu, slack %lu", seed,
				 (unsigned long)pair.passed, (unsigned long)allowed,
				 (unsigned long)slack);
		pair_free(&pair);
	}
}

/* Of a source that no device saw twice nothing is lost, and nothing gained. */
static void test_exact_through_one_device(void **state)
{
	struct rig *rig = rig_begin(state);

	for (unsigned int seed = 0; seed < 20; seed++) {
		const struct sl_limit *limit;
		struct pair pair;

		srand(seed);
		rig_empty(rig);
		rig_clock_start(rig, 3600 * SEC);
		rig_set(rig, "default", "1kpps", "100");
		limit = rig_limit(rig, source);
		pair_make(&pair, rig, HOOK_XDP, seed & 1);
		pair_drain_for(&pair, seed & 2 ? limit->burst : 0, limit->burst / 2, OLD);
		pair_copy(&pair);
		pair_drain_for(&pair, 1 + rand() % limit->burst, limit->burst / 2, OLD);
		assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
		pair_drain_for(&pair, 3 * limit->burst, limit->burst / 2, NEW);
		assert_int_equal(pair.passed, pair_allowed(&pair));
		pair_free(&pair);
	}
}

/* --- Windows and shapes --------------------------------------------------------------------- */

/* The model of one limit, which knows of no resize. */
struct plain {
	enum sl_kind kind;
	struct window_plain window;
	struct shape_plain shape;
};

static struct plain plain_begin(const struct sl_limit *limit, uint64_t now)
{
	return (struct plain){
		.kind = limit->kind,
		.window = limit->kind == SL_WINDOW ? window_plain_begin(limit, now)
						   : (struct window_plain){0},
		.shape = {.ready = now, .horizon = limit->horizon},
	};
}

/* Whether it lets one more packet pass. */
static bool plain_passes(struct plain *plain, const struct sl_limit *limit, uint64_t now)
{
	if (plain->kind == SL_SHAPE)
		return shape_plain_depart(&plain->shape, now, limit->cost) >= 0;
	if (window_plain_left(&plain->window, now) < 1)
		return false;
	window_plain_charge(&plain->window, now, 1);
	return true;
}

/* A source that no device saw twice gets to the packet what it gets without a resize. */
static void test_windows_and_shapes_go_on(void **state)
{
	static const char *const words[] = {"window 100 per 1s", "shape 1kpps horizon 50ms",
					    "window 1000 per 2s groups 3"};
	struct rig *rig = rig_begin(state);

	for (unsigned int seed = 0; seed < 12; seed++) {
		const struct sl_limit *limit;
		struct plain plain;
		struct pair pair;

		srand(seed);
		rig_empty(rig);
		rig_clock_start(rig, 3600 * SEC);
		rig_limits(rig, "default", words[seed % ARRAY_SIZE(words)], NULL);
		limit = rig_limit(rig, source);
		pair_make(&pair, rig, HOOK_EGRESS, seed & 1);
		plain = plain_begin(limit, rig_now(rig));
		for (int step = 0; step < 60; step++) {
			struct rig *sees = step < 20 ? rig : &pair.new;
			bool passes = true;

			if (step == 10)
				pair_copy(&pair);
			if (step == 20)
				assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
			for (int n = rand() % 200; passes && n; n--) {
				passes = plain_passes(&plain, limit, rig_now(rig));
				assert_int_equal(rig_run(sees, HOOK_EGRESS, pair.frame.bytes,
							 pair.frame.size),
						 passes);
			}
			/* a refusal lasts for a jiffy */
			pair_forward(&pair, (1 + rand() % 20) * (uint64_t)JIFFY);
		}
		pair_free(&pair);
	}
}

/* --- Blocks and counters -------------------------------------------------------------------- */

/* A block that began behind the copy, or before, lasts. */
static void test_a_block_is_carried(void **state)
{
	struct rig *rig = rig_begin(state);

	for (int behind = 0; behind < 2; behind++) {
		struct pair pair;

		rig_empty(rig);
		rig_limits(rig, "default", "rate 1kpps burst 10 action block 1s", NULL);
		pair_make(&pair, rig, HOOK_XDP, true);
		if (!behind)
			pair_drain(&pair, rig);
		pair_copy(&pair);
		pair_drain(&pair, rig);
		pair_forward(&pair, SEC / 2);
		assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
		pair_drain(&pair, &pair.new);
		assert_int_equal(pair.passed, 10);
		pair_forward(&pair, SEC / 2 + JIFFY);
		pair_drain(&pair, &pair.new);
		assert_int_equal(pair.passed, 20);
		pair_free(&pair);
	}
}

/* What both counted, once. */
static void test_counters_are_carried(void **state)
{
	struct rig *rig = rig_begin(state);
	struct sl_cell passed, dropped;
	struct sl_counters all;
	struct pair pair;

	rig_set(rig, "default", "1/h", "10");
	pair_make(&pair, rig, HOOK_XDP, false);
	pair_copy(&pair);
	rig_send(rig, HOOK_XDP, &pair.frame, 25);
	rig_send(&pair.new, HOOK_XDP, &pair.frame, 7);
	assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
	all = rig_counters(&pair.new);
	passed = counters_passed(&all);
	dropped = counters_dropped(&all);
	assert_int_equal(passed.packets + dropped.packets, 32);
	assert_int_equal(passed.bytes + dropped.bytes, 32 * 64);
	assert_int_equal(passed.packets, rig->passed.packets + pair.new.passed.packets);
	pair_free(&pair);
}

/* Policies that no prefix refers to any more: their counts are in the total alone. */
static void test_deleted_policies_keep_their_counts(void **state)
{
	struct rig *rig = rig_begin(state);
	struct sl_counters all, own;
	const struct sl_policy *first;
	struct pair pair;

	rig_set(rig, "10.0.0.0/8", "1/h", "10");
	rig_set(rig, "203.0.113.0/24", "1/h", "10");
	pair_make(&pair, rig, HOOK_XDP, false);
	rig_send(rig, HOOK_XDP, &pair.frame, 25);
	pair.number[SL_POLICY_FIRST + 1] = 0;
	pair_copy(&pair);
	assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
	all = rig_counters(&pair.new);
	assert_int_equal(counters_passed(&all).packets, 10);
	assert_int_equal(counters_dropped(&all).packets, 15);
	first = &pair.new.gate.policies[SL_RECORD(SL_POLICY_FIRST)];
	assert_int_equal(counters_get(&pair.new.gate, SL_POLICY_FIRST, &own), 0);
	counters_take_from(&own, &first->base);
	assert_int_equal(counters_passed(&own).packets + counters_dropped(&own).packets, 0);
	pair_free(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_burst_over_a_resize),
		cmocka_unit_test(test_exact_through_one_device),
		cmocka_unit_test(test_windows_and_shapes_go_on),
		cmocka_unit_test(test_a_block_is_carried),
		cmocka_unit_test(test_counters_are_carried),
		cmocka_unit_test(test_deleted_policies_keep_their_counts),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
