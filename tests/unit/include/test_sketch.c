// SPDX-License-Identifier: GPL-2.0
/* Tests include/sketch.h: measures the error rates of the sketch, and tests the flood detector. */
#include <math.h>
#include "test.h"
#include "random.h"
#include "sketch.h"
#include "ways.h"

#define SLOTS (SL_SKETCH_LINES * SL_SKETCH_SLOTS)

static struct sl_sketch lines[SL_SKETCH_LINES];

static uint64_t draw(void)
{
	static uint64_t state = RANDOM_BEGIN;

	return random_next(&state);
}

static __u64 secret[SL_SECRETS];

/* Returns params with a new secret, and empties the sketch. */
static struct sl_params params_random(void)
{
	struct sl_params params = {.interval_shift = 4, .sketch_mask = SL_SKETCH_LINES - 1};

	for (int i = 0; i < SL_SECRETS; i++)
		secret[i] = draw();
	memset(lines, 0, sizeof(lines));
	return params;
}

static uint32_t *slot_of(const struct sl_params *params, struct digest digest)
{
	return &lines[sketch_line(params, digest, 0)].slot[sketch_slot(digest)];
}

/*
 * Returns the digest of IPv4 address number `number`. Consecutive addresses are the worst case for
 * this universal hash.
 */
static struct digest digest_ipv4(uint32_t number)
{
	struct state_key key = {.addr = {number}, .limit = 1 << 3 | 1};

	return state_digest(secret, &key);
}

static struct digest digest_ipv6(uint64_t number)
{
	struct state_key key = {.addr = {number}, .limit = 1 << 3};

	return state_digest(secret, &key);
}

static struct digest digest_number(unsigned int kind, uint64_t number)
{
	switch (kind % 4) {
	case 0:
		return digest_ipv4(number);
	case 1:
		return digest_ipv4(__builtin_bswap32(number));
	case 2:
		return digest_ipv6(__builtin_bswap64(number));
	default:
		return digest_ipv6(number * 0x9e3779b97f4a7c15ULL);
	}
}

/* --- One taken for another ------------------------------------------------------------------ */

#define SECRETS	  32
#define STRANGERS 1000000 /* new sources for each of the SECRETS secrets */

/* Fills each slot of the sketch with a key that has more than FLOOD_MIN_HITS hits. */
static void slots_take(const struct sl_params *params, unsigned int kind)
{
	for (uint64_t number = 0; number < 16ULL * SLOTS; number++) {
		struct digest digest = digest_number(kind, number);
		uint32_t *slot = slot_of(params, digest);

		if (!*slot)
			*slot = sketch_print(digest) | 2;
	}
}

/*
 * All slots belong to keys with enough hits. With a probability of 2^-24, a new source's packet is
 * counted for the key of its slot.
 */
TEST(test_new_sources_are_mistaken_once_in_2_24_packets)
{
	double bound = (double)SECRETS * STRANGERS / (1 << 24);
	unsigned int mistakes = 0, free_slots = 0;

	for (unsigned int i = 0; i < SECRETS; i++) {
		struct sl_params params = params_random();

		slots_take(&params, i);
		for (unsigned int line = 0; line < SL_SKETCH_LINES; line++)
			for (int slot = 0; slot < SL_SKETCH_SLOTS; slot++)
				free_slots += !lines[line].slot[slot];
		for (unsigned int j = 0; j < STRANGERS; j++) {
			struct digest digest = digest_number(i, (1ULL << 28) + j);

			/* `digest.mark ^ 1` is a value of `coin` that never lowers a count */
			mistakes +=
				sketch_hit(slot_of(&params, digest), digest, digest.mark ^ 1) > 2;
		}
	}
	print_message("figure: %u packets of other keys, all slots taken: %u are mistaken for the "
		      "owner of a slot; 2^-24 of them are %.1f\n",
		      SECRETS * STRANGERS, mistakes, bound);
	assert_true(free_slots < SECRETS * SLOTS / 1000);
	/* bound that a Poisson distributed count exceeds with a probability of 10^-6 */
	assert_true(mistakes <= bound + 5 * sqrt(bound) + 3);
}

TEST(test_each_cpu_has_lines_of_its_own)
{
	const struct sl_params params = {.sketch_mask = 4095};
	const struct digest digest = {.place = 0xfffff};

	for (uint32_t cpu = 0; cpu < 3; cpu++)
		assert_int_equal(sketch_line(&params, digest, cpu), (cpu + 1) * 4096 - 1);
}

/*
 * A packet may lower the count in the slot of a different key. If this count is 1, the slot is
 * given to the packet's key.
 */
TEST(test_another_key_lowers_a_count_by_one)
{
	const struct digest one = {.mark = 1U << 8}, other = {.mark = 2U << 8};
	uint32_t slot = 0;

	for (uint32_t count = 1; count <= SKETCH_MOST + 3; count++)
		assert_int_equal(sketch_hit(&slot, one, 0),
				 count < SKETCH_MOST ? count : SKETCH_MOST);
	for (uint32_t count = SKETCH_MOST; count > 1; count--) {
		assert_int_equal(sketch_hit(&slot, other, 1), 1);
		assert_int_equal(slot, sketch_print(one) | count);
		assert_int_equal(sketch_hit(&slot, other, 0), 1);
		assert_int_equal(slot, sketch_print(one) | (count - 1));
	}
	sketch_hit(&slot, other, 0);
	assert_int_equal(slot, sketch_print(other) | 1);
	sketch_clear(&slot, one);
	assert_int_equal(slot, sketch_print(other) | 1);
	sketch_clear(&slot, other);
	assert_int_equal(slot, 0);
}

/* --- How long a slot remembers -------------------------------------------------------------- */

#define WATCHED 1500

static uint32_t see(const struct sl_params *params, uint64_t number, uint32_t coin)
{
	struct digest digest = digest_ipv4(number);

	return sketch_hit(slot_of(params, digest), digest, coin);
}

/*
 * Each source sends one packet. Then other sources send `others` packets. Returns the part of the
 * sources that still have their slots.
 */
static double part_remembered(const struct sl_params *params, uint64_t others)
{
	unsigned int remembered = 0;

	for (uint64_t i = 0; i < WATCHED; i++) {
		struct digest digest = digest_ipv4((1U << 31) + i);

		*slot_of(params, digest) = sketch_print(digest) | 1;
	}
	for (uint64_t i = 0; i < others; i++)
		see(params, draw() >> 33, draw());
	for (uint64_t i = 0; i < WATCHED; i++)
		remembered += see(params, (1U << 31) + i, 1) == 2;
	return (double)remembered / WATCHED;
}

/*
 * If a source has a count of 1, a packet of another source takes its slot with a probability of
 * 1/2. After k packets of other sources in n slots, a part of e^(-k / 2n) of the sources is left.
 */
TEST(test_a_slot_is_remembered_as_in_the_model)
{
	static const double parts[] = {0.25, 1, 2, 4};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct sl_params params = params_random();
		double found = part_remembered(&params, parts[i] * SLOTS);
		double model = exp(-parts[i] / 2);

		print_message("figure: of those seen once, %.1f%% are remembered after %.0f "
			      "others in %u slots; by the model %.1f%%\n",
			      100 * found, parts[i] * SLOTS, SLOTS, 100 * model);
		assert_true(fabs(found - model) < 0.06);
	}
}

/*
 * If all slots of the sketch are in use, a new key needs at most three additional packets on
 * average to get a state.
 */
TEST(test_a_key_needs_three_packets_more_at_most)
{
	struct sl_params params = params_random();
	uint64_t packets = 0, owed = 0;

	for (uint64_t i = 0; i < 20ULL * SLOTS; i++)
		see(&params, i, draw());
	for (uint64_t source = 0; source < WATCHED; source++) {
		uint32_t seen = 0;

		for (; seen <= FLOOD_MIN_HITS; packets++)
			seen = see(&params, (2U << 30) + source, draw());
		owed += seen;
	}
	print_message("figure: %.2f packets in a row on average, %.2f of them are charged\n",
		      (double)packets / WATCHED, (double)owed / WATCHED);
	assert_true(packets >= owed);
	assert_true(packets <= WATCHED * (FLOOD_MIN_HITS + 3ULL));
}

/* --- The rate of new keys ------------------------------------------------------------------- */

TEST(test_an_interval_is_never_0)
{
	const struct sl_params params = {.interval_shift = 4};

	assert_int_equal(flood_interval(&params, 0), 1);
	assert_int_equal(flood_interval(&params, 15), 1);
	assert_int_equal(flood_interval(&params, 16), 2);
	assert_int_equal(flood_interval(&params, 16 * 1000 + 3), 1001);
}

TEST(test_a_flood_lasts_until_its_jiffy)
{
	const struct sl_admission here = {.flood_until = {100, 200}};

	assert_true(flood_is_on(&here, false, 99));
	assert_false(flood_is_on(&here, false, 100));
	assert_true(flood_is_on(&here, true, 199));
	assert_true(flood_is_any(&here, 199));
	assert_false(flood_is_any(&here, 200));
	assert_false(flood_is_any(&(struct sl_admission){0}, 0));
}

TEST(test_new_keys_of_an_interval_are_counted_once)
{
	struct sl_admission here = {.new_keys = {4, 3}, .second = 5};

	flood_count_interval(&here);
	flood_count_interval(&here);
	assert_int_equal(here.event[SL_EVENT_NEW_KEY].total, 7);
	assert_int_equal(here.event[SL_EVENT_NEW_KEY].now, 7);
	assert_int_equal(here.new_keys[0] + here.new_keys[1], 0);
}

/* The reported rate of new keys is the number of new keys in the last second. */
TEST(test_a_rate_is_that_of_the_second_before)
{
	static const struct {
		uint32_t from, to, last;
	} cases[] = {{5, 5, 1}, {5, 6, 9}, {5, 7, 0}, {5, 4, 0}, {0xffffffff, 0, 9}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int event = 0; event < SL_EVENTS; event++) {
			struct sl_admission here = {.second = cases[i].from};

			here.event[event] =
				(struct sl_event_count){.total = 20, .now = 9, .last = 1};
			flood_turn(&here, cases[i].to);
			assert_int_equal(here.second, cases[i].to);
			assert_int_equal(here.event[event].total, 20);
			assert_int_equal(here.event[event].last, cases[i].last);
			assert_int_equal(here.event[event].now,
					 cases[i].from == cases[i].to ? 9 : 0);
		}
}

TESTS(NULL, NULL)
