// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/share/accounts.h, which chooses the keys that a node reports to the store. The test
 * fills the table of states.
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
static bool keeps_expiry; /* whether replies of the store confirm a new TTL */
static uint64_t now;

/* --- A node --------------------------------------------------------------------------------- */

/* Opens a node with a limit of `rate` packets per second and a burst of one second. */
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

/* Charges packets to an entry: to its counter and to its state, whose level can become negative. */
static void entry_take(unsigned int index, unsigned int packets)
{
	uint64_t ticks = packets * limit.limit.cost;

	entries[index].count.word += ticks >> limit.limit.unit_shift;
	entry_state(&entries[index])->empty_at += ticks;
}

/* Adds `count` keys to the table, beginning at entry 3. Each key has spent its whole burst. */
static void keys_take(unsigned int count)
{
	node_open(1000);
	for (unsigned int i = 0; i < count; i++) {
		key_make(3 + i, 7 + i);
		entry_take(3 + i, 1000);
	}
}

/* Begins a round. Returns the number of keys that the node reports. */
static unsigned int round_begin(void)
{
	now += ROUND;
	accounts_step(&accounts, now);
	accounts_scan(&accounts, NODES, now);
	return accounts_report(&accounts, items, now);
}

/* Sets the reply of the store for an item. Sets both totals in the reply to `total`. */
static void reply(struct store_item *item, int64_t total)
{
	item->answered = item->sent = true;
	item->expires = keeps_expiry && !item->lasts;
	item->total.taken = item->total.asked = total;
}

/*
 * Runs a round, in which the store replies with a total of `packets` for each key. Returns the
 * number of reported keys.
 */
static unsigned int round_run(int64_t packets)
{
	unsigned int count = round_begin();

	for (unsigned int i = 0; i < count; i++)
		reply(&items[i], packets * (int64_t)(limit.limit.cost >> FLOW_UNIT_SHIFT));
	accounts_learn(&accounts, items, NODES, now);
	return count;
}

/* --- Tests ---------------------------------------------------------------------------------- */

/*
 * Commands of a script. Key 7 begins with entry 3 and a full state.
 *
 *   take N       charges N packets to the key
 *   full         refills the key's state
 *   make A       gives the key's entry to key A
 *   rate         changes the rate of the limit
 *   table        replaces the table of the gate
 *   unshare      makes the limit local
 *   share        makes the limit shared
 *   since N      sets the limit's generation
 *   follow       reads the rules, which have a new generation
 *   count        calls accounts_count()
 *   round R T    runs a round that must report R keys; the store replies with T packets per key
 *   key K        checks the key of the first reported item
 *   sent N       checks the packets of the first reported item
 *   lasts B      checks the expiry of the first reported item
 *   owed         checks that the first account has a debt
 *   accounts N   checks the number of accounts
 */
static const struct {
	const char *name, *commands;
} scripts[] = {
	{"a key is reported from a quarter of its burst on",
	 "take 240, round 0 0, take 20, round 1 0, key here:1:7, sent 260"},
	{"a limit with another rate uses other keys in the store, so it begins again",
	 "take 1000, round 1 1000, round 1 1000, lasts 1, rate, follow, take 1, round 1 900000,"
	 "key here:2:7, lasts 0, accounts 1"},
	{"an unchanged limit keeps its debt",
	 "take 1000, round 1 1000, round 1 1000, follow, round 1 1500, lasts 1, owed"},
	{"what a key took unreported outlives a change of other rules",
	 "follow, take 100, round 0 0, follow, take 100, round 0 0, follow, take 60, round 1 0,"
	 "sent 260"},
	{"an entry that goes to another key around a change counts for that key",
	 "follow, take 240, round 0 0, follow, make 8, take 20, round 0 0, take 240, round 1 0,"
	 "key here:1:8"},
	{"nothing unreported is left after a change of the rate",
	 "follow, take 240, round 0 0, rate, follow, round 0 0, take 20, round 0 0, take 240,"
	 "round 1 0"},
	{"nothing is left after a time in which the limit was not shared",
	 "follow, take 240, round 0 0, unshare, follow, take 1000, round 0 0, full, share, follow,"
	 "round 0 0, take 20, round 0 0, take 240, round 1 0"},
	{"nothing is left in another table",
	 "follow, take 240, round 0 0, table, follow, round 0 0, take 20, round 0 0, take 240,"
	 "round 1 0"},
	{"a new limit counts from its first packet on, before the process reads the rules",
	 "unshare, follow, round 0 0, since 12, make 7, take 260, share, follow, round 1 0,"
	 "sent 260"},
	{"a limit that existed before does not count what it took before it was shared",
	 "unshare, follow, round 0 0, since 11, make 7, take 260, share, follow, round 0 0"},
	{"an account ends with its limit", "follow, take 1000, round 1 0, unshare, follow, round 0 "
					   "0, accounts 0, share, full, follow,"
					   "round 0 0, take 1000, round 1 0, accounts 1"},
	{"counting opens no account, because items of the current round are numbered by accounts",
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
		entry_take(3, i % 1250 == 0);
		assert_int_equal(round_run(0), 0);
	}
}

/*
 * If the store has lost a key, the next report creates the key. The following report sets the key's
 * TTL.
 */
TEST(test_a_key_that_is_created_again_gets_an_expiry)
{
	static const struct {
		unsigned int packets;
		int64_t total; /* the key's total in the store; -1: no such key */
		bool lasts;    /* whether the store already has a TTL; if not, the report sets it */
	} rounds[] = {
		{300, -1, false}, {100, 900, true}, {10, -1, true}, {0, 400, false}, {0, 400, true},
		{0, 0, true},	  {100, 100, true}, {1, -1, true},  {1, 101, false}, {1, 102, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rounds); i++) {
		int64_t total = rounds[i].total;

		entry_take(3, rounds[i].packets);
		assert_int_equal(round_begin(), 1);
		if (items[0].lasts != rounds[i].lasts)
			fail_msg("round %zu", i);
		reply(&items[0], total * (int64_t)(limit.limit.cost >> FLOW_UNIT_SHIFT));
		if (total < 0)
			items[0].total = items[0].delta;
		accounts_learn(&accounts, items, NODES, now);
	}
}

/*
 * Returns the number of rounds until the account of an idle key ends, at most 300. The store loses
 * the first round. In the next `without_expiry` rounds, it replies that the key has no TTL.
 */
static unsigned int rounds_to_the_end(unsigned int without_expiry)
{
	unsigned int rounds = 0;

	keys_take(1);
	for (int i = 0; i < 200; i++)
		assert_int_equal(round_run(1000), 1);
	round_begin();
	items[0].answered = items[0].sent = false;
	accounts_learn(&accounts, items, NODES, now);
	for (; accounts.count && rounds < 300; rounds++) {
		keeps_expiry = rounds >= without_expiry;
		round_run(1000);
		assert_true(rounds > without_expiry || !items[0].lasts);
	}
	return rounds;
}

/*
 * An account ends when the store confirms the TTL of the key. Without this confirmation, it ends
 * after EXPIRY_TRIES rounds.
 */
TEST(test_an_account_ends_once_its_key_in_the_store_has_an_expiry)
{
	unsigned int rests = rounds_to_the_end(0);

	assert_in_range(rests, 30, 50);
	assert_int_equal(rounds_to_the_end(rests + 10), rests + 11);
	assert_int_equal(rounds_to_the_end(300), 100);
}

/* Runs `steps` steps, each of which charges the whole rate for other nodes. Returns the account. */
static struct account *account_lend(unsigned int steps)
{
	keys_take(1);
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

/* If accounts_count() runs every second, counts are correct even when a 32-bit counter wraps. */
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
 * The process is stopped for 20 s. Meanwhile, the 32-bit counter of the fast limit grows by more
 * than 2^31. Packets during the stop are then not counted, but later packets are.
 */
TEST(test_a_stop_makes_no_count_fall)
{
	static const struct {
		uint64_t rate, packets;
		bool is_known; /* the counter grows by less than 2^31 */
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

/* An entry's count falls if the entry gets a new key, or if slices return credit. */
TEST(test_a_line_that_a_key_lost_and_got_again_counts_from_0)
{
	static const struct {
		bool is_anew; /* true: the key was evicted and got a new entry */
		int packets;  /* number of charged packets; negative: returned packets */
	} cases[] = {{true, 300}, {true, 0}, {false, 300}, {false, -62}, {false, -300}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t before;
		int64_t ticks;

		keys_take(1);
		entry_take(3, 99000);
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
		assert_int_equal(!accounts.list[0].debt.refundable, cases[i].is_anew);
	}
}

/* If an account is removed during a round, each reply must still reach the account of its key. */
TEST(test_an_account_that_ends_within_a_round_shifts_no_answer)
{
	keys_take(2);
	assert_int_equal(round_run(0), 2);
	accounts.list[2] = accounts.list[1];
	accounts.list[1] = accounts.list[0];
	accounts.samples.list[4].account = 3;
	accounts.samples.list[3].account = 2;
	accounts.list[0].entry = NO_ENTRY;
	accounts.count++;
	assert_int_equal(accounts_report(&accounts, items, now += ROUND), 3);
	accounts_count(&accounts, NODES, now += SEC);
	assert_int_equal(accounts.count, 2);
	for (unsigned int i = 0; i < 3; i++)
		reply(&items[i], i + 1);
	accounts_learn(&accounts, items, NODES, now);
	assert_int_equal(accounts.list[1].flow.totals.taken >> FLOW_UNIT_SHIFT, 2);
	assert_int_equal(accounts.list[2].flow.totals.taken >> FLOW_UNIT_SHIFT, 3);
}

/*
 * The process is stopped for 20 s during a round. Other nodes' traffic of these 20 s is neither
 * charged nor refunded, because the packet path divides the limit meanwhile.
 */
TEST(test_a_process_that_was_stopped_begins_again)
{
	static const int64_t unsettled[] = {-(int64_t)SEC, SEC};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(unsettled); i++) {
		bool reply_waits = i >= 2; /* the reply arrived before the process continued */
		struct sl_state *state = entry_state(&entries[3]);
		struct account *account;
		uint64_t zero;

		keys_take(1);
		account = &accounts.list[0];
		round_run(0);
		round_run(0);
		entry_take(3, 1000);
		assert_int_equal(round_begin(), 1);
		account->flow.expected = FLOW_RATE / 2;
		account->flow.unsettled = unsettled[i % 2];
		account->flow.refund = account->flow.repay = SEC;

		now += 20 * SEC;
		zero = state->empty_at = state->charged_at = now; /* the state now has no credit */
		accounts_forget(&accounts, now);
		if (!reply_waits)
			accounts_step(&accounts, now += STEP);
		assert_int_equal(state->empty_at, zero);
		/* the first totals after a stop cause no charge */
		reply(&items[0], 1LL << 40);
		accounts_learn(&accounts, items, NODES, now);
		assert_int_equal(account->flow.unsettled, credit_max(0, unsettled[i % 2]));
		/* the demand exceeds the rate, so 9/10 of the rate is charged for other nodes */
		accounts_step(&accounts, now += STEP);
		assert_in_range(state->empty_at - zero, STEP * 9 / 10 - 1, STEP * 9 / 10);
	}
}

TEST(test_accounts_count_the_lost_rounds_of_each_key)
{
	keys_take(2);
	assert_int_equal(round_run(0), 2);
	for (unsigned int lost = 1; lost < 5; lost++) {
		assert_int_equal(round_begin(), 2);
		reply(&items[0], 0);
		items[1].answered = items[1].sent = false;
		accounts_learn(&accounts, items, NODES, now);
		assert_int_equal(accounts.lost, lost);
	}
	round_run(0);
	assert_int_equal(accounts.lost, 0);
}

/* --- Short bursts --------------------------------------------------------------------------- */

/*
 * Returns the rate that passes at this node, as a multiple of the limit. Two nodes each have a
 * demand of twice the limit. The reports of the second node are simulated and constant.
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

/* Nodes also share a limit whose burst refills within one step. */
TEST(test_a_short_burst_is_shared)
{
	for (unsigned int burst = 10; burst <= 1000; burst *= 10) {
		double passes = node_passes(burst);

		printf("burst of %u ms: %.3f of the limit\n", burst / 10, passes);
		assert_true(passes > 0.49 && passes < 0.51);
	}
}

/* A charge cannot be refunded after the state was full. */
TEST(test_nothing_is_given_back_that_was_full_between_steps)
{
	struct account *account = account_lend(50);
	uint64_t later;

	assert_true(account->debt.refundable > SEC / 4);
	/* the state fills during a sleep of 5 s, and then packets spend the burst */
	later = now + 5 * SEC;
	entry_state(&entries[3])->empty_at = entry_state(&entries[3])->charged_at = later;
	account->flow.expected = 0;
	account->flow.refund = SEC;
	accounts_step(&accounts, now = later);
	assert_int_equal(account->debt.refundable, 0);
	assert_int_equal(credit_level(&limit.limit, entry_state(&entries[3]), now), 0);
}

/* --- Blocks --------------------------------------------------------------------------------- */

/*
 * Opens a node whose limit blocks for 30 s, or for up to 8 minutes with `escalate`. The key is
 * blocked. The node has not yet reported this block.
 */
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

/* Runs a round, in which the store replies that the key is blocked for this number of ms. */
static void round_blocked(uint64_t blocked_ms)
{
	assert_int_equal(round_begin(), 1);
	reply(&items[0], 0);
	items[0].blocked_ms = blocked_ms;
	accounts_learn(&accounts, items, NODES, now += ROUND / 2);
}

TEST(test_a_block_is_reported_once)
{
	static const struct {
		const char *name;
		bool escalate;
		uint64_t stored[2];   /* remaining ms of the block in the store, in each round */
		uint64_t reported[2]; /* remaining ms of the block, as reported in each round */
	} cases[] = {
		{"a block", false, {29900, 29750}, {29900, 0}},
		{"a block that escalates, and the store knows a longer block",
		 true,
		 {100000, 99850},
		 {0, 0}},
		{"a block that escalates, and the store knows no block",
		 true,
		 {0, 29700},
		 {0, 29700}},
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

/*
 * Runs a round, in which the store replies that the key is blocked for this time. Returns whether
 * the node then blocks the key.
 */
static bool is_blocked_after(uint64_t blocked_ms)
{
	round_blocked(blocked_ms);
	return block_holds(&limit.limit, entry_state(&entries[3]), now);
}

/*
 * Removes the block at this node. Later replies of the store contain this block. Checks that these
 * replies do not restore it.
 */
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
	assert_true(is_blocked_after(29900)); /* a new block, because it ends later */
	check_that_it_stays_forgiven(29900);
	entries[3].limit = 0;
	round_blocked(26000);
	key_make(3, 7);
	assert_true(is_blocked_after(25850));
}

/* If a block is removed between the report and the reply, the reply must not restore the block. */
TEST(test_a_block_that_is_forgiven_while_it_is_reported_does_not_come_back)
{
	node_open_blocks(false);
	assert_int_equal(round_begin(), 1);
	assert_true(items[0].block_ms);
	entry_state(&entries[3])->blocked_until = 0;
	reply(&items[0], 0);
	items[0].blocked_ms = items[0].block_ms;
	accounts_learn(&accounts, items, NODES, now += ROUND / 2);
	assert_false(block_holds(&limit.limit, entry_state(&entries[3]), now));
	check_that_it_stays_forgiven(items[0].block_ms);
	assert_true(is_blocked_after(29900));
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
		T(test_an_account_that_ends_within_a_round_shifts_no_answer),
		T(test_a_process_that_was_stopped_begins_again),
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
