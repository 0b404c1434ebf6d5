// SPDX-License-Identifier: GPL-2.0
/*
 * user/state/pressure.h: a filter that was rebuilt for another size, as bpf/newcomer.h, compiled
 * for the host, reads it.
 */
#include "test.h"
#include "state/pressure.h"

#include "bpf_host.h"

#include "newcomer.h"

#define MOST 1024

static struct sl_known entries[MOST];

static void *map_find(const void *map, const void *key)
{
	return map == &known ? array_entry(entries, sizeof(*entries), MOST, key) : NULL;
}

static uint32_t word(uint32_t tag, uint32_t bits)
{
	return tag << SL_KNOWN_BITS | bits;
}

/* --- Words ---------------------------------------------------------------------------------- */

/* Joins two words, as those of the even and of the odd epochs, in both orders. */
static void check_join(uint32_t a, uint32_t b, uint32_t wanted)
{
	struct sl_known old[2] = {{{a, b}}, {{b, a}}};
	struct sl_known fit = known_fit(old, 2, 1, 0);

	assert_int_equal(fit.word[0], wanted);
	assert_int_equal(fit.word[1], wanted);
}

static void test_the_later_epoch_of_two_words_stays(void **state)
{
	(void)state;
	check_join(0, 0, 0);
	check_join(word(7, 0x5), word(7, 0x800003), word(7, 0x800007));
	check_join(word(7, 0x5), word(8, 0x3), word(8, 0x3));
	/* tags wrap */
	check_join(word(255, 0x5), word(0, 0x3), word(0, 0x3));
	check_join(word(255, 0x5), word(126, 0x3), word(126, 0x3));
	check_join(word(130, 0x5), word(1, 0x3), word(1, 0x3));
	check_join(word(127, 0x5), word(128, 0x3), word(128, 0x3));
	/* a word without bits adds nothing, whatever its epoch */
	check_join(word(7, 0x5), word(8, 0), word(7, 0x5));
	check_join(word(7, 0x5), 0, word(7, 0x5));
	check_join(word(200, 0x5), 0, word(200, 0x5));
}

/* --- Sizes ---------------------------------------------------------------------------------- */

static void test_a_larger_filter_repeats_its_entries(void **state)
{
	const struct sl_known old[2] = {{{word(3, 1), word(2, 2)}}, {{word(4, 4), 0}}};

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		struct sl_known fit = known_fit(old, 2, 8, i);

		assert_memory_equal(&fit, &old[i % 2], sizeof(fit));
	}
}

static void test_a_smaller_filter_joins_its_entries(void **state)
{
	struct sl_known old[8];

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		old[i] = (struct sl_known){{word(9, 1 << i), word(8, 1 << (8 + i))}};
	for (uint32_t i = 0; i < 2; i++) {
		struct sl_known fit = known_fit(old, 8, 2, i);

		assert_int_equal(fit.word[0], word(9, 0x55 << i));
		assert_int_equal(fit.word[1], word(8, 0x5500 << i));
	}
}

/* --- Sources -------------------------------------------------------------------------------- */

static void entries_fit(struct sl_meeting *meeting, uint32_t count)
{
	uint32_t old_count = meeting->known_mask + 1;
	struct sl_known old[MOST];

	memcpy(old, entries, sizeof(old));
	memset(entries, 0, sizeof(entries));
	for (uint32_t i = 0; i < count; i++)
		entries[i] = known_fit(old, old_count, count, i);
	meeting->known_mask = count - 1;
}

#define SOURCES 200

static struct digest digest_number(uint32_t number)
{
	return (struct digest){number * 0x9e3779b9U, number * 0x85ebca6bU};
}

static uint32_t strangers_known(const struct sl_meeting *meeting, uint64_t jiffy)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < 10000; i++)
		known += known_has(meeting, digest_number(1000000 + i), jiffy);
	return known;
}

/*
 * A source that came in this epoch or the one before stays known in another size; one that came
 * earlier does not.
 */
static void check_sizes(uint32_t from, uint32_t to, uint64_t epoch)
{
	struct sl_meeting meeting = {.window_shift = 4, .known_mask = from - 1};
	const uint64_t length = 1ULL << (4 + EPOCH_SHIFT), jiffy = epoch * length;

	memset(entries, 0, sizeof(entries));
	for (uint32_t i = 0; i < 3 * SOURCES; i++)
		known_add(&meeting, digest_number(i), jiffy + i / SOURCES * length);
	entries_fit(&meeting, to);
	for (uint32_t i = SOURCES; i < 3 * SOURCES; i++)
		assert_true(known_has(&meeting, digest_number(i), jiffy + 2 * length));
	assert_in_range(strangers_known(&meeting, jiffy + 2 * length), 0, 2500);
	assert_int_equal(strangers_known(&meeting, jiffy + 4 * length), 0);
}

static void test_sources_stay_known_in_any_size(void **state)
{
	static const uint32_t sizes[] = {256, 512, 1024};
	static const uint64_t epochs[] = {1, 2, 255, 256, 509, 510, 511, 512};

	(void)state;
	for (int e = 0; e < 8; e++)
		for (int from = 0; from < 3; from++)
			for (int to = 0; to < 3; to++)
				check_sizes(sizes[from], sizes[to], epochs[e]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_later_epoch_of_two_words_stays),
		cmocka_unit_test(test_a_larger_filter_repeats_its_entries),
		cmocka_unit_test(test_a_smaller_filter_joins_its_entries),
		cmocka_unit_test(test_sources_stay_known_in_any_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
