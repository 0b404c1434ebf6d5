// SPDX-License-Identifier: GPL-2.0
/*
 * Tests single cases of include/credit.h. test_kinds.c tests cases for all kinds of limit.
 * test_kinds_property.c tests random schedules, races and late clocks.
 */
#include "test.h"
#include "credit.h"

#define COST (SEC / 1000) /* ticks per packet, at 1000 packets per second */

/* Start times. After some of them, 64-bit arithmetic wraps during a test. */
static const uint64_t epochs[] = {
	0,	    1,	   COST,  (1ULL << 32) - 1, 1ULL << 32, 1ULL << 60, (1ULL << 63) - COST,
	1ULL << 63, -COST, -1ULL,
};

/* --- Costs ----------------------------------------------------------------------------------- */

static struct sl_limit byte_limit(uint64_t bits_per_second)
{
	__int128 second = (__int128)SEC << SL_BYTE_COST_SHIFT;

	return (struct sl_limit){
		.by_bytes = 1,
		.cost = (8 * second + bits_per_second - 1) / bits_per_second,
	};
}

TEST(test_bytes_cost_their_time_rounded_up)
{
	static const struct {
		uint64_t bits_per_second;
		uint32_t bytes;
		uint64_t cost; /* in ticks: 8 * 16e9 * bytes / (bits per second), rounded up */
	} cases[] = {
		{1000, 1, 128000000},
		{1000, 1514, 193792000000},
		{1000, 1 << 20, 134217728000000},
		{1000, 1 << 27, 17179869184000000},
		{1000, 0xffffffff, 549755813760000000},
		{1000000, 1514, 193792000},
		{1000000000, 1, 128},
		{1000000000, 1514, 193792},
		{128000000000, 1, 1},
		{128000000000, 1514, 1514},
		{128000000001, 1514, 1514},
		{400000000000, 1, 1},
		{400000000000, 3, 1},
		{400000000000, 4, 2},
		{400000000000, 60, 20},	   /* the exact cost is 19.2 ticks */
		{400000000000, 1514, 485}, /* the exact cost is 484.48 ticks */
		/* the exact cost is 83886.08 ticks, but the cost of each byte is rounded up */
		{400000000000, 1 << 18, 83888},
		{7, 1 << 10, 18724571428572}, /* the exact cost is 18724571428571.4 ticks */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit = byte_limit(cases[i].bits_per_second);

		assert_int_equal(credit_cost(&limit, 1, cases[i].bytes), cases[i].cost);
		assert_int_equal(credit_cost(&limit, 9, cases[i].bytes), cases[i].cost);
	}
}

TEST(test_packets_cost_their_number_up_to_a_bound)
{
	struct sl_limit limit = {.cost = 3600 * SEC};

	assert_int_equal(credit_cost(&limit, 1, 1514), 3600 * SEC);
	assert_int_equal(credit_cost(&limit, 20015, 60), 20015 * 3600 * SEC);
	assert_int_equal(credit_cost(&limit, 20016, 60), SL_BURST_TICKS_MAX);
	assert_int_equal(credit_cost(&limit, 65535, 60), SL_BURST_TICKS_MAX);
	limit.cost = 80;
	assert_int_equal(credit_cost(&limit, 45, 1 << 18), 45 * 80);
}

TEST(test_units_are_costs_rounded_down)
{
	struct sl_limit packets = {.cost = COST}, bytes = byte_limit(8000000);

	assert_int_equal(credit_units(&packets, 3 * COST - 1), 2);
	assert_int_equal(credit_units(&packets, 3 * COST), 3);
	assert_int_equal(credit_units(&bytes, 1000 * 16000 - 1), 999);
	assert_int_equal(credit_units(&bytes, 1000 * 16000), 1000);
	assert_int_equal(credit_units(&bytes, 2 * SL_BURST_TICKS_MAX),
			 2 * SL_BURST_TICKS_MAX / 16000);
}

/*
 * Before the time `divide_at`, credit_times() returns 1. After it, credit_times() returns the
 * number of nodes.
 */
TEST(test_times_that_a_packet_is_charged)
{
	assert_int_equal(credit_times(0, 4, 0), 1);
	assert_int_equal(credit_times(0, 4, 1ULL << 63), 1);
	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		uint64_t at = epochs[i] + 1000 * SEC;

		assert_int_equal(credit_times(at, 4, at - 1), 1);
		assert_int_equal(credit_times(at, 4, at), 4);
		assert_int_equal(credit_times(at, 4, at + 1000 * SEC), 4);
		assert_int_equal(credit_times(at, 1, at), 1);
		assert_int_equal(credit_times(at, 0, at), 1);
	}
}

TEST(test_owed_costs_are_bounded)
{
	static const struct {
		uint64_t cost;
		uint32_t count;
		uint64_t owed;
	} cases[] = {
		{COST, 0, 0},
		{COST, 1, COST},
		{COST, 255, 255 * COST},
		{SL_BURST_TICKS_MAX, 0, 0},
		{SL_BURST_TICKS_MAX, 1, SL_BURST_TICKS_MAX},
		{SL_BURST_TICKS_MAX, 255, SL_BURST_TICKS_MAX}, /* the product exceeds 64 bits */
		{SL_BURST_TICKS_MAX / 16, 15, SL_BURST_TICKS_MAX / 16 * 15},
		{SL_BURST_TICKS_MAX / 16, 16, SL_BURST_TICKS_MAX},
		{SL_BURST_TICKS_MAX / 16, 17, SL_BURST_TICKS_MAX},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(credit_multiply(cases[i].cost, cases[i].count), cases[i].owed);
}

/* --- Levels ---------------------------------------------------------------------------------- */

enum { ZERO = 1 << 20, REFILL = 1500, BURST = 1600 };

static const struct sl_limit small = {.cost = 1, .burst = BURST, .refill = REFILL, .slice = 50};

TEST(test_a_level_rises_to_refill_and_at_rest_to_the_burst)
{
	static const struct {
		int64_t born, now, level; /* `full_at`, time and level, in ticks after ZERO */
	} cases[] = {
		{0, 0, 0},	    {0, 700, 700},	{0, 1500, 1500},
		{0, 1501, 1500},    {0, 1599, 1500},	{0, 1600, 1600},
		{0, 9999, 1600},    {-5, -5, -5},	{-100, -5, -5},
		{1600, 1600, 1600}, {1550, 1550, 1550}, {1550, 1599, 1550},
		{1501, 1501, 1501}, {300, 300, 300},	{300, 800, 800},
		{1600, 1590, 1600}, /* a late clock does not raise the level above the burst */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_state state = {
			.empty_at = ZERO, .full_at = ZERO + cases[i].born, .charged_at = ZERO};
		int64_t level = credit_level(&small, &state, ZERO + cases[i].now);

		assert_int_equal(level, cases[i].level);
		credit_set_level(&small, &state, level, ZERO + cases[i].now);
		assert_int_equal(credit_level(&small, &state, ZERO + cases[i].now), level);
	}
}

/* A state is full if its burst has refilled and it was idle for some time. */
TEST(test_a_state_is_full_when_it_had_time_to_fill_and_was_idle)
{
	static const struct {
		int64_t drawn, whole; /* time of the last charge; time at which the state is full */
	} cases[] = {{0, 1600}, {1399, 1600}, {1400, 1600}, {1401, 1601}, {1599, 1799}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_state state = {
			.empty_at = ZERO, .full_at = ZERO, .charged_at = ZERO + cases[i].drawn};

		assert_int_equal(credit_full_at(&small, &state), ZERO + cases[i].whole);
		assert_int_equal(credit_level(&small, &state, ZERO + cases[i].whole - 1), REFILL);
		assert_int_equal(credit_level(&small, &state, ZERO + cases[i].whole), BURST);
	}
}

/*
 * The credit must not exceed the burst. `full_at` - `empty_at` can exceed the burst if a CPU sets
 * `full_at` and then fails to charge.
 */
TEST(test_the_level_after_a_lost_charge)
{
	for (int64_t born = BURST + 1; born < 4 * BURST; born += 100) {
		struct sl_state state = {
			.empty_at = ZERO, .full_at = ZERO + born, .charged_at = ZERO + born};

		for (int64_t later = 0; later < 2 * (BURST - REFILL); later += 50)
			assert_int_equal(credit_level(&small, &state, state.full_at + later),
					 REFILL);
		assert_int_equal(credit_level(&small, &state, state.full_at + 2 * (BURST - REFILL)),
				 BURST);
	}
}

TEST(test_a_new_state_holds_its_burst_or_a_part)
{
	static const struct {
		bool empty, share;
		uint32_t nodes;
		int64_t level;
	} cases[] = {
		{false, false, 0, BURST}, {false, false, 10, BURST}, {true, false, 0, 0},
		{false, true, 0, BURST},  {false, true, 1, BURST},   {false, true, 2, BURST / 2},
		{false, true, 10, 160},	  {false, true, 1000000, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t j = 0; j < ARRAY_SIZE(epochs); j++) {
			struct sl_limit limit = small;
			struct sl_state state;

			limit.start_empty = cases[i].empty;
			limit.start_share = cases[i].share;
			state = credit_new(&limit, cases[i].nodes, epochs[j]);
			assert_int_equal(state.full_at, epochs[j]);
			assert_int_equal(credit_level(&limit, &state, epochs[j]), cases[i].level);
			assert_int_equal(credit_level(&limit, &state, epochs[j] + BURST), BURST);
		}
}

/* A state's debt has an upper bound, so that a 64-bit credit cannot overflow. */
TEST(test_debts_do_not_wrap)
{
	const struct sl_limit limit = {.cost = COST, .burst = 10 * COST, .refill = 10 * COST};

	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
		uint64_t now = epochs[i];
		struct sl_state state = credit_full(&limit, now);

		state.empty_at += credit_debit(&state, 3 * COST, now);
		assert_int_equal(credit_level(&limit, &state, now), 7 * COST);
		for (int k = 0; k < 100; k++)
			state.empty_at += credit_debit(&state, SL_BURST_TICKS_MAX, now);
		assert_int_equal(credit_level(&limit, &state, now), -(int64_t)SL_BURST_TICKS_MAX);
		state.empty_at += credit_debit(&state, SL_BURST_TICKS_MAX, now - COST);
		assert_int_equal(credit_level(&limit, &state, now), -(int64_t)SL_BURST_TICKS_MAX);
	}
}

/* --- Slices ---------------------------------------------------------------------------------- */

TEST(test_what_is_left_in_a_slice_returns_to_the_state)
{
	static const struct {
		int64_t born;  /* `full_at` in ticks after ZERO */
		int64_t drawn; /* time at which the slice borrowed credit, in ticks after ZERO */
		int64_t now;
		int64_t credit;
		int64_t level; /* expected credit of the state after the call */
	} cases[] = {
		{0, 0, 100, 0, 100},
		{0, 0, 100, 50, 150},
		{0, 99, 100, 50, 150},
		{0, 0, 100, -7, 100}, /* a credit below 0 stores a refusal: nothing is returned */
		{0, 0, 1490, 10, REFILL},
		{0, 0, 1490, 50, 1540},
		{0, 0, 1599, 50, 1550},
		{0, 0, 1599, 150, BURST},
		{0, 0, 1600, 50, BURST},
		{-99, -99, -30, 50, 20}, /* returned credit reduces the debt */
		{-99, -99, -30, 10, -20},
		{50, 49, 100, 50, 100}, /* borrowed before `full_at`: the credit expired */
		{50, 50, 100, 50, 150},
		{1550, 1555, 1560, 40, 1590},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_state state = {
			.empty_at = ZERO, .full_at = ZERO + cases[i].born, .charged_at = ZERO};
		struct sl_slice slice = {.credit = cases[i].credit,
					 .at.borrowed = ZERO + cases[i].drawn};

		assert_int_equal(credit_take_back(&small, &state, &slice, ZERO + cases[i].now),
				 cases[i].level);
		assert_int_equal(slice.credit, 0);
		assert_int_equal(state.empty_at, ZERO);
	}
}

TEST(test_a_slice_answers_until_its_jiffy)
{
	static const struct {
		int64_t credit;
		uint64_t cost, jiffy; /* cost of the packet; jiffy of its arrival */
		enum credit_answer answer;
		int64_t left;
	} cases[] = {
		{50, 1, 9, CREDIT_PASS, 49},	  {50, 50, 10, CREDIT_PASS, 0},
		{50, 51, 10, CREDIT_ASK, 50},	  {50, 1, 11, CREDIT_ASK, 50},
		{0, 1, 10, CREDIT_ASK, 0},	  {-50, 50, 10, CREDIT_REFUSE, -50},
		{-50, 51, 1, CREDIT_REFUSE, -50}, {-50, 49, 10, CREDIT_ASK, -50},
		{-50, 50, 11, CREDIT_ASK, -50},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_slice slice = {.credit = cases[i].credit, .until = 10};

		assert_int_equal(credit_spend(&slice, cases[i].cost, cases[i].jiffy),
				 cases[i].answer);
		assert_int_equal(slice.credit, cases[i].left);
	}
}

TEST(test_a_slice_takes_a_refund_that_it_has_room_for)
{
	static const struct {
		uint64_t slice; /* maximum credit of a slice; 0: no slices */
		int64_t credit;
		uint64_t cost;
		bool taken;
	} cases[] = {
		{100, 0, 1, true},	{100, 0, 100, true},
		{100, 0, 101, false},	{100, 60, 41, false},
		{100, 99, 1, true},	{100, 100, 1, false}, /* the slice is full */
		{100, -1, 1, false},			      /* a stored refusal: credit < 0 */
		{100, -50, 120, false}, {0, 0, 1, false},     /* a limit without slices */
		{0, -1, 2, false},	{1ULL << 56, 1, SL_BURST_TICKS_MAX, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_limit limit = {.slice = cases[i].slice};
		struct sl_slice slice = {.credit = cases[i].credit, .at.borrowed = 7, .until = 9};

		assert_int_equal(credit_give_back(&limit, &slice, cases[i].cost), cases[i].taken);
		assert_int_equal(slice.credit,
				 cases[i].credit + (cases[i].taken ? cases[i].cost : 0));
		assert_int_equal(slice.at.borrowed, 7);
		assert_int_equal(slice.until, 9);
	}
}

/*
 * A slice counts its refusals. The count does not change the time until which the slice refuses
 * packets. A charge resets the count.
 */
TEST(test_a_count_of_refusals_leaves_the_slice_as_it_is)
{
	static const uint64_t jiffies[] = {0, 1, 4294967295, 4294967296, CREDIT_JIFFY_MASK - 1};
	const struct sl_limit limit = {.cost = 1, .burst = BURST, .refill = BURST, .life = 1};

	for (size_t i = 0; i < ARRAY_SIZE(jiffies); i++) {
		uint64_t jiffy = jiffies[i];
		struct sl_slice slice = {.credit = -100, .at.borrowed = 7, .until = jiffy};
		struct sl_state state = {.empty_at = ZERO, .full_at = ZERO, .charged_at = ZERO};

		assert_int_equal(credit_unasked(&slice), 0);
		credit_count_unasked(&slice, 1);
		credit_count_unasked(&slice, 45);
		assert_int_equal(credit_unasked(&slice), 46);
		assert_int_equal(credit_spend(&slice, 100, jiffy), CREDIT_REFUSE);
		assert_int_equal(credit_spend(&slice, 99, jiffy), CREDIT_ASK);
		assert_int_equal(credit_spend(&slice, 100, jiffy + 1), CREDIT_ASK);
		assert_int_equal(slice.credit, -100);
		assert_int_equal(credit_charge(&limit, &state, &slice, 0, 5, ZERO + i, jiffy),
				 i == 4 + 1);
		assert_int_equal(credit_unasked(&slice), 0);
	}
}

/* --- Charges --------------------------------------------------------------------------------- */

TEST(test_a_charge_fills_the_slice_with_what_is_left)
{
	static const struct {
		/* full_at and time of the packet, in ticks after `empty_at` */
		int64_t born, now;
		int64_t credit; /* credit that the slice borrowed at time `full_at` */
		uint64_t cost;
		bool passes;
		int64_t slice, level; /* expected credits of the slice and of the state */
	} cases[] = {
		{0, 700, 0, 1, true, 50, 649},
		{0, 700, 20, 30, true, 50, 640}, /* the slice returns 20, then borrows 50 */
		{0, 60, 0, 30, true, 30, 0},
		{0, 29, 0, 30, false, -30, 29},
		{0, 25, 4, 30, false, -30, 29}, /* refused; the slice returns 4 */
		{0, 25, 5, 30, true, 0, 0},
		{0, 1500, 0, 1, true, 50, 1449},
		{1600, 1600, 0, 1, true, 50, 1549},
		{0, 1500, 0, 1600, true, 0, -100}, /* the credit equals `refill` */
		{0, 1499, 0, 1600, false, -1500, 1499},
		{0, 1600, 0, 1600, true, 0, 0},
		{0, 1600, 50, 1, true, 50, 1549},
		{-100, -30, 0, 1, false, -1, -30},
		{700, 600, 0, 1, true, 50, 649},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t j = 0; j < ARRAY_SIZE(epochs); j++) {
			uint64_t zero = epochs[j], now = zero + cases[i].now;
			uint64_t born = zero + cases[i].born;
			struct sl_state state = {
				.empty_at = zero, .full_at = born, .charged_at = born};
			struct sl_state before = state;
			struct sl_slice slice = {.credit = cases[i].credit, .at.borrowed = born};
			struct sl_limit limit = small;

			limit.life = 3;
			assert_int_equal(credit_charge(&limit, &state, &slice, limit.slice,
						       cases[i].cost, now, 10),
					 cases[i].passes);
			now = credit_latest(now, born);
			assert_int_equal(slice.credit, cases[i].slice);
			assert_int_equal(credit_level(&limit, &state, now), cases[i].level);
			if (!cases[i].passes && !cases[i].credit)
				assert_memory_equal(&state, &before, sizeof(before));
			if (!cases[i].passes)
				continue;
			assert_int_equal(slice.at.borrowed, now);
			assert_int_equal(slice.until, 12);
		}
}

/* A source with its limit, its state, its slice on one CPU, and the time. */
struct source {
	struct sl_limit limit;
	struct sl_state state;
	struct sl_slice slice;
	uint64_t now;
};

/* Returns a source without credit. If `slices` is true, a sixteenth of the burst is for slices. */
static struct source source_drained(uint64_t burst, bool slices, uint64_t now)
{
	struct source source = {
		.limit = {.cost = COST, .burst = burst, .refill = burst, .life = 1},
		.state = {.empty_at = now, .full_at = now, .charged_at = now},
		.now = now,
	};

	if (slices) {
		source.limit.refill -= burst / 16;
		source.limit.slice = burst / 16 / 8;
		source.limit.life = burst / 16 / JIFFY;
	}
	return source;
}

static bool source_send(struct source *source, uint64_t packets)
{
	uint64_t cost = credit_cost(&source->limit, packets, 60);
	/* at least 1, because a slice with `until` 0 stores no refusal */
	uint64_t jiffy = source->now / JIFFY + 1;
	enum credit_answer answer = credit_spend(&source->slice, cost, jiffy);

	if (answer != CREDIT_ASK)
		return answer == CREDIT_PASS;
	if (credit_must_wait(&source->slice, cost, source->now)) {
		credit_refuse_jiffy(&source->limit, &source->slice, jiffy);
		return false;
	}
	return credit_charge(&source->limit, &source->state, &source->slice, source->limit.slice,
			     cost, source->now, jiffy);
}

/* If a slice refuses a packet, it refuses all packets until the state has enough credit. */
TEST(test_refused_until_the_slice_says)
{
	static const struct {
		uint64_t burst, packets; /* burst: in packets; packets: merged into one */
		bool slices;
	} cases[] = {
		{1, 1, false},
		{7, 1, false},
		{7, 7, false},
		{1000, 1000, false},
		/* limits with slices; `refill` is 937.5 packets */
		{1000, 1, true},
		{1000, 937, true},
		{1000, 938, true},
		{1000, 1000, true},
		/* the burst is smaller than the cost of one merged packet */
		{1, 2, false},
		{7, 8, false},
		{7, 65535, false},
		{1000, 1001, true},
		{1000, 65535, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t j = 0; j < ARRAY_SIZE(epochs); j++) {
			struct source source =
				source_drained(cases[i].burst * COST, cases[i].slices, epochs[j]);
			uint64_t needed;

			source.now += COST / 3;
			needed = credit_needed(&source.limit, cases[i].packets * COST);
			assert_false(source_send(&source, cases[i].packets));
			assert_int_equal(source.slice.at.ready, epochs[j] + needed);
			source.now = source.slice.at.ready - 1;
			assert_false(source_send(&source, cases[i].packets));
			source.slice = (struct sl_slice){0};
			assert_false(source_send(&source, cases[i].packets));
			source.now++;
			assert_true(source_send(&source, cases[i].packets));
			assert_int_equal(source.slice.credit, 0);
		}
}

/*
 * A slice that refuses a packet may refuse packets until the end of the jiffy. The state keeps
 * refilling meanwhile.
 */
TEST(test_refused_by_jiffy)
{
	struct source source = source_drained(1000 * COST, false, 3 * JIFFY);
	uint64_t passed = 0;

	source.limit.refuse_by_jiffy = true;
	assert_false(source_send(&source, 1));
	source.now += JIFFY - 1;
	assert_false(source_send(&source, 1));
	assert_int_equal(source.slice.until, 4);
	source.now++;
	while (source_send(&source, 1))
		passed++;
	assert_int_equal(passed, JIFFY / COST);
	/* if the source is blocked, a slice refuses all packets until the end of the jiffy */
	credit_refuse_block(&source.slice, source.now, 4);
	assert_int_equal(credit_spend(&source.slice, 1, 4), CREDIT_REFUSE);
	assert_int_equal(credit_spend(&source.slice, 1, 5), CREDIT_ASK);
}

/* If one merged packet costs more than the burst, the source can still send at its full rate. */
TEST(test_large_packets_get_their_rate)
{
	static const struct {
		uint64_t burst, packets;
		bool slices;
	} cases[] = {{1, 2, false},	 {8, 45, false},     {25, 26, false},
		     {1600, 1501, true}, {1600, 1601, true}, {1600, 65535, true}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct source source =
			source_drained(cases[i].burst * COST, cases[i].slices, 12345);

		source.now += source.limit.refill;
		for (int k = 0; k < 1000; k++) {
			assert_true(source_send(&source, cases[i].packets));
			assert_false(source_send(&source, cases[i].packets));
			source.now += cases[i].packets * COST - 1;
			assert_false(source_send(&source, cases[i].packets));
			source.now++;
		}
	}
}

/*
 * 65535 packets are merged into one. Each of the 65535 costs an hour. The debt of the state must be
 * repaid exactly.
 */
TEST(test_the_greatest_cost_and_the_longest_burst)
{
	const uint64_t hour = 3600 * SEC, bursts[] = {hour, 8 * hour, SL_BURST_TICKS_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(epochs) * ARRAY_SIZE(bursts); i++) {
		uint64_t burst = bursts[i / ARRAY_SIZE(epochs)];
		struct source source = source_drained(burst, false, epochs[i % ARRAY_SIZE(epochs)]);

		source.limit.cost = hour;
		source.now += burst;
		assert_true(source_send(&source, 65535));
		assert_int_equal(source.state.empty_at - source.now, SL_BURST_TICKS_MAX - burst);
		for (int k = 0; k < 3; k++)
			assert_false(source_send(&source, 65535));
		source.now += SL_BURST_TICKS_MAX - burst + hour - 1;
		assert_false(source_send(&source, 1));
		source.now++;
		assert_true(source_send(&source, 1));
		assert_false(source_send(&source, 1));
	}
}

/* --- Slices of a bucket ---------------------------------------------------------------------- */

TEST(test_slices_belong_to_the_limits_of_one_policy)
{
	static const struct {
		const char *what;
		__u32 policy, since, changed; /* of the packet; in the bucket, 3 and 7 */
		__s64 credit, left;
		__u64 until; /* `until` after the call; it is 99 before the call */
	} cases[] = {
		{"nothing has changed", 3, 7, 1, 50, 50, 99},
		{"another policy", 4, 7, 1, 50, 0, 0},
		{"another limit has changed", 3, 8, 7, 50, 50, 0},
		{"this limit has another state", 3, 8, 8, 50, 0, 0},
		{"a refusal", 3, 8, 7, -50, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_policy policy = {.since = cases[i].since};
		struct sl_bucket bucket = {.policy = 3, .policy_since = 7};

		for (int slot = 0; slot < SL_LIMITS_MAX; slot++) {
			policy.changed[slot] = cases[i].changed;
			bucket.slice[slot] =
				(struct sl_slice){.credit = cases[i].credit, .until = 99};
		}
		slices_fit(&bucket, &policy, cases[i].policy);
		for (int slot = 0; slot < SL_LIMITS_MAX; slot++)
			if (bucket.slice[slot].credit != cases[i].left ||
			    bucket.slice[slot].until != cases[i].until)
				fail_msg("%s: slot %d", cases[i].what, slot);
		assert_int_equal(bucket.policy, cases[i].policy);
		assert_int_equal(bucket.policy_since, cases[i].since);
	}
}

TESTS(NULL, NULL)
