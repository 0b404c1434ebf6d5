// SPDX-License-Identifier: GPL-2.0
#include "share/accounts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "share/choice.h"

/* How long the expiry of a counter that was set is taken to last. */
#define EXPIRY_TICKS ((int64_t)(10 * SL_TICKS_PER_SEC))

/*
 * Behind so many answers in a row without an expiry of its counters a key that rests is forgotten
 * nevertheless. A store that never sets one, as its user may not, does not keep all accounts.
 */
#define EXPIRY_TRIES 100

/* Packets of full links make the counts of a entry wrap within this: rules/limit.c. */
#define COUNT_WRAPS ((uint64_t)(5 * SL_TICKS_PER_SEC / 4))

/* The part of a burst by which `taken` of a entry may fall: twice that of slices. */
#define FALL_PART 8

/* How far ahead of a scan entries are fetched, in sets. */
#define SETS_AHEAD 16

#define TICKS_PER_MS (SL_TICKS_PER_SEC / 1000)

/* No block is longer: 2 years. */
#define BLOCKED_MOST_MS (730LL * 24 * 3600 * 1000)

/* --- Opening and closing -------------------------------------------------------------------- */

static int accounts_failed(const struct gate *gate, int err)
{
	return failure("cannot share the limits of gate '%s': %s", gate->name, why(err));
}

static void maps_close(struct accounts *accounts)
{
	table_close(&accounts->table);
	shared_limits_free(&accounts->limits);
	free(accounts->watch);
	accounts->watch = NULL;
}

/* What was open is forgotten, and not closed. */
static int maps_open(struct accounts *accounts, const struct gate *gate)
{
	int status;

	accounts->gate = gate;
	accounts->table = TABLE_CLOSED;
	accounts->limits = SHARED_LIMITS_NONE;
	accounts->is_fresh = true;
	status = table_open(gate, &accounts->table);
	accounts->watch = calloc(accounts->table.count, sizeof(*accounts->watch));
	if (!status)
		status = accounts->watch ? shared_limits_read(gate, &accounts->limits)
					 : accounts_failed(gate, ENOMEM);
	if (status)
		maps_close(accounts);
	return status;
}

int accounts_open(struct accounts *accounts, const struct gate *gate, const char *name,
		  unsigned int most)
{
	*accounts = (struct accounts){.name = name, .most = most};
	accounts->list = calloc(most, sizeof(*accounts->list));
	return accounts->list ? maps_open(accounts, gate) : accounts_failed(gate, ENOMEM);
}

void accounts_close(struct accounts *accounts)
{
	maps_close(accounts);
	free(accounts->list);
	accounts->list = NULL;
}

/* What it counted since its last report is told with what the key takes from now on. */
static void account_free(struct accounts *accounts, struct account *account)
{
	int64_t untold = credit_span(account->flow.reported.taken, account->own.taken);

	if (account->entry != NO_ENTRY) {
		struct watch *watch = &accounts->watch[account->entry];

		watch->account = 0;
		watch->excess = credit_max(
			0, credit_min(untold >> account->limit->limit.unit_shift, UINT32_MAX));
	}
	account->limit = NULL;
	accounts->count--;
}

/* Only whole units of the store are told; the rest is told later. */
static uint64_t whole_units(uint64_t ticks)
{
	return ticks >> FLOW_UNIT_SHIFT << FLOW_UNIT_SHIFT;
}

/*
 * Of other rates or bursts a limit keeps its states, and has other keys in the store: what was
 * learned of the one before says nothing of their totals.
 */
static void account_begin_anew(struct account *account)
{
	const struct flow_count reported = {whole_units(account->own.taken),
					    whole_units(account->own.asked)};
	uint64_t now = account->flow.stepped_at;

	flow_begin(&account->flow, &reported, now);
	account->meaning = account->limit->meaning;
	account->block_end = now;
	account->block_is_known = false;
	account->lasts = false;
	account->endless = 0;
	account->lost = 0;
	account->debt = (struct debt){0};
}

/* --- Lines ---------------------------------------------------------------------------------- */

/* The key of a entry; false: it is free, or handed to another key just now. */
static bool entry_key(const struct sl_entry *entry, struct state_key *ret)
{
	ret->limit = table_once(entry->limit);
	ret->addr[0] = table_once(entry->addr[0]);
	ret->addr[1] = table_once(entry->addr[1]);
	return ret->limit && entry_is(entry, ret);
}

static uint32_t key_hash(const struct state_key *key, uint16_t made)
{
	uint64_t hash = (key->addr[0] ^ key->addr[1] * 0x9e3779b97f4a7c15 ^ key->limit ^
			 (uint64_t)(made & (ENTRY_MOMENTS - 1)) << 32) *
			0xff51afd7ed558ccd;

	return hash >> 32 ?: 1;
}

/* What a entry counted since its word was seen, in units. `taken` may fall, and `asked` with it. */
struct counted {
	int32_t taken;
	int64_t asked;
	bool is_anew; /* the key lost its entry meanwhile, and got it again: since then */
};

static struct counted counted_since(uint64_t then, uint64_t now)
{
	int32_t taken = now - then;

	/* what is taken and what is refused is what is asked for */
	return (struct counted){.taken = taken,
				.asked = (int64_t)((now - then - taken) >> 32) + taken};
}

static uint64_t entry_word(const struct sl_entry *entry)
{
	return __atomic_load_n((const uint64_t *)&entry->taken, __ATOMIC_ACQUIRE);
}

/* The key is blocked again, if it still is elsewhere, when it comes back. */
static void account_lose_entry(struct account *account)
{
	account->entry = NO_ENTRY;
	account->block_end = account->flow.reported_at;
}

/*
 * Watches the key that a entry has now. One that has come there since the scan before has counted
 * from 0; what entries have counted before the first scan is not told.
 */
static struct watch *entry_watch(struct accounts *accounts, uint32_t index,
				 const struct state_key *key)
{
	const struct sl_entry *entry = &accounts->table.entries[index];
	struct watch *watch = &accounts->watch[index];
	uint32_t who = key_hash(key, table_once(entry->made));

	if (watch->who == who)
		return watch;
	if (watch->account) /* of the key before */
		account_lose_entry(&accounts->list[watch->account - 1]);
	*watch = (struct watch){.word = accounts->is_fresh ? entry_word(entry) : 0, .who = who};
	return watch;
}

/*
 * What was counted in the entry since it was read last. False: it was handed to another key
 * meanwhile, whose count would seem to have fallen. Where it fell by more than slices give back, to
 * what a new entry can have counted since, this key has lost the entry, and got it again: `made` does
 * not tell that within some seconds. passed: since then
 */
static bool entry_read(const struct sl_entry *entry, struct watch *watch,
		       const struct state_key *key, const struct sl_limit *limit, uint64_t passed,
		       struct counted *ret)
{
	int64_t fall_most = limit->burst / FALL_PART >> limit->unit_shift;
	int64_t made_most = (passed + 2 * limit->burst) >> limit->unit_shift;
	uint64_t word = entry_word(entry);
	struct counted ever = counted_since(0, word);

	if (!entry_is(entry, key))
		return false;
	*ret = counted_since(watch->word, word);
	if (ret->taken < -fall_most && ever.taken >= -fall_most && ever.taken <= made_most) {
		*ret = ever;
		ret->is_anew = true;
	}
	watch->word = word;
	return true;
}

/* --- Accounts ------------------------------------------------------------------------------- */

/* Of a slow limit a flood asks for more than 64 bits of ticks hold; the rest would tell no more. */
#define TICKS_MOST (1LL << 60)

static int64_t ticks_of(const struct shared_limit *limit, int64_t units)
{
	int64_t most = TICKS_MOST >> limit->limit.unit_shift;

	return credit_max(-most, credit_min(units, most)) * (1LL << limit->limit.unit_shift);
}

static void account_take_entry(struct accounts *accounts, struct account *account, uint32_t entry)
{
	account->entry = entry;
	account->debt.lent = 0;
	accounts->watch[entry].account = account - accounts->list + 1;
}

static void account_find_entry(struct accounts *accounts, struct account *account)
{
	struct found_entry found;
	struct watch *watch;

	if (table_read_in(accounts->gate, &accounts->table, &account->key, &found) ||
	    !found.is_found)
		return;
	watch = entry_watch(accounts, found.index, &account->key);
	if (watch->account) { /* a second account, begun when the key came back within a scan */
		account_free(accounts, account);
		return;
	}
	account_take_entry(accounts, account, found.index);
}

/* Lines are handed to other keys, and keys get others: tells accounts where theirs are. */
static void accounts_place(struct accounts *accounts)
{
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];

		if (!account->limit)
			continue;
		if (account->entry != NO_ENTRY &&
		    !entry_is(&accounts->table.entries[account->entry], &account->key)) {
			accounts->watch[account->entry].account = 0;
			account_lose_entry(account);
		}
		if (account->entry == NO_ENTRY)
			account_find_entry(accounts, account);
	}
}

/* A key that should have an account. */
struct candidate {
	uint32_t entry;
	struct state_key key;
	const struct shared_limit *limit;
	uint64_t excess; /* ticks */
	uint64_t asked;
};

struct candidates {
	struct choices choices; /* numbers are those of `list` */
	struct candidate *list; /* room for as many as there are accounts */
	uint64_t due;
};

static bool account_is_quiet(const struct account *account)
{
	return account->limit && !account->lost &&
	       flow_is_quiet(&account->flow, account->limit->limit.burst);
}

/*
 * The weight beyond which a candidate gets the place of an account. A free one is the first to go;
 * then keys that are quiet, the one that has been so for longest first; then those of less weight.
 * A key that is asked for stays where it was told of only lately, or the store tells nothing of it
 * now.
 */
static double account_weight(const struct accounts *accounts, const struct account *account,
			     uint64_t now)
{
	const struct shared_limit *limit = account->limit;
	int64_t stays;
	float demand;

	if (!limit)
		return -INFINITY;
	if (account_is_quiet(account))
		return -1 - (double)credit_max(0, credit_span(account->flow.busy_at, now));
	demand = account->entry == NO_ENTRY ? 0 : accounts->watch[account->entry].demand;
	stays = credit_max(limit->limit.burst, CHOICE_TICKS);
	if (demand > 0 && (account->lost || credit_span(account->begun_at, now) < stays))
		return INFINITY;
	return choice_weight(demand, limit->meaning, &account->key);
}

/* since: when its excess began to be told, at the scan before */
static void account_begin(struct accounts *accounts, struct account *account,
			  const struct candidate *candidate, uint64_t since)
{
	const struct flow_count nothing = {0};

	if (account->limit)
		account_free(accounts, account);
	*account = (struct account){
		.key = candidate->key,
		.limit = candidate->limit,
		.meaning = candidate->limit->meaning,
		.entry = candidate->entry,
		.own = {candidate->excess, credit_max(candidate->excess, candidate->asked)},
		.begun_at = since,
		.block_end = since,
	};
	flow_begin(&account->flow, &nothing, since);
	accounts->watch[candidate->entry].account = account - accounts->list + 1;
	accounts->watch[candidate->entry].excess = 0; /* the account tells of it */
	accounts->count++;
}

/* Gives places to candidates, to those of the largest weights first. Returns how many got one. */
static unsigned int accounts_choose(struct accounts *accounts, struct candidates *candidates,
				    uint64_t since, uint64_t now)
{
	struct choices leave = {calloc(accounts->most, sizeof(*leave.list)), accounts->most, 0};
	struct choice *come = candidates->choices.list;
	unsigned int i, number;

	for (i = 0; leave.list && i < accounts->most; i++)
		choices_add(&leave, account_weight(accounts, &accounts->list[i], now), &number);
	choices_sort(&leave, false);
	choices_sort(&candidates->choices, true);
	for (i = 0; i < candidates->choices.count && i < leave.count; i++) {
		if (come[i].weight <= leave.list[i].weight)
			break;
		account_begin(accounts, &accounts->list[leave.list[i].number],
			      &candidates->list[come[i].number], since);
	}
	free(leave.list);
	return i;
}

/*
 * Ticks that each key may have taken without telling of it, since ever: at the scan before, and
 * now. Of a slow limit the part of one scan is less than a unit.
 */
struct untold {
	uint64_t before, now;
};

/* Adds to the excess of a key without an account what it took, less what is never told. */
static bool excess_add(struct watch *watch, const struct shared_limit *limit,
		       struct counted counted, const struct untold *untold)
{
	unsigned int shift = limit->limit.unit_shift;
	int64_t excess = (int64_t)watch->excess + counted.taken;
	int64_t least = (untold->now >> shift) - (untold->before >> shift);

	watch->excess = credit_max(0, credit_min(excess - least, UINT32_MAX));
	return watch->excess;
}

/*
 * Whether the difference of two counts of 32 bits tells what was taken, as these count. While this
 * process runs it comes before they wrap, whatever the limit: COUNT_TICKS of share.c. Behind a stop
 * of the process only a limit that is slow enough cannot have wrapped.
 */
static bool count_is_known(const struct shared_limit *limit, uint64_t passed)
{
	return passed <= COUNT_WRAPS ||
	       (passed + limit->limit.burst) >> limit->limit.unit_shift <= INT32_MAX;
}

/* passed: since the scan before */
static void entry_scan(struct accounts *accounts, uint32_t index, const struct untold *untold,
		       uint64_t passed, uint64_t now, struct candidates *candidates)
{
	const struct sl_entry *entry = &accounts->table.entries[index];
	struct candidate candidate = {.entry = index};
	struct counted counted;
	struct watch *watch;
	unsigned int number;

	if (!entry_key(entry, &candidate.key))
		return;
	candidate.limit = shared_limit_of(&accounts->limits, candidate.key.limit);
	if (!candidate.limit)
		return;
	watch = entry_watch(accounts, index, &candidate.key);
	if (!entry_read(entry, watch, &candidate.key, &candidate.limit->limit, passed, &counted))
		return;
	if (!count_is_known(candidate.limit, passed))
		counted = (struct counted){0};
	if (watch->demand > 0 || counted.asked)
		watch->demand =
			choice_demand(watch->demand, ticks_of(candidate.limit, counted.asked),
				      passed, candidate.limit->limit.burst);
	if (watch->account) {
		struct account *account = &accounts->list[watch->account - 1];

		account->own.taken += ticks_of(account->limit, counted.taken);
		account->own.asked += ticks_of(account->limit, counted.asked);
		if (counted.is_anew) {
			account_lose_entry(account);
			account_take_entry(accounts, account, index);
		}
		return;
	}
	if (!excess_add(watch, candidate.limit, counted, untold))
		return;
	candidate.excess = ticks_of(candidate.limit, watch->excess);
	if (!flow_is_due(candidate.excess,
			 credit_level(&candidate.limit->limit,
				      (const struct sl_state *)&entry->state, now),
			 candidate.limit->limit.burst))
		return;
	candidate.asked = ticks_of(candidate.limit, credit_max(counted.asked, 0));
	candidates->due++;
	if (choices_add(&candidates->choices,
			choice_weight(watch->demand, candidate.limit->meaning, &candidate.key),
			&number))
		candidates->list[number] = candidate;
}

/* Lines in use are far apart: a scan would spend most of its time waiting for memory. */
static void set_prefetch(const struct accounts *accounts, const struct sl_set *sets, uint32_t set)
{
	for (uint32_t way = 0; way < SL_WAYS; way++)
		if (table_once(sets[set].tag[way])) {
			__builtin_prefetch(&accounts->table.entries[set * SL_WAYS + way]);
			__builtin_prefetch(&accounts->watch[set * SL_WAYS + way], 1);
		}
}

/* Reads the tags of all sets, and of the entries those that are in use. */
static void entries_scan(struct accounts *accounts, const struct untold *untold, uint64_t passed,
			 uint64_t now, struct candidates *candidates)
{
	const struct sl_set *sets = accounts->table.sets.values;
	uint32_t count = accounts->table.count / SL_WAYS;

	for (uint32_t set = 0; set < count; set++) {
		if (set + SETS_AHEAD < count)
			set_prefetch(accounts, sets, set + SETS_AHEAD);
		for (uint32_t way = 0; way < SL_WAYS; way++)
			if (table_once(sets[set].tag[way]))
				entry_scan(accounts, set * SL_WAYS + way, untold, passed, now,
					   candidates);
	}
}

/* Returns the time since the scan before. */
static uint64_t table_scan(struct accounts *accounts, unsigned int nodes, uint64_t now,
			   struct candidates *candidates)
{
	uint64_t passed = accounts->is_fresh ? 0 : now - accounts->scanned_at;
	struct untold untold = {accounts->untold, accounts->untold};

	accounts_place(accounts);
	untold.now += passed / FLOW_UNTOLD_PART / (nodes ?: 1);
	entries_scan(accounts, &untold, passed, now, candidates);
	accounts->untold = untold.now;
	accounts->scanned_at = now;
	accounts->is_fresh = false;
	return passed;
}

void accounts_count(struct accounts *accounts, unsigned int nodes, uint64_t now)
{
	struct candidates nobody = {0};

	table_scan(accounts, nodes, now, &nobody);
}

void accounts_scan(struct accounts *accounts, unsigned int nodes, uint64_t now)
{
	struct candidates candidates = {.choices.most = accounts->most};
	uint64_t passed;

	candidates.choices.list = calloc(accounts->most, sizeof(*candidates.choices.list));
	candidates.list = calloc(accounts->most, sizeof(*candidates.list));
	if (!candidates.choices.list || !candidates.list)
		candidates.choices.most = 0;
	passed = table_scan(accounts, nodes, now, &candidates);
	accounts->left_out += candidates.due;
	if (candidates.due)
		accounts->left_out -= accounts_choose(accounts, &candidates, now - passed, now);
	free(candidates.choices.list);
	free(candidates.list);
}

/* --- Rules that change ---------------------------------------------------------------------- */

/*
 * What a limit counted before it was shared, or while it was another one, is not told. Lines of a
 * limit that was made since have counted from 0, as those of keys that came since the last scan.
 */
static void entry_follow(struct accounts *accounts, uint32_t index,
			 const struct shared_limits *before)
{
	const struct sl_entry *entry = &accounts->table.entries[index];
	const struct shared_limit *limit, *was;
	struct watch *watch;
	struct state_key key;

	if (!entry_key(entry, &key))
		return;
	limit = shared_limit_of(&accounts->limits, key.limit);
	was = shared_limit_of(before, key.limit);
	if (!limit || (was && was->meaning == limit->meaning))
		return;
	if (!was && (int32_t)(limit->since - before->generation) > 0)
		return;
	watch = entry_watch(accounts, index, &key);
	watch->word = entry_word(entry);
	watch->excess = 0;
	watch->demand = 0;
}

static void entries_follow(struct accounts *accounts, const struct shared_limits *before)
{
	const struct sl_set *sets = accounts->table.sets.values;

	for (uint32_t index = 0; index < accounts->table.count; index++)
		if (table_once(sets[index / SL_WAYS].tag[index % SL_WAYS]))
			entry_follow(accounts, index, before);
}

static void account_follow(struct accounts *accounts, struct account *account)
{
	const struct shared_limit *limit = shared_limit_of(&accounts->limits, account->key.limit);

	if (!limit) {
		account_free(accounts, account);
		return;
	}
	account->limit = limit;
	if (limit->meaning != account->meaning)
		account_begin_anew(account);
}

int accounts_follow(struct accounts *accounts, const struct gate *gate)
{
	struct accounts before = *accounts;
	struct watch *watch = before.watch;
	int status = maps_open(accounts, gate);
	bool is_same = !status && accounts->table.id && accounts->table.id == before.table.id;

	if (status) {
		*accounts = before;
		return status;
	}
	if (is_same) { /* all but a resize: what each key took untold is still so */
		before.watch = accounts->watch;
		accounts->watch = watch;
		accounts->is_fresh = before.is_fresh;
	}
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];

		if (!is_same)
			account->entry = NO_ENTRY;
		if (account->limit)
			account_follow(accounts, account);
	}
	if (is_same && accounts->limits.meaning != before.limits.meaning)
		entries_follow(accounts, &before.limits);
	maps_close(&before);
	return OK;
}

/* --- Rounds --------------------------------------------------------------------------------- */

/* How long a block of this node lasts that the store does not know of; 0: there is none. */
static uint64_t block_untold_ms(const struct accounts *accounts, const struct account *account,
				uint64_t now)
{
	const struct sl_limit *limit = &account->limit->limit;
	struct sl_state state = {0};

	if (!account->limit->shares_blocks || account->entry == NO_ENTRY)
		return 0;
	/* it could replace a longer one */
	if (limit->escalate && !account->block_is_known)
		return 0;
	state.blocked = table_once(accounts->table.entries[account->entry].state.blocked);
	if (!block_holds(limit, &state, now) ||
	    credit_span(account->block_end, block_end(limit, &state)) <= 0)
		return 0;
	/* not less than it lasts: or it would be told of again */
	return credit_span(now, block_end(limit, &state)) / TICKS_PER_MS + 1;
}

unsigned int accounts_report(struct accounts *accounts, struct store_item *items, uint64_t now)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		struct flow_count own = {whole_units(account->own.taken),
					 whole_units(account->own.asked)};
		struct store_item *item = &items[count];
		struct flow_count told;
		bool is_told;

		if (!account->limit)
			continue;
		account->item = count;
		told = flow_report(&account->flow, &own, now);
		is_told = told.taken || told.asked;
		*item = (struct store_item){
			.delta = {[STORE_TAKEN] = told.taken >> FLOW_UNIT_SHIFT,
				  [STORE_ASKED] = told.asked >> FLOW_UNIT_SHIFT},
			/* what is only read is left to end */
			.lasts = account->lasts &&
				 (!is_told || credit_span(account->expiry_at, now) < EXPIRY_TICKS),
			.block_ms = block_untold_ms(accounts, account, now),
		};
		shared_key_format(accounts->name, account->limit, &account->key, item->key,
				  item->block_key);
		count++;
	}
	return count;
}

/*
 * Takes the end of a block that the store told of, and blocks the key until then. One that lasts no
 * longer than the store took to tell of it is over. One that was learned before, or that this node
 * told of itself, has begun here, and may have been forgiven since.
 */
static void block_learn(struct accounts *accounts, struct account *account,
			const struct store_item *item, uint64_t now)
{
	uint64_t lasts = credit_min(item->blocked_ms, BLOCKED_MOST_MS) * TICKS_PER_MS;
	uint64_t asked_at = account->flow.reported_at, until = asked_at + lasts;
	bool is_news = !item->block_ms && credit_span(account->block_end, until) > 0;

	if (!item->blocked_ms || !account->limit->shares_blocks || account->entry == NO_ENTRY)
		return;
	account->block_end = credit_latest(account->block_end, now + lasts);
	if (is_news && credit_span(now, until) > credit_span(asked_at, now))
		accounts->blocked +=
			debt_block(&account->limit->limit, &accounts->table.entries[account->entry],
				   &account->key, until, now);
}

/*
 * Whether a key may have been made by this addition, without an expiry, as behind a flush: of all
 * that add to it then one finds its own alone in the first field.
 */
static bool item_is_alone(const struct store_item *item)
{
	const int64_t *delta = item->delta, *total = item->total;

	if (!delta[STORE_TAKEN] &&
	    (!delta[STORE_ASKED] || delta[STORE_ASKED] != total[STORE_ASKED]))
		return false;
	return delta[STORE_TAKEN] == total[STORE_TAKEN];
}

static void account_learn(struct account *account, const struct store_item *item,
			  unsigned int nodes, uint64_t now)
{
	struct flow_count totals;

	if (!item->answered) {
		account->lasts = false;
		if (!item->sent)
			flow_unsent(&account->flow);
		flow_lost(&account->flow, ++account->lost);
		return;
	}
	account->lost = 0;
	account->lasts = item->lasts ? !item_is_alone(item) : item->expires;
	account->endless = account->lasts ? 0 : account->endless + 1;
	if (item->expires)
		account->expiry_at = account->flow.reported_at;
	totals.taken = (uint64_t)item->total[STORE_TAKEN] << FLOW_UNIT_SHIFT;
	totals.asked = (uint64_t)item->total[STORE_ASKED] << FLOW_UNIT_SHIFT;
	flow_learn(&account->flow, account->limit->limit.burst, &totals, nodes, now);
}

void accounts_learn(struct accounts *accounts, const struct store_item *items, unsigned int nodes,
		    uint64_t now)
{
	accounts->lost = 0;
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		const struct store_item *item = &items[account->item];

		if (!account->limit)
			continue;
		account_learn(account, item, nodes, now);
		accounts->lost = credit_max(accounts->lost, account->lost);
		block_learn(accounts, account, item, now);
		account->block_is_known |= item->answered;
		if (item->answered && (account->lasts || account->endless >= EXPIRY_TRIES) &&
		    flow_rests(&account->flow, account->limit->limit.burst, now))
			account_free(accounts, account);
	}
}

void accounts_forget(struct accounts *accounts, uint64_t now)
{
	for (unsigned int i = 0; i < accounts->most; i++)
		if (accounts->list[i].limit)
			flow_forget(&accounts->list[i].flow, now);
}

void accounts_step(struct accounts *accounts, uint64_t now)
{
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		struct sl_entry *entry = NULL;

		if (!account->limit)
			continue;
		if (account->entry != NO_ENTRY)
			entry = &accounts->table.entries[account->entry];
		accounts->charged += debt_step(&account->limit->limit, entry, &account->key,
					       &account->flow, &account->debt, now) > 0;
	}
}
