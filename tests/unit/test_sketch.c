// SPDX-License-Identifier: GPL-2.0
/* The errors that bpf/newcomer.h states, measured: its sketch and its filter, compiled for this machine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The maps are arrays of this process, of one CPU. */
static void *map_entry(const void *map, uint32_t index);

#define bpf_map_lookup_elem(map, key)	    map_entry(map, *(const uint32_t *)(key))
#define bpf_map_update_elem(map, key, v, f) (-1L)
#define bpf_get_smp_processor_id()	    0U
#define typeof __typeof__
#define SL_TEST_CLOCK
#include "base/array.h"
#include "newcomer.h"

/* As a gate has them by default on two CPUs. */
#define LINES	8192
#define SLOTS	(LINES * SL_SKETCH_SLOTS)
#define SOURCES (1U << 18)
#define KNOWN	(SOURCES / 4)

static struct sl_sketch_line sketch_lines[LINES];
static struct sl_known known_entries[KNOWN];

static void *map_entry(const void *map, uint32_t index)
{
	if (map == &sketch)
		return index < LINES ? &sketch_lines[index] : NULL;
	if (map == &known)
		return index < KNOWN ? &known_entries[index] : NULL;
	return NULL;
}

static uint64_t state = 88172645463325252ULL;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717ULL;
}

static struct sl_meeting meeting_random(void)
{
	struct sl_meeting meeting = {
		.window_shift = 4,
		.sketch_mask = LINES - 1,
		.known_mask = KNOWN - 1,
	};

	for (int i = 0; i < SL_SECRETS; i++)
		meeting.secret[i] = draw();
	memset(sketch_lines, 0, sizeof(sketch_lines));
	memset(known_entries, 0, sizeof(known_entries));
	return meeting;
}

/* A source by number: addresses in a row, or of /64s in a row, are what universal hashes are worst at. */
static struct digest digest_ipv4(const struct sl_meeting *meeting, uint32_t number)
{
	struct packet packet = {.source.bits = SL_FAMILY_BITS + 32};

	memcpy(packet.source.addr, &number, sizeof(number));
	return digest_of(&packet, meeting);
}

static struct digest digest_ipv6(const struct sl_meeting *meeting, uint64_t number)
{
	struct packet packet = {.source.bits = SL_FAMILY_BITS + 128};

	memcpy(packet.source.addr, &number, sizeof(number));
	return digest_of(&packet, meeting);
}

static struct digest digest_number(const struct sl_meeting *meeting, unsigned int kind,
				   uint64_t number)
{
	switch (kind % 4) {
	case 0:
		return digest_ipv4(meeting, number);
	case 1:
		return digest_ipv4(meeting, __builtin_bswap32(number));
	case 2:
		return digest_ipv6(meeting, __builtin_bswap64(number));
	default:
		return digest_ipv6(meeting, number * 0x9e3779b97f4a7c15ULL);
	}
}

/* --- One taken for another ------------------------------------------------------------------ */

#define SECRETS	  32
#define STRANGERS 1000000 /* for each secret */

/* Gives each slot to somebody who has shown himself three times, as the bar is in a crowd. */
static void slots_take(const struct sl_meeting *meeting, unsigned int kind)
{
	for (uint64_t number = 0; number < 16ULL * SLOTS; number++) {
		struct digest digest = digest_number(meeting, kind, number);
		uint32_t *slot =
			&sketch_lines[digest.place & meeting->sketch_mask].slot[digest.place >> 28];

		if (!*slot)
			*slot = sketch_print(digest) | 2;
	}
}

/* The chance is 2^-24 for a packet, also where all slots are taken by who has reached the bar. */
static void test_mistakes(void **state_unused)
{
	double bound = (double)SECRETS * STRANGERS / (1 << 24);
	unsigned int mistakes = 0, free_slots = 0;

	(void)state_unused;
	for (unsigned int i = 0; i < SECRETS; i++) {
		struct sl_meeting meeting = meeting_random();

		slots_take(&meeting, i);
		for (unsigned int line = 0; line < LINES; line++)
			for (int slot = 0; slot < SL_SKETCH_SLOTS; slot++)
				free_slots += !sketch_lines[line].slot[slot];
		for (unsigned int j = 0; j < STRANGERS; j++) {
			struct digest digest = digest_number(&meeting, i, (1ULL << 28) + j);

			/* with a coin by which nobody loses his slot */
			mistakes +=
				sketch_see(&meeting, SL_POOL_LEDGERS, digest, digest.mark ^ 1) > 2;
		}
	}
	print_message("figure: %u packets of strangers, all slots taken: %u taken for somebody "
		      "else; 2^-24 of them are %.1f\n",
		      SECRETS * STRANGERS, mistakes, bound);
	assert_true(free_slots < SECRETS * SLOTS / 1000);
	/* a Poisson variable is above this once in a million runs */
	assert_true(mistakes <= bound + 5 * sqrt(bound) + 3);
}

/* --- How long a slot remembers -------------------------------------------------------------- */

#define WATCHED 1500

static uint32_t see(const struct sl_meeting *meeting, uint64_t number, uint32_t coin)
{
	return sketch_see(meeting, SL_POOL_LEDGERS, digest_ipv4(meeting, number), coin);
}

/* The part of those who were seen once, of whom anything is known after so many others. */
static double part_remembered(const struct sl_meeting *meeting, uint64_t others)
{
	unsigned int remembered = 0;

	for (uint64_t i = 0; i < WATCHED; i++) {
		struct digest digest = digest_ipv4(meeting, (1U << 31) + i);

		sketch_lines[digest.place & meeting->sketch_mask].slot[digest.place >> 28] =
			sketch_print(digest) | 1;
	}
	for (uint64_t i = 0; i < others; i++)
		see(meeting, draw() >> 33, draw()); /* none of those who are watched */
	for (uint64_t i = 0; i < WATCHED; i++)
		remembered += see(meeting, (1U << 31) + i, 1) == 2;
	return (double)remembered / WATCHED;
}

/* After k others in n slots: e^(-k / 2n), since a slot's owner of count 1 loses it every second time. */
static void test_memory(void **state_unused)
{
	static const double parts[] = {0.25, 1, 2, 4};

	(void)state_unused;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct sl_meeting meeting = meeting_random();
		double found = part_remembered(&meeting, parts[i] * SLOTS);
		double model = exp(-parts[i] / 2);

		print_message("figure: of those seen once, %.1f%% are remembered after %.0f "
			      "others in %u slots; the model says %.1f%%\n",
			      100 * found, parts[i] * SLOTS, SLOTS, 100 * model);
		assert_true(fabs(found - model) < 0.06);
	}
}

/* In a flood a slot is somebody's always: so many packets in a row it takes to pass a bar. */
static void test_packets_in_a_row(void **state_unused)
{
	static const uint32_t bars[] = {2, 4, 8};
	struct sl_meeting meeting = meeting_random();

	(void)state_unused;
	for (uint64_t i = 0; i < 20ULL * SLOTS; i++)
		see(&meeting, i, draw());
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++) {
		uint64_t packets = 0, owed = 0;

		for (uint64_t source = 0; source < WATCHED; source++) {
			uint32_t seen = 0;

			for (; seen <= bars[i]; packets++)
				seen = see(&meeting, (2U << 30) + i * WATCHED + source, draw());
			owed += seen;
		}
		print_message("figure: bar %u: %.2f packets in a row on average, %.2f of them are "
			      "charged\n",
			      bars[i], (double)packets / WATCHED, (double)owed / WATCHED);
		assert_true(packets >= owed);
		assert_true(packets <= WATCHED * (bars[i] + 3ULL));
	}
}

/* --- Taken for known ------------------------------------------------------------------------ */

/* Addresses in a row fill a filter more evenly than these. */
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

/* That of `bits` bits none is set after so many throws. */
static double none_set(int bits, int throws)
{
	return pow(1 - (double)bits / SL_KNOWN_BITS, throws);
}

/* That all of `bits` different bits are set, by inclusion and exclusion. */
static double all_set(int bits, int throws)
{
	if (bits == 1)
		return 1 - none_set(1, throws);
	if (bits == 2)
		return 1 - 2 * none_set(1, throws) + none_set(2, throws);
	return 1 - 3 * none_set(1, throws) + 3 * none_set(2, throws) - none_set(3, throws);
}

/* The part of strangers whose bits others have set, in blocks of so many sources on average. */
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

/* Nobody who is known is forgotten in his epoch and the next; so many strangers are taken for known. */
static void test_known(void **state_unused)
{
	static const unsigned int loads[] = {SOURCES / 8, SOURCES / 2, SOURCES};

	(void)state_unused;
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
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_packets_in_a_row),
		cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
