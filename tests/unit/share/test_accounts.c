// SPDX-License-Identifier: GPL-2.0
/*
 * user/share/accounts.h: what is reported of a table that the test writes (shared_gate.h).
 */
#include "test.h"
#include "kind_specs.h"
#include "shared_gate.h"

#define ENTRIES 16
#define MOST	4
#define NODES	10
#define ROUND	(100 * MS)
#define STEP	(10 * MS)

static struct sl_entry entries[ENTRIES];
static struct sl_set sets[ENTRIES / SL_WAYS];
static struct accounts accounts;
static struct store_item items[MOST];
static bool keeps_expiry; /* the store, of each reported key */
static uint64_t now;

/* --- A node --------------------------------------------------------------------------------- */

/* rate: packets a second, with a burst of a second */
static void node_open(uint64_t rate)
{
	struct sl_limit_spec spec = spec_bucket(rate, SL_RATE_PPS, rate);

	accounts_close(&accounts);
	spec.shared = SL_SHARED_YES;
	memset(entries, 0, sizeof(entries));
	memset(sets, 0, sizeof(sets));
	limit = (struct shared_limit){.limit = spec_compile(&spec), .meaning = 1};
	limit_is_shared = keeps_expiry = true;
	gate_table = (struct table){
		.entries = entries, .count = ENTRIES, .id = 1, .sets = {.values = sets}};
	now = 1000 * SEC;
	assert_int_equal(accounts_open(&accounts, NULL, "here", MOST), 0);
	accounts_scan(&accounts, NODES, now);
}

static void key_make(unsigned int index, uint64_t addr)
{
	entry_make(&entries[index], &sets[index / SL_WAYS], index % SL_WAYS, addr, now);
}

/* Packets that an entry took from its state; whatever it holds. */
static void entry_take(unsigned int index, unsigned int packets)
{
	uint64_t ticks = packets * limit.limit.cost;

	entries[index].count.word += ticks >> limit.limit.unit_shift;
	entry_state(&entries[index])->empty_at += ticks;
}

/* A round in which the store answers that its counters stand at so many packets. */
static unsigned int round_run(int64_t packets)
{
	unsigned int count;

	now += ROUND;
	accounts_step(&accounts, now);
	accounts_scan(&accounts, NODES, now);
	count = accounts_report(&accounts, items, now);
	for (unsigned int i = 0; i < count; i++) {
		int64_t total = packets * (int64_t)(limit.limit.cost >> FLOW_UNIT_SHIFT);

		items[i].answered = items[i].sent = true;
		items[i].expires = keeps_expiry && !items[i].lasts;
		items[i].total.taken = items[i].total.asked = total;
	}
	accounts_learn(&accounts, items, NODES, now);
	return count;
}

/* --- Tests ---------------------------------------------------------------------------------- */

/*
 * A script of one node, whose entry 3 has the full state of key 7:
 *
 *   take N, full         packets that key takes; its state refills
 *   make A               the entry goes to key A
 *   rate, unshare, share, table, since N   how the limit changes: another rate; not shared; another
 *                        table; made with generation N of the rules
 *   follow               the process reads the rules, which have a new generation
 *   count                it only counts, within a round
 *   round R T            it reports R keys, and the store replies that they took T packets
 *   sent N, key K, lasts B, owed, accounts N   of the first item: some N packets, its key, whether
 *                        it has an expiry; more is owed than nothing; there are N accounts
 */
static const struct {
	const char *name, *commands;
} scripts[] = {
	{"a key is reported from a quarter of its burst on",
	 "take 240, round 0 0, take 20, round 1 0, key here:1:7, sent 260"},
	{"a limit with another rate begins again: its counters in the store are others",
	 "take 1000, round 1 1000, round 1 1000, lasts 1, rate, follow, take 1, round 1 900000,"
	 "key here:2:7, lasts 0, accounts 1"},
	{"a limit that stays continues",
	 "take 1000, round 1 1000, round 1 1000, follow, round 1 1500, lasts 1, owed"},
	{"what a key took unreported outlives a change of other rules",
	 "follow, take 100, round 0 0, follow, take 100, round 0 0, follow, take 60, round 1 0,"
	 "sent 260"},
	{"an entry that goes to another key around a change counts for that key",
	 "follow, take 240, round 0 0, follow, make 8, take 20, round 0 0, take 240, round 1 0,"
	 "key here:1:8"},
	{"nothing is left after a change of the rate",
	 "follow, take 240, round 0 0, rate, follow, round 0 0, take 20, round 0 0, take 240,"
	 "round 1 0"},
	{"nor after a time in which the limit was not shared",
	 "follow, take 240, round 0 0, unshare, follow, take 1000, round 0 0, full, share, follow,"
	 "round 0 0, take 20, round 0 0, take 240, round 1 0"},
	{"nor in another table",
	 "follow, take 240, round 0 0, table, follow, round 0 0, take 20, round 0 0, take 240,"
	 "round 1 0"},
	{"a new limit counts from its first packet on, before the process reads the rules",
	 "unshare, follow, round 0 0, since 12, make 7, take 260, share, follow, round 1 0,"
	 "sent 260"},
	{"a limit that was there before and is shared now does not",
	 "unshare, follow, round 0 0, since 11, make 7, take 260, share, follow, round 0 0"},
	{"an account ends with its limit", "follow, take 1000, round 1 0, unshare, follow, round 0 "
					   "0, accounts 0, share, full, follow,"
					   "round 0 0, take 1000, round 1 0, accounts 1"},
	{"counting opens no account: the items of the round would be another key's",
	 "take 1000, count, accounts 0, round 1 0"},
};

static void command_run(const char *name, const char *command)
{
	double packets = (double)items[0].delta.taken * (1 << FLOW_UNIT_SHIFT) / limit.limit.cost;
	char op[16], word[32] = "";
	int a, b = 0;

	assert_true(sscanf(command, "%15s %31s %d", op, word, &b) > 0);
	a = atoi(word);
	if (!strcmp(op, "take"))
		entry_take(3, a);
	else if (!strcmp(op, "full"))
		entry_state(&entries[3])->empty_at = now - limit.limit.burst;
	else if (!strcmp(op, "make"))
		key_make(3, a);
	else if (!strcmp(op, "rate"))
		limit.meaning++;
	else if (!strcmp(op, "table"))
		gate_table.id++;
	else if (!strcmp(op, "since"))
		limit.since = a;
	else if (!strcmp(op, "unshare") || !strcmp(op, "share"))
		limit_is_shared = *op == 's';
	else if (!strcmp(op, "follow"))
		generation++, assert_int_equal(accounts_follow(&accounts, NULL), 0);
	else if (!strcmp(op, "count"))
		accounts_count(&accounts, NODES, now += SEC);
	else if (!strcmp(op, "key"))
		assert_string_equal(items[0].key, word);
	else if ((!strcmp(op, "round") && round_run(b) != (unsigned int)a) ||
		 (!strcmp(op, "sent") && (packets < a - 4 || packets > a)) ||
		 (!strcmp(op, "lasts") && items[0].lasts != a) ||
		 (!strcmp(op, "owed") && accounts.list[0].flow.unsettled <= 0) ||
		 (!strcmp(op, "accounts") && accounts.count != (unsigned int)a))
		fail_msg("%s: %s", name, command);
}

TEST(test_what_is_counted_and_reported)
{
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		char text[512], *rest = text, *command;

		snprintf(text, sizeof(text), "%s", scripts[i].commands);
		generation = 10;
		node_open(1000);
		key_make(3, 7);
		while ((command = strsep(&rest, ",")))
			command_run(scripts[i].name, command);
	}
}

TEST(test_a_trickle_of_a_slow_limit_is_not_reported)
{
	node_open(10);
	key_make(3, 7);
	for (int i = 0; i < 20000; i++) {
		entry_state(&entries[3])->empty_at = now - limit.limit.burst;
		entry_take(3, i % 1250 == 0); /* 0.008 a second: 0.0008 of the rate */
		assert_int_equal(round_run(0), 0);
	}
}

/* After a flush the first addition creates the key again, and may be the last. */
TEST(test_a_key_that_is_created_again_gets_an_expiry)
{
	static const struct {
		unsigned int packets;
		int64_t total; /* -1: the report */
		bool lasts;
	} rounds[] = {
		{300, -1, false}, /* a new key */
		{100, 900, true}, {10, -1, true}, {0, 400, false}, {0, 400, true}, {0, 0, true},
		{100, 100, true}, {1, -1, true},  {1, 101, false}, {1, 102, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rounds); i++) {
		int64_t total = rounds[i].total;

		entry_take(3, rounds[i].packets);
		now += ROUND;
		accounts_scan(&accounts, NODES, now);
		assert_int_equal(accounts_report(&accounts, items, now), 1);
		if (items[0].lasts != rounds[i].lasts)
			fail_msg("round %zu", i);
		total *= (int64_t)(limit.limit.cost >> FLOW_UNIT_SHIFT);
		items[0].answered = items[0].sent = true;
		items[0].expires = !items[0].lasts;
		items[0].total = total < 0 ? items[0].delta : (struct store_fields){total, total};
		accounts_learn(&accounts, items, NODES, now);
	}
}

/* Rounds after one without an answer until the account of a key that rests ends: 300 at most. */
static unsigned int rounds_to_the_end(unsigned int without_expiry)
{
	unsigned int rounds = 0;

	node_open(1000);
	key_make(3, 7);
	entry_take(3, 1000);
	for (int i = 0; i < 200; i++)
		assert_int_equal(round_run(1000), 1);
	now += ROUND;
	accounts_report(&accounts, items, now);
	items[0].answered = items[0].sent = false;
	accounts_learn(&accounts, items, NODES, now);
	for (; accounts.count && rounds < 300; rounds++) {
		keeps_expiry = rounds >= without_expiry;
		round_run(1000);
		assert_true(rounds > without_expiry || !items[0].lasts);
	}
	return rounds;
}

/* If the store refuses the expiry, accounts are not kept forever. */
TEST(test_an_account_ends_once_its_key_in_the_store_has_an_expiry)
{
	unsigned int rests = rounds_to_the_end(0);

	assert_in_range(rests, 30, 50);
	assert_int_equal(rounds_to_the_end(rests + 10), rests + 11);
	assert_int_equal(rounds_to_the_end(300), 100);
}

/* The account of a key that others are expected to take all of, and so many steps were lent to. */
static struct account *account_lend(unsigned int steps)
{
	node_open(1000);
	key_make(3, 7);
	entry_take(3, 1000);
	round_run(0);
	round_run(0);
	accounts.list[0].flow.expected = FLOW_RATE;
	while (steps--)
		accounts_step(&accounts, now += STEP);
	return &accounts.list[0];
}

TEST(test_what_was_lent_can_be_refunded_after_a_change_of_other_rules)
{
	struct account *account = account_lend(20);
	uint64_t lent = account->debt.refundable, zero;

	assert_true(lent > SEC / 8);
	assert_int_equal(accounts_follow(&accounts, NULL), 0);
	account->flow.expected = 0;
	account->flow.refund = lent;
	zero = entry_state(&entries[3])->empty_at;
	accounts_step(&accounts, now += STEP);
	assert_in_range(zero - entry_state(&entries[3])->empty_at, lent * 7 / 8, lent);
}

/* More than 2^31 units between two rounds: each reading sees less. */
TEST(test_a_long_round_loses_no_count)
{
	const uint64_t packets = 50000000;
	uint64_t before;

	entry_take(3, 1000);
	round_run(0);
	before = accounts.list[0].own.taken;
	for (int i = 0; i < 4; i++) {
		now += SEC;
		entry_take(3, packets / 4);
		accounts_count(&accounts, NODES, now);
	}
	assert_true(packets * limit.limit.cost >> limit.limit.unit_shift > INT32_MAX);
	assert_in_range(accounts.list[0].own.taken - before, (packets - 8) * limit.limit.cost,
			packets * limit.limit.cost);
}

/*
 * The process stops for 20 s. Packets of a fast limit took 3 x 2^30 units meanwhile, which the count
 * of an entry shows as -2^30: that is not counted, and later packets are.
 */
TEST(test_a_stop_makes_no_count_fall)
{
	static const struct {
		uint64_t rate, packets;
		bool is_known;
	} cases[] = {{5000000, 64424509, false}, {1000, 20000, true}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t rate = cases[i].rate, most = 0, before;

		node_open(rate);
		key_make(3, 7);
		entry_take(3, rate);
		assert_int_equal(round_run(0), 1);
		before = accounts.list[0].own.taken;
		now += 20 * SEC;
		entry_take(3, cases[i].packets);
		accounts_count(&accounts, NODES, now);
		if (cases[i].is_known)
			most = cases[i].packets * limit.limit.cost;
		assert_in_range(accounts.list[0].own.taken - before, most * 99 / 100, most);
		round_run(0);
		entry_take(3, rate / 10);
		round_run(0);
		assert_in_range(items[0].delta.taken * (1 << FLOW_UNIT_SHIFT) / limit.limit.cost,
				rate / 10 * 99 / 100, rate / 10);
	}
}

/* Between two scans. Credit that slices return is no such case, and is not reported. */
TEST(test_a_line_that_a_key_lost_and_got_again_counts_from_0)
{
	static const struct {
		bool is_anew;
		int packets; /* that are taken, or given back */
	} cases[] = {{true, 300}, {true, 0}, {false, 300}, {false, -62}, {false, -300}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t before;
		int64_t ticks;

		node_open(1000);
		key_make(3, 7);
		entry_take(3, 100000);
		assert_int_equal(round_run(0), 1);
		before = accounts.list[0].own.taken;
		accounts.list[0].debt = (struct debt){.refundable = SEC / 2, .full_at = now + SEC};
		if (cases[i].is_anew)
			key_make(3, 7);
		ticks = cases[i].packets * (int64_t)limit.limit.cost;
		entries[3].count.word += ticks >> limit.limit.unit_shift;
		assert_int_equal(round_run(0), 1);
		assert_in_range(accounts.list[0].own.taken - before + SEC, SEC + ticks - SEC / 500,
				SEC + ticks);
		/* nothing of it was lent by the state that the entry has now */
		assert_int_equal(!accounts.list[0].debt.refundable, cases[i].is_anew);
	}
}

/* An entry may be made between the search for lost ones and the reading of all. */
TEST(test_a_key_has_one_account)
{
	entry_take(3, 1000);
	assert_int_equal(round_run(0), 1);
	/* the account without an entry, and one that was begun for the entry */
	accounts.list[1] = accounts.list[0];
	accounts.list[1].entry = NO_ENTRY;
	accounts.count++;
	assert_int_equal(round_run(0), 1);
	assert_int_equal(accounts.count, 1);
}

/* A reading within a round may end the second account of a key: each other one has its own answer. */
TEST(test_an_account_that_ends_within_a_round_shifts_no_answer)
{
	unsigned int count;

	node_open(1000);
	for (unsigned int i = 0; i < 2; i++) {
		key_make(3 + i, 7 + i);
		entry_take(3 + i, 1000);
	}
	assert_int_equal(round_run(0), 2);
	/* the first key also has an account without an entry, before the accounts of both keys */
	accounts.list[2] = accounts.list[1];
	accounts.list[1] = accounts.list[0];
	accounts.samples.list[4].account = 3;
	accounts.samples.list[3].account = 2;
	accounts.list[0].entry = NO_ENTRY;
	accounts.count++;
	now += ROUND;
	count = accounts_report(&accounts, items, now);
	assert_int_equal(count, 3);
	now += SEC;
	accounts_count(&accounts, NODES, now);
	assert_int_equal(accounts.count, 2);
	for (unsigned int i = 0; i < count; i++) {
		items[i].answered = items[i].sent = true;
		items[i].total.taken = items[i].total.asked = i + 1;
	}
	accounts_learn(&accounts, items, NODES, now);
	assert_int_equal(accounts.list[1].flow.totals.taken >> FLOW_UNIT_SHIFT, 2);
	assert_int_equal(accounts.list[2].flow.totals.taken >> FLOW_UNIT_SHIFT, 3);
}

/*
 * It stops for 20 s within a round, in which the packet path divided the limit: that time is not
 * charged again, a surplus of charges is not refunded, and what is owed stays owed.
 */
TEST(test_a_process_that_was_stopped_begins_again)
{
	static const int64_t unsettled[] = {-(int64_t)SEC, SEC};

	for (size_t i = 0; i < ARRAY_SIZE(unsettled); i++) {
		struct account *account;
		struct sl_state *state = entry_state(&entries[3]);
		uint64_t zero;

		node_open(1000);
		account = &accounts.list[0];
		key_make(3, 7);
		entry_take(3, 1000);
		round_run(0);
		round_run(0);
		now += ROUND;
		entry_take(3, 1000);
		accounts_scan(&accounts, NODES, now);
		assert_int_equal(accounts_report(&accounts, items, now), 1);
		account->flow.expected = FLOW_RATE / 2;
		account->flow.unsettled = unsettled[i];
		account->flow.refund = account->flow.repay = SEC;

		now += 20 * SEC;
		zero = state->empty_at = state->charged_at = now; /* packets came all the time */
		accounts_forget(&accounts, now);
		accounts_step(&accounts, now += STEP);
		assert_int_equal(state->empty_at, zero);
		/* its totals are noted, and no difference is taken from them */
		items[0].answered = items[0].sent = true;
		items[0].total.taken = items[0].total.asked = 1LL << 40;
		accounts_learn(&accounts, items, NODES, now);
		assert_int_equal(account->flow.unsettled, credit_max(0, unsettled[i]));
		/* a flood leaves the others nine parts of ten from then on */
		accounts_step(&accounts, now += STEP);
		assert_in_range(state->empty_at - zero, STEP * 9 / 10 - 1, STEP * 9 / 10);
	}
}

/* An answer may wait for the process when it goes on. */
TEST(test_a_stop_is_not_charged_after_the_answer)
{
	uint64_t zero;

	entry_take(3, 1000);
	now += ROUND;
	accounts_scan(&accounts, NODES, now);
	assert_int_equal(accounts_report(&accounts, items, now), 1);
	now += 20 * SEC;
	zero = entry_state(&entries[3])->empty_at = entry_state(&entries[3])->charged_at = now;
	accounts_forget(&accounts, now);
	items[0].answered = items[0].sent = true;
	accounts_learn(&accounts, items, NODES, now);
	accounts_step(&accounts, now += STEP);
	assert_in_range(entry_state(&entries[3])->empty_at - zero, STEP * 9 / 10 - 1,
			STEP * 9 / 10);
}

TEST(test_accounts_count_the_lost_rounds_of_each_key)
{
	node_open(1000);
	for (unsigned int i = 0; i < 2; i++) {
		key_make(3 + i, 7 + i);
		entry_take(3 + i, 1000);
	}
	assert_int_equal(round_run(0), 2);
	for (unsigned int lost = 1; lost < 5; lost++) {
		now += ROUND;
		assert_int_equal(accounts_report(&accounts, items, now), 2);
		items[0].answered = items[0].sent = true;
		items[1].answered = items[1].sent = false;
		accounts_learn(&accounts, items, NODES, now);
		assert_int_equal(accounts.lost, lost);
	}
	round_run(0);
	assert_int_equal(accounts.lost, 0);
}

/* --- Short bursts --------------------------------------------------------------------------- */

/*
 * What a node lets pass of a rate of 10,000 packets a second that is asked for twice at it, and as
 * much at another node, which takes what this one takes: in parts of the limit.
 */
static double node_passes(unsigned int burst)
{
	struct sl_limit_spec spec = spec_bucket(10000, SL_RATE_PPS, burst);
	struct flow_count own = {0};
	unsigned int passed = 0;

	node_open(10000);
	spec.shared = SL_SHARED_YES;
	limit.limit = spec_compile(&spec);
	accounts_follow(&accounts, NULL);
	key_make(3, 7);
	for (int step = 0; step < 1000; step++) {
		for (int i = 0; i < 200; i++, now += STEP / 200)
			passed += packet_send(&entries[3], now) && step >= 500;
		accounts_step(&accounts, now);
		if (step % 10)
			continue;
		accounts_scan(&accounts, 2, now);
		for (unsigned int i = accounts_report(&accounts, items, now); i--;) {
			own.taken += items[i].delta.taken;
			own.asked += items[i].delta.asked;
			items[i].answered = items[i].sent = true;
			items[i].total.taken = 2 * own.taken;
			items[i].total.asked = 2 * own.asked;
		}
		accounts_learn(&accounts, items, 2, now);
	}
	return passed / 50000.0;
}

/* A burst may be shorter than the time between two steps. */
TEST(test_a_short_burst_is_shared)
{
	for (unsigned int burst = 10; burst <= 1000; burst *= 10) {
		double passes = node_passes(burst);

		printf("burst of %u ms: %.3f of the limit\n", burst / 10, passes);
		assert_true(passes > 0.49 && passes < 0.51);
	}
}

/* Without the process it would have been full, and a burst was all that there was. */
TEST(test_nothing_is_given_back_that_was_full_between_steps)
{
	struct account *account = account_lend(50);
	uint64_t later;

	assert_true(account->debt.refundable > SEC / 4);
	/* the process is stopped for as long as the state takes to be full; then a burst comes */
	later = now + 5 * SEC;
	entry_state(&entries[3])->empty_at = entry_state(&entries[3])->charged_at = later;
	account->flow.expected = 0;
	account->flow.refund = SEC;
	accounts_step(&accounts, now = later);
	assert_int_equal(account->debt.refundable, 0);
	assert_int_equal(credit_level(&limit.limit, entry_state(&entries[3]), now), 0);
}

/* --- Blocks --------------------------------------------------------------------------------- */

/* Blocks of 30 s; escalate: up to 8 minutes. The source is reported, and overran its limit here. */
static void node_open_blocks(bool escalate)
{
	struct sl_limit_spec spec = spec_bucket(1000, SL_RATE_PPS, 1000);

	node_open(1000);
	spec.shared = SL_SHARED_BLOCK;
	spec.action = SL_ACTION_BLOCK;
	spec.block_ns = 30 * SEC_NS;
	spec.escalate = escalate ? 2 : 0;
	spec.block_max_ns = escalate ? 480 * SEC_NS : 0;
	limit.limit = spec_compile(&spec);
	limit.shares_blocks = true;
	accounts_follow(&accounts, NULL);
	key_make(3, 7);
	entry_take(3, 1000);
	entry_state(&entries[3])->blocked_until = now + 30 * SEC;
	for (unsigned int i = 0; i < MOST; i++)
		items[i].blocked_ms = 0;
}

/* A round in which the store answers with this time of a block. */
static void round_blocked(uint64_t blocked_ms)
{
	now += ROUND;
	accounts_scan(&accounts, NODES, now);
	assert_int_equal(accounts_report(&accounts, items, now), 1);
	items[0].answered = items[0].sent = true;
	items[0].blocked_ms = blocked_ms;
	now += ROUND / 2;
	accounts_learn(&accounts, items, NODES, now);
}

TEST(test_a_block_is_reported_once)
{
	static const struct {
		const char *name;
		bool escalate;
		uint64_t stored[2];   /* what the store replies, ms */
		uint64_t reported[2]; /* within 151 ms above */
	} cases[] = {
		{"a block", false, {29900, 29750}, {29900, 0}},
		{"a block that escalates waits for what the store knows: a longer block",
		 true,
		 {100000, 99850},
		 {0, 0}},
		{"none", true, {0, 29700}, {0, 29700}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		node_open_blocks(cases[i].escalate);
		for (int k = 0; k < 2; k++) {
			uint64_t least = cases[i].reported[k];

			round_blocked(cases[i].stored[k]);
			if (items[0].block_ms < least || items[0].block_ms > least + !!least * 151)
				fail_msg("%s: round %d: %u ms", cases[i].name, k,
					 (unsigned int)items[0].block_ms);
		}
	}
}

TEST(test_a_block_of_another_node_lasts_from_when_it_was_asked_for)
{
	const struct sl_state *own = entry_state(&entries[3]);

	node_open_blocks(false);
	entry_state(&entries[3])->blocked_until = 0;
	round_blocked(0);
	round_blocked(ROUND / MS - 1);
	assert_false(block_holds(&limit.limit, own, now));
	round_blocked(10000);
	assert_true(block_holds(&limit.limit, own, now));
	assert_int_equal(block_end(&limit.limit, own), now - ROUND / 2 + 10 * SEC);
}

/* Whether the source is blocked here after the store replied with this time of a block. */
static bool is_blocked_after(uint64_t blocked_ms)
{
	round_blocked(blocked_ms);
	return block_holds(&limit.limit, entry_state(&entries[3]), now);
}

/* A round later, with some of the store's delay or all of it. */
static void check_that_it_stays_forgiven(uint64_t blocked_ms)
{
	entry_state(&entries[3])->blocked_until = 0;
	for (unsigned int i = 1; i < 20; i++)
		assert_false(is_blocked_after(blocked_ms - i * 3 * ROUND / 2 / MS +
					      i % 2 * ROUND / 3 / MS));
}

TEST(test_a_block_that_is_forgiven_does_not_come_back)
{
	node_open_blocks(false);
	assert_true(is_blocked_after(29900));
	check_that_it_stays_forgiven(29900);
	assert_true(is_blocked_after(29900)); /* a new one, of another node */
	check_that_it_stays_forgiven(29900);
	entries[3].limit = 0; /* the table forgets it */
	round_blocked(26000);
	key_make(3, 7);
	assert_true(is_blocked_after(25850));
}

/* The node's own block, forgiven before the reply, which contains the block. */
TEST(test_a_block_that_is_forgiven_while_it_is_reported_does_not_come_back)
{
	node_open_blocks(false);
	now += ROUND;
	accounts_scan(&accounts, NODES, now);
	assert_int_equal(accounts_report(&accounts, items, now), 1);
	assert_true(items[0].block_ms);
	entry_state(&entries[3])->blocked_until = 0;
	items[0].answered = items[0].sent = true;
	items[0].blocked_ms = items[0].block_ms;
	now += ROUND / 2;
	accounts_learn(&accounts, items, NODES, now);
	assert_false(block_holds(&limit.limit, entry_state(&entries[3]), now));
	check_that_it_stays_forgiven(items[0].block_ms);
	assert_true(is_blocked_after(29900)); /* of another node */
}

static int setup(void **state)
{
	(void)state;
	node_open(1000);
	key_make(3, 7);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	accounts_close(&accounts);
	return 0;
}

int main(void)
{
#define T(test) cmocka_unit_test_setup(test, setup)
	const struct CMUnitTest tests[] = {
		T(test_what_is_counted_and_reported),
		T(test_a_trickle_of_a_slow_limit_is_not_reported),
		T(test_a_key_that_is_created_again_gets_an_expiry),
		T(test_an_account_ends_once_its_key_in_the_store_has_an_expiry),
		T(test_what_was_lent_can_be_refunded_after_a_change_of_other_rules),
		T(test_a_long_round_loses_no_count),
		T(test_a_stop_makes_no_count_fall),
		T(test_a_line_that_a_key_lost_and_got_again_counts_from_0),
		T(test_a_key_has_one_account),
		T(test_an_account_that_ends_within_a_round_shifts_no_answer),
		T(test_a_process_that_was_stopped_begins_again),
		T(test_a_stop_is_not_charged_after_the_answer),
		T(test_accounts_count_the_lost_rounds_of_each_key),
		T(test_a_short_burst_is_shared),
		T(test_nothing_is_given_back_that_was_full_between_steps),
		T(test_a_block_is_reported_once),
		T(test_a_block_of_another_node_lasts_from_when_it_was_asked_for),
		T(test_a_block_that_is_forgiven_does_not_come_back),
		T(test_a_block_that_is_forgiven_while_it_is_reported_does_not_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, finish);
}
