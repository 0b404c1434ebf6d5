// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/flood.h and bpf/bucket.h, compiled for the host: crowds, a entry that is handed to another
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
#include "bucket_host.h"
#include "count.h"
#include "table_host.h"

#define RATE	  1000 /* packets per second */
#define COST	  (SL_TICKS_PER_SEC / RATE)
#define BURST	  1000
#define BUDGET	  500
#define ONE_CPU	  1
#define MANY_CPUS 64 /* too many for slices */
#define SETS	  64
#define CROWD	  100
#define WINDOW	  4 /* jiffies are shifted by it */

/* --- A gate ---------------------------------------------------------------------------------- */

static struct {
	struct sl_policy policy;
	struct sl_rule rule; /* of the trie */
	struct sl_admission admission;
	struct sl_state budget;
	struct sl_budget_slice budget_slice;
	enum sl_family family;
	struct sl_entry *handed; /* to another key, right before its first word changes */
} world;

static uint64_t random_state = RANDOM_BEGIN;

static void *map_find(const void *map, const void *key)
{
	void *found = host_table_find(map, key);

	if (found || map == &states)
		return found;
	if (map == &admission)
		return &world.admission;
	if (map == &prefixes)
		return &world.rule;
	if (map == &policies)
		return &world.policy;
	if (map == &budgets)
		return &world.budget;
	if (map == &budget_slices)
		return &world.budget_slice;
	if (bucket_host_has(map))
		return bucket_host_find(map, key);
	fail_msg("a map that charging has nothing to do with");
	return NULL;
}

/* One CPU runs: what other CPUs do to a word happens just before. */
static uint64_t word_swap(uint64_t *word, uint64_t old, uint64_t next)
{
	struct sl_entry *entry = world.handed;
	uint64_t seen;

	if (entry && word == (uint64_t *)&entry->state.empty_at) {
		world.handed = NULL;
		entry->addr[0] ^= 1;
		entry->state.empty_at++;
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

/* Of as many CPUs as share it: with one it is worth a slice. */
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
	bucket_host_begin();
	host_table_begin(SETS, &random_state);
	host_table.gate.params.flood_threshold = CROWD;
	host_table.gate.params.interval_shift = WINDOW;
	host_table.gate.generation = 1;
	world.family = family;
	bucket_host.in_use.first = BUCKETS_FIRST;
	world.policy.since = 1;
	world.policy.limits[family] = 1;
	limit = &world.policy.limit[family][0];
	*limit = limit_of(BURST, cpus);
	limit->owes = true;
	world.rule =
		(struct sl_rule){.bits = 1, .cur = {.version = SL_POLICY_VERSION(SL_POLICY_FIRST)}};
	test_clock_ticks = 0;
	clock_advance(1000 * SL_TICKS_PER_SEC);
}

static void world_budget(unsigned int packets)
{
	world.policy.newcomers = limit_of(packets, ONE_CPU);
	world.policy.limit[world.family][0].owes = false;
	world.policy.limit[world.family][0].budgeted = true;
	world.policy.by_source[world.family] = 1;
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
	struct verdict verdict = {.version = SL_POLICY_VERSION(SL_POLICY_FIRST)};
	struct packet packet = packet_from(source);
	struct sl_bucket *bucket = bucket_find(&packet);

	if (bucket)
		bucket_recall(&packet, bucket, &host_table.gate);
	policy_charge(&packet, &world.policy, bucket, &verdict);
	if (verdict.is_charged)
		bucket_review(&packet, &verdict, bucket);
	if (bucket) {
		count_source(&packet, bucket, verdict.reason, verdict.refused);
	} else if ((verdict.reason != SL_PASS_NEWCOMER || verdict.is_charged) &&
		   verdict.reason != SL_DROP_OVER_BUDGET) {
		bool is_limited = verdict.refused || verdict.reason >= SL_FIRST_DROP;
		enum bucket_claim claim =
			bucket_claim(&packet, &verdict, !is_limited,
				     is_limited ? SL_RATION_LIMITED : SL_RATION_OTHER);

		if (claim)
			count_first(&packet, claim, verdict.reason, verdict.refused);
	}
	return verdict.reason;
}

static struct sl_entry *entry_of(uint32_t source)
{
	struct packet packet = packet_from(source);
	struct state_key key = packet_key(&packet, &world.policy.limit[world.family][0]);

	return table_find_mapped(&host_table.gate.params, hash_secret, host_table.set,
				 host_table.entry, &key);
}

#define EACH_FAMILY(family) (int family = 0; family < SL_FAMILIES; family++)

/* --- Crowds ---------------------------------------------------------------------------------- */

/* Up to a crowd each newcomer gets its state at once; then the bar is 2, for two windows. */
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
	assert_null(entry_of(1));
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	/* and it pays for the two that passed */
	assert_int_equal(entry_of(1)->state.empty_at,
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
	world.admission.flood_until[0] = world.admission.flood_until[1] = ~0ULL;
	for (int i = 0; i < FLOOD_MIN_HITS; i++)
		for (host_cpu = 0; host_cpu < 2; host_cpu++)
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	host_cpu = 1;
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(entry_of(1)->state.empty_at, test_clock_ticks -
							      world.policy.limit[SL_IPV4][0].burst +
							      (FLOOD_MIN_HITS + 1) * COST);
	host_cpu = 0;
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
}

/* A packet is one newcomer under all of its limits, and has a state of each. */
static void test_a_packet_is_met_once(void **state)
{
	const struct sl_event_count *event = world.admission.event;
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
			assert_int_equal(world.admission.new_keys[0], 5);
			assert_int_equal(event[SL_EVENT_NEW_KEY].total, 0);
			assert_int_equal(event[SL_EVENT_INSERTED].total, 10);
			/* counted when the window has ended */
			clock_advance(JIFFY << WINDOW);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_int_equal(event[SL_EVENT_NEW_KEY].total, 0);
			assert_int_equal(packet_send(6), SL_PASS_WITHIN);
			assert_int_equal(event[SL_EVENT_NEW_KEY].total, 5);
			assert_int_equal(world.admission.new_keys[0], 1);
			host_table_check();
		}
}

/* Two CPUs that meet a newcomer at once make one state, and both charge it. */
static void test_a_state_that_is_there_meanwhile_is_no_failure(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			const struct sl_limit *limit = &world.policy.limit[family][0];
			struct packet packet;
			struct sl_entry entry;

			world_begin(family, MANY_CPUS);
			packet = packet_from(1);
			assert_true(new_entry_insert(&packet, limit));
			entry = *entry_of(1);
			clock_advance(JIFFY);
			packet = packet_from(1);
			assert_true(new_entry_insert(&packet, limit));
			assert_memory_equal(entry_of(1), &entry, sizeof(entry));
			for (int event = 0; event < SL_EVENTS; event++)
				assert_int_equal(world.admission.event[event].total,
						 event == SL_EVENT_INSERTED);
			host_table_check();
		}
}

/* What it showed is charged once: a key whose state was forgotten begins anew. */
static void test_who_gets_a_state_is_no_newcomer_any_more(void **state)
{
	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world.admission.flood_until[0] = world.admission.flood_until[1] = ~0ULL;
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < FLOOD_MIN_HITS; i++)
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
	world.admission.flood_until[0] = world.admission.flood_until[1] = ~0ULL;
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_null(entry_of(1));
	assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(entry_of(1)->state.empty_at,
			 test_clock_ticks - world.policy.limit[SL_IPV4][0].burst + COST);
}

/* A entry is whole by the limit as it is, and not as it was when the entry was made. */
static void test_a_limit_that_changes_is_told_in_its_entries(void **state)
{
	struct sl_limit *limit = &world.policy.limit[SL_IPV4][0];

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(entry_of(1)->span, limit->span);
	*limit = limit_of(100 * BURST, MANY_CPUS);
	assert_int_not_equal(entry_of(1)->span, limit->span);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(entry_of(1)->span, limit->span);
}

/* --- A entry that goes to another key --------------------------------------------------------- */

/* What another key holds is not charged: the packet is a newcomer's, and the next has a state. */
static void test_a_entry_that_is_handed_over_is_not_charged(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			struct sl_entry *entry;
			uint64_t before;

			world_begin(family, MANY_CPUS);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			entry = entry_of(1);
			before = entry->state.empty_at;
			world.handed = entry;
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
			assert_int_equal(entry->state.empty_at, before + 1);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_ptr_not_equal(entry_of(1), entry);
		}
}

/* What was drawn from a state that is another's is in no slice. */
static void test_a_entry_that_is_handed_over_fills_no_slice(void **state)
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
			assert_non_null(bucket_start(&packet, BUCKET_INSERT));
			bucket = bucket_find(&packet);
			world.handed = entry_of(1);
			assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
			assert_null(world.handed);
			assert_int_equal(bucket->slice[0].credit, 0);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
			assert_true(bucket->slice[0].credit > 0);
		}
}

/* --- Buckets ---------------------------------------------------------------------------------- */

static struct sl_bucket *bucket_of(uint32_t source)
{
	struct packet packet = packet_from(source);

	return bucket_find(&packet);
}

/* The first sources get one with their first packet, as far as it goes, and keep it, hot or not. */
static void test_the_first_sources_get_a_bucket_at_once(void **state)
{
	(void)state;
	for
		EACH_FAMILY(family)
		{
			world_begin(family, MANY_CPUS);
			host_table.gate.params.flood_threshold = ~0U;
			bucket_host.in_use.first = BUCKETS_FIRST - 1;
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
	for (int i = 0; i < 2 * HOT_SAMPLE; i++) { /* lukewarm */
		clock_advance(HOT_TICKS);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
	}
	for (int i = 1; i <= HOT_SAMPLE; i++) {
		clock_advance(HOT_TICKS - 16);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1) != NULL, i == HOT_SAMPLE);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(bucket_of(1)->passed.packets, 101);
	/* one packet for each second is not worth a bucket: it goes when the slice is empty */
	for (int i = 0; i < 3; i++) {
		clock_advance(SL_TICKS_PER_SEC);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	}
	assert_null(bucket_of(1));
}

/* Of refused sources one in a jiffy gets a bucket, and of sources under a limit that observes. */
static void test_one_refused_source_in_a_jiffy_gets_a_bucket(void **state)
{
	struct sl_limit *limit;

	(void)state;
	for (int observe = 0; observe < 2; observe++) {
		world_begin(SL_IPV4, MANY_CPUS);
		host_table.gate.params.flood_threshold = ~0U;
		limit = &world.policy.limit[SL_IPV4][0];
		*limit = limit_of(1, MANY_CPUS);
		limit->cost = limit->burst = limit->refill = 3600 * SL_TICKS_PER_SEC;
		limit->observe = observe;
		limit->mark = SL_MARK_OWN(0);
		for (uint32_t source = 1; source <= 64; source++)
			assert_int_equal(packet_send(source), SL_PASS_WITHIN);
		clock_advance(SL_TICKS_PER_SEC);
		for (uint32_t source = 1, have = 0; source <= 64; source++) {
			assert_int_equal(packet_send(source),
					 observe ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
			have += bucket_of(source) != NULL;
			if (source % 8)
				continue;
			assert_int_equal(have, source / 8);
			clock_advance(JIFFY);
		}
		assert_int_equal(world.admission.event[SL_EVENT_BUCKET_INSERTED].total, 8);
	}
}

/* An insertion that the kernel refuses is counted by cause, and the packet is judged as before. */
static void test_a_failed_insertion_is_counted_by_cause(void **state)
{
	static const struct {
		long err;
		enum sl_event event;
	} cases[] = {
		{-ENOMEM, SL_EVENT_BUCKET_NO_ROOM}, /* no entry can be evicted */
		{-EBUSY, SL_EVENT_BUCKET_BUSY},	    /* Linux 6.1 to 6.14: the lock is taken */
		{-EDEADLK, SL_EVENT_BUCKET_BUSY},   /* Linux 6.15 and newer */
		{-ETIMEDOUT, SL_EVENT_BUCKET_BUSY},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		world_begin(SL_IPV6, MANY_CPUS);
		bucket_host.in_use.first = 0;
		bucket_host.err = cases[i].err;
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
		for (int event = SL_EVENT_BUCKET_INSERTED; event < SL_EVENTS; event++)
			assert_int_equal(world.admission.event[event].total,
					 event == (int)cases[i].event);
		bucket_host.err = 0;
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1)->passed.packets, 1);
	}
}

/* Insertions are counted by second, although no new source is met. */
static void test_insertions_are_counted_by_second(void **state)
{
	const struct sl_event_count *pace = &world.admission.event[SL_EVENT_BUCKET_INSERTED];

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	bucket_host.in_use.first = 0;
	for (int second = 0; second < 3; second++) {
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(pace->now, 1);
		assert_int_equal(pace->last, second > 0);
		bucket_host_evict();
		clock_advance(SL_TICKS_PER_NS << SL_SECOND_SHIFT);
	}
	assert_int_equal(pace->total, 3);
}

/* An evicted source loses what its slices hold, and no more: it passes its burst, or a little less. */
static void test_an_evicted_source_is_charged_at_its_state(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		unsigned int passed = 0;

		world_begin(family, ONE_CPU);
		bucket_host.in_use.first = 0;
		for (int i = 0; i < 2 * BURST; i++) {
			passed += packet_send(1) == SL_PASS_WITHIN;
			if (i % 100 == 99)
				bucket_host_evict();
		}
		assert_in_range(passed, BURST / 3, BURST);
		assert_int_equal(world.admission.event[SL_EVENT_BUCKET_INSERTED].total, 20);
	}
}

/* The kernel reuses an evicted entry: what was written for one source is void for another. */
static void test_a_reused_bucket_keeps_nothing(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_bucket *bucket;
		__u64 seal;

		world_begin(family, ONE_CPU);
		bucket_host.in_use.first = 0;
		packet_send(1);
		bucket = bucket_of(1);
		seal = bucket->seal[1];
		/* a program on this CPU still wrote to it when another CPU had it inserted anew */
		*bucket = (struct sl_bucket){
			.seal = {bucket->seal[0], seal ^ 1},
			.generation = 1,
			.policy_version = SL_POLICY_VERSION(SL_POLICY_ALLOW),
			.until = ~0ULL,
			.slice[0] = {.credit = BURST * COST, .until = ~0ULL},
			.passed.packets = 77,
		};
		bucket = bucket_of(1);
		assert_int_equal(bucket->seal[1], seal);
		assert_int_equal(bucket->generation, 0);
		assert_int_equal(bucket->policy_version, 0);
		assert_int_equal(bucket->slice[0].credit, 0);
		assert_int_equal(bucket->passed.packets, 0);
	}
}

/* The kernel zeroes an entry for a new source: that is the bucket of no source. */
static void test_zeroed_memory_is_no_bucket(void **state)
{
	(void)state;
	world_begin(SL_IPV4, ONE_CPU);
	bucket_host.in_use.first = 0;
	packet_send(0); /* 0.0.0.0, whose key is 0 */
	*bucket_of(0) = (struct sl_bucket){.generation = 1, .policy_version = 2, .until = ~0ULL};
	assert_int_equal(bucket_of(0)->generation, 0);
}

/* A first source keeps its bucket in a flood of forged ones, and gets a lost mark back. */
static void test_a_kept_bucket_is_restored(void **state)
{
	uint64_t passed;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	bucket_host.in_use.first = 0;
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	bucket_host.in_use.first = BUCKETS_FIRST;
	while (test_jiffies % UNMARK_JIFFIES)
		clock_advance(JIFFY);
	world.admission.flood_until[0] = world.admission.flood_until[1] = ~0ULL;
	for (uint32_t source = 1000; source < 1000 + (1 << 18); source++)
		packet_send(source);
	assert_non_null(bucket_of(1));
	memset(bucket_host.in_use.word, 0, sizeof(bucket_host.in_use.word));
	assert_null(bucket_of(1));
	clock_advance(SL_TICKS_PER_SEC); /* it is not hot */
	for (int i = 0; i < HOT_SAMPLE; i++) {
		clock_advance(HOT_TICKS);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	}
	assert_non_null(bucket_of(1));
	passed = bucket_of(1)->passed.packets;
	assert_in_range(passed, 2, 1 + HOT_SAMPLE);
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(bucket_of(1)->passed.packets, passed + 1);
}

/* So does a source that a limit observes, though it is slow. */
static void test_an_observed_source_keeps_its_bucket(void **state)
{
	struct sl_limit *limit = &world.policy.limit[SL_IPV4][0];

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	*limit = limit_of(1, MANY_CPUS);
	limit->observe = true;
	limit->mark = SL_MARK_OWN(0);
	for (int i = 0; i < 200 && !bucket_of(1); i++) { /* each other one is observed */
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		clock_advance(COST / 2 + 1);
	}
	for (int i = 0; i < 100; i++) {
		uint64_t passed = bucket_of(1)->passed.packets;

		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1)->passed.packets, passed + 1);
		clock_advance(COST / 2 + 1);
	}
}

/* Two sources that share a mark: one has a bucket, and the other looks for none it could use. */
static void test_a_shared_mark_costs_a_lookup_and_no_verdict(void **state)
{
	(void)state;
	world_begin(SL_IPV4, ONE_CPU);
	memset(bucket_host.in_use.word, 0xff, sizeof(bucket_host.in_use.word));
	clock_advance(JIFFY - test_clock_ticks % JIFFY);
	while (test_jiffies % UNMARK_JIFFIES)
		clock_advance(JIFFY);
	world.admission.sampled = 1;
	assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_null(bucket_of(1));
	/* the failed lookup cleared the mark: no lookup follows, even if there is an entry now */
	bucket_host.entry[0].map = &buckets4;
	memcpy(bucket_host.entry[0].key, &(uint32_t){1}, sizeof(uint32_t));
	assert_null(bucket_of(1));
	assert_non_null(bucket_host_find(&buckets4, &(uint32_t){1}));
}

/* It keeps it, however slow it is, so what is dropped is counted; and for a time behind that. */
static void test_a_refused_source_keeps_its_bucket(void **state)
{
	struct sl_bucket *bucket = NULL;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	world.policy.limit[SL_IPV4][0] = limit_of(1, MANY_CPUS);
	for (int i = 0; i < 4 * HOT_SAMPLE; i++) { /* each other one is refused */
		packet_send(1);
		clock_advance(COST / 2 + 1);
	}
	bucket = bucket_of(1);
	assert_non_null(bucket);
	assert_in_range(bucket->dropped.packets, HOT_SAMPLE / 2, 2 * HOT_SAMPLE);
	assert_in_range(bucket->dropped.packets + bucket->passed.packets, HOT_SAMPLE,
			4 * HOT_SAMPLE);
	for (int i = 0; i < 2; i++) { /* and none is */
		clock_advance((REFUSED_JIFFIES - 2 + 4 * i) * JIFFY);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1) != NULL, !i);
	}
}

/* The moment of a window's state is that of a sub-window: when a packet came its entry tells. */
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
	assert_true(counted > 10000 - 2 * HOT_SAMPLE);
	assert_int_equal(bucket_of(1)->passed.packets, counted);
	for (int i = 0; i < 2 * HOT_SAMPLE; i++) {
		clock_advance(2ULL << ENTRY_SEEN_SHIFT);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_a_crowd_a_newcomer_has_to_come_three_times),
		cmocka_unit_test(
			test_in_a_crowd_a_newcomer_has_to_come_three_times_through_one_cpu),
		cmocka_unit_test(test_a_packet_is_met_once),
		cmocka_unit_test(test_a_state_that_is_there_meanwhile_is_no_failure),
		cmocka_unit_test(test_who_gets_a_state_is_no_newcomer_any_more),
		cmocka_unit_test(test_what_a_budget_paid_is_not_owed),
		cmocka_unit_test(test_a_limit_that_changes_is_told_in_its_entries),
		cmocka_unit_test(test_a_entry_that_is_handed_over_is_not_charged),
		cmocka_unit_test(test_a_entry_that_is_handed_over_fills_no_slice),
		cmocka_unit_test(test_the_first_sources_get_a_bucket_at_once),
		cmocka_unit_test(test_a_hot_source_has_a_bucket_for_as_long),
		cmocka_unit_test(test_one_refused_source_in_a_jiffy_gets_a_bucket),
		cmocka_unit_test(test_a_failed_insertion_is_counted_by_cause),
		cmocka_unit_test(test_insertions_are_counted_by_second),
		cmocka_unit_test(test_an_evicted_source_is_charged_at_its_state),
		cmocka_unit_test(test_a_reused_bucket_keeps_nothing),
		cmocka_unit_test(test_zeroed_memory_is_no_bucket),
		cmocka_unit_test(test_a_kept_bucket_is_restored),
		cmocka_unit_test(test_an_observed_source_keeps_its_bucket),
		cmocka_unit_test(test_a_shared_mark_costs_a_lookup_and_no_verdict),
		cmocka_unit_test(test_a_refused_source_keeps_its_bucket),
		cmocka_unit_test(test_a_hot_source_under_a_window_has_a_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
