// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/debt.h: charges for packets of other nodes, and the decision to divide limits.
 * Compares charges with a plain token bucket. Charges while other threads charge packets.
 */
#include <pthread.h>
#include "test.h"
#include "kind_specs.h"
#include "random.h"
#include "kinds.h"
#include "share/debt.h"

#define NOW (0 - 5 * SEC) /* the clock wraps 5 s after a test starts */

static const struct state_key key = {.addr = {0x010200c0}, .limit = 9};
static const struct state_key other = {.addr = {0x020200c0}, .limit = 9};

static uint64_t refundable; /* argument `refundable` of debt_charge() */

/* Returns a limit of 1000 packets per second and a burst of 100. */
static struct sl_limit limit_of(void)
{
	const struct sl_limit_spec spec = spec_bucket(1000, SL_RATE_PPS, 100);

	return spec_compile(&spec);
}

static struct sl_entry entry_full(const struct sl_limit *limit)
{
	struct sl_entry entry = {.addr = {key.addr[0], key.addr[1]}, .limit = key.limit};

	refundable = 0;
	*entry_state(&entry) = credit_full(limit, NOW);
	return entry;
}

static int64_t level(const struct sl_limit *limit, struct sl_entry *entry, uint64_t now)
{
	return credit_level(limit, entry_state(entry), now);
}

/* Charges a packet to the state of the entry. Returns whether the packet passes. */
static bool packet_charge(const struct sl_limit *limit, struct sl_entry *entry, uint64_t now)
{
	struct sl_slice slice = {0};

	return credit_charge(limit, entry_state(entry), &slice, 0, limit->cost, now, 1);
}

/* --- Charges and refunds -------------------------------------------------------------------- */

enum what {
	CHARGE,	 /* checks that debt_charge() returns `is` for `amount` */
	OTHER,	 /* checks that debt_charge() for a second key returns `is` */
	WAIT,	 /* advances the clock by the time in which `amount` refills */
	LEVEL,	 /* checks that the level of the state is `is` */
	PACKETS, /* sends packets until a packet is refused; checks that `is` packets passed */
};

/* A step of a test case. The unit of `amount` and `is` is the burst. */
struct charge {
	enum what what;
	double amount, is;
};

static const struct charge_case {
	const char *name;
	double refill; /* `refill` of the limit; 0: same as the burst */
	double refundable;
	bool has_level; /* false: the state starts full, not at `level` */
	double level;
	struct charge charges[8];
} charge_cases[] = {
	{"a charge of an idle state is subtracted from a full level",
	 .charges = {{WAIT, 36000}, {CHARGE, .5, .5}, {LEVEL, 0, .5}}},
	{"a source owes at most a burst", .charges = {{CHARGE, .5, .5},
						      {CHARGE, 1, 1},
						      {CHARGE, 1, .5},
						      {CHARGE, 1, 0},
						      {LEVEL, 0, -1},
						      {WAIT, 1},
						      {PACKETS, 0, 0}}},
	{"a debt beyond a burst, as after a large packet, stays, and nothing is refunded",
	 .refundable = 1, .has_level = true, .level = -2,
	 .charges = {{CHARGE, 1, 0}, {LEVEL, 0, -2}}},
	{"a full state keeps what it has above `refill`", .refill = .5,
	 .charges = {{WAIT, 36000}, {CHARGE, .01, .01}, {LEVEL, 0, .99}}},
	{"the entry of another key is not charged", .charges = {{OTHER, 1, 0}, {LEVEL, 0, 1}}},
	{"a charge is refunded once", .has_level = true,
	 .charges = {{CHARGE, .5, .5}, {CHARGE, -1, -.5}, {LEVEL, 0, 0}, {CHARGE, -.5, 0}}},
	{"nothing is refunded to a full state, or after it is empty again",
	 .charges = {{CHARGE, .5, .5},
		     {WAIT, 1},
		     {CHARGE, -.5, 0},
		     {PACKETS, 0, 1},
		     {CHARGE, -.5, 0},
		     {PACKETS, 0, 0}}},
	{"a charge of 0 notices that the state was full, so nothing is refunded later",
	 .charges = {{CHARGE, .5, .5},
		     {WAIT, 1},
		     {CHARGE, 0, 0},
		     {PACKETS, 0, 1},
		     {CHARGE, -.5, 0},
		     {PACKETS, 0, 0}}},
	{"a refund ends at `refill`", .refill = .9375, .has_level = true,
	 .charges = {{CHARGE, .0625, .0625}, {WAIT, .96875}, {CHARGE, -.0625, -.03125}}},
	{"nothing is refunded to another key", .refundable = 1, .has_level = true,
	 .charges = {{OTHER, -1, 0}, {LEVEL, 0, 0}}},
};

static double charge_run(const struct charge *charge, const struct sl_limit *limit,
			 struct sl_entry *entry, uint64_t *now)
{
	const struct state_key *of = charge->what == OTHER ? &other : &key;
	int64_t burst = limit->burst, amount = charge->amount * burst, passed = 0;

	switch (charge->what) {
	case CHARGE:
	case OTHER:
		return (double)debt_charge(limit, entry, of, amount, &refundable, *now) / burst;
	case LEVEL:
		return (double)level(limit, entry, *now) / burst;
	case PACKETS:
		while (packet_charge(limit, entry, *now))
			passed += limit->cost;
		return (double)passed / burst;
	default:
		*now += amount;
		return 0;
	}
}

TEST(test_what_is_charged_and_refunded)
{
	for (size_t i = 0; i < ARRAY_SIZE(charge_cases); i++) {
		const struct charge_case *of = &charge_cases[i];
		struct sl_limit limit = limit_of();
		struct sl_entry entry = entry_full(&limit);
		uint64_t now = NOW;

		if (of->has_level) {
			entry.state.empty_at = NOW - (int64_t)(of->level * (int64_t)limit.burst);
			entry.state.full_at = entry.state.charged_at = NOW;
		}
		refundable = of->refundable * limit.burst;
		if (of->refill)
			limit.refill = of->refill * limit.burst;
		for (int k = 0; k < 8; k++) {
			double is = charge_run(&of->charges[k], &limit, &entry, &now);

			if (is < of->charges[k].is - 1e-6 || is > of->charges[k].is + 1e-6)
				fail_msg("%s: step %d: %.5f", of->name, k, is);
		}
	}
}

/* The limit must not pass a packet that a plain token bucket with the same charges refuses. */
TEST(test_packets_get_what_is_left)
{
	const struct sl_limit limit = limit_of();
	struct sl_entry entry = entry_full(&limit);
	uint64_t now = NOW, random = RANDOM_BEGIN;
	int64_t bucket = limit.burst;

	for (int i = 0; i < 200000; i++) {
		uint64_t span = random_next(&random) % limit.cost;

		now += span;
		bucket = credit_min(bucket + span, limit.burst);
		if (random_next(&random) % 4)
			bucket -= packet_charge(&limit, &entry, now) ? limit.cost : 0;
		else
			bucket -= debt_charge(&limit, &entry, &key,
					      random_next(&random) % (2 * limit.cost), &refundable,
					      now);
		assert_true(bucket >= -(int64_t)limit.burst);
		assert_true(level(&limit, &entry, now) <= bucket);
	}
}

/* A node passes at most as many packets as a node without charges and refunds for other nodes. */
TEST(test_no_source_gets_more_than_without)
{
	const struct sl_limit limit = limit_of();
	struct sl_entry entry = entry_full(&limit), alone = entry;
	uint64_t now = NOW, random = RANDOM_BEGIN, passed = 0, would = 0;

	for (int i = 0; i < 200000; i++) {
		int64_t most = 2 * limit.cost;

		now += random_next(&random) % (i / 2000 % 2 ? 3 * limit.cost : limit.cost / 2);
		debt_charge(&limit, &entry, &key,
			    (int64_t)(random_next(&random) % (2 * most)) - most, &refundable, now);
		passed += packet_charge(&limit, &entry, now);
		would += packet_charge(&limit, &alone, now);
		assert_true(passed <= would + 1);
	}
	assert_true(passed > would / 2);
}

/* --- Debts of a flow ------------------------------------------------------------------------ */

/* Returns a flow with a debt of one burst, which the next step charges. */
static struct flow flow_owing(const struct sl_limit *limit)
{
	const struct flow_count nothing = {0};
	struct flow flow;

	flow_begin(&flow, &nothing, NOW);
	flow.nodes = 4;
	flow.length = SEC / 10;
	flow.unsettled = flow.repay = limit->burst;
	flow.repaying = FLOW_RATE;
	return flow;
}

TEST(test_what_was_not_charged_is_owed_still)
{
	const struct sl_limit limit = limit_of();
	const uint64_t now = NOW + 4 * SEC / 10;
	static const struct {
		const char *name;
		bool is_handed_over, is_deep, has_no_entry;
		bool stays;
	} cases[] = {
		{"a full state is charged", .stays = false},
		{"an entry of another key is not charged", .is_handed_over = true, .stays = true},
		{"a state with the largest debt is not charged", .is_deep = true, .stays = true},
		{"without an entry the amount counts as charged", .has_no_entry = true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow flow = flow_owing(&limit);
		struct sl_entry entry = entry_full(&limit);
		struct debt debt = {0};
		int64_t owed = flow.unsettled, charged;

		if (cases[i].is_deep)
			entry.state.empty_at = now + 2 * limit.burst;
		charged = debt_step(&limit, cases[i].has_no_entry ? NULL : &entry,
				    cases[i].is_handed_over ? &other : &key, &flow, &debt, now);
		if ((flow.unsettled == owed) != cases[i].stays)
			fail_msg("%s: %lld of %lld", cases[i].name, (long long)flow.unsettled,
				 (long long)owed);
		if (!cases[i].has_no_entry)
			assert_int_equal(flow.unsettled, owed - charged);
	}
}

/* --- Blocks --------------------------------------------------------------------------------- */

#define BLOCK (30 * SEC)

/* Returns a limit that blocks for 30 s, or with `escalate` for up to 8 minutes. */
static struct sl_limit limit_that_blocks(bool escalate)
{
	struct sl_limit_spec spec = spec_bucket(1000, SL_RATE_PPS, 100);

	spec.action = SL_ACTION_BLOCK;
	spec.block_ns = BLOCK / SL_TICKS_PER_NS;
	if (escalate) {
		spec.escalate = 2;
		spec.block_max_ns = 16 * BLOCK / SL_TICKS_PER_NS;
	}
	return spec_compile(&spec);
}

static bool is_blocked(const struct sl_limit *limit, struct sl_entry *entry, uint64_t now)
{
	return block_holds(limit, entry_state(entry), now);
}

/*
 * A block from the store ends at the time in the store's reply. It is not longer than the limit
 * allows.
 */
TEST(test_a_block_ends_when_it_is_reported_to_or_with_the_limit)
{
	static const struct {
		bool escalate;
		uint64_t reported, lasts;
	} cases[] = {
		{false, 10 * SEC, 10 * SEC},
		{true, 10 * SEC, 10 * SEC},
		{false, 1000 * BLOCK, BLOCK},
		{true, 1000 * BLOCK, 16 * BLOCK},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_limit limit = limit_that_blocks(cases[i].escalate);
		struct sl_entry entry = entry_full(&limit);
		uint64_t end = NOW + cases[i].lasts;

		assert_true(debt_block(&limit, &entry, &key, NOW + cases[i].reported, NOW));
		assert_true(is_blocked(&limit, &entry, NOW));
		assert_true(is_blocked(&limit, &entry, end - 16));
		assert_false(is_blocked(&limit, &entry, end));
	}
}

/* A block that begins soon after a block of another node is longer than the other node's block. */
TEST(test_a_block_of_another_node_counts_as_a_step)
{
	const struct sl_limit limit = limit_that_blocks(true);
	struct sl_entry entry = entry_full(&limit);
	uint64_t until = NOW + 3 * BLOCK, next;

	assert_true(debt_block(&limit, &entry, &key, until, NOW));
	next = block_next(&limit, entry_state(&entry), until + SEC);
	assert_true(credit_span(until + SEC + 8 * BLOCK, next & ~BLOCK_STEPS_MAX) >= 0);
}

TEST(test_what_blocks_already_is_left_alone)
{
	const struct sl_limit blocks = limit_that_blocks(false), drops = limit_of();
	struct sl_entry entry = entry_full(&blocks), before = entry;

	assert_false(debt_block(&drops, &entry, &key, NOW + BLOCK, NOW));
	assert_false(debt_block(&blocks, &entry, &other, NOW + BLOCK, NOW));
	assert_false(debt_block(&blocks, &entry, &key, NOW, NOW));
	assert_false(debt_block(&blocks, &entry, &key, NOW - SEC, NOW));
	assert_memory_equal(&entry, &before, sizeof(entry));
	assert_true(debt_block(&blocks, &entry, &key, NOW + SEC, NOW));
	before = entry;
	assert_false(debt_block(&blocks, &entry, &key, NOW + BLOCK, NOW));
	assert_memory_equal(&entry, &before, sizeof(entry));
	assert_true(debt_block(&blocks, &entry, &key, NOW + BLOCK, NOW + SEC));
}

/* --- Beside packets on other CPUs ----------------------------------------------------------- */

#define DRAWS 20000

static struct sl_limit race_limit;
static struct sl_entry race_entry;

static void *packets_run(void *data)
{
	struct sl_state *state = entry_state(&race_entry);

	(void)data;
	for (int i = 0; i < DRAWS;) {
		struct sl_state seen = *(volatile struct sl_state *)state, next = seen;
		struct sl_slice slice = {0};

		credit_charge(&race_limit, &next, &slice, 0, race_limit.cost, NOW, 1);
		i += __sync_bool_compare_and_swap(&state->empty_at, seen.empty_at, next.empty_at);
	}
	return NULL;
}

/*
 * Another thread charges packets. The clock stands still, so the level is the burst minus all
 * charges.
 */
TEST(test_nothing_is_lost_beside_packets)
{
	const struct sl_limit_spec spec = spec_bucket(1000, SL_RATE_PPS, 4 * DRAWS);
	uint64_t charged = 0;
	pthread_t thread;

	race_limit = spec_compile(&spec);
	race_entry = entry_full(&race_limit);
	assert_int_equal(pthread_create(&thread, NULL, packets_run, NULL), 0);
	for (int i = 0; i < DRAWS; i++)
		charged += debt_charge(&race_limit, &race_entry, &key, race_limit.cost, &refundable,
				       NOW);
	pthread_join(thread, NULL);
	assert_int_equal(level(&race_limit, &race_entry, NOW),
			 race_limit.burst - DRAWS * race_limit.cost - charged);
}

#define HANDED_OVER 15000000

static bool race_has_ended;
static uint64_t race_credit; /* number of times that `other` got credit by mistake */

/* Writes a key into the entry, in the same order of writes as entry_write() in bpf/table.h. */
static void entry_write(const struct state_key *to, uint64_t zero)
{
	__atomic_exchange_n(&race_entry.limit, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&race_entry.addr[0], to->addr[0], __ATOMIC_RELAXED);
	__atomic_store_n(&race_entry.state.empty_at, zero, __ATOMIC_RELAXED);
	__atomic_exchange_n(&race_entry.limit, to->limit, __ATOMIC_SEQ_CST);
}

/*
 * Assigns the entry to `key` and `other` by turns. `other` sends no packets and must never have
 * credit.
 */
static void *keys_run(void *data)
{
	(void)data;
	for (int i = 0; i < HANDED_OVER; i++) {
		entry_write(&key, NOW - race_limit.burst);
		entry_write(&other, NOW);
		for (int k = 0; k < i % 50; k++)
			if (credit_span(NOW, __atomic_load_n(&race_entry.state.empty_at,
							     __ATOMIC_RELAXED)) < 0)
				race_credit++;
	}
	__atomic_store_n(&race_has_ended, true, __ATOMIC_SEQ_CST);
	return NULL;
}

/*
 * If the entry gets another key during a charge, the charge is undone. The other key must not get
 * credit for this.
 */
TEST(test_a_key_gets_nothing_for_the_one_before)
{
	pthread_t thread;

	race_limit = limit_of();
	race_entry = entry_full(&race_limit);
	assert_int_equal(pthread_create(&thread, NULL, keys_run, NULL), 0);
	while (!__atomic_load_n(&race_has_ended, __ATOMIC_SEQ_CST)) {
		refundable = 0;
		debt_charge(&race_limit, &race_entry, &key, race_limit.cost, &refundable, NOW);
	}
	pthread_join(thread, NULL);
	assert_int_equal(race_credit, 0);
}

/* --- Division ------------------------------------------------------------------------------- */

#define ROUND (100 * MS)
#define STEP  (10 * MS)
#define NODES 4
#define GRACE (DIVISION_GRACE / ROUND) /* in rounds */

enum event {
	END,
	ANSWERED, /* `count` rounds in which the store replies */
	LOST,	  /* `count` rounds in which the store does not reply */
	STOPPED,  /* the process is stopped for `count` steps */
	LATE,	  /* the process continues, and reads a reply that was sent before the stop */
	WORD,	  /* the process starts; `divide_at` in the maps is `count` steps in the future */
};

static const struct {
	const char *name;
	struct {
		enum event what;
		int count;
		bool divides; /* whether limits are divided after this step */
	} steps[8];
} divisions[] = {
	{"no division while one of three rounds gets a reply",
	 {{ANSWERED, 1, false},
	  {LOST, 2, false},
	  {ANSWERED, 1, false},
	  {LOST, 2, false},
	  {ANSWERED, 1, false}}},
	{"division begins with the third lost round",
	 {{ANSWERED, 10, false}, {LOST, FLOW_LOST - 1, false}, {LOST, 1, true}, {LOST, 600, true}}},
	{"division continues for 2 s after a loss; two lost rounds do not prolong it",
	 {{LOST, FLOW_LOST, true},
	  {ANSWERED, GRACE, true},
	  {LOST, FLOW_LOST, true},
	  {ANSWERED, GRACE - 3, true},
	  {LOST, FLOW_LOST - 1, true},
	  {ANSWERED, 1, true},
	  {ANSWERED, 21, false}}},
	{"division begins 3 s after the process was stopped; an earlier reply does not end it",
	 {{ANSWERED, 10, false},
	  {STOPPED, DIVISION_LEASE / STEP - 1, false},
	  {STOPPED, 1, true},
	  {LATE, 0, true},
	  {ANSWERED, GRACE - 1, true},
	  {ANSWERED, 1, false}}},
	{"division continues until rounds get replies if the previous process was killed",
	 {{WORD, -100, true}, {LOST, 600, true}, {ANSWERED, GRACE, true}, {ANSWERED, 1, false}}},
	{"`divide_at` of the previous process is not moved before the first reply",
	 {{WORD, 10, false}, {LOST, FLOW_LOST - 1, true}}},
	{"a reply before that time moves it", {{WORD, 20, false}, {ANSWERED, 20, false}}},
};

static struct division division;
static uint64_t now;
static unsigned int lost;

static bool divides(void)
{
	return credit_times(division.at, NODES, now) == NODES;
}

static void round_run(bool is_answered)
{
	for (uint64_t end = now + ROUND; now != end; now += STEP)
		division_step(&division, now);
	division_step(&division, now);
	lost = is_answered ? 0 : lost + 1;
	division_round(&division, lost, now);
}

TEST(test_when_limits_are_divided)
{
	for (size_t i = 0; i < ARRAY_SIZE(divisions); i++) {
		now = 0 - SEC; /* the clock wraps after 1 s */
		lost = 0;
		division = (struct division){0};
		for (int k = 0; k < 8 && divisions[i].steps[k].what; k++) {
			enum event what = divisions[i].steps[k].what;
			int count = divisions[i].steps[k].count;

			if (what == STOPPED)
				now += count * STEP;
			else if (what == WORD)
				division.at = now + count * (int64_t)STEP;
			else if (what == LATE && division_step(&division, now))
				division_round(&division, 0, now);
			for (int n = 0; (what == ANSWERED || what == LOST) && n < count; n++)
				round_run(what == ANSWERED);
			if (divides() != divisions[i].steps[k].divides)
				fail_msg("%s: step %d", divisions[i].name, k);
		}
	}
	assert_in_range(division.at - now, DIVISION_LEASE - STEP, DIVISION_LEASE);
}

/*
 * If limits are not divided, `divide_at` is 0. If the division begins at time 0, `divide_at` is 1.
 */
TEST(test_no_moment_is_never)
{
	division = (struct division){0};
	now = 0;
	division_round(&division, FLOW_LOST, now);
	now = 1;
	assert_true(divides());
	now = 0 - DIVISION_LEASE;
	division = (struct division){0};
	division_round(&division, 0, now);
	division_step(&division, now);
	assert_int_equal(division.at, 1);
}

TESTS(NULL, NULL)
