// SPDX-License-Identifier: GPL-2.0
#include "share/accounts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "share/choice.h"

/*
 * Upper bound of a count of ticks. It prevents an overflow of 64 bits during a flood on a slow
 * limit.
 */
#define TICKS_MOST (1LL << 60)

/* Prefetch 16 sets of the table ahead, because the used entries are far apart in memory. */
#define SETS_AHEAD 16

/* Time in ticks in which a saturated link can wrap the 32-bit counters of an entry. */
#define COUNT_WRAPS ((uint64_t)(5 * SL_TICKS_PER_SEC / 4))

/*
 * A fall of `taken` by more than 1/8 of a burst means that the entry was evicted. A smaller fall is
 * normal, because CPUs return unused credit of up to 1/16 of a burst.
 */
#define FALL_PART 8

static int64_t ticks_of(const struct sl_limit *limit, int64_t units)
{
	int64_t most = TICKS_MOST >> limit->unit_shift;

	return credit_max(-most, credit_min(units, most)) * (1LL << limit->unit_shift);
}

/* --- Samples -------------------------------------------------------------------------------- */

static int samples_open(const struct gate *gate, struct samples *ret)
{
	struct samples samples = {.table = TABLE_CLOSED, .is_fresh = true};
	int err = table_open(gate, &samples.table);

	if (err)
		return err;
	samples.list = calloc(samples.table.count, sizeof(*samples.list));
	if (!samples.list) {
		table_close(&samples.table);
		return gate_error(gate, ENOMEM, "no-memory", "cannot share its limits: %s",
				  why(ENOMEM));
	}
	*ret = samples;
	return 0;
}

static void samples_close(struct samples *samples)
{
	table_close(&samples->table);
	free(samples->list);
	samples->list = NULL;
}

/*
 * Returns the index of the first used entry at or after `index`. Returns the number of entries if
 * there is none.
 */
static uint32_t samples_next(const struct samples *samples, uint32_t index)
{
	const struct sl_set *sets = samples->table.sets.values;
	uint32_t count = samples->table.count;

	for (; index < count; index++) {
		uint32_t ahead = index / SL_WAYS + SETS_AHEAD;

		for (uint32_t way = 0; index % SL_WAYS == 0 && way < SL_WAYS; way++)
			if (ahead < count / SL_WAYS && table_once(sets[ahead].tag[way])) {
				uint32_t entry = ahead * SL_WAYS + way;

				__builtin_prefetch(&samples->table.entries[entry]);
				__builtin_prefetch(&samples->list[entry], 1);
			}
		if (table_once(sets[index / SL_WAYS].tag[index % SL_WAYS]))
			break;
	}
	return index;
}

#define for_each_entry(samples, index)                                                             \
	for (uint32_t index = samples_next(samples, 0); index < (samples)->table.count;            \
	     index = samples_next(samples, (index) + 1))

/*
 * Copies the key of an entry. Returns false if the entry is unused, or if its key changes
 * meanwhile.
 */
static bool sample_key(const struct sl_entry *entry, struct state_key *ret)
{
	ret->limit = table_once(entry->limit);
	ret->addr[0] = table_once(entry->addr[0]);
	ret->addr[1] = table_once(entry->addr[1]);
	return ret->limit && entry_is(entry, ret);
}

static uint64_t word_read(const struct sl_entry *entry)
{
	return __atomic_load_n(&entry->count.word, __ATOMIC_ACQUIRE);
}

/*
 * Increase of an entry's counters since the last read, in units of the limit. `taken` falls if a
 * CPU returns a slice.
 */
struct counted {
	int32_t taken;
	int64_t asked;
	bool is_new_entry; /* the key was evicted, and got a new entry with counters of 0 */
};

static struct counted counted_since(uint64_t then, uint64_t now)
{
	int32_t taken = now - then;

	/* The upper half of the word is the counter `refused`; asked = taken + refused. */
	return (struct counted){.taken = taken,
				.asked = (int64_t)((now - then - taken) >> 32) + taken};
}

/*
 * Reads the increase of an entry's counters in the `passed` ticks since the previous read. Returns
 * false if the entry has another key. If the counters may have wrapped in this time, the increase
 * is 0.
 */
static bool sample_read(struct sample *sample, const struct sl_entry *entry,
			const struct state_key *key, const struct sl_limit *limit, uint64_t passed,
			struct counted *ret)
{
	int64_t fall_most = limit->burst / FALL_PART >> limit->unit_shift;
	int64_t made_most = (passed + 2 * limit->burst) >> limit->unit_shift;
	uint64_t word = word_read(entry);
	struct counted ever = counted_since(0, word);

	if (!entry_is(entry, key))
		return false;
	*ret = counted_since(sample->word, word);
	/*
	 * Detect a key that was evicted, and got the same entry again so soon that `made` is equal.
	 * Then `taken` has fallen by more than a return of unused credit explains. A new entry can
	 * have reached the new value since the last scan.
	 */
	if (ret->taken < -fall_most && ever.taken >= -fall_most && ever.taken <= made_most) {
		*ret = ever;
		ret->is_new_entry = true;
	}
	sample->word = word;
	if (passed > COUNT_WRAPS && (passed + limit->burst) >> limit->unit_shift > INT32_MAX)
		*ret = (struct counted){0};
	return true;
}

/* --- Accounts ------------------------------------------------------------------------------- */

int accounts_open(struct accounts *accounts, const struct gate *gate, const char *name,
		  unsigned int most)
{
	int err;

	*accounts = (struct accounts){.name = name, .most = most, .gate = gate};
	accounts->list = calloc(most, sizeof(*accounts->list));
	if (!accounts->list)
		return gate_error(gate, ENOMEM, "no-memory", "cannot share its limits: %s",
				  why(ENOMEM));
	err = samples_open(gate, &accounts->samples);
	return err ?: shared_limits_read(gate, &accounts->limits);
}

void accounts_close(struct accounts *accounts)
{
	samples_close(&accounts->samples);
	shared_limits_free(&accounts->limits);
	free(accounts->list);
	accounts->list = NULL;
}

void account_free(struct accounts *accounts, struct account *account)
{
	int64_t unreported = credit_span(account->flow.reported.taken, account->own.taken);

	if (account->entry != NO_ENTRY) {
		struct sample *sample = &accounts->samples.list[account->entry];

		sample->account = 0;
		sample->excess = credit_max(
			0, credit_min(unreported >> account->limit->limit.unit_shift, UINT32_MAX));
	}
	account->limit = NULL;
	accounts->count--;
}

/* --- Entries -------------------------------------------------------------------------------- */

static void account_set_entry(struct accounts *accounts, struct account *account, uint32_t entry)
{
	account->entry = entry;
	account->debt.refundable = 0;
	accounts->samples.list[entry].account = account - accounts->list + 1;
}

/*
 * Marks an account whose key was evicted from the table of states. If the key gets an entry again,
 * a block in the store applies to it.
 */
static void account_lose_entry(struct account *account)
{
	account->entry = NO_ENTRY;
	account->block_end = account->flow.reported_at;
}

/*
 * Returns the sample of an entry. If the entry got a new key, clears the sample. The account of the
 * old key then has no entry.
 */
static struct sample *entry_sample(struct accounts *accounts, uint32_t index,
				   const struct state_key *key)
{
	struct samples *samples = &accounts->samples;
	const struct sl_entry *entry = &samples->table.entries[index];
	struct sample *sample = &samples->list[index];
	uint64_t made = table_once(entry->made) & (ENTRY_MOMENTS - 1);
	uint64_t hash =
		(key->addr[0] ^ key->addr[1] * 0x9e3779b97f4a7c15 ^ key->limit ^ made << 32) *
		0xff51afd7ed558ccd;
	uint32_t short_hash = hash >> 32 ?: 1;

	if (sample->hash == short_hash)
		return sample;
	if (sample->account)
		account_lose_entry(&accounts->list[sample->account - 1]);
	*sample = (struct sample){.word = samples->is_fresh ? word_read(entry) : 0,
				  .hash = short_hash};
	return sample;
}

/* If the entry of an account was evicted, finds the new entry of the key. */
static void accounts_place(struct accounts *accounts)
{
	const struct table *table = &accounts->samples.table;

	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		struct found_entry found;

		if (!account->limit)
			continue;
		if (account->entry != NO_ENTRY &&
		    !entry_is(&table->entries[account->entry], &account->key)) {
			accounts->samples.list[account->entry].account = 0;
			account_lose_entry(account);
		}
		if (account->entry != NO_ENTRY ||
		    table_read(accounts->gate, table, &account->key, &found) || !found.is_found)
			continue;
		/*
		 * If the key moved to another entry during a scan, that entry may already have an
		 * account.
		 */
		if (entry_sample(accounts, found.index, &account->key)->account)
			account_free(accounts, account);
		else
			account_set_entry(accounts, account, found.index);
	}
}

/* --- Choosing ------------------------------------------------------------------------------- */

/* A key without an account that should be reported. */
struct report_candidate {
	uint32_t entry;
	struct state_key key;
	const struct shared_limit *limit;
	uint64_t excess; /* ticks that the key took, but this node did not report */
	uint64_t asked;	 /* cost of all packets of the key since the previous scan, in ticks */
};

struct scan {
	uint64_t now, passed;	       /* time of this scan, and ticks since the last one */
	uint64_t unreported, before;   /* `accounts->unreported` after this scan, and before it */
	struct choices choices;	       /* chosen candidates; each `number` is an index in `list` */
	struct report_candidate *list; /* room for accounts->most candidates */
	uint64_t due;		       /* number of candidates, chosen or not */
};

/*
 * Returns the weight that a candidate must exceed to replace an account. Free accounts have the
 * lowest weight. Accounts of quiet keys have the next lowest weights. An account with demand is
 * never replaced while it is new, or while the store does not reply.
 */
static double account_weight(const struct accounts *accounts, const struct account *account,
			     uint64_t now)
{
	const struct shared_limit *limit = account->limit;
	int64_t stays;
	float demand;

	if (!limit)
		return -INFINITY;
	if (!account->lost && flow_is_quiet(&account->flow, limit->limit.burst))
		return -1 - (double)credit_max(0, credit_span(account->flow.busy_at, now));
	demand = account->entry == NO_ENTRY ? 0 : accounts->samples.list[account->entry].demand;
	stays = credit_max(limit->limit.burst, CHOICE_TICKS);
	if (demand > 0 && (account->lost || credit_span(account->begun_at, now) < stays))
		return INFINITY;
	return choice_weight(demand, limit->meaning, &account->key);
}

/* Makes an account for a candidate. since: time of the previous scan. */
static void account_begin(struct accounts *accounts, struct account *account,
			  const struct report_candidate *candidate, uint64_t since)
{
	struct sample *sample = &accounts->samples.list[candidate->entry];
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
	sample->account = account - accounts->list + 1;
	sample->excess = 0; /* the account's counters (`own`) now include the excess */
	accounts->count++;
}

/* Gives accounts to the candidates of the largest weights. Returns the number of new accounts. */
static unsigned int accounts_choose(struct accounts *accounts, struct scan *scan)
{
	_cleanup_free_ struct choice *leaves = calloc(accounts->most, sizeof(*leaves));
	struct choices leave = {.list = leaves, .most = accounts->most};
	const struct choice *come = scan->choices.list;
	unsigned int i, number;

	for (i = 0; leaves && i < accounts->most; i++)
		choices_add(&leave, account_weight(accounts, &accounts->list[i], scan->now),
			    &number);
	choices_sort(&leave);
	choices_sort(&scan->choices);
	come += scan->choices.count;
	for (i = 0; i < scan->choices.count && i < leave.count; i++) {
		if ((--come)->weight <= leaves[i].weight)
			break;
		account_begin(accounts, &accounts->list[leaves[i].number],
			      &scan->list[come->number], scan->now - scan->passed);
	}
	return i;
}

/* --- Scanning ------------------------------------------------------------------------------- */

/*
 * Adds the increase of a key's counters to its account. If the key has no account, adds it to the
 * excess of the candidate.
 */
static void count_add(struct accounts *accounts, struct sample *sample,
		      struct report_candidate *candidate, const struct counted *counted,
		      struct scan *scan)
{
	const struct sl_entry *entry = &accounts->samples.table.entries[candidate->entry];
	const struct sl_limit *limit = &candidate->limit->limit;
	/* Subtract rounded sums. If each difference was rounded, small amounts would be lost. */
	int64_t least =
		(scan->unreported >> limit->unit_shift) - (scan->before >> limit->unit_shift);
	unsigned int number;

	if (sample->account) {
		struct account *account = &accounts->list[sample->account - 1];

		account->own.taken += ticks_of(limit, counted->taken);
		account->own.asked += ticks_of(limit, counted->asked);
		if (counted->is_new_entry) {
			account_lose_entry(account);
			account_set_entry(accounts, account, candidate->entry);
		}
		return;
	}
	sample->excess = credit_max(
		0, credit_min((int64_t)sample->excess + counted->taken - least, UINT32_MAX));
	candidate->excess = ticks_of(limit, sample->excess);
	if (!flow_is_due(candidate->excess,
			 credit_level(limit, (const struct sl_state *)&entry->state, scan->now),
			 limit->burst))
		return;
	candidate->asked = ticks_of(limit, credit_max(counted->asked, 0));
	scan->due++;
	if (choices_add(&scan->choices,
			choice_weight(sample->demand, candidate->limit->meaning, &candidate->key),
			&number))
		scan->list[number] = *candidate;
}

/* Counts the increase of all keys since the previous scan, and collects candidates for accounts. */
static void table_scan(struct accounts *accounts, unsigned int nodes, struct scan *scan)
{
	struct samples *samples = &accounts->samples;

	accounts_place(accounts);
	scan->passed = samples->is_fresh ? 0 : scan->now - accounts->scanned_at;
	scan->before = accounts->unreported;
	scan->unreported = scan->before + scan->passed / FLOW_UNREPORTED_PART / (nodes ?: 1);
	for_each_entry(samples, index)
	{
		const struct sl_entry *entry = &samples->table.entries[index];
		struct report_candidate candidate = {.entry = index};
		const struct sl_limit *limit;
		struct counted counted;
		struct sample *sample;

		if (!sample_key(entry, &candidate.key))
			continue;
		candidate.limit = shared_limit_of(&accounts->limits, candidate.key.limit);
		if (!candidate.limit)
			continue;
		limit = &candidate.limit->limit;
		sample = entry_sample(accounts, index, &candidate.key);
		if (!sample_read(sample, entry, &candidate.key, limit, scan->passed, &counted))
			continue;
		if (sample->demand > 0 || counted.asked)
			sample->demand =
				choice_demand(sample->demand, ticks_of(limit, counted.asked),
					      scan->passed, limit->burst);
		count_add(accounts, sample, &candidate, &counted, scan);
	}
	accounts->unreported = scan->unreported;
	accounts->scanned_at = scan->now;
	samples->is_fresh = false;
}

void accounts_count(struct accounts *accounts, unsigned int nodes, uint64_t now)
{
	struct scan scan = {.now = now};

	table_scan(accounts, nodes, &scan);
}

void accounts_scan(struct accounts *accounts, unsigned int nodes, uint64_t now)
{
	_cleanup_free_ struct choice *choices = calloc(accounts->most, sizeof(*choices));
	_cleanup_free_ struct report_candidate *list = calloc(accounts->most, sizeof(*list));
	struct scan scan = {.now = now, .choices.list = choices, .list = list};

	if (choices && list)
		scan.choices.most = accounts->most;
	table_scan(accounts, nodes, &scan);
	accounts->left_out += scan.due;
	if (scan.due)
		accounts->left_out -= accounts_choose(accounts, &scan);
}

/* --- Rules that change ---------------------------------------------------------------------- */

/*
 * Ignores the past counts of an entry if its limit has changed, or was not shared before. The
 * counters of a new limit began at 0, so all their counts are used.
 */
static void entries_follow(struct accounts *accounts, const struct shared_limits *before)
{
	for_each_entry(&accounts->samples, index)
	{
		const struct sl_entry *entry = &accounts->samples.table.entries[index];
		const struct shared_limit *limit, *was;
		struct sample *sample;
		struct state_key key;

		if (!sample_key(entry, &key))
			continue;
		limit = shared_limit_of(&accounts->limits, key.limit);
		was = shared_limit_of(before, key.limit);
		if (!limit || (was ? was->meaning == limit->meaning
				   : (int32_t)(limit->since - before->generation) > 0))
			continue;
		sample = entry_sample(accounts, index, &key);
		sample->word = word_read(entry);
		sample->excess = 0;
		sample->demand = 0;
	}
}

/*
 * Begins a new flow for an account whose limit has changed. The key then has a new name in the
 * store.
 */
static void account_restart(struct account *account)
{
	const struct flow_count reported = {flow_whole(account->own.taken),
					    flow_whole(account->own.asked)};
	uint64_t now = account->flow.stepped_at;

	*account = (struct account){
		.key = account->key,
		.limit = account->limit,
		.meaning = account->limit->meaning,
		.entry = account->entry,
		.own = account->own,
		.item = account->item,
		.begun_at = account->begun_at,
		.block_end = now,
	};
	flow_begin(&account->flow, &reported, now);
}

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) swapped_ = (a);                                                      \
		(a) = (b);                                                                         \
		(b) = swapped_;                                                                    \
	} while (0)

int accounts_follow(struct accounts *accounts, const struct gate *gate)
{
	_cleanup_(samples_close) struct samples samples = {.table = TABLE_CLOSED};
	_cleanup_(shared_limits_free) struct shared_limits limits = SHARED_LIMITS_NONE;
	bool is_same;
	int err = samples_open(gate, &samples);

	if (!err)
		err = shared_limits_read(gate, &limits);
	if (err)
		return err;
	is_same = samples.table.id && samples.table.id == accounts->samples.table.id;
	if (is_same) { /* samples stay valid, because the table was not replaced */
		SWAP(samples.list, accounts->samples.list);
		samples.is_fresh = accounts->samples.is_fresh;
	}
	SWAP(samples, accounts->samples);
	SWAP(limits, accounts->limits);
	accounts->gate = gate;
	for (unsigned int i = 0; i < accounts->most; i++) {
		struct account *account = &accounts->list[i];
		const struct shared_limit *limit =
			shared_limit_of(&accounts->limits, account->key.limit);

		if (!is_same)
			account->entry = NO_ENTRY;
		if (!account->limit)
			continue;
		if (!limit) {
			account_free(accounts, account);
			continue;
		}
		account->limit = limit;
		if (limit->meaning != account->meaning)
			account_restart(account);
	}
	if (is_same && accounts->limits.meaning != limits.meaning)
		entries_follow(accounts, &limits);
	return 0;
}
