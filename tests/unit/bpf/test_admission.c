// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/admission.h, compiled for the host with any number of CPUs: what include/pool.h states of it.
 */
#include "test.h"
#include "bpf_host.h"
#include "gate/gate_make.h"
#include "random.h"

#include "admission.h"
#include "rules/sizes.h"

#define CPUS_MAX 512
#define DAY_NS	 (86400 * SEC_NS)

static struct {
	struct sl_gate gate;
	struct sl_pool_word pools[SL_POOLS];
	struct sl_admission admission[CPUS_MAX];
	unsigned int cpu;
	uint32_t entries;
	uint64_t jiffy_ns;
	unsigned int looks; /* at `pools` */
} world;

static void *map_find(const void *map, const void *key)
{
	if (map == &gate)
		return &world.gate;
	if (map == &admission)
		return &world.admission[world.cpu];
	assert_ptr_equal(map, &pools);
	world.looks++;
	return array_entry(world.pools, sizeof(*world.pools), SL_POOLS, key);
}

/* A gate whose maps have so many entries each, a day after boot. */
static void world_begin(uint32_t entries, unsigned int cpus, unsigned int hz)
{
	static const __u64 secret[SL_SECRETS];
	const struct gate_sizes sizes = {.sources = entries, .hot = entries};
	const struct machine machine = {.cpus = cpus, .jiffy_ns = 1000000000U / hz};

	memset(&world, 0, sizeof(world));
	world.entries = entries;
	world.jiffy_ns = machine.jiffy_ns;
	world.gate.meeting = gate_meeting(&sizes, &machine, secret);
	test_jiffies = DAY_NS / world.jiffy_ns;
}

/* Makes as many insertions as this CPU may, `most` at most; returns how many. */
static uint32_t insert(unsigned int cpu, uint32_t most)
{
	uint32_t inserted = 0;

	world.cpu = cpu;
	admission_begin(&world.admission[cpu], &world.gate.meeting, test_jiffies);
	while (inserted < most) {
		tokens_get(&world.admission[cpu], &world.gate.meeting, SL_POOL_LEDGERS);
		if (!admission_take(SL_POOL_LEDGERS))
			break;
		inserted++;
	}
	return inserted;
}

static uint32_t half(void)
{
	return world.entries / 2;
}

/* Rounded up, as a pool sets it aside. */
static uint32_t window_brings(void)
{
	return (world.gate.meeting.refill[SL_POOL_LEDGERS] >> SL_TOKEN_SHIFT) + 1;
}

static const struct {
	uint32_t entries;
	unsigned int cpus;
} gates[] = {
	{512, 2},     {1 << 14, 2},   {1 << 18, 1},  {1 << 18, 2},
	{32768, 128}, {1 << 18, 128}, {131072, 512}, {300000, 24},
};

static const unsigned int hzs[] = {100, 250, 300, 1000};

static void each_gate(void (*check)(unsigned int cpus))
{
	for (size_t i = 0; i < ARRAY_SIZE(gates); i++)
		for (size_t j = 0; j < ARRAY_SIZE(hzs); j++) {
			world_begin(gates[i].entries, gates[i].cpus, hzs[j]);
			check(gates[i].cpus);
		}
}

/*
 * One CPU inserts half of the map at once, less what is set aside: a sixteenth of that, or four
 * tokens a CPU, for the others, and one window's tokens.
 */
static void check_alone_at_once(unsigned int cpus)
{
	uint32_t batches = world.gate.meeting.batch[SL_POOL_LEDGERS] * cpus;

	assert_true(batches <= half() / 16 || batches == SL_LIMITS_MAX * cpus);
	assert_int_equal(insert(0, world.entries), half() - batches - window_brings());
	assert_int_equal(insert(0, 1), 0);
}

static void test_one_cpu_inserts_half_of_the_map_at_once(void **state)
{
	(void)state;
	each_gate(check_alone_at_once);
}

/* One CPU inserts 60/32 of the map in a minute, while each other CPU keeps a batch unused. */
static void check_alone_for_long(unsigned int cpus)
{
	uint64_t ticks = 60 * 1000000000ULL / world.jiffy_ns, inserted = 0,
		 due = world.entries * 60ULL / 32;

	for (unsigned int cpu = 1; cpu < cpus; cpu++)
		assert_int_equal(insert(cpu, 1), 1);
	insert(0, world.entries);
	for (uint64_t tick = 0; tick < ticks; tick++) {
		test_jiffies++;
		inserted += insert(0, world.entries);
	}
	if (inserted > due || inserted + 1 < due - due / 50)
		fail_msg("%u entries, %u CPUs, a tick of %lu ns: %lu insertions in a minute, not "
			 "%lu",
			 world.entries, cpus, world.jiffy_ns, inserted, due);
}

static void test_one_cpu_inserts_as_windows_bring(void **state)
{
	(void)state;
	each_gate(check_alone_for_long);
}

static uint64_t random_below(uint64_t end)
{
	static uint64_t state = RANDOM_BEGIN;

	return random_next(&state) % end;
}

/*
 * CPUs that come and go at random: over any span of time all of them insert half of the map at
 * most, and a thirty-second part of it each second. A token bucket of that size and rate, charged
 * with every insertion, never falls below zero.
 */
static void check_together(unsigned int cpus)
{
	double rate = world.entries / 32. * world.jiffy_ns / 1e9, level = half();

	for (int step = 0; step < 3000; step++) {
		uint64_t ticks = random_below(4) ? random_below(3) : random_below(2000);

		test_jiffies += ticks;
		level += ticks * rate;
		level = level < half() ? level : half();
		level -= insert(random_below(cpus),
				random_below(2) ? random_below(20) : random_below(half()));
		if (level < -0.01)
			fail_msg("%u entries, %u CPUs, a tick of %lu ns: step %d, %f tokens too "
				 "many",
				 world.entries, cpus, world.jiffy_ns, step, -level);
	}
}

static void test_all_cpus_insert_within_the_bound(void **state)
{
	(void)state;
	each_gate(check_together);
}

/* Each CPU inserts once, after a long time without insertions. */
static void check_together_at_once(unsigned int cpus)
{
	uint64_t inserted = 0, cpus_then = cpus;

	for (unsigned int cpu = 0; cpu < cpus; cpu++) /* each keeps what is left of a batch */
		inserted += insert(cpu, 1);
	test_jiffies += DAY_NS / world.jiffy_ns;
	for (inserted = 0; cpus--;)
		inserted += insert(cpus, world.entries);
	assert_in_range(inserted, half() - window_brings() - cpus_then, half());
}

static void test_all_cpus_insert_half_of_the_map_at_once(void **state)
{
	(void)state;
	each_gate(check_together_at_once);
}

/* While there are no tokens, packets read the pools when a window begins, and ask once. */
static void test_a_flood_reads_the_pools_once_a_window(void **state)
{
	uint64_t begin;

	(void)state;
	world_begin(1 << 18, 128, 250);
	insert(1, world.entries);
	for (int window = 0; window < 10; window++) {
		struct sl_meeting *meeting = &world.gate.meeting;

		for (begin = pool_window(meeting, test_jiffies);
		     begin == pool_window(meeting, test_jiffies); test_jiffies++)
			;
		insert(0, 0);
		insert(1, world.entries); /* what this window brings */
		world.looks = 0;
		for (int packet = 0; packet < 10000; packet++)
			assert_int_equal(insert(0, 1), 0);
		assert_in_range(world.looks, 0, 1);
	}
}

/*
 * An earlier window, as of a tick that was read before another CPU's, brings no tokens and takes
 * none.
 */
static void test_an_earlier_window_brings_and_takes_nothing(void **state)
{
	uint32_t inserted;

	(void)state;
	world_begin(1 << 18, 2, 250);
	insert(0, world.entries);
	test_jiffies += 16 * 16;
	inserted = insert(0, 100);
	test_jiffies -= 3 * 16;
	inserted += insert(1, 100);
	test_jiffies -= 30 * 16;
	inserted += insert(1, 100);
	test_jiffies += 33 * 16;
	inserted += insert(0, world.entries) + insert(1, world.entries);
	assert_in_range(inserted, 16 * (window_brings() - 1), 16 * window_brings());
}

/* Once another CPU has taken tokens in a later window, nothing is left in this one. */
static void test_nothing_is_left_in_an_earlier_window(void **state)
{
	const struct sl_meeting *meeting = &world.gate.meeting;
	const enum sl_pool pool = SL_POOL_LEDGERS;
	uint64_t window, spent;

	(void)state;
	world_begin(65536, 2, 250);
	window = pool_window(meeting, test_jiffies);
	spent = pool_made(meeting, pool, window + 2);
	for (uint64_t earlier = window; earlier < window + 2; earlier++) {
		assert_int_equal(pool_left(meeting, pool, spent, earlier), 0);
		assert_int_equal(pool_level(meeting, pool, spent, earlier), 0);
	}
	assert_int_equal(pool_left(meeting, pool, spent, window + 2), 0);
	assert_int_equal(pool_left(meeting, pool, spent, window + 3), meeting->refill[pool]);
}

/* The fewer tokens are left, the more packets a source must have sent: at each edge. */
static void test_the_bar_rises_as_tokens_end(void **state)
{
	static const struct {
		uint32_t left;
		bool crowded;
		uint32_t bar;
	} cases[] = {
		{1600, false, 0},	{1600, true, 2}, {801, false, 0}, {801, true, 2},
		{800, false, 2},	{800, true, 2},	 {401, false, 2}, {400, false, 4},
		{201, false, 4},	{200, false, 8}, {1, false, 8},	  {1, true, 8},
		{0, false, BAR_CLOSED},
	};
	struct sl_meeting meeting = {.tokens = {[SL_POOL_LEDGERS] = 1600}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(
			pool_bar(&meeting, SL_POOL_LEDGERS, cases[i].left, cases[i].crowded),
			cases[i].bar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cpu_inserts_half_of_the_map_at_once),
		cmocka_unit_test(test_one_cpu_inserts_as_windows_bring),
		cmocka_unit_test(test_all_cpus_insert_within_the_bound),
		cmocka_unit_test(test_all_cpus_insert_half_of_the_map_at_once),
		cmocka_unit_test(test_an_earlier_window_brings_and_takes_nothing),
		cmocka_unit_test(test_a_flood_reads_the_pools_once_a_window),
		cmocka_unit_test(test_nothing_is_left_in_an_earlier_window),
		cmocka_unit_test(test_the_bar_rises_as_tokens_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
