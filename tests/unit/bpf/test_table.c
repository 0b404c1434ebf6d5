// SPDX-License-Identifier: GPL-2.0
/*
 * Tests bpf/table.h, compiled for the host: the choice of the evicted entry, locked sets,
 * insertions by several threads, and the distribution of keys over sets.
 */
#include <errno.h> /* included first, so that a wrong error number in table.h breaks the build */
#include <math.h>
#include <pthread.h>
#include "test.h"
#include "bpf_host.h"
#include "table.h"
#include "table_host.h"

/* Calls `call` at lookup number `lookups` of `set`. `call` simulates another CPU. */
static struct {
	uint32_t set;
	unsigned int lookups;
	void (*call)(void);
} meanwhile;

static void *map_find(const void *map, const void *key)
{
	if (map == &sets && meanwhile.lookups && !memcmp(key, &meanwhile.set, sizeof(uint32_t)) &&
	    !--meanwhile.lookups)
		meanwhile.call();
	return host_table_find(map, key);
}

static uint64_t random_state = RANDOM_BEGIN;

static uint64_t choose(uint64_t bound)
{
	return random_next(&random_state) % bound;
}

#define SPAN SL_TICKS_PER_SEC

/* Returns key number `number`: an IPv4 or IPv6 address under one of three limits. */
static struct state_key key_of(uint32_t number)
{
	static const enum sl_kind kinds[] = {SL_TOKEN_BUCKET, SL_WINDOW, SL_SHAPE};
	unsigned int which = number % 3, ipv4 = number / 3 % 2;

	return (struct state_key){
		.addr = {ipv4 ? number : number * 0x9e3779b97f4a7c15ULL, ipv4 ? 0 : number % 5},
		.limit = (which + 1) << 3 | kinds[which] << 1 | ipv4,
	};
}

static struct new_entry new_entry_of(uint32_t number)
{
	struct new_entry new_entry = {.key = key_of(number), .span = short_make(SPAN)};

	new_entry.digest = state_digest(hash_secret, &new_entry.key);
	return new_entry;
}

static struct sl_entry *find(const struct new_entry *new_entry)
{
	return table_find(&host_table.gate.params, new_entry->digest, &new_entry->key);
}

static struct slot_ref spot_in(const struct new_entry *new_entry)
{
	return slot_ref_of(&host_table.gate.params, new_entry->digest);
}

static uint32_t other_of(const struct new_entry *new_entry)
{
	struct slot_ref ref = spot_in(new_entry);

	return set_alternate(&host_table.gate.params, ref.primary, ref.tag);
}

/* --- What is forgotten ---------------------------------------------------------------------- */

/*
 * Returns a random state: full, or with a small or large deficit. The state can have a current or
 * past block.
 */
static struct sl_state state_draw(uint64_t now)
{
	uint64_t drawn = now - choose(choose(2) ? 100 * SPAN : SPAN);
	struct sl_state state = {.empty_at = drawn - choose(SPAN), .charged_at = drawn};

	state.full_at = state.empty_at;
	if (!choose(8))
		state.blocked_until = now - SPAN + choose(4 * SPAN);
	return state;
}

/* Ways of both sets of a key, from which an insertion chooses. */
struct choice {
	uint32_t in[2];
	int free[2];
	int room[2];	/* number of ways of each set that are free or have a full state */
	__s64 least[2]; /* lowest eviction cost of an entry in each set */
	int protected;
};

static struct choice choice_of(const struct new_entry *new_entry, uint64_t now)
{
	struct choice choice = {
		.in = {spot_in(new_entry).primary, other_of(new_entry)},
		.least = {INT64_MAX, INT64_MAX},
	};

	for (int which = 0; which < 2; which++)
		for (int way = 0; way < SL_WAYS; way++) {
			struct sl_entry *entry =
				&host_table.entry[choice.in[which] * SL_WAYS + way];
			__s64 evict_cost =
				entry_evict_cost(entry, entry_state(entry), now, new_entry->flood);

			if (!host_table.set[choice.in[which]].tag[way]) {
				choice.free[which]++;
				choice.room[which]++;
				continue;
			}
			choice.room[which] += evict_cost <= 0;
			choice.protected += evict_is_protected(evict_cost);
			if (evict_cost < choice.least[which])
				choice.least[which] = evict_cost;
		}
	return choice;
}

/*
 * Returns the eviction cost of an insertion into this set, or EVICT_FREE if the set has a free way.
 */
static __s64 loss_in(const struct choice *choice, int which)
{
	return choice->free[which] ? EVICT_FREE : choice->least[which];
}

/* Returns an insertion's estimate of the ways in a set that are free or have a full state. */
static int room_seen(const struct choice *choice, int which)
{
	return choice->free[which] >= WAYS_SPARE ? SL_WAYS : choice->room[which];
}

/* Returns whether an insertion must use the key's secondary set. */
static bool goes_away(const struct choice *choice)
{
	int home = room_seen(choice, 0), other = room_seen(choice, 1);

	if (home >= WAYS_SPARE && (choice->free[0] || !choice->free[1]))
		return false;
	return other > home || (other == home && loss_in(choice, 1) < loss_in(choice, 0));
}

/*
 * Returns the expected result of table_insert(). `which` becomes the index of the expected set (0:
 * primary).
 */
static int choice_expect(const struct choice *choice, const struct new_entry *new_entry, int *which,
			 __s64 *evict_cost)
{
	*which = goes_away(choice);
	*evict_cost = loss_in(choice, *which);
	return *evict_cost >= EVICT_PART && !new_entry->evicts ? -ENOSPC : 0;
}

#define ROOM (64 * SL_WAYS)

static struct sl_entry before[ROOM];

/* Returns the index of the entry that differs from its copy in `before`, or -1. */
static int entry_changed(void)
{
	int changed = -1;

	for (int i = 0; i < ROOM; i++)
		if (memcmp(&before[i], &host_table.entry[i], sizeof(*before))) {
			assert_int_equal(changed, -1);
			changed = i;
		}
	return changed;
}

static struct {
	unsigned int inserted, into_free, whole, little, protected, refused;
} seen;

static void check_insertion(uint32_t number, uint64_t now)
{
	struct new_entry new_entry = new_entry_of(number);
	struct choice choice;
	struct sl_entry *entry;
	__s64 evict_cost, want_loss;
	int which, error, changed;

	new_entry.state = state_draw(now);
	new_entry.now = now;
	new_entry.made = entry_moment(now);
	new_entry.evicts = choose(2);
	new_entry.flood = !choose(4);
	choice = choice_of(&new_entry, now);
	error = find(&new_entry) ? -EEXIST : choice_expect(&choice, &new_entry, &which, &want_loss);
	memcpy(before, host_table.entry, sizeof(before));
	assert_int_equal(table_insert(&new_entry), error);
	evict_cost = new_entry.evict_cost;
	changed = entry_changed();
	entry = find(&new_entry);
	seen.refused += error == -ENOSPC;
	if (error) {
		assert_int_equal(changed, -1);
		assert_true(error == -EEXIST ? !!entry : !entry);
		return;
	}
	assert_ptr_equal(entry, &host_table.entry[changed]);
	assert_memory_equal(entry_state(entry), &new_entry.state, sizeof(new_entry.state));
	assert_true(evict_cost == want_loss);
	assert_int_equal(changed / SL_WAYS, choice.in[which]);
	/* a protected entry is evicted only if all entries in both sets are protected */
	if (evict_is_protected(evict_cost))
		assert_int_equal(choice.protected, 2 * SL_WAYS);
	seen.inserted++;
	seen.into_free += evict_cost == EVICT_FREE;
	seen.whole += evict_cost != EVICT_FREE && evict_cost < 0;
	seen.little += evict_cost > 0 && !evict_is_protected(evict_cost);
	seen.protected += evict_is_protected(evict_cost);
}

/* An insertion evicts the entry with the lowest eviction cost in the two sets of its key. */
TEST(test_the_cheapest_entry_is_evicted)
{
	for (int i = 0; i < 20; i++) {
		uint32_t keys = ROOM / 2 * (1 + choose(6));
		uint64_t now = random_next(&random_state), pace = 1ULL << choose(33);

		host_table_begin(ROOM / SL_WAYS, &random_state);
		for (int step = 0; step < 10000; step++) {
			now += choose(pace);
			check_insertion(choose(keys), now);
			if (step % 100 == 0)
				host_table_check();
		}
		host_table_check();
	}
	assert_true(seen.into_free > 1000 && seen.whole > 1000 && seen.little > 400);
	assert_true(seen.protected > 1000 && seen.refused > 1000);
}

/* A prefetch never changes an entry, for any limit id. */
TEST(test_a_prefetch_changes_no_entry)
{
	const uint32_t ids[] = {1, ENTRY_FETCH_LIMITS, ENTRY_FETCH_LIMITS + 1, UINT32_MAX >> 3};
	struct sl_gate gate_with = {0};
	struct sl_entry entry, before;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		memset(&entry, 0xff, sizeof(entry));
		entry.limit = ids[i] << 3 | 7;
		before = entry;
		gate_with.next_limit = ids[i];
		entry_fetch(&gate_with, &entry);
		assert_memory_equal(&entry, &before, sizeof(entry));
	}
}

/* An entry that gets another key has counts of 0. */
TEST(test_a_new_key_has_counted_nothing)
{
	host_table_begin(ROOM / SL_WAYS, &random_state);
	for (uint32_t entry = 0; entry < ROOM; entry++)
		host_table.entry[entry].count.shared.taken =
			host_table.entry[entry].count.shared.refused = 7;
	for (uint32_t number = 0; number < ROOM / 2; number++) {
		struct new_entry new_entry = new_entry_of(number);

		assert_int_equal(table_insert(&new_entry), 0);
		assert_int_equal(find(&new_entry)->count.shared.taken, 0);
		assert_int_equal(find(&new_entry)->count.shared.refused, 0);
	}
}

/* --- Locks ---------------------------------------------------------------------------------- */

/*
 * Checks that an insertion into a locked set fails and changes nothing. After the set is unlocked,
 * the insertion must succeed.
 */
static void check_refusal(struct new_entry *new_entry, uint32_t set)
{

	memcpy(before, host_table.entry, sizeof(before));
	host_table.set[set].displaced |= 1;
	assert_int_equal(table_insert(new_entry), -EBUSY);
	assert_true(host_table.set[set].displaced & 1);
	host_table.set[set].displaced &= ~1U;
	assert_int_equal(entry_changed(), -1);
	host_table_check();
	assert_int_equal(table_insert(new_entry), 0);
	assert_non_null(find(new_entry));
}

TEST(test_a_locked_set_refuses_and_nothing_is_harmed)
{
	unsigned int away = 0;

	host_table_begin(ROOM / SL_WAYS, &random_state);
	for (uint32_t number = 0; number < ROOM / 2; number++) {
		struct new_entry new_entry = new_entry_of(number);
		struct choice choice = choice_of(&new_entry, 0);
		bool goes = goes_away(&choice);

		check_refusal(&new_entry,
			      goes ? other_of(&new_entry) : spot_in(&new_entry).primary);
		away += goes;
	}
	assert_true(away > 0);
}

/* A key in a locked set can be found. An insertion into the set fails. */
TEST(test_a_locked_set_is_read)
{
	host_table_begin(ROOM / SL_WAYS, &random_state);
	for (uint32_t number = 0; number < ROOM / 2; number++) {
		struct new_entry new_entry = new_entry_of(number);

		assert_int_equal(table_insert(&new_entry), 0);
	}
	for (uint32_t set = 0; set < ROOM / SL_WAYS; set++)
		host_table.set[set].displaced |= 1;
	for (uint32_t number = 0; number < ROOM / 2; number++) {
		struct new_entry new_entry = new_entry_of(number);

		assert_non_null(find(&new_entry));
		assert_int_equal(table_insert(&new_entry), -EBUSY);
	}
}

/* Simulates another CPU, which unlocks `set` at the `look`th read of its lock. */
static struct {
	uint32_t set, look;
} unlocking;

static void unlock(uint32_t look)
{
	if (look == unlocking.look)
		host_table.set[unlocking.set].displaced &= ~1U;
}

/*
 * Returns the result of table_wait() if another CPU unlocks `set` at the `look`th read of its lock.
 */
static bool waits_out(const struct new_entry *new_entry, uint32_t set, uint32_t look)
{
	bool waits;

	unlocking.set = set;
	unlocking.look = look;
	host_table.set[set].displaced |= 1;
	host_meanwhile = unlock;
	waits = table_wait(&host_table.gate.params, new_entry->digest);
	host_meanwhile = NULL;
	assert_int_equal(host_table.set[set].displaced & 1, !waits);
	host_table.set[set].displaced &= ~1U;
	return waits;
}

TEST(test_a_lock_is_waited_for_but_not_for_ever)
{
	struct new_entry new_entry;
	uint32_t set;

	host_table_begin(ROOM / SL_WAYS, &random_state);
	new_entry = new_entry_of(1);
	for (int other = 0; other < 2; other++) {
		set = other ? other_of(&new_entry) : spot_in(&new_entry).primary;
		assert_true(waits_out(&new_entry, set, 0));
		assert_true(waits_out(&new_entry, set, LOCK_LOOKS - 2));
		assert_false(waits_out(&new_entry, set, LOCK_LOOKS));
	}
}

/* --- What is chosen and then taken ----------------------------------------------------------- */

#define DAY (86400 * SL_TICKS_PER_SEC)

/* Returns a new key whose primary set is `home`. */
static struct new_entry new_entry_at(uint32_t home)
{
	static uint32_t number;
	struct new_entry new_entry;

	do
		new_entry = new_entry_of(number++);
	while (spot_in(&new_entry).primary != home);
	new_entry.evicts = 1;
	return new_entry;
}

static void insert(struct new_entry new_entry, uint64_t blocked)
{

	new_entry.state.blocked_until = blocked;
	assert_int_equal(table_insert(&new_entry), 0);
}

/* Frees the first way of `set` that stores a key with `set` as its primary set. */
static void way_clear(uint32_t set)
{
	uint32_t way = 0;

	while (host_table.set[set].tag[way] & TAG_DISPLACED)
		way++;
	assert_true(way < SL_WAYS);
	host_table.set[set].tag[way] = 0;
	host_table.entry[set * SL_WAYS + way] = (struct sl_entry){0};
}

static struct new_entry rival;

static void rival_comes(void)
{
	insert(rival, DAY);
}

static void rival_is_blocked(void)
{
	find(&rival)->state.blocked_until = DAY;
}

/*
 * An insertion chooses a way before it locks the secondary set. If another CPU changes the way
 * before the lock, the insertion fails.
 */
TEST(test_a_choice_in_the_secondary_set_is_checked_again)
{
	static void (*const calls[])(void) = {rival_comes, rival_is_blocked};

	for (size_t i = 0; i < 100 * ARRAY_SIZE(calls); i++) {
		bool is_there = calls[i % 2] == rival_is_blocked;
		struct new_entry new_entry;

		host_table_begin(2, &random_state);
		for (int way = 0; way < 2 * SL_WAYS; way++)
			insert(new_entry_at(way % 2), DAY);
		way_clear(1);
		rival = new_entry_at(1);
		if (is_there)
			insert(rival, 0);
		new_entry = new_entry_at(0);
		meanwhile.set = 1;
		meanwhile.lookups = 2; /* lookup 1 chooses the way; lookup 2 locks the set */
		meanwhile.call = calls[i % 2];
		assert_int_equal(table_insert(&new_entry), -EBUSY);
		assert_int_equal(meanwhile.lookups, 0);
		assert_true(find(&rival) && find(&rival)->state.blocked_until == DAY);
		assert_null(find(&new_entry));
		host_table_check();
	}
}

/* --- Several CPUs at once -------------------------------------------------------------------- */

#define THREADS 4
#define RACES	200000 /* insertions per thread */
#define STAYS	8      /* number of blocked keys, which are never evicted */

static struct {
	bool over;
	uint64_t inserted, busy, found;
} race;

static struct new_entry new_entry_staying(uint32_t number)
{
	struct new_entry new_entry = new_entry_of((1U << 20) + number);

	new_entry.state.blocked_until = 1ULL << 60;
	new_entry.evicts = 1;
	return new_entry;
}

/* Inserts random keys. There are more keys than entries. */
static void *race_insert(void *data)
{
	uint64_t state = RANDOM_BEGIN + (uintptr_t)data, counts[2] = {0};

	for (int i = 0; i < RACES; i++) {
		uint64_t random = random_next(&state) >> 16;
		struct new_entry new_entry = new_entry_of(random % 150);
		int error;

		new_entry.evicts = 1;
		error = table_insert(&new_entry);
		counts[0] += !error;
		counts[1] += error == -EBUSY;
		assert_true(!error || error == -EBUSY || error == -EEXIST);
	}
	__sync_fetch_and_add(&race.inserted, counts[0]);
	__sync_fetch_and_add(&race.busy, counts[1]);
	return NULL;
}

static void *race_read(void *data)
{
	(void)data;
	while (!__atomic_load_n(&race.over, __ATOMIC_RELAXED))
		for (uint32_t number = 0; number < STAYS; number++) {
			struct new_entry new_entry = new_entry_staying(number);
			struct sl_entry *entry = find(&new_entry);

			assert_true(entry && entry->state.blocked_until == 1ULL << 60);
			race.found++;
		}
	return NULL;
}

/*
 * Threads insert keys at the same time. Then no key may have two entries, no set may be locked, and
 * all counts must be correct. A blocked key must be found at all times.
 */
TEST(test_insertions_by_several_cpus)
{
	pthread_t threads[THREADS], reader;

	host_table_begin(8, &random_state);
	for (uint32_t number = 0; number < STAYS; number++) {
		struct new_entry new_entry = new_entry_staying(number);

		assert_int_equal(table_insert(&new_entry), 0);
	}
	assert_int_equal(pthread_create(&reader, NULL, race_read, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race_insert, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&race.over, true, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	host_table_check();
	/* if a thread is preempted while it locks a set, insertions into this set fail */
	assert_true(race.inserted > RACES / 100 && race.found > 0);
	print_message(
		"figure: %lu insertions by %d threads into 64 entries; %lu found a set locked\n",
		race.inserted, THREADS, race.busy);
}

/* --- Strangers over sets --------------------------------------------------------------------- */

#define STRANGERS (32U << 20)
#define SETS	  65536U /* number of sets of a gate of the default size */

static uint32_t in_set[SETS];

/*
 * Returns key number `number` of an address pattern that an attacker could choose without the
 * secret.
 */
static struct state_key stranger(unsigned int pattern, uint64_t number)
{
	struct state_key key = {.limit = 1 << 3 | 1};

	switch (pattern) {
	case 0: /* consecutive IPv4 addresses */
		key.addr[0] = __builtin_bswap32(10U << 24 | (uint32_t)number);
		break;
	case 1: /* one address in each of many consecutive /24s */
		key.addr[0] = (uint32_t)number;
		break;
	case 2: /* each IPv4 address under four limits */
		key.addr[0] = __builtin_bswap32((uint32_t)number / 4);
		key.limit = (number % 4 + 1) << 3 | 1;
		break;
	case 3: /* consecutive /48s */
		key.addr[0] = __builtin_bswap64(0x2001ULL << 48 | number << 16);
		key.limit ^= 1;
		break;
	case 4: /* consecutive /64s */
		key.addr[0] = __builtin_bswap64(0x20010db8ULL << 32 | number);
		key.limit ^= 1;
		break;
	case 5: /* consecutive addresses of one /64, with a key per address */
		key.addr[0] = __builtin_bswap64(0x20010db8ULL << 32);
		key.addr[1] = __builtin_bswap64(number);
		key.limit ^= 1;
		break;
	default: /* random addresses */
		key.addr[0] = number * 0x9e3779b97f4a7c15ULL;
		key.limit ^= 1;
	}
	return key;
}

/*
 * Checks that the distribution of keys over sets looks random. Uses a chi-square test with six
 * standard deviations, and the size of the fullest set.
 */
static void check_spread(unsigned int pattern)
{
	double mean = (double)STRANGERS / SETS, chi = 0, most = 0;

	for (uint32_t i = 0; i < SETS; i++) {
		chi += (in_set[i] - mean) * (in_set[i] - mean) / mean;
		most = in_set[i] > most ? in_set[i] : most;
	}
	print_message("figure: %u strangers, pattern %u: %.0f in the fullest set, %.1f on average; "
		      "chi square %.3f of its mean\n",
		      STRANGERS, pattern, most, mean, chi / (SETS - 1));
	assert_true(chi < SETS - 1 + 6 * sqrt(2. * (SETS - 1)));
	assert_true(most < mean + 7.5 * sqrt(mean));
}

TEST(test_strangers_fill_no_set_faster_than_chance)
{
	for (unsigned int pattern = 0; pattern < 7; pattern++) {
		host_table_begin(HOST_SETS_MAX, &random_state);
		host_table.gate.params.set_mask = SETS - 1;
		memset(in_set, 0, sizeof(in_set));
		for (uint64_t number = 0; number < STRANGERS; number++) {
			struct state_key key = stranger(pattern, number);
			struct digest digest = state_digest(hash_secret, &key);

			in_set[slot_ref_of(&host_table.gate.params, digest).primary]++;
		}
		check_spread(pattern);
	}
}

/* Keys that share a primary set have many different secondary sets. */
TEST(test_the_keys_of_a_set_share_few_other_sets)
{
	struct sl_params params = {.set_mask = SETS - 1};
	unsigned int others = 0, most = 0;

	memset(in_set, 0, sizeof(in_set));
	for (uint32_t tag = 2; tag < 0x10000; tag += 2)
		in_set[set_alternate(&params, 12345, tag)]++;
	for (uint32_t set = 0; set < SETS; set++) {
		others += in_set[set] > 0;
		most = in_set[set] > most ? in_set[set] : most;
	}
	print_message("figure: the keys of a set have %u other sets; 1 of %u goes to the same\n",
		      others, 0x8000 / most);
	assert_true(others >= SETS / 8 && most <= 8);
}

/* --- Room ------------------------------------------------------------------------------------ */

#define ROOMS 20 /* number of tables, whose results are averaged */

/* Inserts new keys. Returns the part of the keys that get no entry with their first packet. */
static double part_refused(uint32_t *number, unsigned int newcomers)
{
	unsigned int refused = 0;

	for (unsigned int i = 0; i < newcomers; i++) {
		struct new_entry new_entry = new_entry_of(++*number);
		struct choice choice = choice_of(&new_entry, 0);

		refused += !choice.free[0] && !choice.free[1];
	}
	return (double)refused / newcomers;
}

/*
 * Keys are spread unevenly over sets, but few new keys find no free entry while the table fills.
 * docs/architecture.md quotes the printed numbers.
 */
TEST(test_how_full_a_table_is_when_newcomers_wait)
{
	static const struct {
		unsigned int percent;
		double filling, then;
	} cases[] = {{50, 0.0001, 0.0005}, {75, 0.001, 0.02}, {80, 0.004, 0.06}};
	uint32_t number = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t entries = HOST_SETS_MAX * SL_WAYS,
			 count = entries * cases[i].percent / 100;
		double filling = 0, then = 0;

		for (int room = 0; room < ROOMS; room++) {
			unsigned int refused = 0, in = 0;

			host_table_begin(HOST_SETS_MAX, &random_state);
			for (; in < count; refused++) {
				struct new_entry new_entry = new_entry_of(++number);

				new_entry.state.blocked_until = DAY;
				if (!table_insert(&new_entry)) {
					in++;
					refused--;
				}
			}
			filling += (double)refused / (in + refused) / ROOMS;
			then += part_refused(&number, entries) / ROOMS;
		}
		print_message("figure: with %u %% of all entries not whole, %.3f %% of newcomers "
			      "found none until then, and %.2f %% find none then\n",
			      cases[i].percent, 100 * filling, 100 * then);
		assert_true(filling <= cases[i].filling && then <= cases[i].then);
	}
}

TESTS(NULL, NULL)
