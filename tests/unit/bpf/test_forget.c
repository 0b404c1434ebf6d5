// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the table of states with an LRU table of the same size. There are more sources than
 * entries. If an abuser's state is evicted, the abuser can exceed its limit.
 *
 * Runs the packet path on the host with a simulated clock. Each spoofed source sends one, three or
 * ten packets. Each abuser sends more than its limit. Each honest source sends four fifths of its
 * limit. docs/performance.md quotes the lines that begin with `figure:`.
 */
#include <math.h>
#include "gate/maps.h" /* included first, because <net/if.h> must precede <linux/if.h> */
#include "charge_host.h"

/*
 * The simulated gate has 1/PART of the default size. The flood has 1/PART of 2.56 million packets
 * per second.
 */
#define PART   128
#define FORGED (2560000 / PART) /* spoofed packets per second */

#define SETS	512 /* a gate for 3072 sources has 512 sets of 8 entries */
#define ENTRIES (SETS * SL_WAYS)
#define EACH	50 /* number of abusers, and number of honest sources */

static uint64_t unknown; /* passed packets of new sources since the start of the flood */

struct scene {
	const char *name;
	struct sl_limit_spec limit;
	uint64_t budget;      /* packets per second; 0: new sources have no budget */
	unsigned int packets; /* packets per spoofed source */
	unsigned int seconds;
};

static void time_set(uint64_t ns)
{
	clock_set((SEC_NS + ns) * SL_TICKS_PER_NS);
}

static void world_begin(const struct scene *scene)
{
	const struct machine machine = {.jiffy_ns = JIFFY_NS, .cpus = 1, .cpu_ids = 1};
	struct gate_sizes sizes = gate_sizes_default(&machine);
	struct sl_limit limit;
	__u32 threshold;

	random_state = RANDOM_BEGIN;
	host_gate_begin(SL_IPV4, SETS);
	time_set(0);
	threshold = gate_params(&sizes, &machine).flood_threshold / PART;
	sizes.sources /= PART;
	host_table.gate.params = gate_params(&sizes, &machine);
	assert_int_equal(host_table.gate.params.set_mask, SETS - 1);
	host_table.gate.params.sketch_mask = SL_SKETCH_LINES / PART - 1;
	host_table.gate.params.flood_threshold = threshold;
	unknown = 0;
	limit = spec_limit(scene->limit, 1);
	limit.charge_hits = true;
	limit.id = 1; /* a fixed id, because the results depend on the id */
	host_add(&limit);
	host.policy.by_source[SL_IPV4] = 1;
	if (scene->budget)
		host_set_budget(limit_of(scene->budget, scene->budget, 1));
}

/* Sends a packet of a source. Returns whether it passes. */
static bool table_passes(uint32_t source)
{
	struct verdict verdict;

	host_charge(source, NULL, &verdict);
	unknown += verdict.reason == SL_PASS_NEWCOMER;
	return verdict.reason < SL_FIRST_DROP;
}

/* --- An LRU table ---------------------------------------------------------------------------- */

#define LRU_ROOM 3072
#define HEADS	 8192

static struct {
	uint32_t source[LRU_ROOM];
	struct sl_state state[LRU_ROOM];
	/* a hash table: `head` is the first slot of a chain, `next` is the next slot */
	int next[LRU_ROOM], head[HEADS];
	int newer[LRU_ROOM], older[LRU_ROOM];
	int newest, oldest, count;
} lru;

static void lru_begin(void)
{
	lru.count = 0;
	lru.newest = lru.oldest = -1;
	memset(lru.head, 0xff, sizeof(lru.head));
}

static unsigned int lru_hash(uint32_t source)
{
	return source * 0x9e3779b1U >> 19;
}

static void lru_unlink(int i)
{
	*(lru.newer[i] < 0 ? &lru.newest : &lru.older[lru.newer[i]]) = lru.older[i];
	*(lru.older[i] < 0 ? &lru.oldest : &lru.newer[lru.older[i]]) = lru.newer[i];
}

static void lru_push(int i)
{
	lru.newer[i] = -1;
	lru.older[i] = lru.newest;
	*(lru.newest < 0 ? &lru.oldest : &lru.newer[lru.newest]) = i;
	lru.newest = i;
}

static int lru_room(void)
{
	int i = lru.oldest, *link;

	if (lru.count < LRU_ROOM)
		return lru.count++;
	lru_unlink(i);
	for (link = &lru.head[lru_hash(lru.source[i])]; *link != i; link = &lru.next[*link])
		;
	*link = lru.next[i];
	return i;
}

static bool state_passes(struct sl_state *state)
{
	const struct sl_limit *limit = &host.policy.limit[SL_IPV4][0];
	struct kind_charge charge = {.cost = credit_cost(limit, 1, 60), .now = test_clock_ticks};
	struct sl_slice slice = {0};

	return kind_charge(SL_TOKEN_BUCKET, limit, state, &slice, &charge);
}

static bool lru_passes(uint32_t source)
{
	const struct sl_limit *limit = &host.policy.limit[SL_IPV4][0];
	int i = lru.head[lru_hash(source)];

	while (i >= 0 && lru.source[i] != source)
		i = lru.next[i];
	if (i >= 0) {
		lru_unlink(i);
	} else {
		i = lru_room();
		lru.source[i] = source;
		lru.state[i] = kind_new(limit->kind, limit, 0, test_clock_ticks);
		lru.next[i] = lru.head[lru_hash(source)];
		lru.head[lru_hash(source)] = i;
	}
	lru_push(i);
	return state_passes(&lru.state[i]);
}

/* --- A scene --------------------------------------------------------------------------------- */

/*
 * Passed packets divided by the packets that should pass. An exact token bucket determines how many
 * packets of an abuser should pass. All packets of other sources should pass.
 */
struct outcome {
	double abusers;
	double honest;
	double forged;
};

#define STEP_NS 100000

static struct outcome scene_run(const struct scene *scene, bool (*passes)(uint32_t source))
{
	const struct sl_limit *limit = &host.policy.limit[SL_IPV4][0];
	const uint64_t end = scene->seconds * SEC_NS, flood = end / 4;
	double rate, due_abuser = 0, due_honest = 0, due_forged = 0;
	double sent[3] = {0}, passed[3] = {0}, allowed = 0;
	uint64_t state = RANDOM_BEGIN, recent[1024];
	struct sl_state own[EACH];
	uint32_t number = 1U << 24;
	unsigned int left[1024] = {0};

	world_begin(scene);
	lru_begin();
	rate = (double)SL_TICKS_PER_SEC / limit->cost;
	for (int i = 0; i < EACH; i++)
		own[i] = kind_new(limit->kind, limit, 0, test_clock_ticks);
	for (uint64_t ns = 0; ns < end; ns += STEP_NS) {
		time_set(ns);
		/* each abuser exceeds its limit, and sends at least one packet per second */
		due_abuser += EACH * (4 * rate > 1 ? 4 * rate : 1) * STEP_NS / SEC_NS;
		/* an honest source sends four fifths of what its limit allows */
		due_honest += EACH * .8 *
			      ((double)limit->burst / limit->cost / scene->seconds + rate) *
			      STEP_NS / SEC_NS;
		if (ns == flood) {
			assert_true(sent[1] >= EACH); /* each source has a state */
			unknown = 0;
			sent[1] = passed[1] = 0;
		}
		if (ns >= flood)
			due_forged += (double)FORGED * STEP_NS / SEC_NS;
		for (; due_abuser >= 1; due_abuser--, sent[0]++) {
			unsigned int i = random_next(&state) % EACH;

			allowed += state_passes(&own[i]);
			passed[0] += passes(1 + i);
		}
		for (; due_honest >= 1; due_honest--, sent[1]++)
			passed[1] += passes(1001 + (uint32_t)sent[1] % EACH);
		for (; due_forged >= 1; due_forged--, sent[2]++) {
			unsigned int at = random_next(&state) % ARRAY_SIZE(recent);

			if (!left[at]) {
				left[at] = scene->packets;
				recent[at] = number++;
			}
			left[at]--;
			passed[2] += passes(recent[at]);
		}
	}
	return (struct outcome){
		.abusers = passed[0] / allowed,
		.honest = passed[1] / sent[1],
		.forged = passed[2] / sent[2],
	};
}

#define LIMIT(number, unit, packets)                                                               \
	{                                                                                          \
		.rate = number, .rate_unit = unit, .burst = packets                                \
	}

/* number of packets per spoofed source; each scene runs with each number */
static const unsigned int sends[] = {1, 3, 10};

/* Figures in docs/performance.md for one limit and one kind of flood. */
struct stated {
	double lru;    /* passed packets of abusers with the LRU table, in multiples of the limit */
	double honest; /* part of the honest packets that pass if new sources have a budget */
};

static void assert_stated(double figure, double stated, double digit)
{
	assert_true(fabs(figure - stated) <= digit * .6);
}

/*
 * Checks that new sources use nearly all of the budget in the flood, and never exceed it. A use of
 * half is enough if each spoofed source sends ten packets, because limits refuse many of these
 * packets.
 */
static void assert_budget(const struct scene *scene)
{
	double rate = scene->budget * scene->seconds * .75;

	assert_true(unknown <= rate + scene->budget &&
		    unknown >= (scene->packets < 10 ? .95 : .5) * rate);
}

static void scenes_run(const char *name, struct sl_limit_spec limit, unsigned int seconds,
		       const struct stated stated[ARRAY_SIZE(sends)])
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sends) * 2; i++) {
		struct scene scene = {name, limit, i % 2 ? 1000 : 0, sends[i / 2], seconds};
		struct outcome table = scene_run(&scene, table_passes), other;

		if (scene.budget)
			assert_budget(&scene);
		other = scene_run(&scene, lru_passes);
		print_message(
			"    figure: %s, forged sources of %2u packets, %s: abusers get %.2f of "
			"their limit (LRU %.2f), honest sources %.3f (%.3f), forged %.3f (%.3f)\n",
			name, scene.packets, scene.budget ? "budget" : "none  ", table.abusers,
			other.abusers, table.honest, other.honest, table.forged, other.forged);
		/* the budget may refuse the first packets of an abuser */
		if (scene.budget)
			assert_true(table.abusers < 1.006);
		else
			assert_stated(table.abusers, 1, .01);
		assert_stated(other.abusers, stated[i / 2].lru, .1);
		/* without a budget, all packets of honest sources pass */
		assert_stated(table.honest, scene.budget ? stated[i / 2].honest : 1, .01);
		if (scene.budget)
			assert_true(table.forged < other.forged);
	}
}

TEST(test_a_fast_limit)
{
	static const struct stated stated[] = {{1, 1}, {1, 1}, {1, 1}};

	scenes_run("100pps burst 100", (struct sl_limit_spec)LIMIT(100, SL_RATE_PPS, 100), 10,
		   stated);
}

TEST(test_a_slow_limit)
{
	static const struct stated stated[] = {{3.7, 1}, {3.7, .94}, {3.6, .46}};

	scenes_run("6/min burst 10", (struct sl_limit_spec)LIMIT(6, SL_RATE_PER_MIN, 10), 60,
		   stated);
}

TEST(test_a_very_slow_limit)
{
	static const struct stated stated[] = {{10, 1}, {9.9, .95}, {8.7, .25}};

	scenes_run("1/hour burst 5", (struct sl_limit_spec)LIMIT(1, SL_RATE_PER_HOUR, 5), 60,
		   stated);
}

/* --- Later abusers --------------------------------------------------------------------------- */

#define LATER_SECONDS 200

/*
 * First, spoofed sources fill the table and keep sending. Then each abuser begins to send a packet
 * per second. Returns the number of packets that pass per abuser.
 */
static double later_run(unsigned int forged, unsigned int packets, bool (*passes)(uint32_t source))
{
	const struct scene scene = {.limit = LIMIT(1, SL_RATE_PER_HOUR, 5), .packets = packets};
	const unsigned int begin = 2 * ENTRIES / forged;
	uint64_t state = RANDOM_BEGIN, passed = 0;
	uint32_t number = 1U << 24;
	double due_forged = 0, due_abuser = 0;

	world_begin(&scene);
	lru_begin();
	for (uint64_t ms = 0; ms < (begin + LATER_SECONDS) * 1000ULL; ms++) {
		time_set(ms * 1000000);
		for (due_forged += forged / 1000.; due_forged >= 1; due_forged--, number++)
			for (unsigned int i = 0; i < packets; i++)
				passes(number);
		if (ms >= begin * 1000ULL)
			due_abuser += EACH / 1000.;
		for (; due_abuser >= 1; due_abuser--)
			passed += passes(1 + random_next(&state) % EACH);
	}
	return (double)passed / EACH;
}

/*
 * Abusers begin to send when spoofed sources have filled the table. Limits must still apply to
 * abusers.
 */
TEST(test_later_abusers)
{
	static const struct {
		unsigned int forged; /* rate of new spoofed sources, per second */
		double least, most;  /* bounds of the passed packets per abuser */
		double lru;
	} cases[] = {{20, 0, 0, 5}, {60, 2, 4, 5}, {200, 3, 5, 5}, {1000, 14, 22, 47}};

	for (unsigned int i = 0; i < 3 * ARRAY_SIZE(cases); i++) {
		unsigned int rate = cases[i / 3].forged, sent = 3 + i % 3;
		double table = later_run(rate, sent, table_passes);
		double other = later_run(rate, sent, lru_passes);

		print_message(
			"    figure: 1/hour burst 5, %u forged sources a second of %u packets: a "
			"later abuser gets %.1f of %u packets (LRU %.1f)\n",
			rate, sent, table, LATER_SECONDS, other);
		assert_true(table >= cases[i / 3].least && table <= cases[i / 3].most);
		assert_stated(other, cases[i / 3].lru, 1);
	}
}

TESTS(NULL, NULL)
