// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/newcomer.h and bpf/bucket.h, compiled for the host: crowds, a line that is handed to another
 * key in the middle of a packet, and which sources get a bucket.
 */
#include <errno.h> /* the compiler refuses numbers in bpf/table.h that differ from these */
#include "test.h"
#include "bpf_host.h"
#include "rules/limit.h"

static uint64_t word_swap(uint64_t *word, uint64_t old, uint64_t next);

/* Locks are words of 32 bits, and are always free here. */
#define __sync_val_compare_and_swap(word, old, next)                                               \
	(sizeof(*(word)) == sizeof(uint64_t) ? word_swap((uint64_t *)(word), old, next)            \
					     : (*(word) = (next), (uint64_t)(old)))
#include "bucket.h"
#include "count.h"
#include "table_host.h"

#define RATE	  1000 /* packets per second */
#define COST	  (SL_TICKS_PER_SEC / RATE)
#define BURST	  1000
#define BUDGET	  500
#define ONE_CPU	  1
#define MANY_CPUS 64 /* too many for purses */
#define SETS	  64
#define HOT	  4096
#define CROWD	  100
#define WINDOW	  4 /* jiffies are shifted by it */

/* --- A gate ---------------------------------------------------------------------------------- */

static struct {
	struct sl_policy policy;
	struct sl_rule rule; /* of the trie */
	struct sl_admission admission;
	struct sl_ledger budget;
	struct sl_allowance allowance;
	struct sl_hot hot[HOT / SL_SEATS];
	struct sl_bucket buckets[HOT];
	enum sl_family family;
	struct sl_line *handed; /* to another key, right before its first word changes */
} world;

static uint64_t random_state = RANDOM_BEGIN;

static void *map_find(const void *map, const void *key)
{
	void *found = host_table_find(map, key);

	if (found)
		return found;
	if (map == &admission)
		return &world.admission;
	if (map == &prefixes)
		return &world.rule;
	if (map == &policies)
		return &world.policy;
	if (map == &budgets)
		return &world.budget;
	if (map == &allowances)
		return &world.allowance;
	if (map == &hot)
		return array_entry(world.hot, sizeof(*world.hot), ARRAY_SIZE(world.hot), key);
	if (map == &buckets)
		return array_entry(world.buckets, sizeof(*world.buckets), HOT, key);
	fail_msg("a map that charging has nothing to do with");
	return NULL;
}

/* One CPU runs: what other CPUs do to a word happens just before. */
static uint64_t word_swap(uint64_t *word, uint64_t old, uint64_t next)
{
	struct sl_line *line = world.handed;
	uint64_t seen;

	if (line && word == (uint64_t *)&line->ledger.zero) {
		world.handed = NULL;
		line->addr[0] ^= 1;
		line->ledger.zero++;
	}
	seen = *word;
	if (seen == old)
		*word = next;
	return seen;
}

static void clock_advance(uint64_t ticks)
{
	test_clock_ticks += ticks;
	test_jiffies = test_clock_ticks / JIFFY;
}

/* Of as many CPUs as share it: with one it is worth a purse. */
static struct sl_limit limit_of(uint64_t packets, uint32_t cpus)
{
	const struct machine machine = {.cpus = cpus, .jiffy_ns = JIFFY_NS};
	struct limit limit = {
		.spec = {.name = "all", .rate = RATE, .burst = packets, .id = 7, .per = {32, 64}},
		.match = {.fact = SL_FACT_ANY},
	};

	return limit_compile(&limit, world.family, &machine);
}

/* A gate with one limit of BURST packets, and buckets for none but hot sources. */
static void world_begin(enum sl_family family, uint32_t cpus)
{
	struct sl_limit *limit;

	memset(&world, 0, sizeof(world));
	host_table_begin(SETS, &random_state);
	host_table.gate.meeting.crowd = CROWD;
	host_table.gate.meeting.window_shift = WINDOW;
	host_table.gate.meeting.hot_mask = HOT / SL_SEATS - 1;
	host_table.gate.generation = 1;
	world.family = family;
	world.admission.given = GIVEN_MOST;
	world.policy.since = 1;
	world.policy.limits[family] = 1;
	limit = &world.policy.limit[family][0];
	*limit = limit_of(BURST, cpus);
	limit->owes = true;
	world.rule = (struct sl_rule){.bits = 1, .now = {.record = SL_RECORD(SL_POLICY_FIRST)}};
	test_clock_ticks = 0;
	clock_advance(1000 * SL_TICKS_PER_SEC);
}

static void world_budget(unsigned int packets)
{
	world.policy.newcomers = limit_of(packets, ONE_CPU);
	world.policy.limit[world.family][0].owes = false;
	world.budget = credit_full(&world.policy.newcomers, test_clock_ticks);
}

static struct packet packet_from(uint32_t source)
{
	struct packet packet = {.packets = 1, .bytes = 60};

	packet.source.bits = SL_FAMILY_BITS + (world.family == SL_IPV4 ? 32 : 128);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet_begin(&packet, &host_table.gate);
	return packet;
}

/* A packet's way through bpf/sluice.bpf.c. */
static enum sl_reason packet_send(uint32_t source)
{
	struct verdict verdict = {.record = SL_RECORD(SL_POLICY_FIRST)};
	struct packet packet = packet_from(source);
	struct sl_bucket *bucket = bucket_find(&packet, &host_table.gate);

	if (bucket)
		bucket_recall(&packet, bucket, &host_table.gate);
	policy_charge(&packet, &world.policy, bucket, &verdict);
	if (!bucket && verdict.reason != SL_PASS_NEWCOMER &&
	    verdict.reason != SL_DROP_OVER_BUDGET &&
	    source_is_hot(&packet, verdict.reason == SL_PASS_WITHIN))
		bucket = bucket_at(bucket_earn(&packet, &host_table.gate));
	else if (bucket && packet.asked)
		bucket_review(&packet, &host_table.gate, bucket);
	count_source(&packet, bucket, &verdict);
	return verdict.reason;
}

static struct sl_line *line_of(uint32_t source)
{
	struct packet packet = packet_from(source);
	struct ledger_key key = packet_key(&packet, &world.policy.limit[world.family][0]);

	return table_find_mapped(&host_table.gate.meeting, host_table.set, host_table.line, &key);
}

#define EACH_FAMILY(family) (int family = 0; family < SL_FAMILIES; family++)

/* --- Crowds ---------------------------------------------------------------------------------- */

/* Up to a crowd each newcomer gets its ledger at once; then the bar is 2, for two windows. */
static void test_in_a_crowd_a_newcomer_has_to_come_three_times(void **state)
{
	const uint64_t window = JIFFY << WINDOW;
	uint32_t source = 1000;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	/* the beginning of a window */
	clock_advance(window - test_clock_ticks % window);
	for (unsigned int i = 0; i < CROWD; i++)
		assert_int_equal(packet_send(++source), SL_PASS_WITHIN);
	assert_int_equal(packet_send(++source), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_null(line_of(1));
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	/* and it pays for the two that passed */
	assert_int_equal(line_of(1)->ledger.zero,
			 test_clock_ticks - world.policy.limit[SL_IPV4][0].burst + 3 * COST);
	clock_advance(window);
	assert_int_equal(packet_send(2), SL_PASS_NEWCOMER);
	clock_advance(window);
	assert_int_equal(packet_send(3), SL_PASS_WITHIN);
}

/* Each CPU counts by itself what came through it, and charges that. */
static void test_in_a_crowd_a_newcomer_has_to_come_three_times_through_one_cpu(void **state)
{
	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world.admission.crowd_until = ~0ULL;
	for (int i = 0; i < CROWD_BAR; i++)
		for (host_cpu = 0; host_cpu < 2; host_cpu++)
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	host_cpu = 1;
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(line_of(1)->ledger.zero, test_clock_ticks -
							  world.policy.limit[SL_IPV4][0].burst +
							  (CROWD_BAR + 1) * COST);
	host_cpu = 0;
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
}

/* A packet is one newcomer under all of its limits, and has a ledger of each. */
static void test_a_packet_is_met_once(void **state)
{
	const struct sl_pace *event = world.admission.event;
	struct sl_policy *policy = &world.policy;

	(void)state;
	for
		EACH_FAMILY(family)
		{
			world_begin(family, MANY_CPUS);
			policy->limits[family] = 2;
			policy->limit[family][1] = policy->limit[family][0];
			policy->limit[family][1].id++;
			policy->limit[family][1].slot = 1;
			for (uint32_t source = 1; source <= 5; source++)
				assert_int_equal(packet_send(source), SL_PASS_WITHIN);
			assert_int_equal(world.admission.met, 5);
			assert_int_equal(event[SL_EVENT_MET].total, 0);
			assert_int_equal(event[SL_EVENT_INSERTED].total, 10);
			/* counted when the window has ended */
			clock_advance(JIFFY << WINDOW);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_int_equal(event[SL_EVENT_MET].total, 0);
			assert_int_equal(packet_send(6), SL_PASS_WITHIN);
			assert_int_equal(event[SL_EVENT_MET].total, 5);
			assert_int_equal(world.admission.met, 1);
			host_table_check();
		}
}

/* Two CPUs that meet a newcomer at once make one ledger, and both charge it. */
static void test_a_ledger_that_is_there_meanwhile_is_no_failure(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			const struct sl_limit *limit = &world.policy.limit[family][0];
			struct packet packet;
			struct sl_line line;

			world_begin(family, MANY_CPUS);
			packet = packet_from(1);
			assert_true(newcomer_insert(&packet, limit, 1));
			line = *line_of(1);
			clock_advance(JIFFY);
			packet = packet_from(1);
			assert_true(newcomer_insert(&packet, limit, 3));
			assert_memory_equal(line_of(1), &line, sizeof(line));
			for (int event = 0; event < SL_EVENTS; event++)
				assert_int_equal(world.admission.event[event].total,
						 event == SL_EVENT_INSERTED);
			host_table_check();
		}
}

/* What it showed is charged once: a key whose ledger was forgotten begins anew. */
static void test_who_gets_a_ledger_is_no_newcomer_any_more(void **state)
{
	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world.admission.crowd_until = ~0ULL;
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < CROWD_BAR; i++)
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		for (uint32_t i = 0; i < SETS; i++)
			memset(host_table.set[i].tag, 0, sizeof(host_table.set[i].tag));
	}
}

/* A budget paid for what it passed before. */
static void test_what_a_budget_paid_is_not_owed(void **state)
{
	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world_budget(BUDGET);
	world.admission.crowd_until = ~0ULL;
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(line_of(1)->ledger.zero,
			 test_clock_ticks - world.policy.limit[SL_IPV4][0].burst + COST);
}

/* A line is whole by the limit as it is, and not as it was when the line was made. */
static void test_a_limit_that_changes_is_told_in_its_lines(void **state)
{
	struct sl_limit *limit = &world.policy.limit[SL_IPV4][0];

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(line_of(1)->span, limit->span);
	*limit = limit_of(100 * BURST, MANY_CPUS);
	assert_int_not_equal(line_of(1)->span, limit->span);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(line_of(1)->span, limit->span);
}

/* --- A line that goes to another key --------------------------------------------------------- */

/* What another key holds is not charged: the packet is a newcomer's, and the next has a ledger. */
static void test_a_line_that_is_handed_over_is_not_charged(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			struct sl_line *line;
			uint64_t before;

			world_begin(family, MANY_CPUS);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			line = line_of(1);
			before = line->ledger.zero;
			world.handed = line;
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
			assert_int_equal(line->ledger.zero, before + 1);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_ptr_not_equal(line_of(1), line);
		}
}

/* What was drawn from a ledger that is another's is in no purse. */
static void test_a_line_that_is_handed_over_fills_no_purse(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			struct sl_bucket *bucket;
			struct packet packet;

			world_begin(family, ONE_CPU);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			packet = packet_from(1);
			bucket = bucket_at(bucket_earn(&packet, &host_table.gate));
			world.handed = line_of(1);
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
			assert_null(world.handed);
			assert_int_equal(bucket->purse[0].credit, 0);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_true(bucket->purse[0].credit > 0);
		}
}

/* --- Buckets ---------------------------------------------------------------------------------- */

static struct sl_bucket *bucket_of(uint32_t source)
{
	struct packet packet = packet_from(source);

	return bucket_find(&packet, &host_table.gate);
}

/* The first sources get one with their first packet, as far as it goes, and keep it, hot or not. */
static void test_the_first_sources_get_a_bucket_at_once(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			world_begin(family, MANY_CPUS);
			host_table.gate.meeting.crowd = ~0U;
			world.admission.given = GIVEN_MOST - 1;
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_int_equal(packet_send(2), SL_PASS_WITHIN);
			assert_non_null(bucket_of(1));
			assert_null(bucket_of(2));
			for (int i = 0; i < 10; i++) {
				clock_advance(SL_TICKS_PER_SEC);
				assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			}
			assert_int_equal(bucket_of(1)->passed.packets, 11);
		}
}

/* Later ones get one as they stay hot, and give it up when they are not any more. */
static void test_a_hot_source_has_a_bucket_for_as_long(void **state)
{
	(void)state;
	world_begin(SL_IPV4, ONE_CPU);
	for (int i = 0; i < 2 * ASKING; i++) { /* lukewarm */
		clock_advance(HOT_TICKS);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
	}
	for (int i = 1; i <= ASKING; i++) {
		clock_advance(HOT_TICKS - 16);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1) != NULL, i == ASKING);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(bucket_of(1)->passed.packets, 101);
	/* one packet for each second is not worth a bucket: it goes when the purse is empty */
	for (int i = 0; i < 3; i++) {
		clock_advance(SL_TICKS_PER_SEC);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	}
	assert_null(bucket_of(1));
}

/* A source that is refused and has no bucket gets one by chance. */
static void test_one_refusal_in_so_many_asks_for_a_bucket(void **state)
{
	struct sl_limit *limit;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	limit = &world.policy.limit[SL_IPV4][0];
	*limit = limit_of(1, MANY_CPUS);
	limit->cost = limit->burst = limit->refill = 3600 * SL_TICKS_PER_SEC;
	for (uint32_t source = 1; source <= 64; source++) {
		assert_int_equal(packet_send(source), SL_PASS_WITHIN);
		clock_advance(HOT_TICKS);
	}
	for (uint32_t source = 1, have = 0; source <= 64; source++) {
		assert_int_equal(packet_send(source), SL_DROP_OVER_LIMIT);
		have += !!bucket_of(source);
		assert_int_equal(have, source / ASKING);
	}
}

/* It keeps it, however slow it is, so what is dropped is counted; and for a time behind that. */
static void test_a_refused_source_keeps_its_bucket(void **state)
{
	struct sl_bucket *bucket = NULL;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world.policy.limit[SL_IPV4][0] = limit_of(1, MANY_CPUS);
	for (int i = 0; i < 4 * ASKING; i++) { /* each other one is refused */
		packet_send(1);
		clock_advance(COST / 2 + 1);
	}
	bucket = bucket_of(1);
	assert_non_null(bucket);
	assert_in_range(bucket->dropped.packets, ASKING / 2, 2 * ASKING);
	assert_in_range(bucket->dropped.packets + bucket->passed.packets, ASKING, 4 * ASKING);
	for (int i = 0; i < 2; i++) { /* and none is */
		clock_advance((REFUSED_JIFFIES - 2 + 4 * i) * JIFFY);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1) != NULL, !i);
	}
}

/* The moment of a window's ledger is that of a sub-window: when a packet came its line tells. */
static void test_a_hot_source_under_a_window_has_a_bucket(void **state)
{
	const struct machine machine = {.cpus = MANY_CPUS, .jiffy_ns = JIFFY_NS};
	struct limit limit = {
		.spec = {.name = "all",
			 .kind = SL_WINDOW,
			 .rate = 1000 * BURST,
			 .span_ns = 1000000000,
			 .groups = 5,
			 .id = 7,
			 .per = {32, 64}},
		.match = {.fact = SL_FACT_ANY},
	};
	unsigned int counted = 0;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world.policy.limit[SL_IPV4][0] = limit_compile(&limit, SL_IPV4, &machine);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		counted += !!bucket_of(1);
		clock_advance(SL_TICKS_PER_SEC / 5000);
	}
	assert_true(counted > 10000 - 2 * ASKING);
	assert_int_equal(bucket_of(1)->passed.packets, counted);
	for (int i = 0; i < 2 * ASKING; i++) {
		clock_advance(2ULL << LINE_SEEN_SHIFT);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
	}
}

/* A gate whose buckets are one set for each CPU, in which each is in use. */
static void seats_fill(void)
{
	host_table.gate.meeting.hot_mask = 0;
	for (uint32_t source = 1; source <= SL_SEATS; source++) {
		struct packet packet = packet_from(source);

		assert_true(bucket_earn(&packet, &host_table.gate) >= 0);
		clock_advance(JIFFY << WINDOW);
	}
}

/* A set that is in use is spared, but for one source in 16: the least recent bucket goes then. */
static void test_buckets_in_use_go_rarely(void **state)
{
	unsigned int got = 0;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	seats_fill();
	for (uint32_t source = 1000; source < 1000 + 64 * SPARED; source++) {
		struct packet packet = packet_from(source);

		if (bucket_earn(&packet, &host_table.gate) < 0)
			continue;
		assert_null(bucket_of(++got));
		clock_advance(JIFFY << WINDOW);
	}
	assert_in_range(got, 60, 68);
}

/* One that was not used for a second goes to the first who asks, also that of a first source. */
static void test_a_bucket_that_rests_goes_at_once(void **state)
{
	(void)state;
	for (unsigned int given = 0; given < 2; given++) {
		struct packet packet;

		world_begin(SL_IPV4, MANY_CPUS);
		world.admission.given = given ? 0 : GIVEN_MOST;
		seats_fill();
		clock_advance((USED_WINDOWS - SL_SEATS) * (JIFFY << WINDOW));
		/* all but the first are used again */
		for (uint32_t source = 2; source <= SL_SEATS; source++)
			assert_int_equal(bucket_of(source)->kept == BUCKET_GIVEN, given);
		packet = packet_from(1000);
		assert_true(bucket_earn(&packet, &host_table.gate) >= 0);
		assert_non_null(bucket_of(1000));
		assert_null(bucket_of(1));
		packet = packet_from(1001);
		assert_int_equal(bucket_earn(&packet, &host_table.gate), -1);
	}
}

/* So it is for sources that are refused, and ask rarely. */
static void test_refused_sources_get_buckets_in_use_rarely(void **state)
{
	unsigned int got = 0;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	seats_fill();
	for (uint32_t i = 0; i < 64 * ASKING * SPARED; i++) {
		struct packet packet = packet_from(1000 + i);

		got += source_is_hot(&packet, false) && bucket_earn(&packet, &host_table.gate) >= 0;
	}
	assert_in_range(got, 48, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_a_crowd_a_newcomer_has_to_come_three_times),
		cmocka_unit_test(
			test_in_a_crowd_a_newcomer_has_to_come_three_times_through_one_cpu),
		cmocka_unit_test(test_a_packet_is_met_once),
		cmocka_unit_test(test_a_ledger_that_is_there_meanwhile_is_no_failure),
		cmocka_unit_test(test_who_gets_a_ledger_is_no_newcomer_any_more),
		cmocka_unit_test(test_what_a_budget_paid_is_not_owed),
		cmocka_unit_test(test_a_limit_that_changes_is_told_in_its_lines),
		cmocka_unit_test(test_a_line_that_is_handed_over_is_not_charged),
		cmocka_unit_test(test_a_line_that_is_handed_over_fills_no_purse),
		cmocka_unit_test(test_the_first_sources_get_a_bucket_at_once),
		cmocka_unit_test(test_a_hot_source_has_a_bucket_for_as_long),
		cmocka_unit_test(test_one_refusal_in_so_many_asks_for_a_bucket),
		cmocka_unit_test(test_a_refused_source_keeps_its_bucket),
		cmocka_unit_test(test_a_hot_source_under_a_window_has_a_bucket),
		cmocka_unit_test(test_buckets_in_use_go_rarely),
		cmocka_unit_test(test_refused_sources_get_buckets_in_use_rarely),
		cmocka_unit_test(test_a_bucket_that_rests_goes_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
