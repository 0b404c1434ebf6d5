// SPDX-License-Identifier: GPL-2.0
/*
 * What the line of a shared limit counts (line_tell() in bpf/charge.h), which `sluice share` tells
 * other machines: `taken` and `asked`, in units of 2^unit_shift ticks.
 */
#include "rig.h"

#include <inttypes.h>

#include "gate/table.h"
#include "random.h"

#define SOURCE	"192.0.2.7"
#define SOURCE6 "2001:db8:1:2::7"

/* Long bursts have purses, and refuse for the rest of a jiffy; short ones do not. */
static const struct {
	const char *words;
	bool has_purses;
} limits[] = {
	{"rate 1kpps burst 1000 shared yes", true},
	{"rate 100kpps burst 50000 shared yes", true},
	{"rate 1kpps burst 5 shared yes", false},
	{"rate 10pps burst 20 shared yes", false},
	{"rate 8mbit burst 1MB shared yes", true},
	{"rate 80kbit burst 3kB shared yes", false},
	{"rate 1kpps burst 1000 per 24/56 shared yes", false},
	{"rate 1kpps burst 100 action observe shared yes", false},
};

static struct sl_line line_of(const struct rig *rig, const struct sl_limit *limit,
			      const char *source)
{
	struct sl_prefix address = prefix_of(source);
	struct ledger_key key;
	struct found_line found;
	__u64 addr[2];

	memcpy(addr, address.addr, sizeof(addr));
	key = ledger_key_of(limit, addr, prefix_is_ipv4(&address));
	assert_int_equal(table_read(&rig->gate, &key, &found), OK);
	assert_true(found.is_found);
	return found.line;
}

static uint64_t ticks_of(const struct sl_limit *limit, uint32_t units)
{
	return (uint64_t)units << limit->unit_shift;
}

/* 64 bytes, as those of a frame cost. */
static uint64_t cost_of(const struct sl_limit *limit)
{
	return credit_cost(limit, 1, FRAME_LEAST);
}

/* Offers ten times the rate for a while, a packet or some at a time. Returns how many passed. */
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
 * Lets what a purse holds, or remembers of a refusal, end: then the ledger is asked, and counts all
 * that came before.
 */
static uint64_t settle(struct rig *rig, enum hook hook, const struct frame *frame,
		       const struct sl_limit *limit)
{
	rig_clock_forward(rig, limit->burst + 2 * JIFFY);
	return rig_send(rig, hook, frame, 1);
}

static void check_counts(const char *what, const struct sl_limit *limit, const struct sl_line *line,
			 uint64_t taken, uint64_t asked)
{
	uint64_t purses = limit->burst / 16 + cost_of(limit);
	uint64_t has_taken = ticks_of(limit, line->taken), has_asked = ticks_of(limit, line->asked);

	/* a unit counts as a whole one by chance: within 2 % */
	if (has_taken < taken * 98 / 100 || has_taken > taken * 102 / 100 + purses)
		fail_msg("%s: taken %" PRIu64 " of %" PRIu64, what, has_taken, taken);
	if (has_asked < asked * 98 / 100 || has_asked > asked * 102 / 100)
		fail_msg("%s: asked %" PRIu64 " of %" PRIu64, what, has_asked, asked);
}

static void counts_of(struct rig *rig, size_t i, const char *source, enum hook hook)
{
	struct frame frame = frame_from(source, FRAME_LEAST);
	const struct sl_limit *limit;
	uint64_t count = 4000, passed;
	struct sl_line line;

	rig_empty(rig);
	rig_limits(rig, "default", limits[i].words, NULL);
	limit = rig_limit(rig, source);
	assert_true(limit->shared);
	if ((limit->purse != 0) != limits[i].has_purses)
		fail_msg("%s: purse of %" PRIu64, limits[i].words, (uint64_t)limit->purse);
	passed = offer(rig, hook, &frame, limit, count);
	passed += settle(rig, hook, &frame, limit);
	line = line_of(rig, limit, source);
	if (limit->observe) /* all pass; what would is not known here */
		passed = ticks_of(limit, line.taken) / cost_of(limit);
	check_counts(limits[i].words, limit, &line, passed * cost_of(limit),
		     (count + 1) * cost_of(limit));
}

static void test_lines_count_what_is_taken_and_asked(void **state)
{
	struct rig *rig = rig_begin(state);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		counts_of(rig, i, SOURCE, HOOK_XDP);
		counts_of(rig, i, SOURCE6, HOOK_INGRESS);
	}
}

static void test_a_merged_packet_counts_for_all(void **state)
{
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	struct sl_line line;

	rig_limits(rig, "default", "rate 1kpps burst 100 shared yes", NULL);
	limit = rig_limit(rig, SOURCE);
	for (int i = 0; i < 10; i++)
		rig_run_merged(rig, SOURCE, 20);
	/* those that were refused for the rest of the jiffy are told by the next one */
	rig_clock_forward(rig, 20 * cost_of(limit));
	rig_run_merged(rig, SOURCE, 20);
	line = line_of(rig, limit, SOURCE);
	check_counts("merged of 20", limit, &line, 120 * cost_of(limit), 220 * cost_of(limit));
}

static void test_a_limit_that_is_not_shared_counts_nothing(void **state)
{
	struct frame frame = frame_from(SOURCE, FRAME_LEAST);
	struct rig *rig = rig_begin(state);
	const struct sl_limit *limit;
	struct sl_line line;

	rig_limits(rig, "default", "rate 1kpps burst 100", NULL);
	limit = rig_limit(rig, SOURCE);
	offer(rig, HOOK_XDP, &frame, limit, 1000);
	line = line_of(rig, limit, SOURCE);
	assert_int_equal(line.taken, 0);
	assert_int_equal(line.asked, 0);
}

/* `shared` alone is no other limit: its levels stay. */
static void test_a_limit_that_becomes_shared_keeps_its_levels(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_count_what_is_taken_and_asked),
		cmocka_unit_test(test_a_merged_packet_counts_for_all),
		cmocka_unit_test(test_a_limit_that_is_not_shared_counts_nothing),
		cmocka_unit_test(test_a_limit_that_becomes_shared_keeps_its_levels),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
