// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/charge.h, compiled for the host: what becomes of a packet whose key gets no state, or loses
 * it at the worst moment.
 */
#include <errno.h> /* the compiler refuses numbers in bpf/table.h that differ from these */
#include "test.h"
#include "bpf_host.h"
#include "rules/limit.h"

static void swap_comes(const void *word);

/* within a macro its own name is the builtin */
#define __sync_val_compare_and_swap(word, old, next)                                               \
	(swap_comes(word), __sync_val_compare_and_swap(word, old, next))

#include "bucket_host.h"
#include "charge.h"
#include "table_host.h"

#define RATE	  1000 /* packets per second */
#define COST	  (SL_TICKS_PER_SEC / RATE)
#define BURST	  1000
#define ONE_CPU	  1
#define MANY_CPUS 64 /* too many for slices */
#define SETS	  2

/* --- A gate --------------------------------------------------------------------------------- */

/* One CPU's view. There is room for the bucket of one source. */
static struct {
	struct sl_policy policy;
	struct sl_rule rule; /* of the trie */
	struct sl_admission admission;
	enum sl_family family;
	/* another CPU gives the entry to another key, right before a block begins there */
	bool loses_entry;
	struct sl_state stranger; /* whose state is this */
} world;

/* The only entry that is used, if there is one. */
static struct sl_entry *entry_used(void)
{
	for (uint32_t i = 0; i < host_table.sets * SL_WAYS; i++)
		if (host_table.set[i / SL_WAYS].tag[i % SL_WAYS])
			return &host_table.entry[i];
	return NULL;
}

static void swap_comes(const void *word)
{
	struct sl_entry *entry = entry_used();

	if (!entry || !world.loses_entry || word != &entry->state.blocked_until)
		return;
	world.loses_entry = false;
	entry->addr[0] ^= 1;
	*entry_state(entry) = world.stranger;
}

static void *map_find(const void *map, const void *key)
{
	if (map == &admission)
		return &world.admission;
	if (map == &prefixes)
		return &world.rule;
	if (map == &policies)
		return &world.policy;
	if (bucket_host_has(map))
		return bucket_host_find(map, key);
	return host_table_find(map, key);
}

/* Ticks of the clock, and so many of the kernel's as are over. */
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

/* A gate with one limit of BURST packets. */
static void world_begin(enum sl_family family, uint32_t cpus)
{
	static uint64_t state = RANDOM_BEGIN;

	memset(&world, 0, sizeof(world));
	bucket_host_begin();
	host_table_begin(SETS, &state);
	world.family = family;
	host_table.gate.params.flood_threshold = ~0U;
	host_table.gate.params.interval_shift = 30; /* no second window begins */
	world.policy.since = 1;
	world.policy.limits[family] = 1;
	world.policy.limit[family][0] = limit_of(BURST, cpus);
	test_clock_ticks = 0;
	clock_advance(SL_TICKS_PER_SEC);
}

static struct packet packet_from(uint32_t source)
{
	struct packet packet = {.packets = 1, .bytes = 60};

	packet.source.bits = SL_FAMILY_BITS + (world.family == SL_IPV4 ? 32 : 128);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet_begin(&packet, &host_table.gate);
	return packet;
}

/* A packet's way through bpf/sluice.bpf.c, from the source that it has. */
static enum sl_reason packet_send(uint32_t source)
{
	struct verdict verdict = {.version = SL_POLICY_VERSION(SL_POLICY_FIRST)};
	struct packet packet = packet_from(source);
	struct sl_bucket *bucket = bucket_find(&packet);

	policy_charge(&packet, &world.policy, bucket, &verdict);
	if (!bucket && verdict.reason != SL_PASS_NEWCOMER && verdict.reason != SL_DROP_OVER_BUDGET)
		bucket_start(&packet, BUCKET_INSERT);
	return verdict.reason;
}

static void check_events(uint64_t inserted, uint64_t forgotten, uint64_t busy, uint64_t no_room)
{
	assert_int_equal(world.admission.event[SL_EVENT_INSERTED].total, inserted);
	assert_int_equal(world.admission.event[SL_EVENT_EVICTED].total, forgotten);
	assert_int_equal(world.admission.event[SL_EVENT_BUSY].total, busy);
	assert_int_equal(world.admission.event[SL_EVENT_NO_ROOM].total, no_room);
}

/* --- Why a key gets no state ----------------------------------------------------------------- */

/* Sources that have spent all of a burst of an hour, in each way. */
static void table_fill(void)
{
	struct sl_limit full = limit_of(BURST, MANY_CPUS);

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

/* Another CPU that unlocks a set soon costs a new source nothing: it gets its state at once. */
static void test_a_set_that_is_unlocked_soon_gives_a_state(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		for (uint32_t i = 0; i < SETS; i++)
			host_table.set[i].displaced |= 1;
		host_meanwhile = sets_unlock;
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		host_meanwhile = NULL;
		check_events(1, 0, 0, 0);
	}
}

/*
 * If all states are empty, a new source gets no state, and then the state of the youngest: empty as
 * well, and charged for its first packet. What the youngest lacked is counted.
 */
static void test_who_comes_again_gets_room(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		world.policy.limit[family][0].owes = true;
		table_fill();
		assert_int_equal(packet_send(5000), SL_DROP_OVER_LIMIT);
		check_events(0, 0, 0, 1);
		assert_int_equal(world.admission.evicted, 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(packet_send(5000), SL_DROP_OVER_LIMIT);
			check_events(1, 1, 0, 1);
		}
		clock_advance(JIFFY + 2 * world.policy.limit[family][0].cost);
		assert_int_equal(packet_send(5000), SL_PASS_WITHIN);
		assert_int_equal(world.admission.evicted, EVICT_PARTS);
		host_table_check();
	}
}

/* --- Windows -------------------------------------------------------------------------------- */

#define WINDOW_MOST 10 /* packets an hour */

static void world_window(enum sl_family family)
{
	const struct machine machine = {.cpus = MANY_CPUS, .jiffy_ns = JIFFY_NS};
	struct limit limit = {
		.spec = {.name = "all",
			 .kind = SL_WINDOW,
			 .rate = WINDOW_MOST,
			 .span_ns = 3600ULL * SL_TICKS_PER_SEC / SL_TICKS_PER_NS,
			 .groups = 5,
			 .id = 7,
			 .per = {32, 64}},
		.match = {.fact = SL_FACT_ANY},
	};

	world_begin(family, MANY_CPUS);
	world.policy.limit[family][0] = limit_compile(&limit, family, &machine);
	clock_advance(2 * 3600 * SL_TICKS_PER_SEC);
}

static struct sl_entry *entry_of(uint32_t source)
{
	const struct sl_params *params = &host_table.gate.params;
	struct packet packet = packet_from(source);
	struct state_key key = packet_key(&packet, &world.policy.limit[world.family][0]);

	return table_find(params, state_digest(hash_secret, &key), &key);
}

static void window_send(uint32_t source, unsigned int packets)
{
	while (packets--)
		packet_send(source);
}

static void test_a_window_tells_whether_half_is_left(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_window(family);
		for (unsigned int i = 1; i <= 2 * WINDOW_MOST; i++) {
			assert_int_equal(packet_send(1),
					 i <= WINDOW_MOST ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
			assert_int_equal(entry_of(1)->taken,
					 i <= WINDOW_MOST / 2 ? ENTRY_HAS_HALF : 0);
		}
		clock_advance(3 * 3600 * SL_TICKS_PER_SEC);
		window_send(1, 1);
		assert_int_equal(entry_of(1)->taken, ENTRY_HAS_HALF);
	}
}

/* Who has spent a window stays, and sources that have spent half of one at most go for others. */
static void test_who_has_spent_a_window_is_forgotten_last(void **state)
{
	enum { ABUSERS = SETS * SL_WAYS / 4, OTHERS = SETS * SL_WAYS - ABUSERS };

	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_window(family);
		for (uint32_t source = 1; source <= ABUSERS; source++)
			window_send(source, WINDOW_MOST + 5);
		clock_advance(10 * SL_TICKS_PER_SEC);
		for (uint32_t source = 1000; source < 1000 + 2 * OTHERS; source++)
			window_send(source, WINDOW_MOST / 2);
		for (uint32_t source = 1; source <= ABUSERS; source++) {
			assert_non_null(entry_of(source));
			assert_int_equal(packet_send(source), SL_DROP_OVER_LIMIT);
		}
		assert_int_equal(world.admission.event[SL_EVENT_EVICTED].total, OTHERS);
		assert_int_equal(world.admission.evicted,
				 world.admission.event[SL_EVENT_EVICTED].total * EVICT_PARTS / 2);
		host_table_check();
	}
}

/*
 * A source that came within the last minute is known: in a flood the forged ones go for each other,
 * though its sub-window, and with it its state's `charged_at`, may have begun long before.
 */
static void test_in_a_flood_known_sources_of_a_long_window_stay(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_window(family);
		for (int i = 0; i < WINDOW_MOST / 2 - 1; i++) {
			for (uint32_t source = 1; source <= 4; source++)
				assert_int_equal(packet_send(source), SL_PASS_WITHIN);
			clock_advance(50 * SL_TICKS_PER_SEC);
		}
		world.admission.flood_until[0] = world.admission.flood_until[1] = ~0ULL;
		for (uint32_t source = 1000; source < 1200; source++)
			window_send(source, FLOOD_MIN_HITS + 1);
		assert_true(world.admission.event[SL_EVENT_EVICTED].total > 100);
		for (uint32_t source = 1; source <= 4; source++)
			assert_non_null(entry_of(source));
	}
}

/* Whatever the moment, which decides how a part of a unit counts. */
static void test_what_a_packet_gives_back_is_told_as_it_was(void **state)
{
	static const __s64 costs[] = {1, 999, 1 << 20, SL_TICKS_PER_SEC};
	struct sl_limit limit = {0};

	(void)state;
	for (limit.unit_shift = 0; limit.unit_shift <= 28; limit.unit_shift += 7)
		for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
			for (__u64 now = 0; now < 8 * SL_TICKS_PER_SEC; now += 12345678901) {
				struct sl_entry entry = {.taken = 7, .refused = 7};

				entry_count_shared(&limit, &entry, now, costs[i], 0);
				entry_count_shared(&limit, &entry, now, -costs[i], 0);
				assert_int_equal(entry.taken, 7);
				assert_int_equal(entry.refused, 7);
			}
}

/* --- A source that is refused for long ------------------------------------------------------ */

/*
 * A slice that knows of the refusal answers most packets. The state is asked in one of so many
 * jiffies all the same, so the entry tells that the source came back, and is not forgotten soon.
 */
static void test_a_source_that_is_refused_for_long_comes_back(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		struct sl_limit *limit = &world.policy.limit[family][0];

		world_begin(family, MANY_CPUS);
		limit->cost = limit->burst = limit->refill = 3600 * SL_TICKS_PER_SEC;
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
		clock_advance(1ULL << ENTRY_MOMENT_SHIFT);
		for (int i = 0; i < REFUSED_ALONE_JIFFIES; i++) {
			clock_advance(JIFFY);
			assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
		}
		assert_true(entry_used()->made & ENTRY_ESTABLISHED);
	}
}

/* --- No bucket ------------------------------------------------------------------------------ */

/* A source without a bucket is charged at its state, and gets its burst exactly. */
static void test_a_source_without_a_bucket_gets_its_burst(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, ONE_CPU);
		for (unsigned int i = 1; i <= 2 * BURST; i++) {
			assert_int_equal(packet_send(1),
					 i <= BURST ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
			bucket_host_evict();
		}
		check_events(1, 0, 0, 0);
	}
}

/* --- A entry that goes to another key ---------------------------------------------------------- */

/* A block that began in another key's state is taken back; a block of that key itself stays. */
static void test_a_block_in_a_reused_state_is_taken_back(void **state)
{
	static const uint64_t own_blocks[] = {0, 5 * SL_TICKS_PER_SEC};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(own_blocks); i++) {
		enum sl_family family = i % 2;
		struct sl_limit *limit = &world.policy.limit[family][0];
		uint64_t own = own_blocks[i / 2];

		world_begin(family, MANY_CPUS);
		limit->block = 3600 * SL_TICKS_PER_SEC;
		for (int packet = 0; packet < BURST; packet++)
			assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		world.stranger = credit_full(limit, test_clock_ticks);
		world.stranger.blocked_until = own ? test_clock_ticks + own : 0;
		world.loses_entry = true;
		assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
		assert_false(world.loses_entry);
		assert_int_equal(entry_used()->state.blocked_until,
				 own ? test_clock_ticks + own : 0);
	}
}

/* A block in the key's own state stays for its whole time. */
static void test_a_block_of_the_key_itself_stays(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		world.policy.limit[family][0].block = 3600 * SL_TICKS_PER_SEC;
		for (int packet = 0; packet <= BURST; packet++)
			packet_send(1);
		assert_int_equal(entry_used()->state.blocked_until,
				 test_clock_ticks + 3600 * SL_TICKS_PER_SEC);
		clock_advance(3599 * SL_TICKS_PER_SEC);
		assert_int_equal(packet_send(1), SL_DROP_BLOCKED);
		clock_advance(SL_TICKS_PER_SEC);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	}
}

/* --- A bucket that is not used any more -------------------------------------------------------- */

/* A bucket whose slice holds credit stays in use: the credit would be lost. */
static void test_a_bucket_with_credit_is_kept(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		const struct verdict cold = {.is_charged = true};
		struct sl_bucket *bucket;
		struct packet packet;

		world_begin(family, ONE_CPU);
		bucket_host.in_use.first = BUCKETS_FIRST;
		clock_advance(SL_TICKS_PER_SEC * 60); /* no refusal is that recent */
		packet = packet_from(1);
		assert_non_null(bucket_start(&packet, BUCKET_INSERT));
		bucket = bucket_find(&packet);
		bucket->slice[2].credit = 1;
		bucket_review(&packet, &cold, bucket);
		assert_ptr_equal(bucket_find(&packet), bucket);
		bucket->slice[2].credit = -1;
		bucket_review(&packet, &cold, bucket);
		assert_null(bucket_find(&packet));
	}
}

/*
 * A source that sends a few packets in a row, and then rests, gets its rate: no slice that is drawn
 * for it is lost with its bucket.
 */
static void test_a_lukewarm_source_loses_no_credit(void **state)
{
	(void)state;
	for (unsigned int volley = 1; volley <= 8; volley++) {
		world_begin(SL_IPV4, ONE_CPU);
		bucket_host.in_use.first = BUCKETS_FIRST;
		for (int turn = 0; turn < 2000; turn++) {
			for (unsigned int i = 0; i < volley; i++) {
				struct packet packet = packet_from(1);
				struct sl_bucket *bucket = bucket_find(&packet);
				struct verdict verdict = {
					.version = SL_POLICY_VERSION(SL_POLICY_FIRST)};

				policy_charge(&packet, &world.policy, bucket, &verdict);
				assert_int_equal(verdict.reason, SL_PASS_WITHIN);
				if (!bucket && verdict.is_hot)
					bucket_start(&packet, BUCKET_INSERT);
				else if (bucket && verdict.is_charged)
					bucket_review(&packet, &verdict, bucket);
			}
			clock_advance(volley * COST * 5 / 4);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_set_that_is_unlocked_soon_gives_a_state),
		cmocka_unit_test(test_who_comes_again_gets_room),
		cmocka_unit_test(test_a_window_tells_whether_half_is_left),
		cmocka_unit_test(test_who_has_spent_a_window_is_forgotten_last),
		cmocka_unit_test(test_in_a_flood_known_sources_of_a_long_window_stay),
		cmocka_unit_test(test_what_a_packet_gives_back_is_told_as_it_was),
		cmocka_unit_test(test_a_source_that_is_refused_for_long_comes_back),
		cmocka_unit_test(test_a_source_without_a_bucket_gets_its_burst),
		cmocka_unit_test(test_a_block_in_a_reused_state_is_taken_back),
		cmocka_unit_test(test_a_block_of_the_key_itself_stays),
		cmocka_unit_test(test_a_bucket_with_credit_is_kept),
		cmocka_unit_test(test_a_lukewarm_source_loses_no_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
