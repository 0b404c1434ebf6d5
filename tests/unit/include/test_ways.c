// SPDX-License-Identifier: GPL-2.0
/* Tests include/ways.h: compact 16-bit numbers, tags, the two sets of a key, and eviction costs. */
#include "test.h"
#include "kind_run.h"
#include "random.h"

static uint64_t random_state = RANDOM_BEGIN;

static uint64_t run_choose(uint64_t bound)
{
	return random_next(&random_state) % bound;
}

/* --- Short numbers -------------------------------------------------------------------------- */

static void check_short(uint64_t number)
{
	uint64_t value = short_value(short_make(number));

	if (value < number || value - number > number / 500 + 1)
		fail_msg("%lu reads as %lu", number, value);
}

TEST(test_a_short_number_is_never_too_small_and_hardly_too_large)
{
	for (uint64_t number = 0; number < 1 << 20; number++)
		check_short(number);
	for (int shift = 20; shift < 63; shift++) {
		for (int64_t i = -2; i <= 2; i++)
			check_short((1ULL << shift) + i);
		for (int i = 0; i < 10000; i++)
			check_short(random_next(&random_state) >> (63 - shift) >> 1);
	}
}

TEST(test_short_numbers_keep_their_order)
{
	for (uint64_t number = 1; number < 1ULL << 62; number += number / 777 + 1)
		assert_true(short_make(number - 1) <= short_make(number));
}

/* --- Sets ----------------------------------------------------------------------------------- */

/*
 * set_alternate() returns the second set if it gets the first set of a key, and the first set if it
 * gets the second.
 */
TEST(test_a_key_has_two_sets_and_finds_either_from_the_other)
{
	for (int i = 0; i < 1000000; i++) {
		struct sl_params params = {.set_mask = (2U << run_choose(24)) - 1};
		struct digest digest = {random_next(&random_state) >> 32,
					random_next(&random_state) >> 32};
		struct slot_ref ref = slot_ref_of(&params, digest);
		uint32_t other = set_alternate(&params, ref.primary, ref.tag);

		assert_true(ref.tag && !(ref.tag & TAG_DISPLACED));
		assert_true(ref.primary <= params.set_mask && other <= params.set_mask);
		assert_int_not_equal(other, ref.primary);
		assert_int_equal(set_alternate(&params, other, ref.tag | TAG_DISPLACED),
				 ref.primary);
	}
}

TEST(test_a_set_tells_whether_it_has_a_tag)
{
	for (unsigned int i = 0; i < 100000; i++) {
		uint16_t tag = i % 4 ? run_choose(1 << 16) : 0xffffU << run_choose(17);
		struct sl_set set = {.pad[0] = tag};

		/* fill the set with other tags, some of which differ in a single bit */
		for (uint32_t way = 0; way < SL_WAYS; way++)
			set.tag[way] =
				tag ^ (i % 3 ? 1 + run_choose(0xffff) : 1U << run_choose(16));
		assert_false(set_has_tag(&set, tag));
		set.tag[run_choose(SL_WAYS)] = tag;
		assert_true(set_has_tag(&set, tag));
	}
}

/* Two keys differ in the same bits of the limit and of the address. Their digests must differ. */
TEST(test_keys_of_two_limits_share_no_digest)
{
	for (int i = 0; i < 1000000; i++) {
		__u64 secret[SL_SECRETS];
		struct state_key one = {.addr = {random_next(&random_state)}, .limit = 1 << 3};
		struct state_key other = one;
		struct digest digests[2];

		for (int word = 0; word < SL_SECRETS; word++)
			secret[word] = random_next(&random_state);
		other.limit = (2 + run_choose(8)) << 3;
		other.addr[run_choose(2)] ^= (uint64_t)(one.limit ^ other.limit)
					     << 32 * run_choose(2);
		digests[0] = state_digest(secret, &one);
		digests[1] = state_digest(secret, &other);
		assert_memory_not_equal(&digests[0], &digests[1], sizeof(*digests));
	}
}

/* --- Eviction costs -------------------------------------------------------------------------- */

static uint16_t made; /* creation time of the tested entry */

/* Sets run.limit to a random limit of this kind, and gives the entry a new state. */
static void limit_draw(enum sl_kind kind)
{
	static const unsigned int cpus[] = {1, 2, 128, 1U << 31};
	struct machine machine = {.cpus = cpus[run_choose(4)], .jiffy_ns = SPEC_JIFFY_NS};
	struct limit limit;

	run_draw(kind, false, true);
	limit = (struct limit){.spec = run.spec, .match = {.fact = SL_FACT_ANY}};
	limit.spec.per[SL_IPV4] = 32;
	limit.spec.per[SL_IPV6] = 64;
	if (kind != SL_SHAPE && run_one_in(2)) {
		limit.spec.action = SL_ACTION_BLOCK;
		limit.spec.block_ns = run_scale(40);
		if (run_one_in(2)) {
			limit.spec.escalate = 2 + run_choose(9);
			limit.spec.block_max_ns = limit.spec.block_ns << run_choose(6);
		}
	}
	run.limit = limit_compile(&limit, SL_IPV4, &machine);
	host_begin(&run.limit, kind_new(kind, &run.limit, 0, run_clock(0)));
	made = host_entry.made = entry_moment(run_clock(0));
}

/* Checks that two states lead to the same verdicts, departure times and blocks. */
static void check_alike(struct sl_state one, struct sl_state other, uint64_t now)
{
	for (int i = 0; i < 30; i++) {
		struct packet packet = host_packet(&run.limit, run_amount(), now);
		enum sl_reason reasons[2];
		uint64_t departures[2], blocked[2];

		for (int which = 0; which < 2; which++) {
			struct packet copy = packet;
			struct verdict verdict = {0};

			host_begin(&run.limit, which ? other : one);
			reasons[which] = host_ask(&run.limit, &copy, NULL, &verdict);
			departures[which] = verdict.departure;
			blocked[which] = block_holds(&run.limit, host_state, now)
						 ? host_state->blocked_until
						 : 0;
			*(which ? &other : &one) = *host_state;
		}
		assert_int_equal(reasons[0], reasons[1]);
		assert_int_equal(departures[0], departures[1]);
		assert_int_equal(blocked[0], blocked[1]);
		now += run_choose(run_unit() / 2 + 1);
	}
}

/*
 * Checks the time at which an entry is reported as full. From this time on, its verdicts must equal
 * the verdicts of a new entry. The state must get its last credit shortly before this time.
 */
static void check_whole(void)
{
	struct sl_entry entry = {.limit = host_entry.limit, .span = run.limit.span, .made = made};
	struct sl_state state = *host_state;
	uint64_t now = kind_now(run.limit.kind, &state, run_clock(0));
	uint64_t at = entry_full_at(&entry, &state), then = credit_latest(now, at);
	uint64_t full = kind_decide(&run.limit, &state, 0, 1, now).full_in;
	uint64_t span = limit_span(&run.limit);

	/*
	 * if the clock or `made` has wrapped, skip the check, because a window then becomes full
	 * later
	 */
	if (then < state.charged_at || run.now >> (ENTRY_MOMENT_SHIFT + 15))
		return;
	/* if the index has wrapped, the window needs another T until it equals a new window */
	if (run.limit.kind == SL_WINDOW && run_comes_round(&state, then)) {
		uint64_t total = window_total(state.window);

		window_roll(&run.limit, &state, then);
		assert_int_equal(window_total(state.window), total);
		then += (run.limit.groups + 1) * run.limit.period;
	}
	assert_int_equal(kind_decide(&run.limit, &state, 0, 1, then).full_in, 0);
	if (full && !state.blocked_until && run.limit.kind != SL_WINDOW)
		assert_true(credit_span(now + full, at) <= (__s64)(span / 8 + span / 500 + 2));
	check_alike(state, kind_full(&run.limit, then), then);
}

static void check_kind(enum sl_kind kind)
{
	for (int i = 0; i < 2000; i++) {
		limit_draw(kind);
		for (int step = 0; step < 40; step++) {
			struct sl_state state;

			if (run_one_in(2))
				run_rest();
			run_packet(0);
			state = *host_state;
			check_whole();
			host_begin(&run.limit, state);
		}
		run_end();
	}
}

TEST(test_a_entry_of_a_bucket_is_whole_when_it_is_as_a_new_one)
{
	check_kind(SL_TOKEN_BUCKET);
}

TEST(test_a_entry_of_a_window_is_whole_when_it_is_as_a_new_one)
{
	check_kind(SL_WINDOW);
}

TEST(test_a_entry_of_a_shape_is_whole_when_it_is_as_a_new_one)
{
	check_kind(SL_SHAPE);
}

/* --- What is lost --------------------------------------------------------------------------- */

#define NOW (1000000 * SL_TICKS_PER_SEC)

/*
 * Returns an entry of an established source, which lacks `part` of its burst and is `age` seconds
 * old. The burst refills in 1 s.
 */
static struct sl_entry entry_lacking(double part, unsigned int age)
{
	const struct sl_limit limit = {.burst = SL_TICKS_PER_SEC};

	return (struct sl_entry){
		.limit = 8,
		.span = short_make(limit_span(&limit)),
		.made = entry_moment(NOW - age * SL_TICKS_PER_SEC) | ENTRY_ESTABLISHED,
		.state.empty_at = NOW - (int64_t)((1 - part) * SL_TICKS_PER_SEC),
		.state.full_at = NOW - age * SL_TICKS_PER_SEC,
		.state.charged_at = NOW - SL_TICKS_PER_SEC / 2,
	};
}

static struct sl_entry entry_back(struct sl_entry entry)
{
	entry.made |= ENTRY_CAME_BACK;
	return entry;
}

static __s64 loss_of(struct sl_entry entry, bool flood)
{
	return entry_evict_cost(&entry, entry_state(&entry), NOW, flood);
}

static struct sl_entry entry_blocked(double ago, double length, double drawn)
{
	struct sl_entry entry = entry_lacking(0, 86400);

	entry.state.blocked_until = NOW - (int64_t)((ago - length) * SL_TICKS_PER_SEC);
	entry.state.charged_at = NOW - (uint64_t)(drawn * SL_TICKS_PER_SEC);
	return entry;
}

/* The array `entries` is sorted by eviction cost, from the lowest to the highest. */
TEST(test_costs_are_in_order)
{
	struct sl_entry rested = entry_lacking(-1000, 2000);
	struct sl_entry entries[] = {
		rested,
		entry_lacking(-5, 100),
		entry_lacking(-1, 100),
		entry_lacking(0.01, 100),
		entry_lacking(0.2, 10),
		entry_lacking(0.2, 100), /* costs more, because the entry is older */
		entry_lacking(0.4, 10),
		/* entries that lack more than half of their burst */
		entry_lacking(0.7, 1000),
		entry_lacking(1, 100),
		entry_lacking(0.6, 10),
		entry_back(entry_lacking(0.6, 10)),
		entry_back(entry_lacking(1, 100)),
		entry_back(entry_lacking(0.7, 1000)),
		entry_blocked(1, 600, 1.1),
	};

	entries[0].state.charged_at = rested.state.empty_at;
	entries[1].state.charged_at = entries[1].state.empty_at;
	for (size_t i = 1; i < ARRAY_SIZE(entries); i++)
		assert_true(loss_of(entries[i - 1], false) < loss_of(entries[i], false));
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		assert_int_equal(loss_of(entries[i], false) < 0, i < 3);
		assert_int_equal(evict_is_protected(loss_of(entries[i], false)), i >= 7);
		/* a flood also protects entries that were charged within the last minute */
		assert_int_equal(evict_is_protected(loss_of(entries[i], true)), i >= 1);
	}
}

/* Returns a full entry whose last charge was `rest` seconds ago. */
static struct sl_entry entry_rested(unsigned int rest, bool established)
{
	struct sl_entry entry = entry_lacking(-(double)rest, 8000);

	entry.state.charged_at = entry.state.empty_at;
	entry.made &= established ? ~0 : ~ENTRY_ESTABLISHED;
	return entry;
}

/* The oldest full entry is evicted first. The entry of a new source counts as an hour older. */
TEST(test_a_full_state_of_a_new_key_is_evicted_first)
{
	for (int flood = 0; flood < 2; flood++) {
		__s64 young = loss_of(entry_rested(3, false), flood);

		assert_true(young < 0);
		assert_true(young < loss_of(entry_rested(3, true), flood));
		assert_true(young < loss_of(entry_rested(3602, true), flood));
		assert_true(young > loss_of(entry_rested(3604, true), flood));
		assert_true(young > loss_of(entry_rested(4, false), flood));
	}
	/* the cost of an entry with a deficit does not depend on `established` */
	for (int lacks = 1; lacks < 16; lacks++) {
		struct sl_entry entry = entry_lacking(lacks / 16., 8000), new = entry;

		new.made &= ~ENTRY_ESTABLISHED;
		assert_int_equal(loss_of(entry, false), loss_of(new, false));
		assert_int_equal(loss_of(entry, true), loss_of(new, true));
	}
}

/* If an early clock sets a creation time in the future, the age of the entry is 0. */
TEST(test_an_age_is_never_below_zero)
{
	const uint64_t unit = 1ULL << ENTRY_MOMENT_SHIFT;

	for (uint64_t at = 0; at < 2 * ENTRY_MOMENTS; at++) {
		struct sl_entry entry = {.made = entry_moment(at * unit)};

		assert_int_equal(entry_age(&entry, at * unit - 1), 0);
		assert_false(entry_is_due(&entry, at * unit - 1));
		for (uint64_t age = 0; age < 64; age++)
			assert_int_equal(entry_age(&entry, (at + age) * unit), age);
	}
}

/*
 * The eviction cost of an entry contains its deficit, which is rounded up to sixteenths of a burst.
 */
TEST(test_a_cost_has_the_parts_of_a_burst)
{
	for (int part = 0; part <= 64; part++) {
		struct sl_entry entry = entry_lacking(part / 64., 100);
		uint64_t parts = evict_parts(loss_of(entry, false));

		if (part) /* `span` may be rounded up by 0.2 % */
			assert_in_range(parts, (part + 3) / 4, (part + 4) / 4);
		assert_int_equal(evict_parts(loss_of(entry, true)),
				 entry_full_at(&entry, entry_state(&entry)) < NOW ? 0 : parts);
	}
}

/*
 * A debt of more than a burst counts in full. The deficit of a window is rounded up to half a burst
 * or a whole burst.
 */
TEST(test_deficits_of_debts_and_windows)
{
	struct sl_entry entry = entry_lacking(2.5, 100);

	assert_in_range(evict_parts(loss_of(entry, false)), 40, 41);
	entry = entry_lacking(9, 100);
	assert_in_range(evict_parts(loss_of(entry, false)), 144, 145);
	entry = entry_lacking(100, 1000);
	assert_int_equal(evict_parts(loss_of(entry, false)), 255);
	entry.limit = 8 | SL_WINDOW << 1;
	for (int part = 1; part < 16; part++) {
		entry.state.charged_at = NOW - part * SL_TICKS_PER_SEC / 16;
		entry.count.window.half = 0;
		assert_int_equal(evict_parts(loss_of(entry, false)), EVICT_PARTS);
		assert_true(evict_is_protected(loss_of(entry, false)));
		entry.count.window.half = ENTRY_HAS_HALF;
		assert_int_equal(evict_parts(loss_of(entry, false)), EVICT_PARTS / 2);
		assert_true(loss_of(entry, false) > 0);
		assert_false(evict_is_protected(loss_of(entry, false)));
	}
	entry.state.charged_at = NOW - 1.01 * SL_TICKS_PER_SEC;
	assert_true(loss_of(entry, false) < 0);
}

/*
 * The age of a window's last packet is correct up to 13 days. The age is negative if the packet's
 * CPU had an early clock.
 */
TEST(test_the_idle_time_of_a_window)
{
	const __u64 unit = 1ULL << ENTRY_SEEN_SHIFT, most = 0xfffffffdULL;
	const __u64 rests[] = {0, 1, 2, 1 << 20, most / 2, most / 2 + 1, most / 2 + 2, most};
	struct sl_entry entry = {.limit = 8 | SL_WINDOW << 1};

	for (__u64 now = 0; now < 5 * unit; now += unit / 2)
		for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
			__s64 rest;

			entry.count.window.seen = entry_seen(now);
			rest = entry_idle(&entry, entry_state(&entry), now + rests[i] * unit);
			assert_true(rest == ((__s64)rests[i] - 1) * (__s64)unit);
		}
	entry.count.window.seen = entry_seen(NOW) + 1;
	assert_true(entry_idle(&entry, entry_state(&entry), NOW) < 0);
	entry.limit = 8 | SL_TOKEN_BUCKET << 1;
	entry.state.charged_at = NOW - 5;
	assert_true(entry_idle(&entry, entry_state(&entry), NOW) == 5);
}

/*
 * An entry is protected from eviction during its block, and while `escalate` would prolong the next
 * block. After that, it can be evicted even if the source keeps sending.
 */
TEST(test_a_block_protects_an_entry_for_a_time)
{
	static const struct {
		double begun, length, drawn; /* in s: age and length of block, age of charge */
		bool protected;
	} cases[] = {
		{1, 600, 1.1, true},	   {599, 600, 600, true},     {601, 600, 602, true},
		{1190, 600, 1195, true},   {1210, 600, 1205, false},  {601, 600, 0.5, true},
		{4000, 600, 0.5, true},	   {4700, 600, 4000, true},   {5000, 600, 0.5, false},
		{250000, 600, 0.5, false}, {900000, 600, 0.5, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_entry entry =
			entry_blocked(cases[i].begun, cases[i].length, cases[i].drawn);

		entry.made =
			entry_moment(NOW - (uint64_t)((cases[i].begun + 3600) * SL_TICKS_PER_SEC));
		if (evict_is_protected(loss_of(entry, false)) != cases[i].protected)
			fail_msg("case %zu", i);
	}
}

TESTS(NULL, NULL)
