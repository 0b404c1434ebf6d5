// SPDX-License-Identifier: GPL-2.0
/* Tests of how many packets of a source pass, exact to the packet, by an injected clock. */
#include "rig.h"

#include <stdlib.h>

#include "bucket_model.h"
#include "credit.h"
#include "rules/ruleset.h"

/* Limits, some with a burst that is large enough for slices and cached refusals. */
struct limit_case {
	const char *rate;
	const char *burst;
	uint64_t packets; /* burst in packets */
};

static const struct limit_case limit_cases[] = {
	{.rate = "1kpps", .burst = "1000", .packets = 1000},
	{.rate = "1mpps", .burst = "1000", .packets = 1000},
	{.rate = "1mpps", .burst = "200ms", .packets = 200000},
	{.rate = "100kpps", .burst = "1000", .packets = 1000},
	{.rate = "10pps", .burst = "1000", .packets = 1000},
	{.rate = "10pps", .burst = "20", .packets = 20},
	{.rate = "1/min", .burst = "1000", .packets = 1000},
	/* the cost of a packet is not a whole number of ticks */
	{.rate = "3mpps", .burst = "1000", .packets = 1000},
};

/* Returns a frame from a new source. IPv4 and IPv6 sources alternate. */
static struct frame next_source(void)
{
	static uint32_t number;
	char text[64];

	if (++number % 2)
		return frame_of(number);
	snprintf(text, sizeof(text), "2001:db8:%x:%x::1", number >> 16, number & 0xffff);
	return frame_from(text, FRAME_LEAST);
}

static const struct sl_limit *set_default(struct rig *rig, const struct limit_case *it)
{
	rig_set(rig, "default", it->rate, it->burst);
	return rig_limit(rig, "default");
}

/* --- The burst ------------------------------------------------------------------------------ */

TEST(test_fresh_burst)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(limit_cases); i++) {
		const struct limit_case *it = &limit_cases[i];

		set_default(rig, it);
		for (int hook = 0; hook < HOOKS; hook++) {
			struct frame frame = next_source();

			assert_int_equal(rig_send(rig, hook, &frame, it->packets), it->packets);
			assert_int_equal(rig_send(rig, hook, &frame, 100), 0);
			print_message("fresh burst, %s %s, %s: %lu of %lu, then 0 of 100\n",
				      it->rate, it->burst, hook_names[hook], it->packets,
				      it->packets);
		}
	}
	rig_check_counted(rig);
	print_message("figure: fresh burst of 1000: 1000 of 1000 pass, then 0 of 100; at 1/min to "
		      "3 mpps, XDP and TC\n");
}

/* A CPU cannot spend credit in the slice of another CPU. */
TEST(test_fresh_burst_of_two_cpus)
{
	struct rig *rig = rig_begin(state);

	rig_need_cpus(rig, 2);
	for (size_t i = 0; i < ARRAY_SIZE(limit_cases); i++) {
		const struct limit_case *it = &limit_cases[i];
		struct frame frame = next_source();
		uint64_t passed = 0;

		set_default(rig, it);
		for (int turn = 0; turn < 100; turn++) {
			rig_run_on(rig, turn % 2);
			passed += rig_send(rig, HOOK_INGRESS, &frame, it->packets / 50 + 1);
		}
		assert_int_equal(passed, it->packets);
		print_message("fresh burst over 2 CPUs, %s %s: %lu of %lu\n", it->rate, it->burst,
			      passed, it->packets);
	}
	rig_check_counted(rig);
	print_message("figure: fresh burst of 1000 over 2 CPUs in turn: 1000 pass\n");
}

/* --- Refill --------------------------------------------------------------------------------- */

/*
 * Spends the credit of a new source in the last tick of a jiffy. A cached refusal is valid only
 * within a jiffy, so it expires one tick later.
 */
static struct frame drain_new(struct rig *rig, const struct limit_case *it)
{
	struct frame frame = next_source();

	rig_clock_to_edge(rig);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, it->packets + 10), it->packets);
	return frame;
}

static void refill_check(struct rig *rig, const struct limit_case *it, uint64_t cost, uint64_t k)
{
	struct frame frame = drain_new(rig, it);
	uint64_t expected = k < it->packets ? k : it->packets;

	rig_clock_forward(rig, k * cost);
	assert_int_equal(rig_send(rig, HOOK_INGRESS, &frame, expected + 100), expected);
}

TEST(test_refill)
{
	static const uint64_t counts[] = {1, 2, 1000, 5000};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(limit_cases); i++) {
		const struct limit_case *it = &limit_cases[i];
		uint64_t cost = set_default(rig, it)->cost;

		for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
			refill_check(rig, it, cost, counts[k]);
		refill_check(rig, it, cost, 5 * it->packets);
		print_message("drained, then k/rate, %s %s: 1 2 1000 pass, at most %lu\n", it->rate,
			      it->burst, it->packets);
	}
	rig_check_counted(rig);
	print_message(
		"figure: drained, then k/rate: k pass, for k = 1, 2, 1000; 5000/rate: 1000\n");
}

/* --- Long runs ------------------------------------------------------------------------------ */

/*
 * Sends `batch` packets every `step` ticks for `span` ticks. Returns the total of passed packets.
 */
static uint64_t run_steadily(struct rig *rig, const struct frame *frame, uint64_t batch,
			     uint64_t step, uint64_t span)
{
	uint64_t passed = rig_send(rig, HOOK_INGRESS, frame, batch);

	for (uint64_t t = step; t <= span; t += step) {
		rig_clock_forward(rig, step);
		passed += rig_send(rig, HOOK_INGRESS, frame, batch);
	}
	return passed;
}

TEST(test_twice_the_rate)
{
	static const struct {
		const char *rate, *burst;
		uint64_t rate_pps, burst_packets, batch, step;
	} cases[] = {
		{"1kpps", "1000", 1000, 1000, 1, MS / 2},    {"1kpps", "8", 1000, 8, 1, MS / 2},
		{"10kpps", "1000", 10000, 1000, 1, MS / 20}, {"10kpps", "100", 10000, 100, 20, MS},
		{"10pps", "100", 10, 100, 1, SEC / 20},	     {"50kpps", "500", 50000, 500, 100, MS},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame frame = next_source();
		uint64_t most = cases[i].rate_pps * 10 + cases[i].burst_packets;
		uint64_t sent = cases[i].batch * (1 + 10 * SEC / cases[i].step), passed;

		rig_set(rig, "default", cases[i].rate, cases[i].burst);
		rig_clock_to_edge(rig);
		rig_clock_forward(rig, 1);
		passed = run_steadily(rig, &frame, cases[i].batch, cases[i].step, 10 * SEC);
		print_message("figure: 2x %s %s for 10 s: sent %lu, passed %lu, at most %lu\n",
			      cases[i].rate, cases[i].burst, sent, passed, most);
		assert_true(passed <= most);
		assert_true(passed + cases[i].burst_packets >= most);
	}
	rig_check_counted(rig);
}

TEST(test_one_a_minute)
{
	struct rig *rig = rig_begin(state);
	struct frame frame = next_source();
	uint64_t passed;

	rig_set(rig, "default", "1/min", "8");
	passed = run_steadily(rig, &frame, 1, SEC, 3 * 3600 * SEC);
	print_message("figure: 1/min, burst 8, over 3 hours: %lu passed\n", passed);
	assert_int_equal(passed, 180 + 8);
	rig_check_counted(rig);
}

/*
 * Asserts that a plain token bucket has enough credit for a packet that passed. A packet that costs
 * more than `refill` requires only `refill`. The rest of its cost becomes debt.
 */
static void assert_afforded(struct reference *reference, const struct sl_limit *limit, uint64_t now,
			    uint32_t packets)
{
	reference_charge(reference, ((__int128)limit->cost * packets) << 16, now);
	if (reference->lowest)
		fail_msg("%u packets pass, which is %.3f too many", packets,
			 -(double)reference->lowest / 65536 / limit->cost);
}

static uint32_t pick_bite(uint32_t burst)
{
	switch (rand() % 5) {
	case 0:
		return burst - rand() % (burst / 16);
	case 1:
		return 1 + rand() % burst;
	case 2:
		return burst + rand() % (2 * burst);
	default:
		return 1 + rand() % 2;
	}
}

static uint64_t pick_step(const struct sl_limit *limit)
{
	switch (rand() % 4) {
	case 0:
		return rand() % (2 * limit->cost);
	case 1:
		return limit->burst - (uint64_t)rand() % (limit->burst / 8);
	case 2:
		return (uint64_t)rand() % (2 * limit->burst);
	default:
		return 0;
	}
}

static void any_span_check(struct rig *rig, const char *rate, uint32_t burst, int turns)
{
	const struct sl_limit *limit;
	struct reference reference;
	uint64_t passed = 0;
	char text[16];

	snprintf(text, sizeof(text), "%u", burst);
	rig_empty(rig);
	rig_set(rig, "default", rate, text);
	limit = rig_limit(rig, "default");
	reference = reference_full(limit, rig_now(rig));
	for (int i = 0; i < turns; i++) {
		uint32_t packets = pick_bite(burst);

		rig_run_on(rig, rand() % rig->cpus);
		for (int again = rand() % 8; again >= 0; again--) {
			if (!rig_run_merged(rig, "192.0.2.1", packets))
				continue;
			assert_afforded(&reference, limit, rig_now(rig), packets);
			passed += packets;
		}
		rig_clock_forward(rig, pick_step(limit));
	}
	print_message("any span, %s %u, %s: %lu passed, each within the bound\n", rate, burst,
		      limit->slice ? "slices" : "no slices", passed);
	rig_check_counted(rig);
}

TEST(test_any_span)
{
	struct rig *rig = rig_begin(state);
	/* smallest burst in packets with which a limit has slices */
	uint32_t slices = 32 * rig->gate.machine.cpus;

	srand(2);
	any_span_check(rig, "100pps", slices, 10000);
	any_span_check(rig, "10pps", slices + 6, 5000);
	any_span_check(rig, "1/min", slices, 5000);
	any_span_check(rig, "100pps", 32, 5000);
	any_span_check(rig, "1mpps", slices, 5000);
	print_message("figure: over any span, with merged packets of up to 3 bursts, 1 or more "
		      "CPUs: never above\n");
}

/* --- Who shares ----------------------------------------------------------------------------- */

TEST(test_gates_do_not_share)
{
	struct gate_sizes sizes = {.sources = 1024, .buckets = 1024};
	struct rig *rig = rig_begin(state), *other = rig_make(&sizes, HOOKS_ALL);
	struct frame frame = frame_from("192.0.2.1", FRAME_LEAST);

	rig_set(rig, "default", "1/h", "10");
	rig_set(other, "default", "1/h", "20");
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 30), 10);
	assert_int_equal(rig_send(other, HOOK_XDP, &frame, 30), 20);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 30), 0);
	rig_check_counted(rig);
	rig_check_counted(other);
	rig_free(other);
}

/* --- Bit rates ------------------------------------------------------------------------------ */

struct bits_case {
	const char *rate, *burst;
	uint64_t byte_ps, burst_bytes;
};

static const struct bits_case bits_cases[] = {
	{"8mbit", "64kB", 1000000, 64000},
	{"8mbit", "2kB", 1000000, 2000},
	{"100mbit", "250ms", 12500000, 3125000},
	{"1gbit", "1MB", 125000000, 1000000},
	{"3kbit", "3kB", 375, 3000},
	{"7gbit", "500kB", 875000000, 500000},
};

/* Sends frames of these sizes by turns for `span` ticks, faster than the limit's rate. */
static void run_bytes(struct rig *rig, const struct bits_case *it, const uint32_t *sizes,
		      size_t count, uint64_t span)
{
	struct frame frames[4];
	uint64_t start = rig_now(rig), step = span / 4000;

	for (size_t i = 0; i < count; i++)
		frames[i] = frame_from("192.0.2.1", sizes[i]);
	for (size_t i = 0; rig_now(rig) - start <= span; i++) {
		uint64_t passed = rig->passed.packets;

		/* Send frames of one size until a frame is refused. */
		while (rig_send(rig, i % HOOKS, &frames[i % count], 1))
			assert_true(rig->passed.packets - passed <= it->burst_bytes);
		rig_clock_forward(rig, step);
	}
}

static void bits_check(struct rig *rig, const struct bits_case *it, const uint32_t *sizes,
		       size_t count)
{
	uint64_t span = 4 * it->burst_bytes * SEC / it->byte_ps, start, most, slack;

	rig_empty(rig);
	rig_set(rig, "default", it->rate, it->burst);
	start = rig_now(rig);
	run_bytes(rig, it, sizes, count, span);
	rig_clock_back(rig, span / 4000); /* back to the time of the last frames */
	most = it->burst_bytes + it->byte_ps * (rig_now(rig) - start) / SEC;
	/*
	 * The difference is at most one frame, plus the credit that refills while a refusal is
	 * cached.
	 */
	slack = sizes[count - 1] + it->byte_ps * (JIFFY + span / 4000) / SEC;
	print_message("%s %s, frames of %u: %llu bytes passed, at most %lu\n", it->rate, it->burst,
		      sizes[0], rig->passed.bytes, most);
	assert_true(rig->passed.bytes <= most);
	assert_true(rig->passed.bytes + slack >= most);
	rig_check_counted(rig);
}

TEST(test_bit_rates)
{
	static const uint32_t sizes[] = {60, 61, 590, 1514};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(bits_cases); i++) {
		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
			if (bits_cases[i].burst_bytes / sizes[s] < 10000)
				bits_check(rig, &bits_cases[i], &sizes[s], 1);
		bits_check(rig, &bits_cases[i], sizes, ARRAY_SIZE(sizes));
	}
	print_message("figure: bit rates, 3 kbit to 7 gbit: passed bytes at most burst + rate x t, "
		      "within a frame\n");
}

/* --- Merged packets ------------------------------------------------------------------------- */

/* Buffers of up to 45 packets, merged by GRO, pass exactly at the limit's rate. */
TEST(test_merged_packets_get_their_rate)
{
	static const struct {
		const char *rate, *burst;
		uint32_t packets, seconds;
	} cases[] = {
		{"100pps", "25", 45, 450}, {"100pps", "25", 26, 260},	{"1kpps", "250", 999, 99},
		{"1kpps", "400", 390, 39}, {"1mbit", "20kB", 900, 100},
	};
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_limit *limit;
		uint64_t end, cost, passed = 0;

		rig_empty(rig);
		rig_set(rig, "default", cases[i].rate, cases[i].burst);
		limit = rig_limit(rig, "default");
		cost = credit_cost(limit, cases[i].packets, cases[i].packets * 43);
		while (rig_run_merged(rig, "192.0.2.1", cases[i].packets))
			;
		for (end = rig_now(rig) + cases[i].seconds * SEC; rig_now(rig) < end;) {
			passed += rig_run_merged(rig, "192.0.2.1", cases[i].packets);
			rig_clock_forward(rig, 4 * MS + 1);
		}
		/* less than one packet of credit can be left; a full state gains no credit */
		assert_in_range(passed * cost, cases[i].seconds * SEC * 98 / 100 - cost,
				cases[i].seconds * SEC + cost);
	}
	rig_check_counted(rig);
	print_message("figure: packets of 26 to 999 under bursts of fewer: 98%% to 100%% of the "
		      "rate\n");
}

TESTS(rig_setup, rig_teardown)
