// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/charge.h, compiled for the host. Tests sources without a state, states that are evicted
 * during a charge, and per-CPU buckets with credit.
 */
#include "charge_host.h"

#define RATE	  1000 /* packets per second */
#define COST	  (SL_TICKS_PER_SEC / RATE)
#define BURST	  1000
#define ONE_CPU	  1
#define MANY_CPUS 64 /* with so many CPUs, the limits have no per-CPU slices */
#define SETS	  2

static void world_begin(enum sl_family family, uint32_t cpus)
{
	struct sl_limit limit;

	host_gate_begin(family, SETS);
	host_table.gate.params.flood_threshold = ~0U;
	host_table.gate.params.interval_shift = 30; /* the test ends within the first interval */
	limit = limit_of(RATE, BURST, cpus);
	host_add(&limit);
}

static void check_events(uint64_t inserted, uint64_t evicted, uint64_t busy, uint64_t no_room)
{
	const struct sl_event_count *event = host.admission[0].event;

	assert_int_equal(event[SL_EVENT_INSERTED].total, inserted);
	assert_int_equal(event[SL_EVENT_EVICTED].total, evicted);
	assert_int_equal(event[SL_EVENT_BUSY].total, busy);
	assert_int_equal(event[SL_EVENT_NO_ROOM].total, no_room);
}

/* --- Why a key gets no state ----------------------------------------------------------------- */

/* Fills the table with sources that have no credit left. Their bursts refill in an hour. */
static void table_fill(void)
{
	struct sl_limit full = limit_of(RATE, BURST, MANY_CPUS);

	full.id = 8;
	full.burst = full.refill = 3600 * SL_TICKS_PER_SEC;
	for (uint32_t source = 1; source < 1000; source++) {
		struct packet packet = packet_from(source);
		struct new_entry new_entry = {
			.key = packet_key(&packet, &full),
			.state = credit_full(&full, test_clock_ticks),
			.span = short_make(limit_span(&full)),
			.now = test_clock_ticks,
			.made = entry_moment(test_clock_ticks),
		};

		new_entry.state.empty_at = test_clock_ticks;
		new_entry.digest = state_digest(hash_secret, &new_entry.key);
		table_insert(&new_entry);
	}
	for (uint32_t i = 0; i < SETS * SL_WAYS; i++)
		assert_true(host_table.set[i / SL_WAYS].tag[i % SL_WAYS]);
}

static void sets_unlock(uint32_t round)
{
	(void)round;
	for (uint32_t i = 0; i < SETS; i++)
		host_table.set[i].displaced &= ~1U;
}

/* If the set of a new key is locked, the insertion waits until another CPU unlocks the set. */
TEST(test_a_new_key_waits_for_a_lock)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		for (uint32_t i = 0; i < SETS; i++)
			host_table.set[i].displaced |= 1;
		host_meanwhile = sets_unlock;
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		host_meanwhile = NULL;
		check_events(1, 0, 0, 0);
	}
}

/*
 * The table is full of states without credit. The second packet of a new source evicts the youngest
 * of these states. The new state gets the deficit of the evicted state.
 */
TEST(test_a_source_that_sends_again_evicts)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		host.policy.limit[family][0].charge_hits = true;
		table_fill();
		assert_int_equal(host_send(5000), SL_DROP_OVER_LIMIT);
		check_events(0, 0, 0, 1);
		assert_int_equal(host.admission[0].evicted, 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(host_send(5000), SL_DROP_OVER_LIMIT);
			check_events(1, 1, 0, 1);
		}
		clock_advance(JIFFY + 2 * host.policy.limit[family][0].cost);
		assert_int_equal(host_send(5000), SL_PASS_WITHIN);
		assert_int_equal(host.admission[0].evicted, EVICT_PARTS);
		host_table_check();
	}
}

/* --- Windows -------------------------------------------------------------------------------- */

#define WINDOW_MOST 10 /* packets per hour */

static void world_window(enum sl_family family)
{
	struct sl_limit *limit = &host.policy.limit[family][0];

	world_begin(family, MANY_CPUS);
	*limit = spec_limit((struct sl_limit_spec){.kind = SL_WINDOW,
						   .rate = WINDOW_MOST,
						   .span_ns = 3600 * SEC_NS,
						   .groups = 5},
			    MANY_CPUS);
	clock_advance(2 * 3600 * SL_TICKS_PER_SEC);
}

static void window_send(uint32_t source, unsigned int packets)
{
	while (packets--)
		host_send(source);
}

TEST(test_a_window_stores_whether_half_is_left)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_window(family);
		for (unsigned int i = 1; i <= 2 * WINDOW_MOST; i++) {
			assert_int_equal(host_send(1),
					 i <= WINDOW_MOST ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
			assert_int_equal(entry_of(1)->count.window.half,
					 i <= WINDOW_MOST / 2 ? ENTRY_HAS_HALF : 0);
		}
		clock_advance(3 * 3600 * SL_TICKS_PER_SEC);
		window_send(1, 1);
		assert_int_equal(entry_of(1)->count.window.half, ENTRY_HAS_HALF);
	}
}

/* A source with half of its window left is evicted first. A source with nothing left stays. */
TEST(test_a_spent_window_is_evicted_last)
{
	enum { ABUSERS = SETS * SL_WAYS / 4, OTHERS = SETS * SL_WAYS - ABUSERS };

	for (int family = 0; family < SL_FAMILIES; family++) {
		world_window(family);
		for (uint32_t source = 1; source <= ABUSERS; source++)
			window_send(source, WINDOW_MOST + 5);
		clock_advance(10 * SL_TICKS_PER_SEC);
		for (uint32_t source = 1000; source < 1000 + 2 * OTHERS; source++)
			window_send(source, WINDOW_MOST / 2);
		for (uint32_t source = 1; source <= ABUSERS; source++) {
			assert_non_null(entry_of(source));
			assert_int_equal(host_send(source), SL_DROP_OVER_LIMIT);
		}
		assert_int_equal(host.admission[0].event[SL_EVENT_EVICTED].total, OTHERS);
		assert_int_equal(host.admission[0].evicted,
				 host.admission[0].event[SL_EVENT_EVICTED].total * EVICT_PARTS / 2);
		host_table_check();
	}
}

/*
 * In a flood, a source that sent within the last minute is not evicted, even if its window is long.
 */
TEST(test_in_a_flood_known_sources_of_a_long_window_stay)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_window(family);
		for (int i = 0; i < WINDOW_MOST / 2 - 1; i++) {
			for (uint32_t source = 1; source <= 4; source++)
				assert_int_equal(host_send(source), SL_PASS_WITHIN);
			clock_advance(50 * SL_TICKS_PER_SEC);
		}
		host_flood();
		for (uint32_t source = 1000; source < 1200; source++)
			window_send(source, FLOOD_MIN_HITS + 1);
		assert_true(host.admission[0].event[SL_EVENT_EVICTED].total > 100);
		for (uint32_t source = 1; source <= 4; source++)
			assert_non_null(entry_of(source));
	}
}

/* A refund subtracts what the charge of the packet added to the count. */
TEST(test_a_refund_undoes_a_count)
{
	static const __s64 costs[] = {1, 999, 1 << 20, SL_TICKS_PER_SEC};
	struct sl_limit limit = {0};

	for (limit.unit_shift = 0; limit.unit_shift <= 28; limit.unit_shift += 7)
		for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
			for (__u64 now = 0; now < 8 * SL_TICKS_PER_SEC; now += 12345678901) {
				struct sl_entry entry = {.count.word = 7ULL << 32 | 7};

				entry_count_shared(&limit, &entry, now, costs[i], 0);
				entry_count_shared(&limit, &entry, now, -costs[i], 0);
				assert_int_equal(entry.count.window.half, 7);
				assert_int_equal(entry.count.window.seen, 7);
			}
}

/*
 * If a slice stores a refusal, it refuses packets alone. Once in REFUSED_ALONE_JIFFIES, a packet is
 * still charged to the state, so that the state records the source's activity.
 */
TEST(test_a_long_refused_source_is_established)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_limit *limit = &host.policy.limit[family][0];

		world_begin(family, MANY_CPUS);
		limit->cost = limit->burst = limit->refill = 3600 * SL_TICKS_PER_SEC;
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
		assert_int_equal(host_send(1), SL_DROP_OVER_LIMIT);
		clock_advance(2ULL << ENTRY_MOMENT_SHIFT);
		for (int i = 0; i < REFUSED_ALONE_JIFFIES; i++) {
			clock_advance(JIFFY);
			assert_int_equal(host_send(1), SL_DROP_OVER_LIMIT);
		}
		assert_true(entry_of(1)->made & ENTRY_ESTABLISHED);
	}
}

/*
 * The packets of a source without a bucket are charged to its shared state. The source can send
 * exactly its burst.
 */
TEST(test_a_source_without_a_bucket_gets_its_burst)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, ONE_CPU);
		for (unsigned int i = 1; i <= 2 * BURST; i++) {
			assert_int_equal(host_send(1),
					 i <= BURST ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
			bucket_host_evict();
		}
		check_events(1, 0, 0, 0);
	}
}

/* --- Another CPU gives the entry to another key ---------------------------------------------- */

/* give_entry() assigns this entry to another key, before this CPU stores a block in it. */
static struct sl_entry *given;
static struct sl_state other_state; /* state that give_entry() writes for the other key */

static void give_entry(const void *word)
{
	if (!given || word != &given->state.blocked_until)
		return;
	given->addr[0] ^= 1;
	*entry_state(given) = other_state;
	given = NULL;
}

/*
 * If an entry gets another key while this CPU stores a block for the old key, this CPU removes the
 * block.
 */
TEST(test_a_block_in_a_reused_state_is_removed)
{
	static const uint64_t own_blocks[] = {0, 5 * SL_TICKS_PER_SEC};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(own_blocks); i++) {
		enum sl_family family = i % 2;
		struct sl_limit *limit = &host.policy.limit[family][0];
		uint64_t own = own_blocks[i / 2];
		struct sl_entry *entry;

		world_begin(family, MANY_CPUS);
		limit->block = 3600 * SL_TICKS_PER_SEC;
		for (int packet = 0; packet < BURST; packet++)
			assert_int_equal(host_send(1), SL_PASS_WITHIN);
		other_state = credit_full(limit, test_clock_ticks);
		other_state.blocked_until = own ? test_clock_ticks + own : 0;
		given = entry = entry_of(1);
		host_before_swap = give_entry;
		assert_int_equal(host_send(1), SL_DROP_OVER_LIMIT);
		assert_null(given);
		assert_int_equal(entry->state.blocked_until, own ? test_clock_ticks + own : 0);
	}
}

TEST(test_a_block_of_the_key_itself_stays)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		host.policy.limit[family][0].block = 3600 * SL_TICKS_PER_SEC;
		for (int packet = 0; packet <= BURST; packet++)
			host_send(1);
		assert_int_equal(entry_of(1)->state.blocked_until,
				 test_clock_ticks + 3600 * SL_TICKS_PER_SEC);
		clock_advance(3599 * SL_TICKS_PER_SEC);
		assert_int_equal(host_send(1), SL_DROP_BLOCKED);
		clock_advance(SL_TICKS_PER_SEC);
		assert_int_equal(host_send(1), SL_PASS_WITHIN);
	}
}

/* --- A bucket that is not used any more ------------------------------------------------------ */

/* If a slice of a bucket has credit, the bucket is not dropped. */
TEST(test_a_bucket_with_credit_is_kept)
{
	for (int family = 0; family < SL_FAMILIES; family++) {
		const struct verdict cold = {.is_charged = true};
		struct sl_bucket *bucket;
		struct packet packet;

		world_begin(family, ONE_CPU);
		bucket_host.in_use.first = BUCKETS_FIRST;
		clock_advance(SL_TICKS_PER_SEC * 60); /* old refusals must not keep the bucket */
		packet = packet_from(1);
		assert_non_null(bucket_start(&packet, BUCKET_INSERT));
		bucket = bucket_find(&packet, in_use_get());
		bucket->slice[2].credit = 1;
		bucket_review(&packet, &cold, bucket);
		assert_ptr_equal(bucket_find(&packet, in_use_get()), bucket);
		bucket->slice[2].credit = -1;
		bucket_review(&packet, &cold, bucket);
		assert_null(bucket_find(&packet, in_use_get()));
	}
}

/*
 * The bucket of a slow source is not dropped while its slice has credit. The source can therefore
 * send at its whole rate.
 */
TEST(test_a_slow_source_loses_no_credit)
{
	for (unsigned int volley = 1; volley <= 8; volley++) {
		world_begin(SL_IPV4, ONE_CPU);
		bucket_host.in_use.first = BUCKETS_FIRST;
		for (int turn = 0; turn < 2000; turn++) {
			for (unsigned int i = 0; i < volley; i++) {
				struct packet packet = packet_from(1);
				struct sl_bucket *bucket = bucket_find(&packet, in_use_get());
				struct verdict verdict;

				assert_int_equal(host_charge(1, bucket, &verdict), SL_PASS_WITHIN);
				if (!bucket && verdict.is_hot)
					bucket_start(&packet, BUCKET_INSERT);
				else if (bucket && verdict.is_charged)
					bucket_review(&packet, &verdict, bucket);
			}
			clock_advance(volley * COST * 5 / 4);
		}
	}
}

TESTS(NULL, NULL)
