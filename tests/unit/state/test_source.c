// SPDX-License-Identifier: GPL-2.0
/* Tests user/state/source.h, which refills a state while other CPUs charge packets to it. */
#include "test.h"
#include "base/clock.h"
#include "kind_specs.h"
#include "state/source.h"

#define SECOND SL_TICKS_PER_SEC
#define NOW    (1000 * SECOND)

static const struct state_key key = {.addr = {0x010200c0}, .limit = 9};

static struct sl_limit limits[4];

#define WINDOW (&limits[1])

static int limits_compile(void **state)
{
	const struct sl_limit_spec bucket = spec_bucket(10, SL_RATE_PPS, 100);
	const struct sl_limit_spec window = spec_window(100, false, NS_PER_SEC, 5);
	const struct sl_limit_spec shape = spec_shape(10, SL_RATE_PPS, NS_PER_SEC);
	struct sl_limit_spec blocking = bucket;

	(void)state;
	blocking.action = SL_ACTION_BLOCK;
	blocking.block_ns = NS_PER_SEC;
	limits[0] = spec_compile(&bucket);
	limits[1] = spec_compile(&window);
	limits[2] = spec_compile(&shape);
	limits[3] = spec_compile(&blocking);
	return 0;
}

/* Returns an entry without credit, for a limit. */
static struct sl_entry entry_spent(const struct sl_limit *limit)
{
	struct sl_entry entry = {.addr = {key.addr[0], key.addr[1]}, .limit = key.limit};
	struct kind_charge charge = {.cost = credit_cost(limit, 1, 60), .now = NOW, .jiffy = 1};
	struct sl_state *state = entry_state(&entry);
	struct sl_slice slice = {0};

	*state = kind_new(limit->kind, limit, 0, NOW);
	while (kind_charge(limit->kind, limit, state, &slice, &charge))
		slice = (struct sl_slice){0};
	if (limit->block)
		state->blocked_until = block_next(limit, state, NOW);
	return entry;
}

static struct decision decide(const struct sl_limit *limit, struct sl_entry *entry, uint64_t now)
{
	return kind_decide(limit, entry_state(entry), 0, credit_cost(limit, 1, 60), now);
}

static void check_full(const struct sl_limit *limit, uint64_t at)
{
	struct sl_entry entry = entry_spent(limit), fresh = {0};
	struct decision got, wanted;

	*entry_state(&fresh) = kind_full(limit, at);
	assert_false(decide(limit, &entry, NOW).allowed);
	assert_true(state_try_fill(limit, &entry, &key, at));
	got = decide(limit, &entry, at);
	wanted = decide(limit, &fresh, at);
	assert_true(got.allowed);
	assert_int_equal(got.remaining, wanted.remaining);
	assert_int_equal(got.full_in, 0);
	assert_int_equal(entry.state.blocked_until, 0);
}

TEST(test_a_state_of_each_kind_is_full_and_not_blocked)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (uint64_t later = 0; later < 3 * SECOND; later += SECOND / 7)
			check_full(&limits[i], NOW + later);
}

TEST(test_an_entry_of_another_key_stays_as_it_is)
{
	const struct state_key others[] = {
		{.addr = {key.addr[0] + 1}, .limit = key.limit},
		{.addr = {key.addr[0], 1}, .limit = key.limit},
		{.addr = {key.addr[0]}, .limit = key.limit + 8},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (size_t j = 0; j < ARRAY_SIZE(others); j++) {
			struct sl_entry entry = entry_spent(&limits[i]), before = entry;

			assert_true(state_try_fill(&limits[i], &entry, &others[j], NOW));
			assert_memory_equal(&entry, &before, sizeof(entry));
		}
}

/*
 * Writes `to` if the word has the value `from`, in the same way as each step of state_turn() in
 * bpf/state.h.
 */
static bool swap(__u64 *word, uint64_t from, uint64_t to)
{
	if (*word != from)
		return false;
	*word = to;
	return true;
}

/* Moves a window to its next sub-window. Refills the window before step `cut` of the move. */
static void turn_and_fill(struct sl_entry *entry, int cut, uint64_t now)
{
	struct sl_state *state = entry_state(entry), seen = *state, next = seen;
	bool goes_on = true;
	uint64_t settled;

	window_roll(WINDOW, &next, now);
	settled = window_settle(&seen, &next);
	for (int step = 0; step < 5; step++) {
		if (step == cut)
			assert_true(state_try_fill(WINDOW, entry, &key, now));
		if (step == 0 && goes_on)
			goes_on = swap(&state->past, seen.past, settled);
		if (step == 1 && goes_on)
			goes_on = swap(&state->charged_at, seen.charged_at, next.charged_at);
		if (step == 2 && goes_on)
			goes_on = swap(&state->window, seen.window, next.window);
		if (step == 3 && goes_on)
			swap(&state->past, settled, next.past);
	}
}

TEST(test_a_turn_under_way_brings_nothing_back)
{
	for (int cut = 0; cut < 5; cut++) {
		struct sl_entry entry = entry_spent(WINDOW);
		uint64_t now = NOW + WINDOW->period;

		turn_and_fill(&entry, cut, now);
		for (int period = 0; period < 3; period++) {
			struct decision got = decide(WINDOW, &entry, now + period * WINDOW->period);

			assert_int_equal(got.remaining, 100);
		}
	}
}

/* A refilled token bucket has exactly its burst, even with slices or a rounded `span`. */
TEST(test_nothing_is_lost_with_a_full_bucket)
{
	static const struct {
		double rate;
		enum sl_rate_unit unit;
		uint64_t burst;
	} cases[] = {{1, SL_RATE_PER_MIN, 10},
		     {1, SL_RATE_PER_HOUR, 7},
		     {10, SL_RATE_PPS, 100},
		     {100000, SL_RATE_PPS, 200000}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_limit_spec spec =
			spec_bucket(cases[i].rate, cases[i].unit, cases[i].burst);
		const struct sl_limit limit = spec_compile(&spec);
		struct sl_entry entry = entry_spent(&limit);

		entry.span = short_make(limit_span(&limit));
		entry.made |= ENTRY_ESTABLISHED;
		assert_true(entry_evict_cost(&entry, entry_state(&entry), NOW, false) > 0);
		assert_true(state_try_fill(&limit, &entry, &key, NOW));
		assert_int_equal(entry_evict_cost(&entry, entry_state(&entry), NOW, false), -1);
		assert_int_equal(decide(&limit, &entry, NOW).remaining, cases[i].burst);
	}
}

/*
 * A refill never lowers `charged_at`. For a window, it sets `charged_at` to the current sub-window.
 */
TEST(test_moments_never_go_back)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct sl_entry entry = entry_spent(&limits[i]);
		uint64_t drawn = entry.state.charged_at;

		if (limits[i].kind == SL_TOKEN_BUCKET)
			continue;
		assert_true(state_try_fill(&limits[i], &entry, &key, NOW - SECOND));
		assert_int_equal(entry.state.charged_at, drawn);
	}
}

TESTS(limits_compile, NULL)
