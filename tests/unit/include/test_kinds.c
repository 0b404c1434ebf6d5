// SPDX-License-Identifier: GPL-2.0
/*
 * Tests include/kinds.h. Each case runs with each kind of limit to which it applies, at several
 * start times. The test `clock_wrap` runs all cases while the clock wraps. test_kinds_property.c
 * tests random schedules and races.
 */
#include "test.h"
#include <pthread.h>
#include "kind_run.h"

#define SECOND SL_TICKS_PER_SEC

/* State of the generator behind run_choose(), which kind_run.h calls. */
static uint64_t random_state = 88172645463325252ULL;

static uint64_t run_choose(uint64_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 2685821657736338717ULL % bound;
}

/* --- Kinds ---------------------------------------------------------------------------------- */

/*
 * Limits of each kind, in packets and in bytes. The rate is 1000 packets or 1000 bytes per second.
 */
static const struct kind_row {
	const char *name;
	struct sl_limit_spec spec;
} rows[] = {
	{"bucket", {.rate = 1000, .burst = 100}},
	{"bucket of bytes",
	 {.rate = 8000, .rate_unit = SL_RATE_BITS, .burst = 6000, .burst_unit = SL_BURST_BYTES}},
	{"window", {.kind = SL_WINDOW, .rate = 100, .span_ns = SEC_NS, .groups = 5}},
	{"window of bytes",
	 {.kind = SL_WINDOW,
	  .rate = 6000,
	  .rate_unit = SL_RATE_BITS,
	  .span_ns = 6 * SEC_NS,
	  .groups = 10}},
	{"window of one part", {.kind = SL_WINDOW, .rate = 100, .span_ns = SEC_NS, .groups = 1}},
	{"window of coarse counts",
	 {.kind = SL_WINDOW, .rate = 5000, .span_ns = SEC_NS, .groups = 10}},
	{"shape", {.kind = SL_SHAPE, .rate = 1000, .span_ns = 99000000}},
	{"shape of bytes",
	 {.kind = SL_SHAPE, .rate = 8000, .rate_unit = SL_RATE_BITS, .span_ns = 6 * SEC_NS}},
};

#define BUCKETS (1U << SL_TOKEN_BUCKET)
#define WINDOWS (1U << SL_WINDOW)
#define SHAPES	(1U << SL_SHAPE)
#define ALL	(BUCKETS | WINDOWS | SHAPES)

struct source {
	struct sl_limit limit;
	struct sl_state state;
	uint64_t now;
	uint64_t departure; /* departure time of the last packet, if the limit is a shaper */
};

static struct source source_with(const struct sl_limit_spec *spec, uint64_t now)
{
	struct source source = {.limit = spec_compile(spec), .now = now};

	source.state = kind_new(source.limit.kind, &source.limit, 0, now);
	return source;
}

/*
 * Makes the limit block its source for `block` ticks. Each repeated block is `factor` times as long
 * as the last block, up to `most`. If `factor` is 0, all blocks have the length `block`.
 */
static void source_blocks(struct source *source, uint64_t block, uint8_t factor, uint64_t most)
{
	source->limit.block = block;
	source->limit.escalate = factor;
	source->limit.block_max = most;
	source->limit.steps_max = 0;
	for (; factor && block < most; block *= factor)
		source->limit.steps_max++;
}

static uint64_t cost_of(const struct source *source, uint64_t amount)
{
	bool bytes = source->limit.by_bytes;

	return credit_cost(&source->limit, bytes ? 1 : amount, bytes ? amount : 60);
}

/* Charges `amount` packets or bytes, depending on the limit, in the same way as bpf/state.h. */
static bool source_send(struct source *source, uint64_t amount)
{
	const struct sl_limit *limit = &source->limit;
	struct sl_slice slice = {0};
	struct kind_charge charge = {.cost = cost_of(source, amount), .now = source->now};
	uint64_t now;
	bool passes;

	kind_roll(limit, &source->state, charge.now);
	passes = kind_charge(limit->kind, limit, &source->state, &slice, &charge);
	now = kind_now(limit->kind, &source->state, charge.now);
	if (passes && limit->kind == SL_SHAPE)
		source->departure = slice.at.departs;
	if (!passes && kind_blocks(limit, charge.cost) && !block_holds(limit, &source->state, now))
		source->state.blocked_until = block_next(limit, &source->state, now);
	return passes;
}

static uint64_t source_burst(struct source *source, uint64_t count)
{
	uint64_t passed = 0;

	while (count--)
		passed += source_send(source, 1);
	return passed;
}

static struct decision source_decide(const struct source *source, uint64_t amount)
{
	return kind_decide(&source->limit, &source->state, 0, cost_of(source, amount), source->now);
}

/* Returns the number of packets or bytes that an idle source can send at once. */
static uint64_t capacity_of(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return limit->most;
	if (limit->kind == SL_TOKEN_BUCKET)
		return credit_units(limit, limit->burst);
	return credit_units(limit, limit->horizon) + 1;
}

/*
 * Sends all that the limit allows now: first all but one packet or byte, then the last packet or
 * byte.
 */
static void source_drain(struct source *source)
{
	uint64_t remaining = source_decide(source, 1).remaining;

	if (remaining > 1)
		assert_true(source_send(source, remaining - 1));
	if (remaining)
		assert_true(source_send(source, 1));
	assert_false(source_send(source, 1));
}

/* Returns whether the limit would pass `amount` now, but not more. */
static bool passes_exactly(const struct source *source, uint64_t amount)
{
	struct source copy = *source;

	if (amount > 1 && !source_send(&copy, amount - 1))
		return false;
	if (amount && !source_send(&copy, 1))
		return false;
	return !source_send(&copy, 1);
}

/*
 * Returns a number of ticks after which any state is full. The number is larger for a window,
 * because the clock may wrap.
 */
static uint64_t whole_of(const struct sl_limit *limit)
{
	if (limit->kind == SL_WINDOW)
		return (limit->groups + 2) * limit->period;
	return limit->kind == SL_TOKEN_BUCKET ? limit->burst
					      : limit->horizon + credit_cost(limit, 1, 1514);
}

/* --- Capacity ------------------------------------------------------------------------------- */

/* A source that is new or was idle can send the capacity of its limit at once. */
static void full_bucket_allows_capacity(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t capacity = capacity_of(&source.limit), whole = whole_of(&source.limit);
	const uint64_t rests[] = {whole, whole + 1, 10 * whole, 1000000 * whole};

	assert_true(passes_exactly(&source, capacity));
	for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
		source_drain(&source);
		source.now += rests[i];
		assert_true(passes_exactly(&source, capacity));
	}
	if (!source.limit.by_bytes)
		assert_int_equal(source_burst(&source, 2 * capacity), capacity);
}

static void start_empty(const struct kind_row *row, uint64_t epoch)
{
	struct sl_limit_spec spec = row->spec;
	struct source source;
	uint64_t wait;

	spec.start = SL_START_EMPTY;
	source = source_with(&spec, epoch);
	assert_false(source_send(&source, 1));
	wait = source_decide(&source, 1).retry_after;
	assert_true(wait > 0 && wait <= whole_of(&source.limit));
	if (row->spec.kind == SL_TOKEN_BUCKET)
		assert_int_equal(wait, cost_of(&source, 1));
	source.now += wait - 1;
	assert_false(source_send(&source, 1));
	source.now++;
	assert_true(source_send(&source, 1));
	/* a state that begins without credit is full after whole_of() ticks */
	source = source_with(&spec, epoch);
	source.now += whole_of(&source.limit);
	assert_true(passes_exactly(&source, capacity_of(&source.limit)));
}

/* --- Refill --------------------------------------------------------------------------------- */

/*
 * If a packet is refused, `retry_after` is the exact number of ticks until the packet would pass.
 */
static void denial_carries_retry_after(const struct kind_row *row, uint64_t epoch)
{
	for (uint64_t amount = 1; amount <= 4000; amount = amount * 3 + 1) {
		struct source source = source_with(&row->spec, epoch + amount * 12345), early, late;
		uint64_t wait;

		if (amount > capacity_of(&source.limit))
			continue;
		source_drain(&source);
		wait = source_decide(&source, amount).retry_after;
		assert_true(wait > 0);
		if (row->spec.kind == SL_SHAPE)
			amount = 1; /* in a shaper, a packet's size does not change the wait */
		if (row->spec.kind != SL_WINDOW)
			assert_in_range(wait, cost_of(&source, amount) - cost_of(&source, 1) + 1,
					cost_of(&source, amount));
		early = late = source;
		early.now += wait - 1;
		late.now += wait;
		assert_false(source_send(&early, amount));
		assert_true(source_send(&late, amount));
		if (row->spec.kind == SL_SHAPE)
			break;
	}
}

/*
 * When a sub-window leaves the window, its packets must not be counted any more. Until then, they
 * must be counted.
 */
static void window_restores(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t unit = 1ULL << source.limit.shift;
	uint64_t first = 8 * unit, second = source.limit.most - first;

	source.now = window_begin(&source.limit, source.now, 1);
	assert_true(source_send(&source, first));
	source.now = window_begin(&source.limit, source.now, 1);
	assert_true(source_send(&source, second));
	assert_false(source_send(&source, 1));
	source.now = window_begin(&source.limit, source.now, source.limit.groups) - 1;
	assert_false(source_send(&source, 1));
	source.now++;
	assert_true(passes_exactly(&source, first));
	source.now += whole_of(&source.limit);
	assert_true(passes_exactly(&source, source.limit.most));
}

static void refill_restores_tokens(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);

	if (row->spec.kind == SL_WINDOW) {
		window_restores(row, epoch);
		return;
	}
	source_drain(&source);
	for (int i = 0; i < 50; i++) {
		source.now += cost_of(&source, 1) - 1;
		assert_false(source_send(&source, 1));
		source.now++;
		assert_true(source_send(&source, 1));
		assert_false(source_send(&source, 1));
	}
}

/* A source without credit can send exactly n packets after the refill time of n packets. */
static void refill_correctness(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t capacity = capacity_of(&source.limit);

	for (uint64_t n = 1; n <= capacity; n = n * 2 + (n == 1)) {
		source = source_with(&row->spec, epoch + n);
		source_drain(&source);
		source.now +=
			row->spec.kind == SL_WINDOW ? whole_of(&source.limit) : cost_of(&source, n);
		assert_true(passes_exactly(&source, row->spec.kind == SL_WINDOW ? capacity : n));
	}
}

/* --- Rates ---------------------------------------------------------------------------------- */

/*
 * A source sends at twice its rate, so half of its packets pass. A window passes slightly less,
 * because its sub-windows are aligned.
 */
static void rate_enforcement(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	const struct sl_limit *limit = &source.limit;
	uint64_t size = limit->by_bytes ? 100 : 1, sent = 20000, passed = 0, gap;
	struct window_log log = {0};
	__int128 least;

	if (row->spec.kind == SL_WINDOW)
		gap = row->spec.span_ns * SL_TICKS_PER_NS * size / limit->most / 2;
	else
		gap = cost_of(&source, size) / 2;
	source_drain(&source);
	for (uint64_t i = 1; i <= sent; i++) {
		source.now += gap;
		if (source_send(&source, size)) {
			passed++;
			window_log_add(&log, (true_time)i * gap, size);
		}
	}
	if (row->spec.kind != SL_WINDOW) {
		assert_in_range(passed, sent / 2 - 1, sent / 2);
	} else {
		/* a window with G sub-windows passes at least G / (G + 1) of its rate */
		least = (__int128)(limit->most - (1ULL << limit->shift) + 1) * sent * gap /
			limit->period / (limit->groups + 1);
		assert_true((__int128)(passed * size) >= least - (__int128)limit->most);
		assert_true(window_log_most(&log, (true_time)row->spec.span_ns * SL_TICKS_PER_NS) <=
			    (__int128)limit->most);
	}
	window_log_end(&log);
}

/*
 * A source sends as much as possible in each sub-window. The rate that passes must be the rate in
 * window.h.
 */
static void greedy_gets_the_promised_share(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	const struct sl_limit *limit = &source.limit;
	uint64_t rounds = 300, passed = 0, left;

	for (uint64_t i = 0; i < rounds * (limit->groups + 1); i++) {
		left = source_decide(&source, 1).remaining;
		if (left) {
			assert_true(source_send(&source, left));
			passed += left;
		}
		source.now = window_begin(limit, source.now, 1);
	}
	assert_true(passed >= rounds * (limit->most - (1ULL << limit->shift) + 1));
	assert_true(passed <= (rounds + 1) * limit->most);
}

/*
 * If a source sends once per second for hours, rounding must not lower its rate. The period of 7
 * packets per hour is not a whole number of ticks.
 */
static void no_fraction_lost(const struct kind_row *row, uint64_t epoch)
{
	static const struct {
		uint64_t rate;
		enum sl_rate_unit unit;
		uint64_t seconds; /* time in which exactly `packets` packets pass */
		uint64_t packets;
	} slow[] = {{1, SL_RATE_PER_MIN, 8 * 3600, 480}, {7, SL_RATE_PER_HOUR, 50 * 3600, 350}};

	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		struct sl_limit_spec spec = {.kind = row->spec.kind,
					     .rate = slow[i].rate,
					     .rate_unit = slow[i].unit,
					     .burst = 2,
					     .span_ns = SEC_NS};
		struct source source = source_with(&spec, epoch);
		uint64_t passed = 0;

		source_drain(&source);
		for (uint64_t second = 1; second <= slow[i].seconds; second++) {
			source.now += SECOND;
			passed += source_send(&source, 1);
			/*
			 * Costs are rounded up, which delays packets by less than a second in
			 * total. A shaper accepts a packet up to a second before its departure.
			 */
			assert_in_range(passed, (second - 1) * slow[i].packets / slow[i].seconds,
					(second + (row->spec.kind == SL_SHAPE)) * slow[i].packets /
						slow[i].seconds);
		}
		assert_in_range(passed, slow[i].packets - 1, slow[i].packets);
	}
}

/*
 * A window of G sub-windows allows 1 packet per minute. The next packet passes after at most 1 +
 * 1/G minutes.
 */
static void no_fraction_lost_of_windows(const struct kind_row *row, uint64_t epoch)
{
	for (unsigned int groups = 1; groups <= WINDOW_GROUPS_MAX; groups++) {
		struct sl_limit_spec spec =
			spec_window(1, row->spec.rate_unit == SL_RATE_BITS, 60 * SEC_NS, groups);
		struct source source = source_with(&spec, epoch);
		uint64_t last = 0, seconds = 5 * 3600, least = 60 + 60 / groups + 2;

		assert_true(source_send(&source, 1));
		for (uint64_t second = 1; second <= seconds; second++) {
			/*
			 * when the clock wraps, two sub-windows merge into one of twice the length
			 */
			uint64_t wrap = source.now < epoch && source.now < 200 * SECOND;

			source.now += SECOND;
			if (source_send(&source, 1)) {
				assert_in_range(second - last, 60, least + wrap * 60 / groups);
				last = second;
			}
		}
		assert_in_range(seconds - last, 0, least);
	}
}

/* --- Keys and sizes ------------------------------------------------------------------------- */

/*
 * A key that has spent its credit does not affect other keys. `per` is the number of address bits
 * in a key.
 */
static void per_key_isolated(const struct kind_row *row, uint64_t epoch)
{
	static const struct {
		uint8_t per;
		bool same;
	} lengths[] = {{32, false}, {25, false}, {24, true}, {8, true}, {0, true}};
	const __u64 near[2] = {htobe32(0xc0000201)}, far[2] = {htobe32(0xc0000281)};
	struct state_key one, other;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct limit limit = {.spec = row->spec, .match = {.fact = SL_FACT_ANY}};
		const struct machine machine = {.cpus = 2, .jiffy_ns = JIFFY_NS};
		struct source sources[2] = {source_with(&row->spec, epoch),
					    source_with(&row->spec, epoch)};
		struct sl_limit compiled;

		limit.spec.per[SL_IPV4] = lengths[i].per;
		compiled = limit_compile(&limit, SL_IPV4, &machine);
		one = state_key_of(&compiled, near, true);
		other = state_key_of(&compiled, far, true);
		assert_int_equal(one.addr[0] == other.addr[0], lengths[i].same);
		source_drain(&sources[0]);
		assert_true(passes_exactly(&sources[!lengths[i].same],
					   lengths[i].same ? 0 : capacity_of(&compiled)));
	}
}

/* A packet of N bytes costs N bytes. A packet larger than the whole window never passes. */
static void cost_by_size(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t capacity = capacity_of(&source.limit), sum = 0;
	struct decision decision;

	for (uint32_t size = 60; size <= 1514 && sum + size < capacity; size += 97) {
		assert_true(source_send(&source, size));
		sum += size;
		assert_in_range(source_decide(&source, 1).remaining, capacity - sum - 1,
				capacity - sum);
	}
	assert_true(sum > 4000);
	if (row->spec.kind == SL_SHAPE)
		return;
	assert_false(source_send(&source, capacity - sum + 1));
	assert_true(passes_exactly(&source, source_decide(&source, 1).remaining));
	if (row->spec.kind != SL_WINDOW)
		return;
	source.now += 3 * whole_of(&source.limit);
	decision = source_decide(&source, capacity + 1);
	assert_false(decision.allowed);
	assert_true(decision.retry_after == KIND_NEVER);
	source_blocks(&source, SECOND, 0, 0);
	assert_false(source_send(&source, capacity + 1));
	assert_int_equal(kind_refusal(&source.limit, capacity + 1), SL_DROP_OVERSIZE);
	assert_int_equal(kind_refusal(&source.limit, capacity), SL_DROP_OVER_LIMIT);
	assert_int_equal(source.state.blocked_until, 0); /* an oversize packet begins no block */
	assert_true(source_send(&source, capacity));
}

/* --- Changes of a limit --------------------------------------------------------------------- */

/*
 * If the rate, burst or horizon of a limit changes, the new value applies to the next packet.
 * Earlier charges remain.
 */
static void first_limit_wins_until_changed(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t capacity = capacity_of(&source.limit), taken = capacity / 2;
	struct sl_limit_spec spec = row->spec, more = row->spec, fewer = row->spec;

	if (row->spec.kind == SL_WINDOW) {
		more.rate = row->spec.rate * 4 / 3; /* the unit of counts stays the same */
		fewer.rate = row->spec.rate * 5 / 6;
	} else if (row->spec.kind == SL_TOKEN_BUCKET) {
		more.burst = row->spec.burst * 3 / 2;
		fewer.burst = row->spec.burst * 5 / 8;
	} else {
		more.span_ns = row->spec.span_ns * 3 / 2;
		fewer.span_ns = row->spec.span_ns * 5 / 8;
	}
	assert_true(limit_keeps_states(&row->spec, &spec));
	assert_true(limit_keeps_states(&row->spec, &more));
	assert_true(limit_keeps_states(&row->spec, &fewer));
	assert_true(source_send(&source, taken));
	assert_int_equal(source_decide(&source, 1).remaining, capacity - taken);
	for (int i = 0; i < 2; i++) {
		uint64_t most;

		source.limit = spec_compile(i ? &fewer : &more);
		most = capacity_of(&source.limit);
		/* a larger burst adds no credit to a token bucket at once */
		if (row->spec.kind == SL_TOKEN_BUCKET)
			most = capacity;
		assert_in_range(source_decide(&source, 1).remaining, most - taken - 1,
				most - taken);
	}
	source_drain(&source);
	source.now += 2 * whole_of(&source.limit);
	assert_true(passes_exactly(&source, capacity_of(&source.limit)));
}

/* --- Decisions ------------------------------------------------------------------------------ */

/* Returns a source with a random state. The source's clock can be earlier than the last charge. */
static struct source source_at_random(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t capacity = capacity_of(&source.limit);

	if (run_one_in(3)) {
		uint64_t block = 1 + run_choose(whole_of(&source.limit));

		source_blocks(&source, block, run_choose(2) * 3, 5 * block);
	}
	for (int i = run_choose(12); i >= 0; i--) {
		source.now += run_one_in(3) ? 0 : run_choose(whole_of(&source.limit) / 2);
		if (run_one_in(3))
			source.now = (source.now | 15) + 1;
		source_send(&source, run_one_in(2) ? 1 : 1 + run_choose(capacity));
	}
	source.now += run_one_in(2) ? run_choose(whole_of(&source.limit)) : 0;
	if (run_one_in(3))
		source.now -= run_choose(WINDOW_CLOCKS);
	return source;
}

static bool source_passes(const struct source *source, uint64_t amount, uint64_t later)
{
	struct source copy = *source;

	copy.now += later;
	return source_send(&copy, amount);
}

static void check_decision(const struct source *source, uint64_t amount)
{
	struct decision decision = source_decide(source, amount), then;
	struct source later = *source;

	assert_int_equal(decision.allowed, source_passes(source, amount, 0));
	assert_true(passes_exactly(source, decision.remaining));
	if (decision.retry_after == KIND_NEVER) {
		assert_int_equal(source->limit.kind, SL_WINDOW);
		assert_true(cost_of(source, amount) > source->limit.most);
		return;
	}
	assert_int_equal(!decision.retry_after, decision.allowed);
	assert_true(source_passes(source, amount, decision.retry_after));
	later.now += decision.retry_after;
	assert_true(passes_exactly(&later, decision.remaining_then));
	if (decision.retry_after)
		assert_false(source_passes(source, amount, decision.retry_after - 1));
	later.now = source->now + decision.full_in;
	assert_true(passes_exactly(&later, capacity_of(&source->limit)));
	then = source_decide(&later, 1);
	assert_int_equal(then.full_in, 0);
	assert_int_equal(then.remaining, capacity_of(&source->limit));
	if (!decision.full_in)
		return;
	later.now--;
	then = source_decide(&later, 1);
	assert_int_equal(then.full_in, 1);
	/* one tick before it is full, a shaper in bytes may already pass its whole capacity */
	if (source->limit.kind != SL_SHAPE || !source->limit.by_bytes)
		assert_false(passes_exactly(&later, capacity_of(&source->limit)));
}

static void decision_agrees_with_draw(const struct kind_row *row, uint64_t epoch)
{
	for (int i = 0; i < 600; i++) {
		struct source source = source_at_random(row, epoch - run_choose(4 * SECOND));
		uint64_t capacity = capacity_of(&source.limit);

		check_decision(&source, 1);
		check_decision(&source, 1 + run_choose(capacity));
		check_decision(&source, capacity);
		check_decision(&source, capacity + 1 + run_choose(capacity));
	}
}

/* --- Charges that are undone ----------------------------------------------------------------- */

static bool source_give_back(struct source *source, uint64_t amount, uint64_t at)
{
	return kind_give_back(&source->limit, &source->state, cost_of(source, amount), at);
}

/* A refund undoes a charge. A window allows this only until the sub-window of the charge ends. */
static void give_back_undoes_a_charge(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch), before;
	uint64_t capacity = capacity_of(&source.limit), at;

	if (row->spec.kind == SL_WINDOW)
		source.now = window_begin(&source.limit, source.now, 1);
	assert_true(source_send(&source, 7));
	before = source;
	at = source.now;
	assert_true(source_send(&source, 5));
	assert_true(source_give_back(&source, 5, at));
	assert_int_equal(source.state.empty_at, before.state.empty_at);
	assert_int_equal(source_decide(&source, 1).remaining, capacity - 7);
	if (row->spec.kind != SL_WINDOW)
		return;
	/* refund just before the end of the sub-window, and at its end */
	at = source.now;
	assert_true(source_send(&source, 5));
	source.now = window_begin(&source.limit, at, 1) - 1;
	assert_true(source_give_back(&source, 5, at));
	assert_true(source_send(&source, 5));
	source.now++;
	kind_roll(&source.limit, &source.state, source.now);
	assert_false(source_give_back(&source, 5, at));
	assert_int_equal(source_decide(&source, 1).remaining, capacity - 12);
}

/* A shaper can refund a packet after it has charged later packets. */
static void give_back_undoes_any_charge(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t first, second, taken = cost_of(&source, 5);

	assert_true(source_send(&source, 5));
	first = source.departure;
	assert_true(source_send(&source, 5));
	second = source.departure;
	assert_int_equal(second, first + taken);
	assert_true(source_give_back(&source, 5, source.now));
	assert_int_equal(source.state.ready_at, first + taken);
	assert_true(source_give_back(&source, 5, source.now));
	assert_int_equal(source.state.ready_at, first);
	assert_int_equal(source_decide(&source, 1).remaining, capacity_of(&source.limit));
}

/* --- Blocks --------------------------------------------------------------------------------- */

#define BLOCK (10 * SECOND)

/* Sends a packet, which must be refused and begin a block of exactly this length. */
static void check_block(struct source *source, uint64_t length)
{
	uint64_t begin = source->now;

	source->state = (struct sl_state){.blocked_until = source->state.blocked_until};
	source->state.empty_at = kind_full(&source->limit, begin).empty_at;
	source->state.full_at = kind_full(&source->limit, begin).full_at;
	source->state.charged_at = kind_full(&source->limit, begin).charged_at;
	assert_true(passes_exactly(source, capacity_of(&source->limit)));
	source_drain(source);
	assert_true(block_holds(&source->limit, &source->state, begin));
	assert_int_equal(source_decide(source, 1).remaining, 0);
	assert_true(source_decide(source, 1).retry_after >= length);
	source->now = begin + length - 1;
	assert_true(block_holds(&source->limit, &source->state, source->now));
	assert_false(source_send(source, 1));
	source->now++;
	assert_false(block_holds(&source->limit, &source->state, source->now));
	assert_int_equal(source_decide(source, 1).retry_after == 0, source_passes(source, 1, 0));
}

/*
 * During a block, every packet is refused, and none is charged. A refused packet does not prolong
 * the block.
 */
static void block_refuses_everything_until_its_end(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch & ~15ULL), free;

	source_blocks(&source, BLOCK, 0, 0);
	for (int i = 0; i < 3; i++)
		check_block(&source, BLOCK); /* without `escalate`, all blocks have this length */
	source.now += BLOCK;
	source_drain(&source);
	free = source;
	free.state.blocked_until = 0;
	for (int i = 0; i < 9; i++) {
		source.now += BLOCK / 10;
		assert_false(source_send(&source, 1));
	}
	source.now += BLOCK / 10;
	free.now = source.now;
	/*
	 * a block may round up the counts of a window, so `source` may have less credit than `free`
	 */
	assert_in_range(source_decide(&source, 1).remaining,
			source_decide(&free, 1).remaining - ((1ULL << source.limit.shift) - 1),
			source_decide(&free, 1).remaining);
}

/*
 * `blocked_until` is 0 if there is no block. A block that ends at time 0 must still
 * be in force.
 */
static void a_block_that_ends_at_time_0_is_a_block(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, -BLOCK);

	(void)epoch;
	for (int escalate = 0; escalate <= 2; escalate += 2) {
		source = source_with(&row->spec, -BLOCK);
		source_blocks(&source, BLOCK, escalate, BLOCK);
		source_drain(&source);
		assert_true(block_holds(&source.limit, &source.state, -1ULL));
		assert_false(block_holds(&source.limit, &source.state, SL_TICKS_PER_NS));
	}
}

/*
 * A packet is refused `gap` seconds plus `gap_ns` after the end of the last block. The refusal
 * begins a block of `length` seconds. Repeated blocks grow from 10 s to at most 200 s.
 */
struct overrun {
	uint64_t gap, gap_ns, length;
};

static const struct overrun overruns[] = {
	{0, 0, 10},	    {0, 0, 30},	   {0, 0, 90},	 {0, 0, 200},  {0, 0, 200},
	{200, 0, 200},	    {200, 1, 200}, {400, 1, 90}, {90, 0, 200}, {600, 1, 30},
	{30, 0, 90},	    {90, 1, 90},   {90, 0, 200}, {800, 1, 10}, {10, 1, 10},
	{10, 0, 30},	    {30, 1, 30},   {60, 1, 10},	 {0, 1, 30},   {29, 999999999, 90},
	{100000000, 0, 10},
};

static void block_and_escalate(const struct kind_row *row, uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch & ~15ULL);

	source_blocks(&source, BLOCK, 3, 20 * BLOCK);
	for (size_t i = 0; i < ARRAY_SIZE(overruns); i++) {
		source.now += overruns[i].gap * SECOND + overruns[i].gap_ns * SL_TICKS_PER_NS;
		check_block(&source, overruns[i].length * SECOND);
	}
}

/* A block is at most `block_max` long, for any `escalate` and any number of blocks. */
static void block_is_never_longer_than_its_maximum(const struct kind_row *row, uint64_t epoch)
{
	static const uint32_t factors[] = {2, 3, 7, 100, 255};

	for (size_t i = 0; i < ARRAY_SIZE(factors); i++) {
		struct source source = source_with(&row->spec, epoch & ~15ULL);
		uint64_t length = SECOND / 1000, most = 32 * SECOND;

		source_blocks(&source, length, factors[i], most);
		for (int step = 0; step < 40; step++) {
			check_block(&source, length);
			length = length * factors[i] < most ? length * factors[i] : most;
		}
	}
}

/* --- Threads -------------------------------------------------------------------------------- */

#define THREADS 100
#define ASKS	60

/* A packet: the time of its arrival, and a time just after its verdict. */
struct ask {
	uint64_t begin, end;
	uint64_t departure;
	bool passed;
};

static struct {
	struct sl_limit limit;
	uint64_t clock; /* simulated time in ticks, which all threads share */
	uint64_t step;	/* ticks from one packet to the next */
	struct ask asks[THREADS][ASKS];
} shared;

static void *threads_run(void *data)
{
	struct ask *asks = data;

	for (int i = 0; i < ASKS; i++) {
		uint64_t now = __atomic_add_fetch(&shared.clock, shared.step, __ATOMIC_SEQ_CST);
		struct packet packet = host_packet(&shared.limit, 1, now);
		enum charge_result result;
		struct verdict verdict;

		asks[i].begin = now;
		do {
			verdict = (struct verdict){0};
			result = limit_charge_state(&packet, &shared.limit, NULL, &verdict);
		} while (result == CHARGE_REFUSED && verdict.refusal == SL_DROP_CONTENDED);
		asks[i].passed = result == CHARGE_PASSED;
		asks[i].departure = verdict.departure;
		asks[i].end = __atomic_load_n(&shared.clock, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Sends packets of one source in 100 threads. Returns the number of passed packets. */
static uint64_t threads_send(const struct kind_row *row, uint64_t epoch, uint64_t step)
{
	pthread_t threads[THREADS];
	uint64_t passed = 0;

	shared.limit = spec_compile(&row->spec);
	shared.clock = epoch;
	shared.step = step;
	host_begin(&shared.limit, kind_new(shared.limit.kind, &shared.limit, 0, epoch));
	test_clock_ticks = epoch;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, threads_run, shared.asks[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS * ASKS; i++)
		passed += shared.asks[i / ASKS][i % ASKS].passed;
	return passed;
}

/* Checks that the shaper sends packets at its rate, and never before they arrive. */
static void check_departures(void)
{
	uint64_t first = shared.asks[0][0].begin;
	struct shape_log log = {0};

	for (int i = 0; i < THREADS * ASKS; i++) {
		const struct ask *ask = &shared.asks[i / ASKS][i % ASKS];

		struct shape_entry entry = {
			.arrival = credit_span(first, ask->begin),
			.departure = credit_span(first, ask->departure),
			.cost = credit_cost(&shared.limit, 1, 1),
		};

		if (ask->passed)
			shape_log_add(&log, &entry);
	}
	assert_null(shape_log_fault(&log, shared.limit.horizon));
	shape_log_end(&log);
}

static void concurrent_allow_grants_at_most_capacity(const struct kind_row *row, uint64_t epoch)
{
	uint64_t capacity = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t passed = threads_send(row, epoch, 0);

		capacity = capacity_of(&shared.limit);
		if (capacity > THREADS * ASKS)
			capacity = THREADS * ASKS;
		if (row->spec.kind == SL_SHAPE)
			check_departures();
		if (row->spec.kind == SL_SHAPE && shared.limit.by_bytes)
			assert_in_range(passed, 1, capacity);
		else
			assert_int_equal(passed, capacity);
	}
}

/*
 * Threads send packets while the clock runs through 40 sub-windows. A window of N packets per time
 * T must pass at most N packets in any time T.
 */
static void concurrent_clock_never_grants_more(const struct kind_row *row, uint64_t epoch)
{
	struct sl_limit limit = spec_compile(&row->spec);
	uint64_t span = row->spec.span_ns * SL_TICKS_PER_NS, passed;
	uint64_t step = (row->spec.kind == SL_WINDOW	     ? 40 * limit.period
			 : row->spec.kind == SL_TOKEN_BUCKET ? 8 * limit.burst
							     : 8 * limit.horizon) /
			(THREADS * ASKS);

	passed = threads_send(row, epoch, step | 1); /* odd, so that no clock reading is 0 */
	if (row->spec.kind == SL_SHAPE) {
		check_departures();
	} else if (row->spec.kind == SL_TOKEN_BUCKET) {
		assert_true(passed <= capacity_of(&limit) + credit_units(&limit, 8 * limit.burst));
	} else {
		for (int i = 0; i < THREADS * ASKS; i++) {
			uint64_t begin = shared.asks[i / ASKS][i % ASKS].begin, sum = 0;

			for (int j = 0; j < THREADS * ASKS; j++) {
				const struct ask *ask = &shared.asks[j / ASKS][j % ASKS];

				sum += ask->passed && credit_span(begin, ask->begin) >= 0 &&
				       credit_span(ask->end, begin + span) > 0;
			}
			assert_true(sum <= limit.most);
		}
	}
	assert_true(passed > 0);
}

/* --- A CPU that stalls ----------------------------------------------------------------------- */

/*
 * A CPU charges a packet, and stalls before it accesses a shared word. Other CPUs send packets
 * during the stall.
 */
static struct {
	struct source *source;
	int pause, stall; /* pause: accesses so far; stall: access before which the CPU stalls */
	uint64_t later;	  /* clock of the stalled CPU when it continues, in ticks */
	bool gives_up;	  /* whether another CPU stops while it moves to the next sub-window */
	true_time early;  /* time at which other CPUs also send; 0: never */
	struct window_log *log;
	true_time now;
	uint64_t epoch;
} stall;

static void stall_send(uint64_t amount)
{
	struct packet packet =
		host_packet(&stall.source->limit, amount, stall.epoch + (uint64_t)stall.now);
	struct host_notes notes = host_notes;
	true_time at = stall.now;

	if (host_ask(&stall.source->limit, &packet, NULL, &(struct verdict){0}) == SL_PASS_WITHIN) {
		int64_t ahead = credit_span(packet.now, host_notes.charged);

		window_log_add(stall.log, ahead > 0 ? at + ahead : at, amount);
	}
	host_notes = notes;
}

/*
 * Simulates other CPUs, which send as much as possible in the current and in each of the next
 * sub-windows.
 */
static void stall_others(void)
{
	uint64_t most = stall.source->limit.most;

	if (stall.pause++ != stall.stall)
		return;
	for (int i = 0; i < 4; i++) {
		stall_send(most / 3);
		stall_send(1);
		stall.now += stall.later / 4;
		stall_send(most / 4);
	}
	if (stall.gives_up) {
		uint64_t now = stall.epoch + (uint64_t)stall.now;

		stall.now += window_begin(&stall.source->limit, now, 1) - now;
		host_state->charged_at = stall.epoch + (uint64_t)stall.now;
	}
}

/*
 * A CPU stalls before it accesses a shared word, for up to several sub-windows. Meanwhile, other
 * CPUs send as much as possible. The window must not pass more packets than it allows.
 */
static void a_cpu_that_stalls_anywhere_lets_no_more_pass(const struct kind_row *row, uint64_t epoch)
{
	static const uint64_t rests[] = {0,	1,     5,     14,    15,    16,	   17,
					 40000, 65532, 65533, 65534, 65535, 65536, 65550};
	struct source source = source_with(&row->spec, epoch);
	uint64_t period = source.limit.period, most = source.limit.most;
	struct window_log log = {0};

	for (int i = 0; i < (int)ARRAY_SIZE(rests) * 8 * 24; i++) {
		uint64_t rest = rests[i / 24 / 8], parts = i / 24 % 8;

		source = source_with(&row->spec, epoch);
		host_begin(&source.limit, source.state);
		host_state->charged_at = epoch;
		host_begun = epoch;
		stall = (typeof(stall)){
			.source = &source, .stall = -1, .log = &log, .epoch = epoch};
		host_between = stall_others;
		/* fill the counts of three sub-windows */
		for (int part = 0; part < 3; part++) {
			stall_send(most / 4);
			stall.now += period;
		}
		if (rest > 40000)
			stall_send(window_left(&source.limit, host_state));
		stall.now = window_begin(&source.limit, epoch + (uint64_t)stall.now, 1 + rest) -
			    epoch - 1 + (parts >> 1 & 1) * 5;
		stall.pause = 0;
		stall.stall = i % 24;
		stall.later = parts & 1 ? 3 * period : 0;
		stall.gives_up = parts & 4;
		stall_send(1);
		for (int part = 0; part < 20; part++) {
			stall_send(1);
			stall_send(window_left(&source.limit, host_state));
			stall.now += period / 3;
		}
		host_between = NULL;
		assert_true(window_log_most(&log, (true_time)row->spec.span_ns * SL_TICKS_PER_NS) <=
			    (__int128)most);
		window_log_end(&log);
	}
}

/*
 * Simulates other CPUs, which send as much as possible after the 16-bit index of the sub-window has
 * wrapped.
 */
static void others_come_round(void)
{
	if (stall.pause++ != stall.stall)
		return;
	if (stall.early) {
		stall.now = stall.early;
		stall_send(stall.source->limit.most);
	}
	stall.now = stall.later;
	stall_send(stall.source->limit.most);
	stall_send(window_left(&stall.source->limit, host_state));
}

/*
 * A CPU stalls while it moves the window to the next sub-window. Other CPUs meanwhile move the
 * window until its 16-bit index wraps. The first word of the state can then have its old value
 * again.
 */
static void a_turn_that_stalls_until_the_index_comes_round(const struct kind_row *row,
							   uint64_t epoch)
{
	struct source source = source_with(&row->spec, epoch);
	uint64_t most = source.limit.most;
	struct window_log log = {0};

	for (int i = 0; i < 24 * 8 * source.limit.groups; i++) {
		uint64_t before = i / 24 / 8, takes = i / 24 & 1 ? most : most / 2;
		/*
		 * whether the stalled CPU's clock is at the end of its sub-window, not at the start
		 */
		bool last = i / 24 & 2;
		true_time early;

		source = source_with(&row->spec, epoch);
		host_begin(&source.limit, source.state);
		host_state->charged_at = epoch;
		host_begun = epoch;
		stall = (typeof(stall)){
			.source = &source, .stall = -1, .log = &log, .epoch = epoch};
		stall_send(takes);
		stall.stall = i % 24;
		stall.now = window_begin(&source.limit, epoch, 65536 - 1 - before + last) - epoch -
			    last;
		stall.later = window_begin(&source.limit, epoch, 65536) - epoch;
		early = window_begin(&source.limit, epoch, 65535) - epoch;
		if (i / 24 & 4)
			stall.early = stall.now > early ? stall.now : early;
		host_between = others_come_round;
		stall_send(1);
		host_between = NULL;
		for (int part = 0; part < 3; part++)
			stall_send(window_left(&source.limit, host_state));
		stall_send(most);
		assert_true(window_log_most(&log, (true_time)row->spec.span_ns * SL_TICKS_PER_NS) <=
			    (__int128)most);
		window_log_end(&log);
	}
}

/* --- The table of cases ---------------------------------------------------------------------- */

#define CASE(name, kinds, units)                                                                   \
	{                                                                                          \
#name, name, kinds, units                                                          \
	}

static const struct kind_case {
	const char *name;
	void (*run)(const struct kind_row *row, uint64_t epoch);
	unsigned int kinds;
	enum { ANY, PACKETS, BYTES } units;
} cases[] = {
	CASE(full_bucket_allows_capacity, ALL, ANY),
	CASE(start_empty, BUCKETS | WINDOWS, ANY),
	CASE(denial_carries_retry_after, ALL, ANY),
	CASE(refill_restores_tokens, ALL, PACKETS),
	CASE(refill_correctness, BUCKETS | WINDOWS, ANY),
	CASE(refill_correctness, SHAPES, PACKETS),
	CASE(rate_enforcement, ALL, ANY),
	CASE(greedy_gets_the_promised_share, WINDOWS, ANY),
	CASE(no_fraction_lost, BUCKETS | SHAPES, PACKETS),
	CASE(no_fraction_lost_of_windows, WINDOWS, PACKETS),
	CASE(per_key_isolated, ALL, ANY),
	CASE(cost_by_size, ALL, BYTES),
	CASE(first_limit_wins_until_changed, ALL, ANY),
	CASE(decision_agrees_with_draw, ALL, ANY),
	CASE(give_back_undoes_a_charge, ALL, ANY),
	CASE(give_back_undoes_any_charge, SHAPES, ANY),
	CASE(block_refuses_everything_until_its_end, ALL, ANY),
	CASE(a_block_that_ends_at_time_0_is_a_block, ALL, ANY),
	CASE(block_and_escalate, ALL, ANY),
	CASE(block_is_never_longer_than_its_maximum, ALL, ANY),
	CASE(concurrent_allow_grants_at_most_capacity, ALL, ANY),
	CASE(concurrent_clock_never_grants_more, ALL, ANY),
	CASE(a_cpu_that_stalls_anywhere_lets_no_more_pass, WINDOWS, ANY),
	CASE(a_turn_that_stalls_until_the_index_comes_round, WINDOWS, ANY),
};

static bool case_is_for(const struct kind_case *it, const struct kind_row *row)
{
	bool bytes = row->spec.rate_unit == SL_RATE_BITS;

	return it->kinds >> row->spec.kind & 1 &&
	       (it->units == ANY || bytes == (it->units == BYTES));
}

/*
 * A test of one case with one kind of limit. If `it` is NULL, the test runs all cases of the kind.
 */
struct plan {
	const struct kind_case *it;
	const struct kind_row *row;
};

static const uint64_t epochs[] = {0,	      1,	  12345678901ULL,
				  1ULL << 32, 1ULL << 60, (1ULL << 63) - SECOND};

static void plan_run(void **state)
{
	const struct plan *plan = *state;

	for (size_t i = 0; i < ARRAY_SIZE(epochs); i++)
		plan->it->run(plan->row, epochs[i]);
}

/* Runs all cases of a kind at start times shortly before the clock wraps. */
static void plan_wrap(void **state)
{
	const struct plan *plan = *state;
	uint64_t whole = 0;
	struct sl_limit limit = spec_compile(&plan->row->spec);

	whole = whole_of(&limit);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint64_t wraps[] = {-1ULL,      -SECOND,	  -whole,
					  -whole / 2, -3 * whole, -whole / 7};

		for (size_t j = 0; case_is_for(&cases[i], plan->row) && j < ARRAY_SIZE(wraps); j++)
			cases[i].run(plan->row, wraps[j]);
	}
}

#define NOW (1000 * SECOND)

/*
 * A new block has one escalation more than the last block. A pause between the two blocks lowers
 * the number of escalations by one for each length of the last block.
 */
static void test_block_steps(void **state)
{
	static const struct {
		unsigned int steps;   /* escalations of the previous block */
		unsigned int lengths; /* pause between the blocks, in lengths of the first */
		int more;	      /* is added to the pause, in ticks */
		unsigned int next;    /* expected escalations of the new block */
	} cases[] = {
		{0, 0, 0, 1}, {0, 1, -1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 9, 0, 0},
		{2, 0, 1, 3}, {2, 1, -1, 3}, {2, 1, 0, 3}, {2, 1, 1, 2}, {2, 2, -1, 2},
		{2, 2, 0, 2}, {2, 2, 1, 1},  {2, 3, 0, 1}, {2, 3, 1, 0}, {2, 4, 1, 0},
		{3, 0, 1, 4}, {4, 0, 1, 4}, /* the previous block had `steps_max` escalations */
	};
	const struct sl_limit limit = {
		.block = BLOCK, .block_max = 16 * BLOCK, .escalate = 2, .steps_max = 4};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_state state = {.blocked_until = NOW | cases[i].steps};
		__u64 length = BLOCK << cases[i].steps;
		__u64 now = NOW + cases[i].lengths * length + cases[i].more;
		__u64 next = block_next(&limit, &state, now);

		assert_int_equal(block_steps(&limit, &state, now), cases[i].next);
		assert_int_equal(next & BLOCK_STEPS_MAX, cases[i].next);
		assert_in_range((next & ~BLOCK_STEPS_MAX) - now, BLOCK << cases[i].next,
				(BLOCK << cases[i].next) + BLOCK_STEPS_MAX);
	}
}

int main(void)
{
	static struct CMUnitTest tests[(ARRAY_SIZE(cases) + 1) * ARRAY_SIZE(rows) + 1];
	static struct plan plans[ARRAY_SIZE(tests)];
	static char names[ARRAY_SIZE(tests)][96];
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t j = 0; j <= ARRAY_SIZE(cases); j++) {
			const struct kind_case *it = j < ARRAY_SIZE(cases) ? &cases[j] : NULL;

			if (it && !case_is_for(it, &rows[i]))
				continue;
			snprintf(names[count], sizeof(names[count]), "%s: %s", rows[i].name,
				 it ? it->name : "clock_wrap");
			plans[count] = (struct plan){it, &rows[i]};
			tests[count] = (struct CMUnitTest){.name = names[count],
							   .test_func = it ? plan_run : plan_wrap,
							   .initial_state = &plans[count]};
			count++;
		}
	tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_block_steps);
	return _cmocka_run_group_tests("kinds", tests, count, NULL, NULL);
}
