// SPDX-License-Identifier: GPL-2.0
/*
 * Sends random packets through bpf/charge.h, compiled for the host with two CPUs. There can be more
 * sources than entries. The credit of a key must not exceed the credit of a plain token bucket.
 * There are two exceptions: the key's state was evicted, or packets passed before the key had a
 * state.
 */
static void entry_goes(const unsigned int *limit);

/* the inner name is the compiler's builtin, because macros do not recurse */
#define __sync_lock_test_and_set(word, value)                                                      \
	((value) ? (void)0 : entry_goes(word), __sync_lock_test_and_set(word, value))

#include "charge_host.h"

#define SETS	64
#define WAYS	(SETS * SL_WAYS)
#define SOURCES 4096
#define LIMITS	2 /* limit 0: a key per source; limit 1: a key per 4 consecutive sources */
#define WIDE	2 /* number of address bits that limit 1 ignores */

static struct {
	struct sl_bucket bucket[HOST_CPUS][SOURCES];
	struct state_key gone; /* last evicted key; 0 after gone_account() has handled this key */
	uint64_t evicted;      /* sum of the deficits of all evicted states so far */
} world;

static uint64_t choose(uint64_t bound)
{
	return random_next(&random_state) % bound;
}

static struct sl_limit room_limit(uint64_t rate, enum sl_rate_unit unit, uint64_t burst,
				  uint8_t bits)
{
	return spec_limit(
		(struct sl_limit_spec){
			.rate = rate, .rate_unit = unit, .burst = burst, .per = {bits}},
		HOST_CPUS);
}

/* Returns a packet of a source. Consecutive sources share a prefix. */
static struct packet packet_of(uint32_t source)
{
	return packet_from(__builtin_bswap32(source));
}

static struct sl_entry *entry_of_source(uint32_t source, const struct sl_limit *limit)
{
	return entry_under(__builtin_bswap32(source), limit);
}

/* --- The reference -------------------------------------------------------------------------- */

/*
 * The plain token bucket of a key. Its level becomes negative if the key sends more than its limit.
 */
struct account {
	int64_t level, lowest;
	uint64_t at;
	/* `level` may be this far below 0: the sum of the deficits of the key's evicted states */
	int64_t excused;
};

static struct account accounts[LIMITS][SOURCES];

static struct account *account_of(int which, uint32_t source)
{
	return &accounts[which][which ? source >> WIDE : source];
}

static void accounts_begin(void)
{
	for (int which = 0; which < LIMITS; which++)
		for (int i = 0; i < SOURCES; i++)
			accounts[which][i] = (struct account){
				.level = host.policy.limit[SL_IPV4][which].burst,
				.at = test_clock_ticks,
			};
}

static void account_charge(struct account *account, const struct sl_limit *limit, uint64_t cost)
{
	int64_t level = account->level + (int64_t)(test_clock_ticks - account->at);

	account->level = credit_min(level, limit->burst) - cost;
	account->at = test_clock_ticks;
	account->lowest = credit_min(account->level, account->lowest);
}

static void gone_account(void)
{
	const struct sl_limit *limit = host.policy.limit[SL_IPV4];
	uint64_t parts = host.admission[host_cpu].evicted - world.evicted;
	int which = world.gone.limit >> 3 == limit[1].id;

	if (world.gone.limit)
		account_of(which, __builtin_bswap32(world.gone.addr[0]))->excused +=
			parts * limit[which].burst / EVICT_PARTS;
	else
		assert_int_equal(parts, 0);
	world.gone.limit = 0;
	world.evicted = host.admission[host_cpu].evicted;
}

static void entry_goes(const __u32 *limit)
{
	const void *entry = (const char *)limit - offsetof(struct sl_entry, limit);

	gone_account();
	world.gone = host_entry_key(entry);
}

/*
 * Returns the credit of a source under a limit: in its state and in its slices. If the source has
 * no state, its state counts as full.
 */
static int64_t held(int which, uint32_t source)
{
	const struct sl_limit *limit = &host.policy.limit[SL_IPV4][which];
	const struct sl_entry *entry = entry_of_source(source, limit);
	struct sl_state state = credit_full(limit, test_clock_ticks + 1);
	int64_t level, beside = 0;

	if (entry)
		memcpy(&state, (const void *)&entry->state, sizeof(state));
	level = credit_level(limit, &state, test_clock_ticks);
	for (int cpu = 0; limit->slice && cpu < HOST_CPUS; cpu++) {
		const struct sl_slice *slice = &world.bucket[cpu][source].slice[limit->slot];

		if (slice->credit <= 0)
			continue;
		if (credit_span(state.full_at, slice->at.borrowed) >= 0)
			level += slice->credit;
		else if (test_clock_ticks / JIFFY <= slice->until)
			beside += slice->credit;
	}
	return credit_min(level, limit->burst) + beside;
}

static struct digest digest_of(uint32_t source, const struct sl_limit *limit)
{
	struct packet packet = packet_of(source);
	struct state_key key = packet_key(&packet, limit);

	return state_digest(hash_secret, &key);
}

static uint32_t *slot_of(uint32_t source, const struct sl_limit *limit)
{
	return sketch_here(&host_table.gate.params, digest_of(source, limit));
}

/*
 * Returns the number of earlier packets that this CPU charges to a new state of limit 0. Returns 0
 * if the key of limit 1 cleared the slot. Both keys have the same slot of the sketch.
 */
static uint32_t hits_of(uint32_t source)
{
	const struct sl_limit *limit = host.policy.limit[SL_IPV4];
	uint32_t *slot = slot_of(source, limit);

	if (!limit->charge_hits ||
	    (*slot & ~SKETCH_COUNT) != sketch_print(digest_of(source, limit)))
		return 0;
	if (host.policy.limits[SL_IPV4] > 1 && slot == slot_of(source, limit + 1))
		return 0;
	return credit_min(*slot & SKETCH_COUNT, SKETCH_MOST - 1);
}

/* Checks that the earlier packets of the source were charged to its new state of limit 0. */
static void birth_check(uint32_t source, uint32_t hits)
{
	const struct sl_limit *limit = host.policy.limit[SL_IPV4];
	const struct sl_entry *entry = entry_of_source(source, limit);
	struct sl_state state;

	if (!entry)
		return;
	memcpy(&state, (const void *)&entry->state, sizeof(state));
	assert_true(credit_level(limit, &state, test_clock_ticks) <=
		    (int64_t)(limit->burst - hits * limit->cost));
}

/*
 * Checks that a key has at most `excused` more credit than its plain token bucket. Subtracts the
 * difference from `excused`.
 */
static void account_check(int which, uint32_t source)
{
	struct account *account = account_of(which, source);
	int64_t more = held(which, source) - account->level;

	assert_true(more <= account->excused);
	account->excused = credit_max(more, 0);
}

/* --- A schedule ----------------------------------------------------------------------------- */

struct schedule {
	struct sl_limit limit[LIMITS];
	int limits;
	bool budget;
	uint32_t sources;   /* number of sources; an eighth of them sends most of the packets */
	uint32_t threshold; /* packets of new keys in an interval that begin a flood */
	uint32_t sketch;    /* slots in the sketch of each CPU */
	uint64_t step;	    /* maximum gap between bursts of packets, in ticks */
	uint32_t blocked;   /* number of sources that are blocked during the whole test */
};

static void world_begin(const struct schedule *schedule)
{
	memset(&world, 0, sizeof(world));
	host_gate_begin(SL_IPV4, SETS);
	host_table.gate.params.interval_shift = 4;
	host_table.gate.params.flood_threshold = schedule->threshold;
	host_table.gate.params.sketch_mask = schedule->sketch - 1;
	for (int i = 0; i < schedule->limits; i++)
		host_add(&schedule->limit[i])->charge_hits = true;
	host.policy.by_source[SL_IPV4] = 1;
	if (schedule->budget)
		host_set_budget(room_limit(2000, SL_RATE_PPS, 1000, 32));
}

static enum sl_reason packet_send(uint32_t source, bool is_hot)
{
	struct verdict verdict;

	return host_charge(__builtin_bswap32(source),
			   is_hot ? &world.bucket[host_cpu][source] : NULL, &verdict);
}

/* Blocks the sources below `sources` for a day. */
static void block(uint32_t sources)
{
	const struct sl_limit *limit = host.policy.limit[SL_IPV4];

	for (uint32_t i = 0; i < sources; i++) {
		for (int packet = 0; packet < 100 && !entry_of_source(i, limit); packet++)
			packet_send(i, false);
		assert_non_null(entry_of_source(i, limit));
		entry_of_source(i, limit)->state.blocked_until =
			test_clock_ticks + 86400 * SL_TICKS_PER_SEC;
	}
}

/*
 * Sends a packet through the gate and through the plain token buckets, and compares their credits.
 */
static enum sl_reason room_charge(const struct schedule *schedule, uint32_t source, bool is_hot)
{
	bool is_known = entry_of_source(source, host.policy.limit[SL_IPV4]);
	uint32_t hits = hits_of(source);
	enum sl_reason reason;

	world.evicted = host.admission[host_cpu].evicted;
	reason = packet_send(source, is_hot);
	gone_account();
	if (!is_known)
		birth_check(source, hits + (reason < SL_FIRST_DROP));
	for (int i = 0; i < schedule->limits; i++) {
		const struct sl_limit *limit = &host.policy.limit[SL_IPV4][i];
		struct account *account = account_of(i, source);

		account_charge(account, limit, reason < SL_FIRST_DROP ? limit->cost : 0);
		if (reason == SL_PASS_NEWCOMER && !entry_of_source(source, limit))
			account->excused += limit->cost;
		account_check(i, source);
	}
	return reason;
}

static uint64_t evictions(void)
{
	return host.admission[0].event[SL_EVENT_EVICTED].total +
	       host.admission[1].event[SL_EVENT_EVICTED].total;
}

/* Runs a schedule. Returns how many packets left credit in a slice. */
static uint64_t schedule_run(const struct schedule *schedule)
{
	const struct sl_limit *limit = host.policy.limit[SL_IPV4];
	uint64_t newcomers = 0, within = 0, slices = 0, begun;
	uint32_t source = 0, hot = schedule->blocked + schedule->sources / 8;
	int64_t excess = 0, worst = 0;

	world_begin(schedule);
	block(schedule->blocked);
	accounts_begin();
	world.gone.limit = 0;
	begun = test_clock_ticks;
	for (int packet = 0; packet < 100000; packet++) {
		enum sl_reason reason;

		clock_advance(choose(SL_TICKS_PER_SEC / 8000));
		if (!packet || choose(2)) {
			source = schedule->blocked +
				 choose(choose(2) ? schedule->sources : schedule->sources / 8);
			clock_advance(choose(schedule->step));
		}
		host_cpu = choose(HOST_CPUS);
		if (!choose(1000))
			world.bucket[host_cpu][source] = (struct sl_bucket){0};
		reason = room_charge(schedule, source, source < hot);
		newcomers += reason == SL_PASS_NEWCOMER;
		within += reason == SL_PASS_WITHIN;
		slices += world.bucket[host_cpu][source].slice[0].credit > 0;
	}
	for (uint32_t i = 0; i < SOURCES; i++) {
		int64_t packets = -accounts[0][i].lowest / (int64_t)limit->cost;

		excess += packets;
		worst = credit_max(worst, packets);
	}
	print_message("%u sources, room for %u, %d limits, burst %llu%s: %lu pass; %ld "
		      "packets too much, %ld of one source; of %lu states that were evicted "
		      "%.1f bursts, %lu newcomers, %lu with a slice\n",
		      schedule->sources, WAYS * 3 / 4, schedule->limits, limit->burst / limit->cost,
		      schedule->budget ? ", a budget" : "", within, excess, worst, evictions(),
		      (double)(host.admission[0].evicted + host.admission[1].evicted) / EVICT_PARTS,
		      newcomers, slices);
	if (schedule->budget)
		assert_true(newcomers * host.policy.newcomers.cost <=
			    host.policy.newcomers.burst + test_clock_ticks - begun);
	assert_true(within + newcomers > 1000);
	for (uint32_t i = 0; i < schedule->blocked; i++)
		assert_true(entry_of_source(i, limit) &&
			    entry_of_source(i, limit)->state.blocked_until ==
				    87400 * SL_TICKS_PER_SEC);
	host_table_check();
	return slices;
}

/*
 * A source can exceed its plain token bucket only if states were evicted, and at most by the sum of
 * the deficits of these states.
 */
TEST(test_no_source_gets_more_than_was_counted)
{
	static const uint32_t sources[] = {WAYS / 4, WAYS / 2, WAYS, 2 * WAYS, 6 * WAYS};
	const struct sl_limit limits[] = {
		room_limit(100, SL_RATE_PPS, 100, 32),
		room_limit(6, SL_RATE_PER_MIN, 16, 32),
		room_limit(1, SL_RATE_PER_HOUR, 20, 32),
	};
	const struct sl_limit wide[] = {
		room_limit(300, SL_RATE_PPS, 200, 32 - WIDE),
		room_limit(20, SL_RATE_PER_MIN, 32, 32 - WIDE),
	};
	uint64_t slices = 0;

	for (size_t i = 0; i < 4 * ARRAY_SIZE(sources) * ARRAY_SIZE(limits); i++) {
		struct schedule schedule = {
			.limit = {limits[i / 4 % ARRAY_SIZE(limits)],
				  wide[choose(ARRAY_SIZE(wide))]},
			.limits = 1 + i % 2,
			.budget = i / 2 % 2,
			.sources = sources[i / 4 / ARRAY_SIZE(limits)],
			.threshold = choose(2) ? ~0U : WAYS / 16,
			.sketch = 1 << choose(8),
			.step = SL_TICKS_PER_SEC / (1 << choose(12)),
		};

		slices += schedule_run(&schedule);
		/* with so few sources, each key has a free way */
		if (schedule.sources <= WAYS / 4)
			assert_int_equal(evictions(), 0);
	}
	assert_true(slices > 10000);
}

/* A blocked state is evicted only if all states in both sets of its key are blocked. */
TEST(test_blocked_sources_stay)
{
	for (int i = 0; i < 16; i++) {
		struct schedule schedule = {
			.limit = {room_limit(6, SL_RATE_PER_MIN, 16, 32),
				  room_limit(20, SL_RATE_PER_MIN, 32, 32 - WIDE)},
			.limits = 1 + i / 8,
			.budget = i % 2,
			.sources = 6 * WAYS,
			.threshold = i & 2 ? ~0U : WAYS / 16,
			.sketch = 1 << choose(8),
			.step = SL_TICKS_PER_SEC / (i & 4 ? 4096 : 64),
			.blocked = WAYS / 8,
		};

		schedule_run(&schedule);
	}
}

TESTS(NULL, NULL)
