// SPDX-License-Identifier: GPL-2.0
/*
 * More sources than the table has room for: random schedules through bpf/charge.h, compiled for the
 * host, against a plain token bucket for each source, without a limit of room. No source gets more
 * than burst + rate x t, but for what is told as forgotten, and for what passes as a newcomer's.
 */
#include <errno.h>
#include "test.h"
#include "bpf_host.h"
#include "rules/limit.h"
#include "charge.h"
#include "table_host.h"

#define SETS	64
#define WAYS	(SETS * SL_WAYS)
#define SOURCES 4096

static struct {
	struct sl_policy policy;
	struct sl_admission admission;
	struct sl_ledger budget;
	struct sl_allowance allowance;
} world;

static void *map_find(const void *map, const void *key)
{
	if (map == &admission)
		return &world.admission;
	if (map == &budgets)
		return &world.budget;
	if (map == &allowances)
		return &world.allowance;
	return host_table_find(map, key);
}

static uint64_t random_state = RANDOM_BEGIN;

static uint64_t choose(uint64_t bound)
{
	return random_next(&random_state) % bound;
}

static const struct machine machine = {.jiffy_ns = JIFFY_NS, .cpus = 1, .cpu_ids = 1};

static struct sl_limit limit_of(uint64_t rate, enum sl_rate_unit unit, uint64_t burst)
{
	struct limit limit = {.spec = {.rate = rate,
				       .rate_unit = unit,
				       .burst = burst,
				       .burst_unit = SL_BURST_PACKETS,
				       .id = 1,
				       .per = {32, 64}}};

	return limit_compile(&limit, SL_IPV4, &machine);
}

/* --- The reference -------------------------------------------------------------------------- */

/*
 * What a source holds in a bucket of its own, and how far below 0 it ever was: what it got too much.
 */
struct plain {
	int64_t level, lowest;
	uint64_t at;
};

static struct plain plain[SOURCES];

static void plain_charge(struct plain *bucket, const struct sl_limit *limit, uint64_t now)
{
	int64_t level = bucket->level + (int64_t)(now - bucket->at);

	bucket->level = (level < (int64_t)limit->burst ? level : (int64_t)limit->burst) -
			(int64_t)limit->cost;
	bucket->at = now;
	if (bucket->level < bucket->lowest)
		bucket->lowest = bucket->level;
}

/* --- A schedule ----------------------------------------------------------------------------- */

struct schedule {
	struct sl_limit limit;
	bool budget;
	uint32_t sources; /* of which a part sends most */
	uint32_t crowd;
	uint64_t step;	  /* ticks between packets, at most */
	uint32_t blocked; /* sources that are blocked for all of it */
};

static void world_begin(const struct schedule *schedule)
{
	memset(&world, 0, sizeof(world));
	host_table_begin(SETS, &random_state);
	host_table.gate.meeting.window_shift = 4;
	host_table.gate.meeting.crowd = schedule->crowd;
	world.policy.limit[SL_IPV4][0] = schedule->limit;
	world.policy.limit[SL_IPV4][0].owes = !schedule->budget;
	world.policy.limits[SL_IPV4] = 1;
	test_clock_ticks = 1000 * SL_TICKS_PER_SEC;
	if (schedule->budget) {
		world.policy.newcomers = limit_of(1, SL_RATE_PER_HOUR, 1);
		world.budget = credit_full(&world.policy.newcomers, test_clock_ticks);
	}
	for (uint32_t i = 0; i < SOURCES; i++)
		plain[i] = (struct plain){schedule->limit.burst, 0, test_clock_ticks};
}

static struct packet packet_from(uint32_t source)
{
	struct packet packet = {.packets = 1, .bytes = 60, .source.bits = SL_FAMILY_BITS + 32};

	source = __builtin_bswap32(source + 1);
	memcpy(packet.source.addr, &source, sizeof(source));
	packet.jiffy = test_clock_ticks / JIFFY;
	return packet;
}

static enum sl_reason packet_send(uint32_t source)
{
	struct verdict verdict = {.record = SL_RECORD(SL_POLICY_FIRST)};
	struct packet packet = packet_from(source);

	policy_charge(&packet, &world.policy, NULL, &verdict);
	return verdict.reason;
}

static struct sl_line *line_of(uint32_t source)
{
	struct packet packet = packet_from(source);
	struct ledger_key key = packet_key(&packet, &world.policy.limit[SL_IPV4][0]);

	return table_find_mapped(&host_table.gate.meeting, host_table.set, host_table.line, &key);
}

/* Gives sources a ledger that is blocked for a day. */
static void block(uint32_t sources)
{
	for (uint32_t i = 0; i < sources; i++) {
		packet_send(i);
		packet_send(i);
		packet_send(i);
		assert_non_null(line_of(i));
		line_of(i)->ledger.blocked = test_clock_ticks + 86400 * SL_TICKS_PER_SEC;
	}
}

static void schedule_run(const struct schedule *schedule)
{
	const struct sl_limit *limit = &schedule->limit;
	uint64_t newcomers = 0, within = 0, forgotten;
	__int128 excess = 0, told;

	world_begin(schedule);
	block(schedule->blocked);
	for (uint32_t i = 0; i < SOURCES; i++)
		plain[i] = (struct plain){limit->burst, 0, test_clock_ticks};
	for (int packet = 0; packet < 100000; packet++) {
		uint32_t source = schedule->blocked + choose(schedule->sources);
		enum sl_reason reason;

		if (choose(2))
			source = schedule->blocked + choose(schedule->sources / 8);
		test_clock_ticks += choose(schedule->step);
		reason = packet_send(source);
		newcomers += reason == SL_PASS_NEWCOMER;
		within += reason == SL_PASS_WITHIN;
		if (reason < SL_FIRST_DROP)
			plain_charge(&plain[source], limit, test_clock_ticks);
	}
	for (uint32_t i = 0; i < SOURCES; i++)
		excess -= plain[i].lowest;
	forgotten = world.admission.event[SL_EVENT_FORGOTTEN].total;
	told = (__int128)world.admission.lost * limit->burst / LOSS_PARTS +
	       (__int128)newcomers * limit->cost;
	print_message("figure: %u sources, room for %u, burst %llu%s: %lu pass; %.1f bursts too "
		      "much, %.1f told of %lu that were forgotten, %lu newcomers\n",
		      schedule->sources, WAYS * 3 / 4, limit->burst / limit->cost,
		      schedule->budget ? ", a budget" : "", within, (double)excess / limit->burst,
		      (double)world.admission.lost / LOSS_PARTS, forgotten, newcomers);
	assert_true(excess <= told);
	assert_true(within > 1000);
	for (uint32_t i = 0; i < schedule->blocked; i++)
		assert_true(line_of(i) && line_of(i)->ledger.blocked == 87400 * SL_TICKS_PER_SEC);
	host_table_check();
}

/* As many as there is room for lose nothing; of more, no more is lost than is told. */
static void test_no_source_gets_more_than_is_told(void **state)
{
	static const uint32_t sources[] = {WAYS / 4, WAYS / 2, WAYS, 2 * WAYS, 6 * WAYS};
	const struct sl_limit limits[] = {
		limit_of(100, SL_RATE_PPS, 100),
		limit_of(6, SL_RATE_PER_MIN, 16),
		limit_of(1, SL_RATE_PER_HOUR, 20),
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(sources) * ARRAY_SIZE(limits); i++) {
		struct schedule schedule = {
			.limit = limits[i / 2 % ARRAY_SIZE(limits)],
			.budget = i % 2,
			.sources = sources[i / 2 / ARRAY_SIZE(limits)],
			.crowd = choose(2) ? ~0U : WAYS / 16,
			.step = SL_TICKS_PER_SEC / (1 << choose(12)),
		};

		schedule_run(&schedule);
		/* twice as many find two full sets under one secret in twenty */
		if (schedule.sources <= WAYS / 4)
			assert_int_equal(world.admission.event[SL_EVENT_FORGOTTEN].total, 0);
	}
}

/* Who is blocked stays, while no set is full of such, whoever else comes. */
static void test_who_is_blocked_stays(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct schedule schedule = {
			.limit = limit_of(6, SL_RATE_PER_MIN, 16),
			.budget = i % 2,
			.sources = 6 * WAYS,
			.crowd = i & 2 ? ~0U : WAYS / 16,
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
