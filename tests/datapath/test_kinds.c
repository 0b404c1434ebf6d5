// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of every kind of limit in the packet path, on any hook and CPU. `sluice check` predicts
 * each verdict.
 */
#include "rig.h"

#include <stdlib.h>

#include "kinds.h"

#define SOURCE	"192.0.2.1"
#define SOURCE6 "2001:db8::1"

static const char *const sources[] = {SOURCE, SOURCE6};

/*
 * Each limit in the table passes this number of packets of FRAME_LEAST bytes at once. The next
 * packet passes only after more than a jiffy, except under limits that shape.
 */
#define CAPACITY 20

static const struct kind_case {
	const char *words;
	enum sl_kind kind;
} kinds[] = {
	{"rate 10pps burst 20", SL_TOKEN_BUCKET},
	{"rate 10pps burst 20 per 24/56", SL_TOKEN_BUCKET},
	{"window 20 per 1s", SL_WINDOW},
	{"window 20 per 1min groups 1", SL_WINDOW},
	{"window 20 per 1s groups 10 per 24/56", SL_WINDOW},
	{"window 1200B per 1s", SL_WINDOW},
	{"shape 10pps horizon 1900ms", SL_SHAPE},
	{"shape 1kpps horizon 19ms per 24/56", SL_SHAPE},
};

#define KINDS_END (kinds + ARRAY_SIZE(kinds))

/* Returns a random hook, but egress for a shape, because received packets cannot be delayed. */
static enum hook any_hook(enum sl_kind kind)
{
	return kind == SL_SHAPE ? HOOK_EGRESS : rand() % HOOKS;
}

static enum sl_reason refusal_of(enum sl_kind kind)
{
	return kind == SL_SHAPE ? SL_DROP_OVER_HORIZON : SL_DROP_OVER_LIMIT;
}

/* Sets the limit. Moves the clock to a random time. */
static void begin_with(struct rig *rig, const struct kind_case *it)
{
	rig_empty(rig);
	rig_limits(rig, "default", it->words, NULL);
	rig_clock_forward(rig, (uint64_t)rand() % (100 * SEC));
}

/* Sends packets of a source, each on a random CPU and hook. Returns how many pass. */
static uint64_t send_any(struct rig *rig, const struct kind_case *it, const char *source,
			 uint64_t count)
{
	struct frame frame = frame_from(source, FRAME_LEAST);
	uint64_t passed = 0;

	for (uint64_t i = 0; i < count; i++) {
		rig_run_on(rig, rand() % rig->cpus);
		passed += rig_send(rig, any_hook(it->kind), &frame, 1);
	}
	return passed;
}

/* Moves the clock to the next jiffy, in which no cached refusal is valid. */
static void next_jiffy(struct rig *rig)
{
	rig_clock_to_edge(rig);
	rig_clock_forward(rig, 1);
}

static const struct sl_limit *limit_of(const struct rig *rig, const struct kind_case *it,
				       const char *source)
{
	const struct sl_limit *limit = rig_limit(rig, source);

	assert_int_equal(limit->kind, it->kind);
	return limit;
}

/* --- Capacity ------------------------------------------------------------------------------- */

TEST(test_full_bucket_allows_capacity)
{
	struct rig *rig = rig_begin(state);

	for (const struct kind_case *it = kinds; it < KINDS_END; it++)
		for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
			begin_with(rig, it);
			assert_int_equal(send_any(rig, it, sources[s], CAPACITY), CAPACITY);
			assert_int_equal(send_any(rig, it, sources[s], 10), 0);
			assert_int_equal(rig_reason(rig, refusal_of(it->kind)), 10);
			rig_check_counted(rig);
		}
}

TEST(test_concurrent_allow_grants_at_most_capacity)
{
	static const struct {
		const char *words;
		enum hook hook;
		uint64_t least, most; /* bounds of packets that pass at once */
		uint64_t pps;	      /* credit that refills, in packets per second */
	} cases[] = {
		{"rate 1/h burst 1000", HOOK_INGRESS, 1000 - 1000 / 16, 1000, 0},
		{"window 1000 per 10h", HOOK_INGRESS, 1000, 1000, 0},
		{"window 1000 per 10h groups 10", HOOK_XDP, 1000, 1000, 0},
		{"window 60kB per 10h groups 1 per 24/56", HOOK_INGRESS, 1000, 1000, 0},
		{"shape 100pps horizon 9990ms", HOOK_EGRESS, 1000, 1000, 100},
	};
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct shipped shipped;

	rig_need_cpus(rig, 2);
	shipped = rig_ship(rig, HOOKS_ALL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flood floods[RIG_CPUS_MAX];
		struct sl_counters counters;
		uint64_t begin, passed, more;

		rig_empty(rig);
		rig_limits(rig, "default", cases[i].words, NULL);
		begin = clock_ns();
		for (unsigned int cpu = 0; cpu < rig->cpus; cpu++) {
			floods[cpu] = (struct flood){
				.prog = shipped.prog[cases[i].hook],
				.cpu = rig->cpu[cpu],
				.frame = &frame,
				.chunk = 1000,
				.count = cases[i].hook == HOOK_XDP ? 20000 : 200000,
			};
			flood_start(&floods[cpu]);
		}
		for (unsigned int cpu = 0; cpu < rig->cpus; cpu++)
			flood_join(&floods[cpu]);
		more = 1 + cases[i].pps * (clock_ns() - begin) / SEC_NS;
		counters = rig_counters(rig);
		passed = counters_passed(&counters).packets;
		print_message("figure: %u CPUs, %s: %lu passed\n", rig->cpus, cases[i].words,
			      passed);
		assert_in_range(passed, cases[i].least, cases[i].most + (cases[i].pps ? more : 0));
	}
	shipped_free(&shipped);
}

/* --- Retry-after and refill ----------------------------------------------------------------- */

/* The command `check` predicts when packets will pass. They pass at this time, but not before. */
TEST(test_denial_carries_retry_after)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);

	rig_need_cpus(rig, 2);
	for (const struct kind_case *it = kinds; it < KINDS_END; it++)
		for (int turn = 0; turn < 30; turn++) {
			enum hook hook = any_hook(it->kind);
			const struct sl_limit *limit;
			struct limit_state stated;

			begin_with(rig, it);
			limit = limit_of(rig, it, SOURCE);
			for (int part = rand() % CAPACITY; part; part--) {
				send_any(rig, it, SOURCE, 1);
				rig_clock_forward(rig, (uint64_t)rand() % (100 * MS));
			}
			rig_run_on(rig, 0);
			while (rig_send(rig, hook, &frame, 1))
				;
			stated = rig_limit_state(rig, limit, SOURCE, FRAME_LEAST);
			assert_int_equal(stated.reason, refusal_of(it->kind));
			assert_int_equal(stated.remaining, 0);
			assert_in_range(stated.retry_after_ms, 1, 120000);
			rig_run_on(rig, 1);
			rig_clock_forward(rig, (stated.retry_after_ms - 1) * MS);
			assert_int_not_equal(
				rig_limit_state(rig, limit, SOURCE, FRAME_LEAST).reason,
				SL_PASS_WITHIN);
			rig_clock_forward(rig, MS);
			assert_int_equal(rig_limit_state(rig, limit, SOURCE, FRAME_LEAST).reason,
					 SL_PASS_WITHIN);
			assert_int_equal(rig_send(rig, hook, &frame, CAPACITY + 10),
					 stated.remaining_after_waiting /
						 (limit->by_bytes ? FRAME_LEAST : 1));
			rig_run_on(rig, 0);
		}
	rig_check_counted(rig);
}

/* --- Sizes ---------------------------------------------------------------------------------- */

/* A packet larger than the window never passes, and is not charged. */
TEST(test_oversize_never_passes)
{
	struct rig *rig = rig_begin(state);
	struct frame large = frame_from(SOURCE, 1001), fits = frame_from(SOURCE, 1000),
		     least = frame_from(SOURCE, FRAME_LEAST);
	struct limit_state stated;

	rig_limits(rig, "default", "window 1kB per 1s action block 30s", NULL);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &large, 2), 0);
		stated = rig_limit_state(rig, rig_limit(rig, SOURCE), SOURCE, 1001);
		assert_int_equal(stated.reason, SL_DROP_OVERSIZE);
		assert_true(stated.never);
		assert_int_equal(stated.retry_after_ms, 0);
		/*
		 * A packet that is too large to pass does not begin a block. Its refusal is not
		 * cached.
		 */
		assert_int_equal(rig_send(rig, HOOK_INGRESS, &fits, 1), 1);
		rig_clock_forward(rig, 2 * SEC);
	}
	assert_int_equal(rig_reason(rig, SL_DROP_OVERSIZE), 20);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &least, 20), 1000 / FRAME_LEAST);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &large, 1), 0);
	/* The last packet is not counted as oversize, because the block had already begun. */
	assert_int_equal(rig_reason(rig, SL_DROP_OVERSIZE), 20);

	rig_empty(rig);
	rig_limits(rig, "default", "window 40 per 1s", NULL);
	assert_false(rig_run_merged(rig, SOURCE, 41));
	assert_true(rig_run_merged(rig, SOURCE, 39));
	assert_false(rig_run_merged(rig, SOURCE, 41));
	assert_int_equal(rig_reason(rig, SL_DROP_OVERSIZE), 82);
	assert_false(rig_run_merged(rig, SOURCE, 2));
	next_jiffy(rig);
	assert_true(rig_run_merged(rig, SOURCE, 1));
	assert_int_equal(rig_reason(rig, SL_DROP_OVER_LIMIT), 2);
	rig_check_counted(rig);
}

/* --- Two rates ------------------------------------------------------------------------------ */

/* Returns the first rate of the limit (packets), or its second rate if `bits`. */
static const struct sl_limit *rate_of(const struct rig *rig, bool bits)
{
	const struct sl_policy *policy = rig_policy(rig, SOURCE);

	for (int i = 0; i < 2; i++)
		if (policy->spec[policy->limit[SL_IPV4][i].slot].second == bits)
			return &policy->limit[SL_IPV4][i];
	fail();
	return NULL;
}

static uint64_t left_of(const struct rig *rig, bool bits)
{
	return rig_limit_state(rig, rate_of(rig, bits), SOURCE, FRAME_LEAST).remaining;
}

/* A packet is charged to both rates of a limit, or to none of them. */
TEST(test_two_rates_are_charged_together_or_not_at_all)
{
	struct rig *rig = rig_begin(state);
	struct frame small = frame_from(SOURCE, FRAME_LEAST), large = frame_from(SOURCE, 1000);
	struct sl_counters counters;
	unsigned int packets, bits;

	rig_limits(rig, "default", "rate 1/h 1kbit burst 10 3kB", NULL);
	assert_int_equal(rig_policy(rig, SOURCE)->limits[SL_IPV4], 2);
	packets = rate_of(rig, false)->slot;
	bits = rate_of(rig, true)->slot;
	/* Two packets exceed the rate in bits. */
	assert_int_equal(rig_send(rig, HOOK_XDP, &large, 5), 3);
	assert_int_equal(left_of(rig, false), 7);
	assert_int_equal(left_of(rig, true), 0);
	counters = rig_counters_of(rig, SOURCE);
	assert_int_equal(counters.refused[packets].packets, 0);
	assert_int_equal(counters.refused[bits].packets, 2);
	rig_clock_forward(rig, 100 * SEC); /* The burst in bits is full again. */
	assert_int_equal(rig_send(rig, HOOK_XDP, &small, 10), 7);
	assert_int_equal(left_of(rig, false), 0);
	assert_int_equal(left_of(rig, true), 3000 - 7 * FRAME_LEAST);
	counters = rig_counters_of(rig, SOURCE);
	assert_int_equal(counters.refused[packets].packets, 3);
	assert_int_equal(counters.refused[bits].packets, 2);
	rig_check_counted(rig);
}

/* A limit with two rates has one name and two slots. */
TEST(test_two_rates_have_two_slots_and_one_name)
{
	struct rig *rig = rig_begin(state);
	const struct sl_policy *policy;
	struct sl_prefix prefix = prefix_of("default");
	struct rule rule = {.prefix = prefix};
	uint32_t ids[2];

	rig_limits(rig, "default", "rate 1/h 1kbit burst 10 3kB", "name x rate 1pps",
		   "name y rate 2pps", NULL);
	policy = rig_policy(rig, SOURCE);
	assert_int_equal(policy->limits[SL_IPV4], 4);
	assert_int_equal(rules_get(&rig->gate, &prefix, &rule), 0);
	assert_int_equal(rule.limits, 3);
	assert_int_equal(rule_find_limit(&rule, "all")->second.rate, 1000);
	assert_int_equal(rule_find_limit(&rule, "all")->second.burst, 3000);
	assert_int_equal(rule_find_limit(&rule, "x")->second.rate, 0);
	rule_free(&rule);
	ids[0] = rate_of(rig, false)->id;
	ids[1] = rate_of(rig, true)->id;
	assert_int_not_equal(ids[0], ids[1]);
	/*
	 * A change of the burst keeps the states of both rates. A change that removes one rate
	 * keeps the state of the other rate.
	 */
	rig_limits(rig, "default", "rate 1/h 2kbit burst 12 4kB", "name x rate 1pps", NULL);
	assert_int_equal(rate_of(rig, false)->id, ids[0]);
	assert_int_equal(rate_of(rig, true)->id, ids[1]);
	rig_limits(rig, "default", "rate 1/h burst 12", "name x rate 1pps", NULL);
	assert_int_equal(rig_policy(rig, SOURCE)->limits[SL_IPV4], 2);
	assert_int_equal(rig_limit_named(rig, SOURCE, "all")->id, ids[0]);
	rig_check_tidy(rig, 1);
}

TESTS(rig_setup, rig_teardown)
