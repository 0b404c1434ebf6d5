// SPDX-License-Identifier: GPL-2.0
/*
 * More sources than the table has room for: random schedules on two CPUs through bpf/charge.h,
 * compiled for the host, against a plain token bucket for each key, without a limit of room. No key
 * holds more than its plain bucket, but for what is told as forgotten of it, and for what passes as
 * a newcomer's. That is asserted of each key with each packet, so nothing that is told of one makes
 * up for another, and nothing that was told before it was full again for what comes later. Where no
 * budget pays for newcomers, a state is charged for what the sketch of its CPU has seen.
 */
#include <errno.h>
#include "test.h"
#include "bpf_host.h"
#include "rules/limit.h"

static void entry_goes(const __u32 *limit);

/* within a macro its own name is the builtin */
#define __sync_lock_test_and_set(word, value)                                                      \
	((value) ? (void)0 : entry_goes(word), __sync_lock_test_and_set(word, value))

#include "charge.h"
#include "table_host.h"

#define SETS	64
#define WAYS	(SETS * SL_WAYS)
#define SOURCES 4096
#define CPUS	2
#define LIMITS	2 /* of a source, and of four sources in a row */
#define WIDE	2 /* bits */

static struct {
	struct sl_policy policy;
	struct sl_admission admission[CPUS];
	struct sl_state budget;
	struct sl_budget_slice budget_slice[CPUS];
	struct sl_bucket bucket[CPUS][SOURCES];
	struct state_key gone; /* the key whose entry was taken last, and is not told of yet */
	uint64_t lost;	       /* what this CPU had told before */
} world;

static void *map_find(const void *map, const void *key)
{
	if (map == &admission)
		return &world.admission[host_cpu];
	if (map == &budgets)
		return &world.budget;
	if (map == &budget_slices)
		return &world.budget_slice[host_cpu];
	return host_table_find(map, key);
}

static uint64_t random_state = RANDOM_BEGIN;

static uint64_t choose(uint64_t bound)
{
	return random_next(&random_state) % bound;
}

static const struct machine machine = {.jiffy_ns = JIFFY_NS, .cpus = CPUS, .cpu_ids = CPUS};

static struct sl_limit limit_of(uint64_t rate, enum sl_rate_unit unit, uint64_t burst, uint8_t bits)
{
	struct limit limit = {.spec = {.rate = rate,
				       .rate_unit = unit,
				       .burst = burst,
				       .burst_unit = SL_BURST_PACKETS,
				       .per = {bits, 64}}};

	return limit_compile(&limit, SL_IPV4, &machine);
}

static struct packet packet_from(uint32_t source)
{
	struct packet packet = {.packets = 1, .bytes = 60, .source.bits = SL_FAMILY_BITS + 32};

	source = __builtin_bswap32(source);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet.jiffy = test_clock_ticks / JIFFY;
	return packet;
}

static struct sl_entry *entry_of(uint32_t source, const struct sl_limit *limit)
{
	struct packet packet = packet_from(source);
	struct state_key key = packet_key(&packet, limit);

	return table_find_mapped(&host_table.gate.params, hash_secret, host_table.set,
				 host_table.entry, &key);
}

/* --- The reference -------------------------------------------------------------------------- */

/* What a key holds in a bucket of its own: below 0 what it got too much. */
struct account {
	int64_t level, lowest;
	uint64_t at;
	int64_t told; /* what it may hold beside that: forgotten of it, or passed as a newcomer's */
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
				.level = world.policy.limit[SL_IPV4][which].burst,
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

/* Tells the key whose entry was taken of what was counted for it since. */
static void gone_tell(void)
{
	const struct sl_limit *limit = world.policy.limit[SL_IPV4];
	uint64_t parts = world.admission[host_cpu].evicted - world.lost;
	int which = world.gone.limit >> 3 == limit[1].id;

	if (world.gone.limit)
		account_of(which, __builtin_bswap32(world.gone.addr[0]))->told +=
			parts * limit[which].burst / EVICT_PARTS;
	else
		assert_int_equal(parts, 0);
	world.gone.limit = 0;
	world.lost = world.admission[host_cpu].evicted;
}

static void entry_goes(const __u32 *limit)
{
	const void *entry = (const char *)limit - offsetof(struct sl_entry, limit);

	gone_tell();
	world.gone = host_entry_key(entry);
}

/*
 * What a source can spend under a limit: the level of its state, a full one where it has none;
 * with the slices that go back to that, and those that are older, but can be spent still.
 */
static int64_t held(int which, uint32_t source)
{
	const struct sl_limit *limit = &world.policy.limit[SL_IPV4][which];
	const struct sl_entry *entry = entry_of(source, limit);
	struct sl_state state = credit_full(limit, test_clock_ticks + 1);
	int64_t level, beside = 0;

	if (entry)
		memcpy(&state, (const void *)&entry->state, sizeof(state));
	level = credit_level(limit, &state, test_clock_ticks);
	for (int cpu = 0; limit->slice && cpu < CPUS; cpu++) {
		const struct sl_slice *slice = &world.bucket[cpu][source].slice[limit->slot];

		if (slice->credit <= 0)
			continue;
		if (credit_span(state.full_at, slice->at) >= 0)
			level += slice->credit;
		else if (test_clock_ticks / JIFFY <= slice->until)
			beside += slice->credit;
	}
	return credit_min(level, limit->burst) + beside;
}

static struct digest digest_of(uint32_t source, const struct sl_limit *limit)
{
	struct packet packet = packet_from(source);
	struct state_key key = packet_key(&packet, limit);

	return state_digest(hash_secret, &key);
}

static uint32_t *slot_of(uint32_t source, const struct sl_limit *limit)
{
	struct digest digest = digest_of(source, limit);

	return &sketch_here(&host_table.gate.params, digest)->slot[sketch_slot(digest)];
}

/*
 * Returns how many packets of a source this CPU knows of, for which the first limit owes. If the
 * key of the second limit has the same slot, it may take it away before the entry is made.
 */
static uint32_t owed_by(uint32_t source)
{
	const struct sl_limit *limit = world.policy.limit[SL_IPV4];
	uint32_t *slot = slot_of(source, limit);

	if (!limit->owes || (*slot & ~SKETCH_COUNT) != sketch_print(digest_of(source, limit)))
		return 0;
	if (world.policy.limits[SL_IPV4] > 1 && slot == slot_of(source, limit + 1))
		return 0;
	return credit_min(*slot & SKETCH_COUNT, SKETCH_MOST - 1);
}

/* Under the first limit, whose state was made with this packet, if there is one. */
static void birth_check(uint32_t source, uint32_t owed)
{
	const struct sl_limit *limit = world.policy.limit[SL_IPV4];
	const struct sl_entry *entry = entry_of(source, limit);
	struct sl_state state;

	if (!entry)
		return;
	memcpy(&state, (const void *)&entry->state, sizeof(state));
	assert_true(credit_level(limit, &state, test_clock_ticks) <=
		    (int64_t)(limit->burst - owed * limit->cost));
}

/* With each packet. From here on no more is told of a key than it holds. */
static void account_check(int which, uint32_t source)
{
	struct account *account = account_of(which, source);
	int64_t more = held(which, source) - account->level;

	assert_true(more <= account->told);
	account->told = credit_max(more, 0);
}

/* --- A schedule ----------------------------------------------------------------------------- */

struct schedule {
	struct sl_limit limit[LIMITS];
	int limits;
	bool budget;
	uint32_t sources; /* of which a part sends most, and has buckets */
	uint32_t crowd;
	uint32_t sketch;  /* entries of a CPU */
	uint64_t step;	  /* ticks between trains of packets, at most */
	uint32_t blocked; /* sources that are blocked for all of it */
};

static void world_begin(const struct schedule *schedule)
{
	memset(&world, 0, sizeof(world));
	host_table_begin(SETS, &random_state);
	host_table.gate.params.interval_shift = 4;
	host_table.gate.params.flood_threshold = schedule->crowd;
	host_table.gate.params.sketch_mask = schedule->sketch - 1;
	host_cpu = 0;
	world.policy.limits[SL_IPV4] = schedule->limits;
	for (int i = 0; i < LIMITS; i++) {
		struct sl_limit *limit = &world.policy.limit[SL_IPV4][i];

		*limit = schedule->limit[i];
		limit->id = 1 + i;
		limit->slot = i;
		limit->owes = !schedule->budget;
		limit->budgeted = schedule->budget;
	}
	world.policy.by_source[SL_IPV4] = 1;
	test_clock_ticks = 1000 * SL_TICKS_PER_SEC;
	if (schedule->budget) {
		world.policy.newcomers = limit_of(2000, SL_RATE_PPS, 1000, 32);
		world.budget = credit_full(&world.policy.newcomers, test_clock_ticks);
	}
}

static enum sl_reason packet_send(uint32_t source, bool is_hot)
{
	struct verdict verdict = {.version = SL_POLICY_VERSION(SL_POLICY_FIRST)};
	struct packet packet = packet_from(source);

	policy_charge(&packet, &world.policy, is_hot ? &world.bucket[host_cpu][source] : NULL,
		      &verdict);
	return verdict.reason;
}

/* Gives sources a state that is blocked for a day. */
static void block(uint32_t sources)
{
	const struct sl_limit *limit = world.policy.limit[SL_IPV4];

	for (uint32_t i = 0; i < sources; i++) {
		for (int packet = 0; packet < 100 && !entry_of(i, limit); packet++)
			packet_send(i, false);
		assert_non_null(entry_of(i, limit));
		entry_of(i, limit)->state.blocked_until =
			test_clock_ticks + 86400 * SL_TICKS_PER_SEC;
	}
}

/* A packet, and what it is charged in the reference. */
static enum sl_reason room_charge(const struct schedule *schedule, uint32_t source, bool is_hot)
{
	bool is_known = entry_of(source, world.policy.limit[SL_IPV4]);
	uint32_t owed = owed_by(source);
	enum sl_reason reason;

	world.lost = world.admission[host_cpu].evicted;
	reason = packet_send(source, is_hot);
	gone_tell();
	if (!is_known)
		birth_check(source, owed + (reason < SL_FIRST_DROP));
	for (int i = 0; i < schedule->limits; i++) {
		const struct sl_limit *limit = &world.policy.limit[SL_IPV4][i];
		struct account *account = account_of(i, source);

		account_charge(account, limit, reason < SL_FIRST_DROP ? limit->cost : 0);
		if (reason == SL_PASS_NEWCOMER && !entry_of(source, limit))
			account->told += limit->cost;
		account_check(i, source);
	}
	return reason;
}

static uint64_t forgotten(void)
{
	return world.admission[0].event[SL_EVENT_EVICTED].total +
	       world.admission[1].event[SL_EVENT_EVICTED].total;
}

/* Returns with how many packets a slice of the source held something afterwards. */
static uint64_t schedule_run(const struct schedule *schedule)
{
	const struct sl_limit *limit = world.policy.limit[SL_IPV4];
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

		test_clock_ticks += choose(SL_TICKS_PER_SEC / 8000);
		if (!packet || choose(2)) {
			source = schedule->blocked +
				 choose(choose(2) ? schedule->sources : schedule->sources / 8);
			test_clock_ticks += choose(schedule->step);
		}
		host_cpu = choose(CPUS);
		if (!choose(1000)) /* its bucket goes to another source */
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
		      "packets too much, %ld of one source; of %lu states that were forgotten "
		      "%.1f bursts, %lu newcomers, %lu with a slice\n",
		      schedule->sources, WAYS * 3 / 4, schedule->limits, limit->burst / limit->cost,
		      schedule->budget ? ", a budget" : "", within, excess, worst, forgotten(),
		      (double)(world.admission[0].evicted + world.admission[1].evicted) /
			      EVICT_PARTS,
		      newcomers, slices);
	if (schedule->budget)
		assert_true(newcomers * world.policy.newcomers.cost <=
			    world.policy.newcomers.burst + test_clock_ticks - begun);
	assert_true(within + newcomers > 1000);
	for (uint32_t i = 0; i < schedule->blocked; i++)
		assert_true(entry_of(i, limit) &&
			    entry_of(i, limit)->state.blocked_until == 87400 * SL_TICKS_PER_SEC);
	host_table_check();
	return slices;
}

/* As many as there is room for lose nothing; of more, no more is lost than is told. */
static void test_no_source_gets_more_than_is_told(void **state)
{
	static const uint32_t sources[] = {WAYS / 4, WAYS / 2, WAYS, 2 * WAYS, 6 * WAYS};
	const struct sl_limit limits[] = {
		limit_of(100, SL_RATE_PPS, 100, 32),
		limit_of(6, SL_RATE_PER_MIN, 16, 32),
		limit_of(1, SL_RATE_PER_HOUR, 20, 32),
	};
	const struct sl_limit wide[] = {
		limit_of(300, SL_RATE_PPS, 200, 32 - WIDE),
		limit_of(20, SL_RATE_PER_MIN, 32, 32 - WIDE),
	};
	uint64_t slices = 0;

	(void)state;
	for (size_t i = 0; i < 4 * ARRAY_SIZE(sources) * ARRAY_SIZE(limits); i++) {
		struct schedule schedule = {
			.limit = {limits[i / 4 % ARRAY_SIZE(limits)],
				  wide[choose(ARRAY_SIZE(wide))]},
			.limits = 1 + i % 2,
			.budget = i / 2 % 2,
			.sources = sources[i / 4 / ARRAY_SIZE(limits)],
			.crowd = choose(2) ? ~0U : WAYS / 16,
			.sketch = 1 << choose(8),
			.step = SL_TICKS_PER_SEC / (1 << choose(12)),
		};

		slices += schedule_run(&schedule);
		/* twice as many find two full sets under one secret in twenty */
		if (schedule.sources <= WAYS / 4)
			assert_int_equal(forgotten(), 0);
	}
	assert_true(slices > 10000);
}

/* Who is blocked stays, while no set is full of such, whoever else comes. */
static void test_who_is_blocked_stays(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++) {
		struct schedule schedule = {
			.limit = {limit_of(6, SL_RATE_PER_MIN, 16, 32),
				  limit_of(20, SL_RATE_PER_MIN, 32, 32 - WIDE)},
			.limits = 1 + i / 8,
			.budget = i % 2,
			.sources = 6 * WAYS,
			.crowd = i & 2 ? ~0U : WAYS / 16,
			.sketch = 1 << choose(8),
			.step = SL_TICKS_PER_SEC / (i & 4 ? 4096 : 64),
			.blocked = WAYS / 8,
		};

		schedule_run(&schedule);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_source_gets_more_than_is_told),
		cmocka_unit_test(test_who_is_blocked_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
