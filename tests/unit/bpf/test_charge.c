// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/charge.h, compiled for the host, with maps that refuse on demand: what becomes of a packet
 * when the kernel refuses an insertion into an LRU map. No kernel gives all of the errors. EBUSY
 * means that this CPU holds the lock of the hash bucket already (tests/datapath/test_busy.c).
 * EDEADLK and ETIMEDOUT come from the locks of newer kernels. ENOMEM means that no entry can be
 * evicted (tests/datapath/test_memory.c). E2BIG and EINVAL stand for any other cause.
 */
#include <errno.h> /* the compiler refuses numbers in bpf/admission.h that differ from these */
#include "test.h"
#define BPF_HOST_INSERTS
#include "bpf_host.h"
#include "rules/limit.h"

static uint64_t word_swap(uint64_t *word, uint64_t old, uint64_t next);

#define __sync_val_compare_and_swap(word, old, next) word_swap((uint64_t *)(word), old, next)
#include "charge.h"

#define RATE	  1000 /* packets per second */
#define COST	  (SL_TICKS_PER_SEC / RATE)
#define BURST	  1000
#define BUDGET	  500
#define TOKENS	  10000
#define BATCH	  64
#define ONE_CPU	  1
#define MANY_CPUS 64 /* too many for purses */
#define LINES	  64
#define KNOWN	  1024

/* --- A gate, and a kernel that refuses -------------------------------------------------------- */

/* One CPU's view. Of ledgers and buckets there is room for one: no test makes more. */
static struct {
	struct sl_gate gate;
	struct sl_policy policy;
	struct sl_rule rule; /* of the trie */
	struct sl_admission admission;
	struct sl_pool_word pools[SL_POOLS];
	struct sl_sketch_line sketch[SL_POOLS * LINES];
	struct sl_known known[KNOWN];
	struct sl_ledger budget;
	struct sl_allowance allowance;
	struct sl_ledger ledger;
	struct sl_bucket bucket;
	bool has_ledger;
	bool has_bucket;
	enum sl_family family;
	/* the kernel */
	long ledger_error; /* what an insertion ends with; -EEXIST: another CPU's is there */
	long bucket_error;
	struct sl_ledger other; /* what another CPU inserts meanwhile */
	bool evicts_other;	/* ... and is gone before it is found */
	bool loses_ledger; /* the map hands its node to another key, right when it has been found */
	struct sl_ledger stranger; /* and with that the other one's begins */
	unsigned int tries[SL_POOLS];
	unsigned int
		rivals; /* so many CPUs take a batch, one each time that this one is about to */
} world;

/*
 * The map may have given the node to another key: the value found is then another's, and the next
 * lookup finds nothing.
 */
static struct sl_ledger *ledger_look(void)
{
	if (!world.has_ledger)
		return NULL;
	if (world.loses_ledger) {
		world.has_ledger = false;
		world.ledger = world.stranger;
	}
	return &world.ledger;
}

static void *map_find(const void *map, const void *key)
{
	uint32_t number = SL_POLICY_FIRST;

	if (map == &gate)
		return &world.gate;
	if (map == &admission)
		return &world.admission;
	if (map == &pools)
		return array_entry(world.pools, sizeof(*world.pools), SL_POOLS, key);
	if (map == &prefixes)
		return &world.rule;
	if (map == &policies)
		return &world.policy;
	if (map == &sketch)
		return array_entry(world.sketch, sizeof(*world.sketch), SL_POOLS * LINES, key);
	if (map == &known)
		return array_entry(world.known, sizeof(*world.known), KNOWN, key);
	if (map == &budgets)
		return memcmp(key, &number, sizeof(number)) ? NULL : &world.budget;
	if (map == &allowances)
		return memcmp(key, &number, sizeof(number)) ? NULL : &world.allowance;
	if (map == (world.family == SL_IPV4 ? (void *)&ledgers4 : (void *)&ledgers6))
		return ledger_look();
	if (map == (world.family == SL_IPV4 ? (void *)&buckets4 : (void *)&buckets6))
		return world.has_bucket ? &world.bucket : NULL;
	fail_msg("a map that charging has nothing to do with");
	return NULL;
}

static long ledger_put(const struct sl_ledger *ledger)
{
	world.tries[SL_POOL_LEDGERS]++;
	if (world.ledger_error && world.ledger_error != -EEXIST)
		return world.ledger_error;
	world.ledger = world.ledger_error ? world.other : *ledger;
	world.has_ledger = !world.evicts_other;
	return world.ledger_error;
}

static long bucket_put(const struct sl_bucket *bucket)
{
	world.tries[SL_POOL_BUCKETS]++;
	if (world.bucket_error && world.bucket_error != -EEXIST)
		return world.bucket_error;
	world.bucket = *bucket;
	world.has_bucket = true;
	return world.bucket_error;
}

static long map_insert(const void *map, const void *key, const void *value, uint64_t flags)
{
	(void)key;
	assert_int_equal(flags, BPF_NOEXIST);
	if (map == &ledgers4 || map == &ledgers6)
		return ledger_put(value);
	assert_true(map == &buckets4 || map == &buckets6);
	return bucket_put(value);
}

/* One CPU runs: what other CPUs do to the word happens just before. */
static uint64_t word_swap(uint64_t *word, uint64_t old, uint64_t next)
{
	uint64_t *spent = (uint64_t *)&world.pools[SL_POOL_LEDGERS].spent, seen;

	if (word == spent && world.rivals) {
		world.rivals--;
		*spent = pool_take(&world.gate.meeting, SL_POOL_LEDGERS, *spent,
				   world.admission.window, BATCH);
	}
	seen = *word;
	if (seen == old)
		*word = next;
	return seen;
}

/* Ticks of the clock, and so many of the kernel's as are over. */
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

/*
 * A gate with one limit of BURST packets. It has no tokens for buckets: a test that needs one sets
 * them.
 */
static void world_begin(enum sl_family family, uint32_t cpus)
{
	memset(&world, 0, sizeof(world));
	world.family = family;
	world.gate.meeting = (struct sl_meeting){
		.tokens = {TOKENS, 0},
		.batch = {BATCH, BATCH},
		.refill = {1 << 30, 1 << 30}, /* the first window fills both */
		.crowd = ~0U,
		.window_shift = 30, /* no second window begins */
		.sketch_mask = LINES - 1,
		.known_mask = KNOWN - 1,
	};
	for (int i = 0; i < SL_SECRETS; i++)
		world.gate.meeting.secret[i] = 0x9e3779b97f4a7c15ULL * (i + 1);
	world.policy.since = 1;
	world.policy.limits[family] = 1;
	world.policy.limit[family][0] = limit_of(BURST, cpus);
	test_clock_ticks = 0;
	clock_advance(SL_TICKS_PER_SEC);
}

static void world_budget(unsigned int packets)
{
	world.policy.newcomers = limit_of(packets, ONE_CPU);
	assert_true(world.policy.newcomers.purse);
	world.budget = credit_full(&world.policy.newcomers, test_clock_ticks);
}

/* A packet's way through bpf/sluice.bpf.c, from the source that it has. */
static enum sl_reason packet_send(uint32_t source)
{
	struct verdict verdict = {.record = SL_RECORD(SL_POLICY_FIRST)};
	struct packet packet = {.packets = 1, .bytes = 60};
	struct sl_bucket *bucket;

	packet.source.bits = SL_FAMILY_BITS + (world.family == SL_IPV4 ? 32 : 128);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet_begin(&packet, &world.gate);
	bucket = bucket_get(&packet, &world.gate);
	policy_charge(&packet, &world.policy, bucket, &verdict);
	return verdict.reason;
}

/* Each of a packet's insertions took a token, and was counted under one event, or under none. */
static void check_tries(enum sl_pool pool, unsigned int tries)
{
	assert_int_equal(world.tries[pool], tries);
	assert_int_equal(world.admission.tokens[pool] + world.admission.seen[pool],
			 world.gate.meeting.tokens[pool] - tries);
}

#define NO_EVENT SL_EVENTS

static void check_events(enum sl_event event, uint64_t count, uint64_t inserted)
{
	for (int i = SL_EVENT_INSERTED; i < SL_EVENTS; i++) {
		uint64_t want =
			(i == (int)event ? count : 0) + (i == SL_EVENT_INSERTED ? inserted : 0);

		assert_int_equal(world.admission.event[i].total, want);
		assert_int_equal(world.admission.event[i].now, want);
	}
}

static const struct refusal {
	long error;
	enum sl_event event;
} refusals[] = {
	{-EBUSY, SL_EVENT_BUSY},       {-EDEADLK, SL_EVENT_BUSY}, {-ETIMEDOUT, SL_EVENT_BUSY},
	{-ENOMEM, SL_EVENT_NO_MEMORY}, {-E2BIG, SL_EVENT_FAILED}, {-EINVAL, SL_EVENT_FAILED},
};

/* Each of them, for each family. */
static void each_refusal(void (*check)(enum sl_family family, const struct refusal *refusal))
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		for (int family = 0; family < SL_FAMILIES; family++)
			check(family, &refusals[i]);
}

/* --- No ledger ------------------------------------------------------------------------------- */

/* A source passes as a newcomer while its ledger is refused; then it has its whole burst. */
static void check_no_budget(enum sl_family family, const struct refusal *refusal)
{
	world_begin(family, MANY_CPUS);
	world.ledger_error = refusal->error;
	for (unsigned int i = 1; i <= 5; i++) {
		assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
		check_tries(SL_POOL_LEDGERS, i);
		check_events(refusal->event, i, 0);
	}
	world.ledger_error = 0;
	for (int i = 0; i < BURST; i++)
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
	check_tries(SL_POOL_LEDGERS, 6);
	check_events(refusal->event, 5, 1);
}

static void test_a_source_without_a_ledger_passes_as_a_newcomer(void **state)
{
	(void)state;
	each_refusal(check_no_budget);
}

/* What was drawn from a ledger that is none must not be in the purse. */
static void check_purse(enum sl_family family, const struct refusal *refusal)
{
	world_begin(family, ONE_CPU);
	world.gate.meeting.tokens[SL_POOL_BUCKETS] = TOKENS;
	world.ledger_error = refusal->error;
	assert_true(world.policy.limit[family][0].purse);
	for (unsigned int i = 1; i <= 5; i++) {
		assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
		assert_true(world.has_bucket);
		assert_int_equal(world.bucket.purse[0].credit, 0);
		check_tries(SL_POOL_LEDGERS, i);
		check_tries(SL_POOL_BUCKETS, 1);
		check_events(refusal->event, i, 1);
	}
}

static void test_a_refused_ledger_fills_no_purse(void **state)
{
	(void)state;
	each_refusal(check_purse);
}

/* A source each, all of them refused: the budget passes what it holds, and what time brings. */
static void check_budget(enum sl_family family, const struct refusal *refusal)
{
	uint32_t source = 0;

	world_begin(family, MANY_CPUS);
	world_budget(BUDGET);
	world.ledger_error = refusal->error;
	for (int i = 0; i < BUDGET; i++)
		assert_int_equal(packet_send(++source), SL_PASS_NEWCOMER);
	for (int i = 0; i < 200; i++)
		assert_int_equal(packet_send(++source), SL_DROP_OVER_BUDGET);
	clock_advance(8 * COST);
	for (int i = 0; i < 8; i++)
		assert_int_equal(packet_send(++source), SL_PASS_NEWCOMER);
	for (int i = 0; i < 200; i++)
		assert_int_equal(packet_send(++source), SL_DROP_OVER_BUDGET);
	check_tries(SL_POOL_LEDGERS, source);
	check_events(refusal->event, source, 0);
}

static void test_refused_sources_share_the_budget(void **state)
{
	(void)state;
	each_refusal(check_budget);
}

/* A kernel that refuses is not asked for ever: only while there are tokens. */
static void check_tokens(enum sl_family family, const struct refusal *refusal)
{
	world_begin(family, MANY_CPUS);
	world.gate.meeting.tokens[SL_POOL_LEDGERS] = 50;
	world.ledger_error = refusal->error;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(packet_send(1), SL_PASS_NEWCOMER);
	check_tries(SL_POOL_LEDGERS, 50);
	check_events(refusal->event, 50, 0);
}

static void test_insertions_end_with_the_tokens(void **state)
{
	(void)state;
	each_refusal(check_tokens);
}

/* An empty bucket needs no ledger to refuse. */
static void check_start_empty(enum sl_family family, const struct refusal *refusal)
{
	world_begin(family, MANY_CPUS);
	world.policy.limit[family][0].start_empty = true;
	world.ledger_error = refusal->error;
	for (unsigned int i = 1; i <= 5; i++) {
		assert_int_equal(packet_send(1), SL_DROP_OVER_LIMIT);
		check_tries(SL_POOL_LEDGERS, i);
		check_events(refusal->event, i, 0);
	}
}

static void test_a_refused_ledger_that_starts_empty_drops(void **state)
{
	(void)state;
	each_refusal(check_start_empty);
}

/* --- No bucket ------------------------------------------------------------------------------- */

/* A source without a bucket is charged at its ledger, and gets its burst exactly. */
static void check_no_bucket(enum sl_family family, const struct refusal *refusal)
{
	world_begin(family, ONE_CPU);
	world.gate.meeting.tokens[SL_POOL_BUCKETS] = TOKENS;
	world.bucket_error = refusal->error;
	for (unsigned int i = 1; i <= 2 * BURST; i++) {
		assert_int_equal(packet_send(1), i <= BURST ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
		check_tries(SL_POOL_BUCKETS, i);
		check_tries(SL_POOL_LEDGERS, 1);
		check_events(refusal->event, i, 1);
	}
}

static void test_a_source_without_a_bucket_gets_its_burst(void **state)
{
	(void)state;
	each_refusal(check_no_bucket);
}

/* --- Another CPU was faster ------------------------------------------------------------------ */

/* What it inserted is used, and nothing was refused. */
static void test_the_ledger_of_another_cpu_is_used(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		world.ledger_error = -EEXIST;
		world.other = credit_full(&world.policy.limit[family][0], test_clock_ticks);
		world.other.zero += (BURST - 3) * COST;
		for (int i = 0; i < 10; i++)
			assert_int_equal(packet_send(1),
					 i < 3 ? SL_PASS_WITHIN : SL_DROP_OVER_LIMIT);
		check_tries(SL_POOL_LEDGERS, 1);
		check_events(NO_EVENT, 0, 0);
	}
}

/* Where that is gone each time that it is looked for, the packet is not tried without end. */
static void test_a_ledger_that_is_always_gone_ends_the_tries(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		world.ledger_error = -EEXIST;
		world.evicts_other = true;
		assert_int_equal(packet_send(1), SL_DROP_CONTENDED);
		check_tries(SL_POOL_LEDGERS, LEDGER_TRIES);
		check_events(NO_EVENT, 0, 0);
	}
}

/* An entry has a value for each CPU: the other's insertion made ours. */
static void test_the_bucket_of_another_cpu_is_used(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, ONE_CPU);
		world.gate.meeting.tokens[SL_POOL_BUCKETS] = TOKENS;
		world.bucket_error = -EEXIST;
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		assert_true(world.bucket.purse[0].credit > 0);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
		check_tries(SL_POOL_BUCKETS, 1);
		check_events(NO_EVENT, 0, 1);
	}
}

/*
 * Two CPUs that take a batch at once get one each; a CPU that loses every round waits for the next
 * window.
 */
static void test_two_cpus_take_a_batch_each(void **state)
{
	(void)state;
	for (unsigned int rivals = 0; rivals <= POOL_TRIES; rivals++) {
		bool gets = rivals < POOL_TRIES;

		world_begin(SL_IPV4, MANY_CPUS);
		world.rivals = rivals;
		assert_int_equal(packet_send(1), gets ? SL_PASS_WITHIN : SL_PASS_NEWCOMER);
		assert_int_equal(world.tries[SL_POOL_LEDGERS], gets);
		assert_int_equal(world.rivals, 0);
		assert_int_equal(world.admission.tokens[SL_POOL_LEDGERS], gets ? BATCH - 1 : 0);
		assert_int_equal(world.admission.seen[SL_POOL_LEDGERS],
				 gets ? TOKENS - (rivals + 1) * BATCH : 0);
		assert_int_equal(pool_level(&world.gate.meeting, SL_POOL_LEDGERS,
					    world.pools[SL_POOL_LEDGERS].spent,
					    world.admission.window),
				 TOKENS - (rivals + gets) * BATCH);
		assert_int_equal(packet_send(2), gets ? SL_PASS_WITHIN : SL_PASS_NEWCOMER);
	}
}

/* A CPU that draws has up to a batch, what it had before included. */
static void test_a_cpu_holds_one_batch_at_most(void **state)
{
	const uint32_t *tokens = &world.admission.tokens[SL_POOL_LEDGERS];
	uint32_t source = 0;

	(void)state;
	world_begin(SL_IPV4, MANY_CPUS);
	for (unsigned int batch = 1; batch <= 3; batch++) {
		do {
			world.has_ledger = false;
			assert_int_equal(packet_send(++source), SL_PASS_WITHIN);
		} while (*tokens >= SL_LIMITS_MAX);
		world.has_ledger = false;
		assert_int_equal(packet_send(++source), SL_PASS_WITHIN);
		assert_int_equal(*tokens, BATCH - 1);
		check_tries(SL_POOL_LEDGERS, source);
	}
}

/* --- A node that goes to another key --------------------------------------------------------- */

/* A block that began in another key's ledger is taken back; a block of the key itself stays. */
static void test_a_block_in_a_reused_ledger_is_taken_back(void **state)
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
		world.stranger.zero =
			world.ledger.zero; /* as if drawn empty, so that the packet is refused */
		world.stranger.blocked = own ? test_clock_ticks + own : 0;
		world.loses_ledger = true;
		packet_send(1);
		assert_false(world.has_ledger);
		assert_int_equal(world.ledger.blocked, own ? test_clock_ticks + own : 0);
	}
}

/* A block in the key's own ledger stays for its whole time. */
static void test_a_block_of_the_key_itself_stays(void **state)
{
	(void)state;
	for (int family = 0; family < SL_FAMILIES; family++) {
		world_begin(family, MANY_CPUS);
		world.policy.limit[family][0].block = 3600 * SL_TICKS_PER_SEC;
		for (int packet = 0; packet <= BURST; packet++)
			packet_send(1);
		assert_int_equal(world.ledger.blocked, test_clock_ticks + 3600 * SL_TICKS_PER_SEC);
		clock_advance(3599 * SL_TICKS_PER_SEC);
		assert_int_equal(packet_send(1), SL_DROP_BLOCKED);
		clock_advance(SL_TICKS_PER_SEC);
		assert_int_equal(packet_send(1), SL_PASS_WITHIN);
	}
}

#define GENERATION 9

/* What decides about the source 1: it is denied, as by a rule of its own. */
static uint32_t source_recall(struct sl_bucket *bucket)
{
	struct packet packet = {.packets = 1, .bytes = 60};
	uint32_t source = 1;

	packet.source.bits = SL_FAMILY_BITS + (world.family == SL_IPV4 ? 32 : 128);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet_begin(&packet, &world.gate);
	return bucket_recall(&packet, bucket, &world.gate);
}

/*
 * A bucket that goes to another source does not keep the record of the rule: it is as a new bucket.
 */
static void test_a_reused_bucket_keeps_no_record(void **state)
{
	(void)state;
	for (int reused = 0; reused <= 1; reused++)
		for (int family = 0; family < SL_FAMILIES; family++) {
			uint32_t record = SL_RECORD(SL_POLICY_FIRST);

			world_begin(family, ONE_CPU);
			world.gate.generation = GENERATION;
			world.rule = (struct sl_rule){.bits = 1, .now = {.record = record}};
			world.has_bucket = true;
			world.bucket =
				(struct sl_bucket){.generation = GENERATION - 1, .owner = 77};
			if (reused) {
				world.has_bucket = false;
				memset(&world.bucket, 0, sizeof(world.bucket));
			}
			assert_int_equal(source_recall(&world.bucket), record);
			assert_int_equal(world.bucket.generation, reused ? 0 : GENERATION);
			assert_int_equal(world.bucket.record, reused ? 0 : record);
			assert_int_equal(world.bucket.owner, reused ? 0 : SL_POLICY_FIRST);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_source_without_a_ledger_passes_as_a_newcomer),
		cmocka_unit_test(test_a_refused_ledger_fills_no_purse),
		cmocka_unit_test(test_refused_sources_share_the_budget),
		cmocka_unit_test(test_insertions_end_with_the_tokens),
		cmocka_unit_test(test_a_refused_ledger_that_starts_empty_drops),
		cmocka_unit_test(test_a_source_without_a_bucket_gets_its_burst),
		cmocka_unit_test(test_the_ledger_of_another_cpu_is_used),
		cmocka_unit_test(test_a_ledger_that_is_always_gone_ends_the_tries),
		cmocka_unit_test(test_the_bucket_of_another_cpu_is_used),
		cmocka_unit_test(test_two_cpus_take_a_batch_each),
		cmocka_unit_test(test_a_cpu_holds_one_batch_at_most),
		cmocka_unit_test(test_a_block_in_a_reused_ledger_is_taken_back),
		cmocka_unit_test(test_a_block_of_the_key_itself_stays),
		cmocka_unit_test(test_a_reused_bucket_keeps_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
