// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/state/pressure.h, which reports that a table is too small, and suggests the next
 * larger size.
 */
#include "test.h"
#include "gate/maps.h"
#include "state/pressure.h"

static const struct {
	const char *what;
	uint32_t sources, entries, partial, no_room, forgotten;
	uint32_t wanted;
} cases[] = {
	{"nothing happened", 262144, 1 << 19, 500000, 0, 0, 0},
	{"a source found no room", 262144, 1 << 19, 1000, 1, 0, 393217},
	{"one was forgotten", 262144, 1 << 19, 1000, 0, 1, 393217},
	{"all entries are not full", 1000, 2048, 2048, 3, 0, 1537},
	{"the next power of two would be the same table", 2000, 4096, 10, 1, 0, 3073},
	{"a size that fills three quarters", 3072, 4096, 10, 1, 0, 3073},
	{"the least size", 1, 16, 1, 1, 0, 13},
	{"the last size with a larger table", 50331648, 1U << 26, 1, 1, 0, 50331649},
	{"the largest size", 1U << 26, 1U << 27, 1, 1, 0, 1U << 26},
};

/* Returns the size of the table of states, in entries, in a gate for `sources` sources. */
static uint32_t entries_of(uint32_t sources)
{
	const struct machine machine = {.jiffy_ns = 4000000};
	const struct gate_sizes sizes = {.sources = sources};

	return (gate_params(&sizes, &machine).set_mask + 1) * SL_WAYS;
}

TEST(test_room_is_short_after_evictions_and_failures)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pressure pressure = {
			.event[SL_EVENT_NO_ROOM].per_second = cases[i].no_room,
			.event[SL_EVENT_EVICTED].per_second = cases[i].forgotten,
			.event[SL_EVENT_BUSY].per_second = 1000,
		};
		struct table_fill fill = {
			.entries = cases[i].entries,
			.sources = cases[i].sources,
			.partial = cases[i].partial,
		};

		table_fill_judge(&fill, &pressure);
		if (fill.sources_short != cases[i].wanted)
			fail_msg("%s: %u", cases[i].what, fill.sources_short);
		assert_int_equal(entries_of(cases[i].sources), cases[i].entries);
		if (!fill.sources_short || fill.sources_short == SIZE_MAX_ENTRIES)
			continue;
		assert_int_equal(entries_of(fill.sources_short), 2 * cases[i].entries);
		assert_int_equal(entries_of(fill.sources_short - 1), cases[i].entries);
	}
}

/* The owner of a gate can write invalid sizes into its maps. These sizes must have no effect. */
TEST(test_tables_that_no_gate_has)
{
	const struct pressure pressure = {.event[SL_EVENT_NO_ROOM].per_second = 1};
	struct table_fill none = {0}, most = {.entries = ~0U};

	table_fill_judge(&none, &pressure);
	assert_int_equal(none.bytes, 0);
	table_fill_judge(&most, &pressure);
	assert_int_equal(most.sources_short, SIZE_MAX_ENTRIES);
}

TESTS(NULL, NULL)
