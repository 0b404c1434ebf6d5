// SPDX-License-Identifier: GPL-2.0
/*
 * A resize as the packet path sees it, with the injected clock: what a source gets from old and new
 * maps together.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

#include "base/clock.h"
#include "credit.h"
#include "gate/array_view.h"
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

/* sources: what the new table has room for; 0: as much as the old one. */
static void pair_make_sized(struct pair *pair, struct rig *rig, enum hook hook, bool fresh_buckets,
			    uint32_t sources)
{
	struct gate_sizes sizes;
	const bool fresh[GATE_MAPS] = {
		[MAP_GATE] = true,
		[MAP_SETS] = true,
		[MAP_LEDGERS] = true,
		[MAP_COUNTERS] = true,
		[MAP_POLICIES] = true,
		[MAP_HOT] = fresh_buckets,
		[MAP_BUCKETS] = fresh_buckets,
	};
	uint32_t policies = rig->gate.policies_max;
	int shared[GATE_MAPS];

	*pair = (struct pair){.old = rig, .frame = frame_from(source, 64)};
	assert_int_equal(gate_sizes_read(&rig->gate, &sizes), OK);
	sizes.sources = sources ?: sizes.sources;
	pair->new.programs = PROGRAMS_CLOSED;
	for (int map = 0; map < GATE_MAPS; map++)
		shared[map] = fresh[map] ? -1 : rig->gate.map[map];
	assert_int_equal(gate_make_next(&rig->gate, &sizes, shared, &pair->new.gate), OK);
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

static void pair_make(struct pair *pair, struct rig *rig, enum hook hook, bool fresh_buckets)
{
	pair_make_sized(pair, rig, hook, fresh_buckets, 0);
}

static void pair_copy(struct pair *pair)
{
	assert_int_equal(carry_begin(&pair->old->gate, &pair->new.gate, pair->number,
				     rig_now(pair->old), &pair->carry),
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

/* --- Room ----------------------------------------------------------------------------------- */

#define MANY  900
#define BURST 8

/* What each source has spent. */
static void many_send(struct rig *rig, unsigned int spent[MANY], unsigned int i, unsigned int count)
{
	const struct frame frame = frame_of(i);

	if (i % 100 == 0) /* so few at once that they are no crowd */
		rig_clock_forward(rig, rig_window(rig));
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, count), count);
	spent[i] += count;
}

/* The most that a source had spent whose level is not in the table. Returns how many there are. */
static unsigned int many_lost(struct rig *rig, const unsigned int spent[MANY],
			      unsigned int *ret_most)
{
	const struct sl_limit *limit = rig_limit(rig, "10.0.0.1");
	unsigned int lost = 0;

	*ret_most = 0;
	for (unsigned int i = 0; i < MANY; i++) {
		const struct frame frame = frame_of(i);
		const uint8_t *from = frame.bytes + 14 + 12;
		struct sl_prefix address;
		struct sl_ledger ledger;
		char text[16];

		snprintf(text, sizeof(text), "%u.%u.%u.%u", from[0], from[1], from[2], from[3]);
		address = prefix_of(text);
		if (!spent[i])
			continue;
		if (rig_ledger(rig, &address, limit, &ledger)) {
			int64_t level = credit_level(limit, &ledger, rig_now(rig));

			assert_int_equal(level / (int64_t)limit->cost, BURST - spent[i]);
			continue;
		}
		lost++;
		*ret_most = spent[i] > *ret_most ? spent[i] : *ret_most;
	}
	return lost;
}

/*
 * More sources than there is room for, which spend on behind the copy: those that are in the table
 * have their level, and as many are lost as is said, of those that had spent less than half.
 */
static void test_what_loses_least_stays_out(void **state)
{
	struct rig *rig = rig_begin(state);

	for (unsigned int seed = 0; seed < 6; seed++) {
		unsigned int spent[MANY] = {0}, most;
		struct pair pair;

		srand(seed);
		rig_empty(rig);
		rig_clock_start(rig, 3600 * SEC);
		rig_set(rig, "default", "1/h", "8");
		for (unsigned int i = 0; i < MANY; i++)
			many_send(rig, spent, i, i % 3 ? 1 + rand() % 3 : rand() % (BURST + 1));
		pair_make_sized(&pair, rig, HOOK_XDP, true, 300); /* 64 sets of 8 */
		pair_copy(&pair);
		assert_int_equal(carry_lost(pair.carry), many_lost(&pair.new, spent, &most));
		assert_in_range(carry_lost(pair.carry), MANY / 4, MANY / 2);
		assert_in_range(most, 1, BURST / 2);
		for (unsigned int i = seed % 5; i < MANY; i += 5)
			many_send(rig, spent, i, rand() % (BURST + 1 - spent[i]));
		assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
		assert_int_equal(carry_lost(pair.carry), many_lost(&pair.new, spent, &most));
		assert_in_range(most, 1, BURST / 2);
		pair_free(&pair);
	}
}

/* Behind the copy, too: who spent a little then is left out rather than one that spent all. */
static void test_who_spent_all_stays(void **state)
{
	struct rig *rig = rig_begin(state);
	unsigned int all[MANY] = {0}, little[MANY] = {0}, lost, most;
	struct pair pair;

	rig_set(rig, "default", "1/h", "8");
	for (unsigned int i = 0; i < MANY - 100; i++)
		many_send(rig, all, i, BURST);
	pair_make_sized(&pair, rig, HOOK_XDP, true, 300);
	pair_copy(&pair);
	lost = carry_lost(pair.carry);
	assert_int_equal(lost, MANY - 100 - 512);
	for (unsigned int i = MANY - 100; i < MANY; i++)
		many_send(rig, little, i, 1);
	assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
	assert_int_equal(carry_lost(pair.carry), lost + 100);
	assert_int_equal(many_lost(&pair.new, all, &most), lost);
	assert_int_equal(many_lost(&pair.new, little, &most), 100);
	pair_free(&pair);
}

/* To a larger table, and to one that is as large but has other places: nothing is lost. */
static void test_all_levels_find_room(void **state)
{
	static const uint32_t sizes[] = {1200, 20000, 0};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned int spent[MANY] = {0}, most;
		struct pair pair;

		rig_empty(rig);
		rig_set(rig, "default", "1/h", "8");
		for (unsigned int source = 0; source < MANY; source++)
			many_send(rig, spent, source, source % (BURST + 1));
		pair_make_sized(&pair, rig, HOOK_XDP, false, sizes[i]);
		pair_copy(&pair);
		for (unsigned int source = 0; source < MANY; source += 3)
			many_send(rig, spent, source, source % (BURST + 1 - spent[source]));
		assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
		assert_int_equal(carry_lost(pair.carry), 0);
		assert_int_equal(many_lost(&pair.new, spent, &most), 0);
		pair_free(&pair);
	}
}

static uint64_t send_xdp(struct rig *rig, const char *from, uint64_t count)
{
	const struct frame frame = frame_from(from, 64);

	return rig_send(rig, HOOK_XDP, &frame, count);
}

/* A limit that is deleted leaves nothing in the new table. */
static void test_ledgers_of_deleted_limits_stay_out(void **state)
{
	struct rig *rig = rig_begin(state);
	struct pair pair;

	rig_limits(rig, "default", "name a rate 1/h burst 10", "name b rate 1/h burst 20", NULL);
	send_xdp(rig, source, 5);
	send_xdp(rig, "2001:db8::1", 5);
	assert_int_equal(rig_ledgers(rig), 4);
	rig_limits(rig, "default", "name b rate 1/h burst 20", NULL);
	pair_make(&pair, rig, HOOK_XDP, true);
	pair_copy(&pair);
	assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
	assert_int_equal(rig_ledgers(&pair.new), 2);
	assert_int_equal(send_xdp(&pair.new, source, 20), 15);
	pair_free(&pair);
}

/* A resize that is given up: what the new table was charged, of copies and of newcomers. */
static void test_charges_of_copies_are_charged_back(void **state)
{
	struct rig *rig = rig_begin(state);
	struct pair pair;

	rig_set(rig, "default", "1/h", "10");
	assert_int_equal(send_xdp(rig, source, 3), 3);
	assert_int_equal(send_xdp(rig, "192.0.2.1", 3), 3);
	pair_make(&pair, rig, HOOK_XDP, true);
	pair_copy(&pair);
	assert_int_equal(send_xdp(&pair.new, source, 4), 4);
	assert_int_equal(send_xdp(&pair.new, "192.0.2.2", 6), 6);
	assert_int_equal(send_xdp(rig, "192.0.2.1", 2), 2);
	assert_int_equal(carry_back(&rig->gate, pair.new.gate.map[MAP_LEDGERS], rig_now(rig)), OK);
	assert_int_equal(send_xdp(rig, source, 20), 3);
	assert_int_equal(send_xdp(rig, "192.0.2.2", 20), 4);
	assert_int_equal(send_xdp(rig, "192.0.2.1", 20), 5);
	pair_free(&pair);
}

/* --- Locks ---------------------------------------------------------------------------------- */

/* Changes `away` of all sets: by 1 takes the locks, by -1 frees them. */
static void locks_add(const struct gate *gate, int add)
{
	struct array_view sets;

	assert_int_equal(array_view_open(gate, MAP_SETS, sizeof(struct sl_set), &sets), OK);
	for (uint32_t i = 0; i < sets.count; i++)
		__atomic_fetch_add(&((struct sl_set *)sets.values)[i].away, add, __ATOMIC_SEQ_CST);
	array_view_close(&sets);
}

/* Longer than any time slice. */
static void *locks_free(void *gate)
{
	usleep(50000);
	locks_add(gate, -1);
	return NULL;
}

/* What has the lock of a set is scheduled out: the ledger is inserted all the same. */
static void test_a_lock_that_is_held_for_long(void **state)
{
	struct rig *rig = rig_begin(state);
	struct pair pair;
	pthread_t thread;

	rig_set(rig, "default", "1/h", "10");
	pair_make(&pair, rig, HOOK_XDP, true);
	pair_copy(&pair);
	assert_int_equal(send_xdp(rig, source, 3), 3);
	locks_add(&pair.new.gate, 1);
	assert_int_equal(pthread_create(&thread, NULL, locks_free, &pair.new.gate), 0);
	assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(carry_lost(pair.carry), 0);
	assert_int_equal(send_xdp(&pair.new, source, 20), 7);

	assert_int_equal(send_xdp(&pair.new, "192.0.2.2", 6), 6);
	locks_add(&rig->gate, 1);
	assert_int_equal(pthread_create(&thread, NULL, locks_free, &rig->gate), 0);
	assert_int_equal(carry_back(&rig->gate, pair.new.gate.map[MAP_LEDGERS], rig_now(rig)), OK);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(send_xdp(rig, "192.0.2.2", 20), 4);
	pair_free(&pair);
}

/* The owner of a gate closes all sets: a command ends all the same, and tells what is lost. */
static void test_locks_that_nobody_frees(void **state)
{
	struct rig *rig = rig_begin(state);
	unsigned int spent[MANY] = {0};
	struct pair pair;
	uint64_t began;

	rig_set(rig, "default", "1/h", "8");
	pair_make(&pair, rig, HOOK_XDP, true);
	pair_copy(&pair);
	for (unsigned int i = 0; i < MANY; i++)
		many_send(rig, spent, i, 1);
	locks_add(&pair.new.gate, 1);
	began = uptime_ns();
	assert_int_equal(carry_end(pair.carry, rig_now(rig)), OK);
	assert_in_range(uptime_ns() - began, NS_PER_SEC, 5 * NS_PER_SEC);
	assert_int_equal(carry_lost(pair.carry), MANY);
	pair_free(&pair);
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
		cmocka_unit_test(test_what_loses_least_stays_out),
		cmocka_unit_test(test_who_spent_all_stays),
		cmocka_unit_test(test_all_levels_find_room),
		cmocka_unit_test(test_ledgers_of_deleted_limits_stay_out),
		cmocka_unit_test(test_charges_of_copies_are_charged_back),
		cmocka_unit_test(test_a_lock_that_is_held_for_long),
		cmocka_unit_test(test_locks_that_nobody_frees),
		cmocka_unit_test(test_windows_and_shapes_go_on),
		cmocka_unit_test(test_a_block_is_carried),
		cmocka_unit_test(test_counters_are_carried),
		cmocka_unit_test(test_deleted_policies_keep_their_counts),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
