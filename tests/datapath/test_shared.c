// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the counters `taken` and `refused` of a shared limit (entry_count_shared() in
 * bpf/state.h). Their unit is 2^unit_shift ticks. `taken` can exceed the cost of passed packets by
 * the credit in slices, burst / 16.
 */
#include "rig.h"

#include <inttypes.h>
#include <bpf/bpf.h>

#include "gate/table.h"
#include "random.h"

#define SOURCE	"192.0.2.7"
#define SOURCE6 "2001:db8:1:2::7"

/* Limits, and whether they have per-CPU slices. */
static const struct {
	const char *words;
	bool has_slices;
} limits[] = {
	{"rate 1kpps burst 1000 shared yes", true},
	{"rate 100kpps burst 50000 shared yes", true},
	{"rate 1kpps burst 5 shared yes", false},
	{"rate 10pps burst 20 shared yes", false},
	{"rate 8mbit burst 1MB shared yes", true},
	{"rate 80kbit burst 3kB shared yes", false},
	{"rate 1kpps burst 1000 per 24/56 shared yes", false},
	{"rate 1kpps burst 100 action observe shared yes", false},
	{"rate 1kpps burst 100 action block 20ms shared yes", false},
	{"rate 1kpps 10mbit burst 1000 1MB shared yes", true},
};

static struct found_entry find_entry(const struct rig *rig, const struct sl_limit *limit,
				     const char *source)
{
	struct sl_prefix address = prefix_of(source);
	struct state_key key;
	struct found_entry found;
	__u64 addr[2];

	memcpy(addr, address.addr, sizeof(addr));
	key = state_key_of(limit, addr, prefix_is_ipv4(&address));
	assert_int_equal(table_read(&rig->gate, NULL, &key, &found), 0);
	assert_true(found.is_found);
	return found;
}

static struct sl_entry entry_of(const struct rig *rig, const struct sl_limit *limit,
				const char *source)
{
	return find_entry(rig, limit, source).entry;
}

/* Sets the two counters in the entry of a source. */
static void entry_begin(const struct rig *rig, const struct sl_limit *limit, const char *source,
			uint32_t taken, uint32_t refused)
{
	struct found_entry found = find_entry(rig, limit, source);

	found.entry.count.shared.taken = taken;
	found.entry.count.shared.refused = refused;
	assert_int_equal(bpf_map_update_elem(rig->gate.map[MAP_STATES], &found.index, &found.entry,
					     BPF_EXIST),
			 0);
}

static uint64_t ticks_of(const struct sl_limit *limit, uint32_t units)
{
	return (uint64_t)units << limit->unit_shift;
}

/* Returns what a frame of FRAME_LEAST bytes costs under a limit, in ticks. */
static uint64_t cost_of(const struct sl_limit *limit)
{
	return credit_cost(limit, 1, FRAME_LEAST);
}

/* Sends `count` packets at ten times the limit's rate, several at once. Returns how many pass. */
static uint64_t offer(struct rig *rig, enum hook hook, const struct frame *frame,
		      const struct sl_limit *limit, uint64_t count)
{
	uint64_t passed = 0, random = RANDOM_BEGIN;

	for (uint64_t sent = 0; sent < count;) {
		uint64_t some = 1 + random_next(&random) % 20;

		some = some < count - sent ? some : count - sent;
		rig_clock_forward(rig, some * cost_of(limit) / 10 +
					       random_next(&random) % (cost_of(limit) / 10 + 1));
		passed += rig_send(rig, hook, frame, some);
		sent += some;
	}
	return passed;
}

/*
 * Moves the clock until all slices and cached refusals have expired. Then sends a packet. The
 * charge of this packet adds all pending counts to the state.
 */
static uint64_t settle(struct rig *rig, enum hook hook, const struct frame *frame,
		       const struct sl_limit *limit)
{
	rig_clock_forward(rig, limit->burst + 2 * JIFFY);
	return rig_send(rig, hook, frame, 1);
}

static void check_counts(const char *what, const struct sl_limit *limit,
			 const struct sl_entry *entry, uint64_t taken, uint64_t asked)
{
	uint64_t slices = limit->burst / 16 + cost_of(limit);
	uint64_t has_taken = ticks_of(limit, entry->count.shared.taken),
		 has_asked =
			 ticks_of(limit, entry->count.shared.taken + entry->count.shared.refused);

	/* Accept an error of 2 %, because fractions of a unit are rounded at random. */
	if (has_taken < taken * 98 / 100 || has_taken > taken * 102 / 100 + slices)
		fail_msg("%s: taken %" PRIu64 " of %" PRIu64, what, has_taken, taken);
	if (has_asked < asked * 98 / 100 || has_asked > asked * 102 / 100)
		fail_msg("%s: asked %" PRIu64 " of %" PRIu64, what, has_asked, asked);
}

static void counts_of(struct rig *rig, size_t i, const char *source, enum hook hook)
{
	struct frame frame = frame_from(source, FRAME_LEAST);
	const struct sl_limit *limit;
	uint64_t count = 4000, passed;
	struct sl_entry entry;

	rig_empty(rig);
	rig_limits(rig, "default", limits[i].words, NULL);
	limit = rig_limit(rig, source);
	assert_true(limit->shared);
	if ((limit->slice != 0) != limits[i].has_slices)
		fail_msg("%s: slice of %" PRIu64, limits[i].words, (uint64_t)limit->slice);
	passed = offer(rig, hook, &frame, limit, count);
	passed += settle(rig, hook, &frame, limit);
	entry = entry_of(rig, limit, source);
	/*
	 * A limit that observes passes every packet. Compute from `taken` how many packets it did
	 * not refuse.
	 */
	if (limit->observe)
		passed = ticks_of(limit, entry.count.shared.taken) / cost_of(limit);
	check_counts(limits[i].words, limit, &entry, passed * cost_of(limit),
		     (count + 1) * cost_of(limit));
}

TEST(test_entries_count_what_is_taken_and_asked)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		counts_of(rig, i, SOURCE, HOOK_XDP);
		counts_of(rig, i, SOURCE6, HOOK_INGRESS);
	}
}

/* --- One limit ------------------------------------------------------------------------------- */

/* Unused credit that a slice returns to its state does not count as taken. */
TEST(test_a_source_within_its_limit_is_refused_nothing)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	uint64_t random = RANDOM_BEGIN;
	struct sl_entry entry;

	rig_limits(rig, "default", "rate 100kpps burst 50000 shared yes", NULL);
	limit = rig_limit(rig, SOURCE);
	assert_true(limit->slice != 0);
	for (int i = 0; i < 3000; i++) {
		/* Each 100th packet comes after a pause in which the slices expire. */
		rig_clock_forward(rig, cost_of(limit) * (i % 100 ? 2 : 5000) +
					       random_next(&random) % 1000);
		assert_int_equal(rig_send(rig, i % 2 ? HOOK_XDP : HOOK_INGRESS, &frame, 1), 1);
	}
	entry = entry_of(rig, limit, SOURCE);
	assert_int_equal(entry.count.shared.refused, 0);
	check_counts("within", limit, &entry, 3000 * cost_of(limit),
		     (uint64_t)entry.count.shared.taken << limit->unit_shift);
}

/* A reader that subtracts 32-bit counters gets correct sums after the counters wrap. */
TEST(test_counters_wrap)
{
	static const uint32_t begins[][2] = {
		{~0U, ~0U}, {~0U - 1000, 5}, {5, ~0U - 1000}, {0x7ffffff0, 0x7ffffff0}, {0, 0}};
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;

	rig_limits(rig, "default", "rate 1kpps burst 100 shared yes", NULL);
	limit = rig_limit(rig, SOURCE);
	rig_send(rig, HOOK_XDP, &frame, 1);
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		uint64_t before = (uint64_t)begins[i][1] << 32 | begins[i][0], after;
		struct sl_entry entry;
		uint64_t passed;

		rig_clock_forward(rig, 3 * limit->burst);
		entry_begin(rig, limit, SOURCE, begins[i][0], begins[i][1]);
		passed = offer(rig, HOOK_XDP, &frame, limit, 2000);
		passed += settle(rig, HOOK_XDP, &frame, limit);
		entry = entry_of(rig, limit, SOURCE);
		after = (uint64_t)entry.count.shared.refused << 32 | entry.count.shared.taken;
		entry.count.shared.taken = after - before;
		entry.count.shared.refused =
			(after - before - (int32_t)entry.count.shared.taken) >> 32;
		check_counts("wrapped", limit, &entry, passed * cost_of(limit),
			     2001 * cost_of(limit));
	}
}

TEST(test_each_cpu_adds_its_own)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	uint64_t passed = 0;
	struct sl_entry entry;

	rig_need_cpus(rig, 2);
	rig_limits(rig, "default", "rate 10kpps burst 10000 shared yes", NULL);
	limit = rig_limit(rig, SOURCE);
	for (int i = 0; i < 20; i++) {
		rig_run_on(rig, i % 2);
		passed += offer(rig, HOOK_XDP, &frame, limit, 2000);
	}
	for (int i = 0; i < 2; i++) {
		rig_run_on(rig, i);
		passed += settle(rig, HOOK_XDP, &frame, limit);
	}
	rig_run_on(rig, 0);
	entry = entry_of(rig, limit, SOURCE);
	check_counts("two CPUs", limit, &entry, passed * cost_of(limit), 40002 * cost_of(limit));
}

/* If a policy inherits a limit, it counts its packets in the entries of the parent's limit. */
TEST(test_an_heir_counts_on_the_entry_of_its_parent)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	uint64_t passed;
	struct sl_entry entry;

	rig_limits(rig, "default", "name a rate 1kpps burst 100 shared yes", NULL);
	passed = rig_send(rig, HOOK_XDP, &frame, 50);
	rig_heir(rig, "192.0.2.0/24", "name b rate 1mpps burst 100000", NULL);
	limit = rig_limit_named(rig, SOURCE, "a");
	assert_true(limit->shared);
	passed += offer(rig, HOOK_XDP, &frame, limit, 2000);
	passed += settle(rig, HOOK_XDP, &frame, limit);
	entry = entry_of(rig, limit, SOURCE);
	check_counts("heir", limit, &entry, passed * cost_of(limit), 2051 * cost_of(limit));
	entry = entry_of(rig, rig_limit_named(rig, SOURCE, "b"), SOURCE);
	assert_true(!entry.count.shared.taken && !entry.count.shared.refused);
}

/* --- Several limits of one policy ------------------------------------------------------------ */

struct two {
	const char *first, *second; /* two shared limits, as arguments of `sluice set` */
	bool first_is_met;	    /* whether the first limit matches the packets */
};

/* Pairs of limits. The second limit refuses most packets. The first limit refuses no packet. */
static const struct two twos[] = {
	{"name a rate 100kpps burst 10000 shared yes", "name b rate 1kpps burst 100 shared yes",
	 true},
	{"name a rate 100kpps burst 50 shared yes", "name b rate 1kpps burst 100 shared yes", true},
	{"name a rate 100kpps burst 50 shared yes", "name b rate 1kpps burst 1000 shared yes",
	 true},
	{"name a rate 200kpps burst 40 shared yes",
	 "name b rate 1kpps burst 1000 per 24/56 shared yes", true},
	{"name a rate 100kpps burst 10000 shared yes",
	 "name b rate 1kpps burst 5 per 24/56 shared yes", true},
	{"name a rate 1kpps burst 1000 match tcp-syn shared yes",
	 "name b rate 1kpps burst 1000 shared yes", false},
};

static void check_two(struct rig *rig, const struct two *two, const char *source, enum hook hook)
{
	const struct sl_limit *first, *second;
	struct frame frame = frame_from(source, FRAME_LEAST);
	uint64_t count = 4000, passed;
	struct sl_entry entry;

	rig_empty(rig);
	rig_limits(rig, "default", two->first, two->second, NULL);
	first = rig_limit_named(rig, source, "a");
	second = rig_limit_named(rig, source, "b");
	passed = offer(rig, hook, &frame, second, count);
	passed += settle(rig, hook, &frame, second);
	entry = entry_of(rig, second, source);
	check_counts(two->second, second, &entry, passed * cost_of(second),
		     (count + 1) * cost_of(second));
	if (!two->first_is_met)
		return;
	/* The first limit does not count packets that the second limit refuses. */
	entry = entry_of(rig, first, source);
	check_counts(two->first, first, &entry, passed * cost_of(first), passed * cost_of(first));
}

TEST(test_each_of_two_limits_counts_its_own)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(twos); i++) {
		check_two(rig, &twos[i], SOURCE, HOOK_XDP);
		check_two(rig, &twos[i], SOURCE6, HOOK_INGRESS);
	}
}

/* A limit counts only packets that it matches. */
TEST(test_packets_of_no_match_are_not_asked)
{
	struct frame udp = frame_from(SOURCE, FRAME_LEAST), icmp = udp;
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	uint64_t passed = 0;
	struct sl_entry entry;

	frame_set_proto(&icmp, 1);
	rig_limits(rig, "default", "rate 1kpps burst 100 match icmp shared yes", NULL);
	limit = rig_limit(rig, SOURCE);
	for (int i = 0; i < 200; i++) {
		rig_send(rig, HOOK_XDP, &udp, 50);
		rig_clock_forward(rig, cost_of(limit) / 2);
		passed += rig_send(rig, HOOK_XDP, &icmp, 1);
	}
	rig_clock_forward(rig, 2 * JIFFY);
	passed += rig_send(rig, HOOK_XDP, &icmp, 1);
	entry = entry_of(rig, limit, SOURCE);
	check_counts("icmp", limit, &entry, passed * cost_of(limit), 201 * cost_of(limit));
}

TEST(test_a_merged_packet_counts_for_all)
{
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	struct sl_entry entry;

	rig_limits(rig, "default", "rate 1kpps burst 100 shared yes", NULL);
	limit = rig_limit(rig, SOURCE);
	for (int i = 0; i < 10; i++)
		rig_run_merged(rig, SOURCE, 20);
	/* The counters get cached refusals when the next packet is charged to the state. */
	rig_clock_forward(rig, 20 * cost_of(limit));
	rig_run_merged(rig, SOURCE, 20);
	entry = entry_of(rig, limit, SOURCE);
	check_counts("merged of 20", limit, &entry, 120 * cost_of(limit), 220 * cost_of(limit));
}

TEST(test_a_limit_that_is_not_shared_counts_nothing)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	struct sl_entry entry;

	rig_limits(rig, "default", "rate 1kpps burst 100", NULL);
	limit = rig_limit(rig, SOURCE);
	offer(rig, HOOK_XDP, &frame, limit, 1000);
	entry = entry_of(rig, limit, SOURCE);
	assert_int_equal(entry.count.shared.taken, 0);
	assert_int_equal(entry.count.shared.refused, 0);
}

/* If a change of a limit sets or clears option `shared`, the limit keeps its states. */
TEST(test_a_limit_that_becomes_shared_keeps_its_levels)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);

	rig_limits(rig, "default", "rate 1/h burst 10", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 7), 7);
	rig_limits(rig, "default", "rate 1/h burst 10 shared yes", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 10), 3);
	rig_limits(rig, "default", "rate 1/h burst 10 shared no", NULL);
	assert_int_equal(rig_send(rig, HOOK_XDP, &frame, 10), 0);
}

/* --- Divided --------------------------------------------------------------------------------- */

/*
 * Spends the burst of a source, and then sends ten times the limit's rate. Returns the fraction of
 * the rate that passes.
 */
static double part_of(struct rig *rig, const struct frame *frame, const struct sl_limit *limit)
{
	uint64_t begin, passed;

	rig_send(rig, HOOK_XDP, frame, 2 * limit->burst / cost_of(limit) + 1);
	offer(rig, HOOK_XDP, frame, limit, 1000); /* spends the credit in the slices */
	begin = *rig->clock_ticks;
	passed = offer(rig, HOOK_XDP, frame, limit, 8 * limit->burst / cost_of(limit) + 20000);
	return (double)passed * cost_of(limit) / (*rig->clock_ticks - begin);
}

static void must_be_near(const char *words, const char *when, double part, double wanted)
{
	if (part < wanted * .95 || part > wanted * 1.05)
		fail_msg("%s: %s: %.4f of the rate, not %.4f", words, when, part, wanted);
}

/*
 * After `sluice share` has stopped, a node divides shared limits by the number of nodes. The
 * division begins at `divide_at`.
 */
TEST(test_a_limit_is_divided_from_a_moment_on)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	struct sl_gate *gate = rig->gate.state;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const char *words = limits[i].words;
		const struct sl_limit *limit;

		rig_empty(rig);
		rig_limits(rig, "default", words, NULL);
		limit = rig_limit(rig, SOURCE);
		if (limit->observe || limit->block)
			continue;
		gate->nodes = 4;
		must_be_near(words, "never", part_of(rig, &frame, limit), 1);
		gate->divide_at = *rig->clock_ticks + 100000 * cost_of(limit);
		must_be_near(words, "before", part_of(rig, &frame, limit), 1);
		gate->divide_at = *rig->clock_ticks;
		must_be_near(words, "from then on", part_of(rig, &frame, limit), .25);
		gate->nodes = 10;
		/*
		 * With ten nodes, a packet is charged ten times. If the burst is less than ten
		 * packets, a packet passes only if the bucket is full.
		 */
		must_be_near(words, "ten nodes", part_of(rig, &frame, limit),
			     limit->burst < 10 * cost_of(limit) ? .095 : .1);
		gate->divide_at = *rig->clock_ticks + 100000 * cost_of(limit);
		must_be_near(words, "no more", part_of(rig, &frame, limit), 1);
		gate->divide_at = *rig->clock_ticks;
		gate->nodes = 1;
		must_be_near(words, "one node", part_of(rig, &frame, limit), 1);
		gate->nodes = 0;
		must_be_near(words, "no node", part_of(rig, &frame, limit), 1);
		gate->divide_at = 0;
	}
}

/* If four nodes divide a limit, a packet is charged four times, but `taken` counts it once. */
TEST(test_what_is_divided_is_counted_once)
{
	struct rig *rig = rig_begin(state);

	rig->gate.state->nodes = 4;
	rig->gate.state->divide_at = 1;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		counts_of(rig, i, SOURCE, HOOK_XDP);
	rig->gate.state->divide_at = rig->gate.state->nodes = 0;
}

TEST(test_what_another_limit_refuses_costs_a_divided_one_nothing)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);

	for (uint64_t known = 0; known <= 45; known += 45) {
		const struct sl_limit *limit;
		struct sl_entry entry;
		uint64_t passed = 0;
		int64_t left;

		rig_empty(rig);
		rig_limits(rig, "default", "name a rate 1/h burst 1000 shared yes",
			   "name b rate 1/h burst 50", NULL);
		limit = rig_limit_named(rig, SOURCE, "a");
		assert_int_equal(rig_send(rig, HOOK_XDP, &frame, known), known);
		rig->gate.state->nodes = 4;
		rig_clock_forward(rig, 1);
		rig->gate.state->divide_at = *rig->clock_ticks;
		/*
		 * Each packet is in a new jiffy, so the credit that a slice returned cannot be
		 * spent.
		 */
		for (int i = 0; i < 300; i++) {
			passed += rig_send(rig, HOOK_XDP, &frame, 1);
			rig_clock_forward(rig, 10 * MS);
		}
		assert_int_equal(passed, 50 - known);
		entry = entry_of(rig, limit, SOURCE);
		left = credit_level(limit, entry_state(&entry), *rig->clock_ticks) / cost_of(limit);
		/* If the source has a bucket, its slice still contains part of the credit. */
		assert_in_range(left, known ? 1000 - 50 - limit->slice / cost_of(limit) : 800,
				known ? 1000 - 50 : 800);
		rig->gate.state->divide_at = rig->gate.state->nodes = 0;
	}
}

TESTS(rig_setup, rig_teardown)
