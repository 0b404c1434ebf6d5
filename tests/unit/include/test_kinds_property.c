// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the documented bounds of each kind of limit on random schedules. The schedules have any
 * number of CPUs, late clocks, long pauses, refunds, slices, blocks and empty starts. Models in
 * tests/lib check the results.
 *
 * In tests of races, several CPUs run bpf/charge.h, and a CPU can be interrupted before each access
 * to a shared word. A failed test prints its seed; `test_kinds_property SEED` repeats it.
 */
#include "test.h"
#include <pthread.h>
#include <semaphore.h>
#include "kind_run.h"

#define SEED	   20250611ULL
#define RUNS	   1000
#define RACES	   1000
#define STEPS	   400
#define RACE_STEPS 160

static uint64_t random_state;
static uint64_t first_seed = SEED;
static bool only_one;

/* The pseudorandom generator splitmix64 (Steele, Lea, Flood 2014), which accepts any seed. */
static uint64_t run_choose(uint64_t bound)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % bound;
}

static void assert_no_fault(uint64_t seed)
{
	const struct sl_limit *limit = &run.limit;

	if (run.fault)
		fail_msg("seed %llu: %s; kind %d, rate %llu, burst %llu, span %llu ns, groups %d, "
			 "by_bytes %d, shift %d, cpus %d, epoch %llx",
			 (unsigned long long)seed, run.fault, limit->kind,
			 (unsigned long long)run.spec.rate, (unsigned long long)run.spec.burst,
			 (unsigned long long)run.spec.span_ns, limit->groups, limit->by_bytes,
			 limit->shift, run.cpus, (unsigned long long)run.epoch);
}

/* --- Without races -------------------------------------------------------------------------- */

/* Compares each verdict and departure time with a reference model of the kind of limit. */
static void run_alone(enum sl_kind kind, bool lags)
{
	uint64_t passed = 0, refused = 0;

	for (uint64_t i = 0; i < (only_one ? 1 : RUNS); i++) {
		random_state = first_seed + i;
		run_draw(kind, lags, true);
		for (int step = 0; step < STEPS; step++) {
			if (run_one_in(2))
				run_rest();
			run_packet(run_choose(run.cpus));
		}
		run_end();
		assert_no_fault(first_seed + i);
		passed += run.passed;
		refused += run.refused;
	}
	assert_true(only_one || (passed > RUNS * STEPS / 20 && refused > RUNS * STEPS / 20));
}

/* --- Not too little ------------------------------------------------------------------------- */

#define SHARES	    40
#define SHARE_STEPS 6000

/*
 * A source sends at twice its rate through all CPUs. The passed traffic must reach the limit's
 * rate, except for 1 %, a packet, the credit in slices, and a jiffy of refusals.
 */
static void share_check(uint64_t seed)
{
	const struct sl_limit *limit = &run.limit;
	uint64_t largest = credit_cost(limit, 1, 1514);
	__int128 passed = 0, least, span;
	true_time begin = run.now;
	int cpu = 0;

	*host_state = (struct sl_state){
		.empty_at = run_clock(0), .full_at = run_clock(0), .charged_at = run_clock(0)};
	for (int i = 0; i < SHARE_STEPS; i++) {
		struct packet packet = host_packet(limit, 1, run_clock(cpu));
		struct verdict verdict = {.is_hot = true};
		uint64_t cost;

		packet.bytes = 60 + run_choose(1455);
		packet.jiffy = run_jiffies();
		cost = host_cost(limit, &packet);
		run.now += run_choose(cost + 1); /* twice the limit's rate, on average */
		if (host_ask(limit, &packet, &run.bucket[cpu], &verdict) == SL_PASS_WITHIN)
			passed += cost;
		if (run_one_in(4))
			cpu = run_choose(run.cpus);
	}
	span = run.now - begin;
	least = span - span / 100 - credit_slices(limit) - largest -
		(limit->refuse_by_jiffy ? run.jiffy : 0);
	if (passed < least)
		fail_msg("seed %llu: only %lld of %lld ticks passed", (unsigned long long)seed,
			 (long long)passed, (long long)span);
}

static void test_bucket_with_slices_gets_its_share_at_twice_the_rate(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed, tried = 0; tried < (only_one ? 1 : SHARES); seed++) {
		random_state = seed;
		run_draw(SL_TOKEN_BUCKET, true, true);
		if (!run_has_slices())
			continue;
		share_check(seed);
		tried++;
	}
}

/* --- Races ---------------------------------------------------------------------------------- */

/* Each CPU is a thread. Threads run one at a time, so that a schedule can be repeated. */
static struct {
	pthread_t thread;
	sem_t turn;
	true_time asleep; /* simulated time at which the sleeping CPU runs again */
	bool done;
} lanes[RUN_CPUS];

static int current;
static int steps_left; /* remaining steps of all CPUs together */
static sem_t all_done;

static int lane_next(void)
{
	int ready[RUN_CPUS], count = 0, first = -1;

	for (int i = 0; i < run.cpus; i++) {
		if (lanes[i].done)
			continue;
		if (first < 0 || lanes[i].asleep < lanes[first].asleep)
			first = i;
		if (lanes[i].asleep <= run.now)
			ready[count++] = i;
	}
	if (count)
		return ready[run_choose(count)];
	if (first >= 0 && run.now < lanes[first].asleep)
		run.now = lanes[first].asleep;
	return first;
}

/* Chooses a random CPU to run next. Waits until this CPU is chosen. */
static void lane_yield(int self)
{
	int next = lane_next();

	if (next == self)
		return;
	current = next;
	sem_post(next < 0 ? &all_done : &lanes[next].turn);
	if (lanes[self].done)
		return;
	while (sem_wait(&lanes[self].turn))
		;
}

static void lane_between(void)
{
	int self = current;

	if (!run_one_in(3))
		return;
	if (run_one_in(2))
		run_rest();
	if (run_one_in(4))
		lanes[self].asleep = run.now + run_choose(run_patience() + 1);
	lane_yield(self);
}

static void *lane_run(void *data)
{
	int self = (intptr_t)data;

	while (sem_wait(&lanes[self].turn))
		;
	while (steps_left-- > 0) {
		if (run_one_in(3))
			run_rest();
		run_packet(self);
		lane_yield(self);
	}
	lanes[self].done = true;
	lane_yield(self);
	return NULL;
}

static void race(void)
{
	steps_left = RACE_STEPS;
	host_between = lane_between;
	for (int i = 0; i < run.cpus; i++) {
		lanes[i].asleep = 0;
		lanes[i].done = false;
		sem_init(&lanes[i].turn, 0, 0);
		pthread_create(&lanes[i].thread, NULL, lane_run, (void *)(intptr_t)i);
	}
	current = 0;
	sem_post(&lanes[0].turn);
	while (sem_wait(&all_done))
		;
	for (int i = 0; i < run.cpus; i++)
		pthread_join(lanes[i].thread, NULL);
	host_between = NULL;
}

static void run_races(enum sl_kind kind)
{
	uint64_t passed = 0, refused = 0;

	sem_init(&all_done, 0, 0);
	for (uint64_t i = 0; i < (only_one ? 1 : RACES); i++) {
		random_state = first_seed + i;
		run_draw(kind, true, false);
		race();
		run_end();
		assert_no_fault(first_seed + i);
		passed += run.passed;
		refused += run.refused;
	}
	assert_true(only_one ||
		    (passed > RACES * RACE_STEPS / 20 && refused > RACES * RACE_STEPS / 20));
}

/* --- The table of cases --------------------------------------------------------------------- */

static const struct plan {
	const char *name;
	enum sl_kind kind;
	enum { ALONE, LAG, RACE } how;
} plans[] = {
	{"bucket is a plain bucket", SL_TOKEN_BUCKET, ALONE},
	{"window is aligned sub-windows", SL_WINDOW, ALONE},
	{"shape is a queue", SL_SHAPE, ALONE},
	{"bucket keeps its promise where clocks differ", SL_TOKEN_BUCKET, LAG},
	{"window is aligned sub-windows where clocks differ", SL_WINDOW, LAG},
	{"shape is a queue where clocks differ", SL_SHAPE, LAG},
	{"bucket keeps its promise in races", SL_TOKEN_BUCKET, RACE},
	{"window keeps its promise in races", SL_WINDOW, RACE},
	{"shape keeps its promise in races", SL_SHAPE, RACE},
};

static void plan_run(void **state)
{
	const struct plan *plan = *state;

	if (plan->how == RACE)
		run_races(plan->kind);
	else
		run_alone(plan->kind, plan->how == LAG);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[ARRAY_SIZE(plans) + 1] = {
		cmocka_unit_test(test_bucket_with_slices_gets_its_share_at_twice_the_rate)};

	for (size_t i = 0; i < ARRAY_SIZE(plans); i++)
		tests[i + 1] = (struct CMUnitTest){.name = plans[i].name,
						   .test_func = plan_run,
						   .initial_state = (void *)&plans[i]};
	if (argc > 1) {
		first_seed = strtoull(argv[1], NULL, 10);
		only_one = true;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
