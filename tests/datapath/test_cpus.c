// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of one source that sends at full speed on all CPUs. At most burst + rate x t packets may
 * pass, and at least 98 % of this number must pass. The shipped programs use the kernel's clock.
 */
#include "rig.h"

#include <bpf/bpf.h>

#define ADDRESS	  "192.0.2.1"
#define NEIGHBOUR "192.0.2.%u" /* format of addresses in one /24 */

#define PACKETS_LEAST 10000000ULL
/*
 * Time in ns for which the threads send. It is long, so less than 2 % of the credit stays unused in
 * slices.
 */
#define RUN_NS	 1500000000ULL
#define SPEED_NS 300000000ULL
#define CHUNK	 20000 /* packets in one system call of a few milliseconds */
#define THREADS	 100
#define ATTEMPTS 5 /* maximum number of runs of a test; other processes can make a run slow */

/*
 * Sends the first packet of a source. Returns the time of its charge in ticks, read from the
 * source's state.
 */
static uint64_t first_packet(const struct rig *rig, int prog, const struct frame *frame)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->bytes, .data_size_in = frame->size,
		    .repeat = 1);
	struct sl_prefix source = prefix_of(ADDRESS);
	struct sl_state state;

	assert_int_equal(bpf_prog_test_run_opts(prog, &opts), 0);
	assert_true(rig_state(rig, &source, rig_limit(rig, ADDRESS), &state));
	return state.full_at;
}

struct result {
	uint64_t sent, passed, dropped, contended;
	double most; /* packets that may pass: burst + rate x t */
};

static struct result result_read(const struct rig *rig, const struct flood *floods,
				 unsigned int count, uint64_t begin)
{
	struct sl_counters counters = rig_counters(rig);
	const struct sl_limit *limit = rig_limit(rig, ADDRESS);
	struct result result = {
		.sent = 1,
		.passed = counters_passed(&counters).packets,
		.dropped = counters_dropped(&counters).packets,
		.contended = counters.reason[SL_DROP_CONTENDED].packets,
	};
	uint64_t end = floods[0].end;

	for (unsigned int i = 0; i < count; i++) {
		result.sent += floods[i].sent;
		end = (int64_t)(floods[i].end - end) > 0 ? floods[i].end : end;
	}
	result.most = (double)(limit->burst + (end - begin)) / limit->cost;
	return result;
}

/* Checks that every packet was counted, and that no more passed than the limit allows. */
static void result_check(const struct result *result)
{
	assert_int_equal(result->passed + result->dropped, result->sent);
	assert_true(result->passed <= result->most);
}

/* --- Two CPUs at full speed ----------------------------------------------------------------- */

/* The rate of a limit is the packet rate of the machine, divided by one of these numbers. */
#define SPEED_FIXED   10
#define SPEED_HIGHEST 3

struct speed_case {
	/* rate in packets per second; 0: 1/SPEED_HIGHEST of the rate that the machine can send */
	uint32_t pps;
	const char *burst;
	enum hook hook;
};

static void flood_all_cpus(struct flood *floods, const struct rig *rig, const struct flood *like)
{
	for (unsigned int i = 0; i < rig->cpus; i++) {
		floods[i] = *like;
		floods[i].cpu = rig->cpu[i];
		flood_start(&floods[i]);
	}
	for (unsigned int i = 0; i < rig->cpus; i++)
		flood_join(&floods[i]);
}

/* Returns how many packets per second all CPUs can send, under a limit that refuses none. */
static uint64_t machine_speed(struct rig *rig, const struct shipped *shipped)
{
	struct frame frame = frame_from(ADDRESS, 60);
	struct flood like = {
		.prog = shipped->prog[HOOK_INGRESS],
		.frame = &frame,
		.chunk = CHUNK,
		.first = true,
	};
	struct flood floods[RIG_CPUS_MAX];
	uint64_t begin;

	rig_empty(rig);
	rig_set(rig, "default", "200mpps", "1s");
	begin = clock_ns();
	like.until_ns = begin + SPEED_NS;
	flood_all_cpus(floods, rig, &like);
	return rig_reason(rig, SL_PASS_WITHIN) * 1000000000 / (clock_ns() - begin);
}

static uint64_t speed_rate(const struct speed_case *it, uint64_t speed)
{
	if (!it->pps)
		return speed / SPEED_HIGHEST;
	return it->pps < speed / SPEED_FIXED ? it->pps : speed / SPEED_FIXED;
}

static struct result speed_measure(struct rig *rig, const struct shipped *shipped,
				   const struct speed_case *it)
{
	struct frame frame = frame_from(ADDRESS, 60);
	uint64_t begin = first_packet(rig, shipped->prog[it->hook], &frame);
	struct flood like = {
		.prog = shipped->prog[it->hook],
		.frame = &frame,
		.chunk = it->hook == HOOK_XDP ? 50 * CHUNK : CHUNK,
		.count = PACKETS_LEAST / rig->cpus + 1,
		.until_ns = clock_ns() + RUN_NS,
		/*
		 * On XDP, send without real-time priority, because a real-time thread would delay
		 * RCU grace periods.
		 */
		.first = it->hook == HOOK_INGRESS,
	};
	struct flood floods[2 * RIG_CPUS_MAX];
	unsigned int count = rig->cpus;

	flood_all_cpus(floods, rig, &like);
	if (it->hook == HOOK_XDP) {
		/*
		 * On XDP, a test run waits for RCU grace periods before it sends. So the last
		 * packets are sent on TC.
		 */
		like.prog = shipped->prog[HOOK_INGRESS];
		like.chunk = like.count = CHUNK;
		like.first = true;
		flood_all_cpus(floods + rig->cpus, rig, &like);
		count = 2 * rig->cpus;
	}
	return result_read(rig, floods, count, begin);
}

/*
 * Returns whether the threads sent at least 1.5 times the limit, and at least 98 % of the limit
 * passed. On a busy machine, the threads may be too slow.
 */
static bool speed_is_close(const struct result *result)
{
	return result->sent > 1.5 * result->most && result->passed > 0.98 * result->most;
}

static void speed_check(struct rig *rig, const struct shipped *shipped, const struct speed_case *it)
{
	struct result result;
	int attempt = 0;

	do {
		uint64_t speed = machine_speed(rig, shipped);
		char rate[32];

		snprintf(rate, sizeof(rate), "%lupps", speed_rate(it, speed));
		rig_empty(rig);
		rig_set(rig, "default", rate, it->burst);
		result = speed_measure(rig, shipped, it);
		print_message(
			"figure: %u CPUs of %lu pps, %s %s, %s: sent %lu, passed %lu, at most "
			"%.0f: %.4f (%lu contended)\n",
			rig->cpus, speed, rate, it->burst, hook_names[it->hook], result.sent,
			result.passed, result.most, result.passed / result.most, result.contended);
		result_check(&result);
	} while (!speed_is_close(&result) && ++attempt < ATTEMPTS);
	assert_true(speed_is_close(&result));
}

TEST(test_full_speed)
{
	static const struct speed_case cases[] = {
		{1000, "1s", HOOK_INGRESS},	  {10000, "100ms", HOOK_INGRESS},
		{100000, "100ms", HOOK_INGRESS},  {100000, "2s", HOOK_XDP},
		{1000000, "200ms", HOOK_INGRESS}, {1000000, "100ms", HOOK_INGRESS},
		{0, "200ms", HOOK_INGRESS},
	};
	struct rig *rig = rig_begin(state);
	struct shipped shipped;

	rig_need_cpus(rig, 2);
	shipped = rig_ship(rig, HOOK_BIT(HOOK_XDP) | HOOK_BIT(HOOK_INGRESS));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		speed_check(rig, &shipped, &cases[i]);
	shipped_free(&shipped);
}

/* --- Many threads --------------------------------------------------------------------------- */

/* Each thread sends from its own source. All these sources have the same key under the limit. */
static struct result flood_neighbours(struct rig *rig, int prog)
{
	struct frame frames[THREADS], first = frame_from(ADDRESS, 60);
	uint64_t begin = first_packet(rig, prog, &first);
	struct flood floods[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		char text[32];

		snprintf(text, sizeof(text), NEIGHBOUR, i);
		frames[i] = frame_from(text, 60);
		floods[i] = (struct flood){
			.prog = prog,
			.cpu = rig->cpu[i % rig->cpus],
			.frame = &frames[i],
			.chunk = 1000,
			.count = 10000,
		};
		flood_start(&floods[i]);
	}
	for (int i = 0; i < THREADS; i++)
		flood_join(&floods[i]);
	return result_read(rig, floods, THREADS, begin);
}

TEST(test_hundred_sources_of_one_key)
{
	static const char *const words[] = {
		"rate 1kpps burst 100000 per 24", "rate 1/min burst 200000 per 24",
		"rate 1/h burst 50 per 24", "rate 1/min burst 300000 per 0"};
	struct rig *rig = rig_begin(state);
	struct shipped shipped = rig_ship(rig, HOOK_BIT(HOOK_INGRESS));

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct result result;

		rig_empty(rig);
		rig_limits(rig, "default", words[i], NULL);
		result = flood_neighbours(rig, shipped.prog[HOOK_INGRESS]);
		print_message("figure: %d sources of one key, 10000 each, %s: passed %lu, at most "
			      "%.1f\n",
			      THREADS, words[i], result.passed, result.most);
		result_check(&result);
		assert_true(result.passed >= 0.99 * (uint64_t)result.most);
	}
	shipped_free(&shipped);
}

TESTS(rig_setup, rig_teardown)
