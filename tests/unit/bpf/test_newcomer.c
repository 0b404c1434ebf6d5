// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/flood.h and bpf/bucket.h, compiled for the host. Tests flood detection, the choice of sources
 * for buckets, and entries that get another key during a charge.
 */
#include "charge_host.h"

#define RATE	  1000 /* packets per second */
#define COST	  (SL_TICKS_PER_SEC / RATE)
#define BURST	  1000
#define ONE_CPU	  1
#define MANY_CPUS 64 /* with so many CPUs, limits have no per-CPU slices */
#define SETS	  64
#define THRESHOLD 100 /* packets of new keys in an interval that begin a flood */
#define SHIFT	  4   /* an interval has 2^4 jiffies */

/* Makes a gate with one limit of BURST packets. Only fast sources get a bucket. */
static void world_begin(enum sl_family family, uint32_t cpus)
{
	struct sl_limit limit;

	host_gate_begin(family, SETS);
	host_table.gate.params.flood_threshold = THRESHOLD;
	host_table.gate.params.interval_shift = SHIFT;
	bucket_host.in_use.first = BUCKETS_FIRST;
	limit = limit_of(RATE, BURST, cpus);
	limit.charge_hits = true;
	host_add(&limit);
}

/* give_entry() assigns this entry to another key, before this CPU changes its state. */
static struct sl_entry *given;

static void give_entry(const void *word)
{
	if (!given || word != &given->state.empty_at)
		return;
	given->addr[0] ^= 1;
	given->state.empty_at++;
	given = NULL;
}

/* --- Floods ---------------------------------------------------------------------------------- */

/*
 * A new key gets a state with its first packet, but in a flood only with its third packet. In a
 * flood, an interval has more packets of new keys than the threshold.
 */
TEST(test_in_a_flood_a_key_needs_three_packets)
{
	const uint64_t interval = JIFFY << SHIFT;
	uint32_t source = 1000;

	world_begin(SL_IPV4, MANY_CPUS);
	/* advance to the next interval of the flood detector */
	clock_advance(interval - test_clock_ticks % interval);
	for (unsigned int i = 0; i < THRESHOLD; i++)
		assert_int_equal(host_send(++source), SL_PASS_WITHIN);
	assert_int_equal(host_send(++source), SL_PASS_NEWCOMER);
	assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
	assert_null(entry_of(1));
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	/* also charged for the two packets that were sent before the state existed */
	assert_int_equal(entry_of(1)->state.empty_at,
			 test_clock_ticks - host.policy.limit[SL_IPV4][0].burst + 3 * COST);
	clock_advance(interval);
	assert_int_equal(host_send(2), SL_PASS_NEWCOMER);
	clock_advance(interval);
	assert_int_equal(host_send(3), SL_PASS_WITHIN);
}

/*
 * In a flood, a key gets a state with its third packet on a CPU. All three packets are charged to
 * the state.
 */
TEST(test_each_cpu_counts_hits_by_itself)
{
	world_begin(SL_IPV4, MANY_CPUS);
	host_flood();
	for (int i = 0; i < FLOOD_MIN_HITS; i++)
		for (host_cpu = 0; host_cpu < 2; host_cpu++)
			assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
	host_cpu = 1;
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	assert_int_equal(entry_of(1)->state.empty_at, test_clock_ticks -
							      host.policy.limit[SL_IPV4][0].burst +
							      (FLOOD_MIN_HITS + 1) * COST);
	host_cpu = 0;
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
}

/* A new source's packet matches two limits. It creates two states, but counts as one new key. */
TEST(test_a_packet_is_one_new_key)
{
	const struct sl_event_count *event = host.admission[0].event;

	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		host_add(host.policy.limit[family]);
		for (uint32_t source = 1; source <= 5; source++)
			assert_int_equal(host_send(source), SL_PASS_WITHIN);
		assert_int_equal(host.admission[0].new_keys[0], 5);
		assert_int_equal(event[SL_EVENT_NEW_KEY].total, 0);
		assert_int_equal(event[SL_EVENT_INSERTED].total, 10);
		/* a new interval adds the last interval's new keys to the total */
		clock_advance(JIFFY << SHIFT);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(event[SL_EVENT_NEW_KEY].total, 0);
		assert_int_equal(host_send(6), SL_PASS_WITHIN);
		assert_int_equal(event[SL_EVENT_NEW_KEY].total, 5);
		assert_int_equal(host.admission[0].new_keys[0], 1);
		host_table_check();
	}
}

/* Two CPUs insert a new key at the same time. The key must get only one state. */
TEST(test_two_cpus_insert_one_state)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		const struct sl_limit *limit = &host.policy.limit[family][0];
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
			assert_int_equal(host.admission[0].event[event].total,
					 event == SL_EVENT_INSERTED);
		host_table_check();
	}
}

TEST(test_hits_are_cleared_when_a_key_gets_a_state)
{
	world_begin(SL_IPV4, MANY_CPUS);
	host_flood();
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < FLOOD_MIN_HITS; i++)
			assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		for (uint32_t i = 0; i < SETS; i++)
			memset(host_table.set[i].tag, 0, sizeof(host_table.set[i].tag));
	}
}

/* A packet that was charged to the budget is not charged to the key's later state. */
TEST(test_packets_that_a_budget_paid_are_not_charged_again)
{
	world_begin(SL_IPV4, MANY_CPUS);
	host_set_budget(limit_of(RATE, 500, ONE_CPU));
	host_flood();
	assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
	assert_null(entry_of(1));
	assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
	assert_int_equal(entry_of(1)->state.empty_at,
			 test_clock_ticks - host.policy.limit[SL_IPV4][0].burst + COST);
}

/* If the burst of a limit changes, the next packet of the source updates `span` in its entry. */
TEST(test_an_entry_follows_its_limit)
{
	struct sl_limit *limit = &host.policy.limit[SL_IPV4][0];

	world_begin(SL_IPV4, MANY_CPUS);
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	assert_int_equal(entry_of(1)->span, limit->span);
	*limit = limit_of(RATE, 100 * BURST, MANY_CPUS);
	assert_int_not_equal(entry_of(1)->span, limit->span);
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	assert_int_equal(entry_of(1)->span, limit->span);
}

/* --- Another CPU gives the entry to another key ---------------------------------------------- */

/*
 * While a packet is charged, another CPU may give the entry to another key. The packet then passes,
 * and the other key is not charged.
 */
TEST(test_the_key_that_got_the_entry_is_not_charged)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_entry *entry;
		uint64_t before;

		world_begin(family, MANY_CPUS);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		entry = entry_of(1);
		before = entry->state.empty_at;
		host_before_swap = give_entry;
		given = entry;
		assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
		assert_int_equal(entry->state.empty_at, before + 1);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_ptr_not_equal(entry_of(1), entry);
	}
}

/*
 * An entry gets another key while a packet is charged. The packet's slice must not borrow credit
 * from the entry.
 */
TEST(test_the_key_that_got_the_entry_lends_no_credit)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_bucket *bucket;
		struct packet packet;

		world_begin(family, ONE_CPU);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		packet = packet_from(1);
		assert_non_null(bucket_start(&packet, BUCKET_INSERT));
		bucket = bucket_find(&packet, in_use_get());
		host_before_swap = give_entry;
		given = entry_of(1);
		assert_int_equal(host_send(1), SL_PASS_NEWCOMER);
		assert_null(given);
		assert_int_equal(bucket->slice[0].credit, 0);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_true(bucket->slice[0].credit > 0);
	}
}

/* --- Buckets --------------------------------------------------------------------------------- */

/*
 * Each of the first BUCKETS_FIRST sources gets a bucket at its first packet. A slow source also
 * keeps this bucket.
 */
TEST(test_the_first_sources_get_a_bucket_at_once)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		host_table.gate.params.flood_threshold = ~0U;
		bucket_host.in_use.first = BUCKETS_FIRST - 1;
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(host_send(2), SL_PASS_WITHIN);
		assert_non_null(bucket_of(1));
		assert_null(bucket_of(2));
		for (int i = 0; i < 10; i++) {
			clock_advance(SL_TICKS_PER_SEC);
			assert_int_equal(host_send(1), SL_PASS_WITHIN);
		}
		assert_int_equal(bucket_of(1)->passed.packets, 11);
	}
}

TEST(test_a_source_has_a_bucket_while_it_is_hot)
{
	world_begin(SL_IPV4, ONE_CPU);
	for (int i = 0; i < 2 * HOT_SAMPLE; i++) { /* this rate is too low for a bucket */
		clock_advance(HOT_TICKS);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
	}
	for (int i = 1; i <= HOT_SAMPLE; i++) {
		clock_advance(HOT_TICKS - 16);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1) != NULL, i == HOT_SAMPLE);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
	assert_int_equal(bucket_of(1)->passed.packets, 101);
	/* without credit in its slice, a slow source's bucket is dropped */
	for (int i = 0; i < 3; i++) {
		clock_advance(SL_TICKS_PER_SEC);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
	}
	assert_null(bucket_of(1));
}

/*
 * At most one refused source per jiffy gets a bucket. This is also true if the limit only observes.
 */
TEST(test_one_refused_source_in_a_jiffy_gets_a_bucket)
{
	struct sl_limit *limit;

	for (int observe = 0; observe < 2; observe++) {
		world_begin(SL_IPV4, MANY_CPUS);
		host_table.gate.params.flood_threshold = ~0U;
		limit = &host.policy.limit[SL_IPV4][0];
		*limit = limit_of(RATE, 1, MANY_CPUS);
		limit->cost = limit->burst = limit->refill = 3600 * SL_TICKS_PER_SEC;
		limit->observe = observe;
		limit->mark = SL_MARK_OWN(0);
		for (uint32_t source = 1; source <= 64; source++)
			assert_int_equal(host_send(source), SL_PASS_WITHIN);
		clock_advance(SL_TICKS_PER_SEC);
		for (uint32_t source = 1, have = 0; source <= 64; source++) {
			assert_int_equal(host_send(source),
					 observe ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
			have += bucket_of(source) != NULL;
			if (source % 8)
				continue;
			assert_int_equal(have, source / 8);
			clock_advance(JIFFY);
		}
		assert_int_equal(host.admission[0].event[SL_EVENT_BUCKET_INSERTED].total, 8);
	}
}

/* At most one denied source per jiffy gets a bucket. Refused sources have a separate count. */
TEST(test_denied_sources_have_their_own_ration)
{
	unsigned int claims = 0;

	world_begin(SL_IPV4, MANY_CPUS);
	for (int i = 0; i < 128; i++) {
		struct verdict verdict = {.reason = i % 2 ? SL_DROP_DENIED : SL_DROP_OVER_LIMIT};
		struct packet packet = packet_from(1);

		claims += verdict_claim(&packet, &verdict) == BUCKET_INSERT;
	}
	assert_int_equal(claims, 2);
}

/*
 * If the kernel refuses to insert a bucket, an event counts the error. The verdict does not change.
 */
TEST(test_a_failed_insertion_is_counted_by_cause)
{
	static const struct {
		long err;
		enum sl_event event;
	} cases[] = {
		{-ENOMEM, SL_EVENT_BUCKET_NO_ROOM}, /* all buckets are in use */
		{-EBUSY, SL_EVENT_BUCKET_BUSY},	    /* error of a locked map in Linux 6.1 to 6.14 */
		{-EDEADLK, SL_EVENT_BUCKET_BUSY},   /* error of a locked map since Linux 6.15 */
		{-ETIMEDOUT, SL_EVENT_BUCKET_BUSY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		world_begin(SL_IPV6, MANY_CPUS);
		bucket_host.in_use.first = 0;
		bucket_host.err = cases[i].err;
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
		for (int event = SL_EVENT_BUCKET_INSERTED; event < SL_EVENTS; event++)
			assert_int_equal(host.admission[0].event[event].total,
					 event == (int)cases[i].event);
		bucket_host.err = 0;
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1)->passed.packets, 1);
	}
}

/* The count of inserted buckets begins again each second, even if no new source sends. */
TEST(test_insertions_are_counted_by_second)
{
	const struct sl_event_count *rate = &host.admission[0].event[SL_EVENT_BUCKET_INSERTED];

	world_begin(SL_IPV4, MANY_CPUS);
	bucket_host.in_use.first = 0;
	for (int second = 0; second < 3; second++) {
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(rate->now, 1);
		assert_int_equal(rate->last, second > 0);
		bucket_host_evict();
		clock_advance(SL_TICKS_PER_NS << SL_SECOND_SHIFT);
	}
	assert_int_equal(rate->total, 3);
}

/* A source never passes more than its burst, because an evicted bucket loses its credit. */
TEST(test_an_evicted_source_is_charged_at_its_state)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		unsigned int passed = 0;

		world_begin(family, ONE_CPU);
		bucket_host.in_use.first = 0;
		for (int i = 0; i < 2 * BURST; i++) {
			passed += host_send(1) == SL_PASS_WITHIN;
			if (i % 100 == 99)
				bucket_host_evict();
		}
		assert_in_range(passed, BURST / 3, BURST);
		assert_int_equal(host.admission[0].event[SL_EVENT_BUCKET_INSERTED].total, 20);
	}
}

/* If a source gets a bucket that the kernel reuses, the old contents are ignored. */
TEST(test_a_reused_bucket_keeps_nothing)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_bucket *bucket;
		__u64 seal;

		world_begin(family, ONE_CPU);
		bucket_host.in_use.first = 0;
		host_send(1);
		bucket = bucket_of(1);
		seal = bucket->seal[1];
		/* this CPU writes to the bucket after another CPU gave it to another source */
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

/* A free bucket consists of zeros. It must not match key 0. */
TEST(test_zeroed_memory_is_no_bucket)
{
	world_begin(SL_IPV4, ONE_CPU);
	bucket_host.in_use.first = 0;
	host_send(0); /* the source 0.0.0.0 has key 0 */
	*bucket_of(0) = (struct sl_bucket){.generation = 1, .policy_version = 2, .until = ~0ULL};
	assert_int_equal(bucket_of(0)->generation, 0);
}

/*
 * One of the first BUCKETS_FIRST sources keeps its bucket in a flood of spoofed sources. If its bit
 * in `in_use` is cleared, its next packets set the bit again.
 */
TEST(test_a_kept_bucket_is_restored)
{
	uint64_t passed;

	world_begin(SL_IPV4, MANY_CPUS);
	bucket_host.in_use.first = 0;
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	bucket_host.in_use.first = BUCKETS_FIRST;
	while (test_jiffies % UNMARK_JIFFIES)
		clock_advance(JIFFY);
	host_flood();
	for (uint32_t source = 1000; source < 1000 + (1 << 18); source++)
		host_send(source);
	assert_non_null(bucket_of(1));
	memset(bucket_host.in_use.word, 0, sizeof(bucket_host.in_use.word));
	assert_null(bucket_of(1));
	clock_advance(SL_TICKS_PER_SEC); /* after this pause, the source is not fast */
	for (int i = 0; i < HOT_SAMPLE; i++) {
		clock_advance(HOT_TICKS);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
	}
	assert_non_null(bucket_of(1));
	passed = bucket_of(1)->passed.packets;
	assert_in_range(passed, 2, 1 + HOT_SAMPLE);
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	assert_int_equal(bucket_of(1)->passed.packets, passed + 1);
}

/* A slow source keeps its bucket if its limit only observes. */
TEST(test_an_observed_source_keeps_its_bucket)
{
	struct sl_limit *limit = &host.policy.limit[SL_IPV4][0];

	world_begin(SL_IPV4, MANY_CPUS);
	*limit = limit_of(RATE, 1, MANY_CPUS);
	limit->observe = true;
	limit->mark = SL_MARK_OWN(0);
	for (int i = 0; i < 200 && !bucket_of(1); i++) {
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		clock_advance(COST / 2 + 1);
	}
	for (int i = 0; i < 100; i++) {
		uint64_t passed = bucket_of(1)->passed.packets;

		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1)->passed.packets, passed + 1);
		clock_advance(COST / 2 + 1);
	}
}

/*
 * Several sources share a bit of the map `in_use`. A source without a bucket clears this bit.
 * Verdicts do not depend on the bit.
 */
TEST(test_a_shared_mark_costs_a_lookup_and_no_verdict)
{
	world_begin(SL_IPV4, ONE_CPU);
	memset(bucket_host.in_use.word, 0xff, sizeof(bucket_host.in_use.word));
	clock_advance(JIFFY - test_clock_ticks % JIFFY);
	while (test_jiffies % UNMARK_JIFFIES)
		clock_advance(JIFFY);
	host.admission[0].sampled = 1;
	assert_int_equal(host_send(1), SL_PASS_WITHIN);
	assert_null(bucket_of(1));
	/* a packet does not look up the bucket if the bit is 0 */
	bucket_host.entry[0].map = &buckets4;
	memcpy(bucket_host.entry[0].key, &(uint32_t){1}, sizeof(uint32_t));
	assert_null(bucket_of(1));
	assert_non_null(bucket_host_find(&buckets4, &(uint32_t){1}));
}

/* A refused source keeps its bucket for REFUSED_JIFFIES, at any rate of packets. */
TEST(test_a_refused_source_keeps_its_bucket)
{
	struct sl_bucket *bucket = NULL;

	world_begin(SL_IPV4, MANY_CPUS);
	host.policy.limit[SL_IPV4][0] = limit_of(RATE, 1, MANY_CPUS);
	for (int i = 0; i < 4 * HOT_SAMPLE; i++) {
		host_send(1);
		clock_advance(COST / 2 + 1);
	}
	bucket = bucket_of(1);
	assert_non_null(bucket);
	assert_in_range(bucket->dropped.packets, HOT_SAMPLE / 2, 2 * HOT_SAMPLE);
	assert_in_range(bucket->dropped.packets + bucket->passed.packets, HOT_SAMPLE,
			4 * HOT_SAMPLE);
	for (int i = 0; i < 2; i++) {
		clock_advance((REFUSED_JIFFIES - 2 + 4 * i) * JIFFY);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(bucket_of(1) != NULL, !i);
	}
}

/* A fast source gets a bucket, even if its limit is a window with long sub-windows. */
TEST(test_a_hot_source_under_a_window_has_a_bucket)
{
	unsigned int counted = 0;

	world_begin(SL_IPV4, MANY_CPUS);
	host.policy.limit[SL_IPV4][0] = spec_limit((struct sl_limit_spec){.kind = SL_WINDOW,
									  .rate = 1000 * BURST,
									  .span_ns = 1000000000,
									  .groups = 5},
						   MANY_CPUS);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		counted += !!bucket_of(1);
		clock_advance(SL_TICKS_PER_SEC / 5000);
	}
	assert_true(counted > 10000 - 2 * HOT_SAMPLE);
	assert_int_equal(bucket_of(1)->passed.packets, counted);
	for (int i = 0; i < 2 * HOT_SAMPLE; i++) {
		clock_advance(2ULL << ENTRY_SEEN_SHIFT);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_null(bucket_of(1));
	}
}

TESTS(NULL, NULL)
