// SPDX-License-Identifier: GPL-2.0
/* bpf/newcomer.h: the errors of the filter of known sources that it states, measured. */
#include <math.h>
#include "test.h"
#include "meeting.h"

/* Scattered addresses: those in a row would fill the filter more evenly. */
static struct digest digest_scattered(const struct sl_meeting *meeting, uint32_t number)
{
	number *= 0x9e3779b1;
	number ^= number >> 15;
	return digest_ipv4(meeting, number * 0x85ebca77);
}

#define ASKED 1000000

static double part_mistaken(const struct sl_meeting *meeting, uint64_t jiffy)
{
	unsigned int mistaken = 0;

	for (uint64_t i = 0; i < ASKED; i++)
		mistaken += known_has(meeting, digest_scattered(meeting, (1U << 31) + i), jiffy);
	return (double)mistaken / ASKED;
}

#define HASHES 3 /* bits that a source sets in its block; some of them may be the same */

/* The chance that none of `bits` bits is set after so many throws. */
static double none_set(int bits, int throws)
{
	return pow(1 - (double)bits / SL_KNOWN_BITS, throws);
}

/* The chance that all of `bits` different bits are set, by inclusion and exclusion. */
static double all_set(int bits, int throws)
{
	if (bits == 1)
		return 1 - none_set(1, throws);
	if (bits == 2)
		return 1 - 2 * none_set(1, throws) + none_set(2, throws);
	return 1 - 3 * none_set(1, throws) + 3 * none_set(2, throws) - none_set(3, throws);
}

/* The part of unknown sources whose bits are all set, in blocks of so many sources on average. */
static double part_expected(double sources_in_block)
{
	const double same = 1.0 / SL_KNOWN_BITS;
	double part = 0, chance = exp(-sources_in_block);

	for (int in_block = 0; in_block < 60; in_block++) {
		int throws = HASHES * in_block;

		part += chance * ((1 - same) * (1 - 2 * same) * all_set(3, throws) +
				  3 * same * (1 - same) * all_set(2, throws) +
				  same * same * all_set(1, throws));
		chance *= sources_in_block / (in_block + 1);
	}
	return part;
}

/*
 * A known source stays known in its epoch and the next; the model tells how many unknown ones are
 * taken for known.
 */
static void test_known_sources_stay_known_for_two_epochs(void **state)
{
	static const unsigned int loads[] = {SOURCES / 8, SOURCES / 2, SOURCES};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		struct sl_meeting meeting = meeting_random();
		uint64_t epoch = 1ULL << (meeting.window_shift + EPOCH_SHIFT);
		uint64_t jiffy = (70000 + i) * epoch; /* even and odd ones */
		double one, two, model = part_expected((double)loads[i] / KNOWN);

		for (uint64_t source = 0; source < loads[i]; source++)
			known_add(&meeting, digest_scattered(&meeting, source), jiffy);
		for (uint64_t source = 0; source < loads[i]; source++) {
			struct digest digest = digest_scattered(&meeting, source);

			assert_true(known_has(&meeting, digest, jiffy));
			assert_true(known_has(&meeting, digest, jiffy + 2 * epoch - 1));
		}
		one = part_mistaken(&meeting, jiffy);
		assert_true(part_mistaken(&meeting, jiffy + 2 * epoch) == 0);
		for (uint64_t source = 0; source < loads[i]; source++)
			known_add(&meeting, digest_scattered(&meeting, loads[i] + source),
				  jiffy + epoch);
		two = part_mistaken(&meeting, jiffy + epoch);
		for (uint64_t source = 0; source < loads[i]; source++)
			known_add(&meeting, digest_scattered(&meeting, 2 * loads[i] + source),
				  jiffy + 2 * epoch);
		/* the bits of the epoch before the last went with the first of this one */
		assert_true(part_mistaken(&meeting, jiffy + 2 * epoch) < 2.2 * model + 0.0003);
		print_message("figure: %u sources known in an epoch, %.1f%% of the map: %.2f%% of "
			      "strangers are taken for known, and %.2f%% with as many in the epoch "
			      "before; the model says %.2f%%\n",
			      loads[i], 100.0 * loads[i] / SOURCES, 100 * one, 100 * two,
			      100 * model);
		assert_true(fabs(one - model) < 0.1 * model + 0.0003);
		assert_true(two < 2.2 * model + 0.0003);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_sources_stay_known_for_two_epochs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
