// SPDX-License-Identifier: GPL-2.0
/* user/migrate/fill.h: a table that is filled in memory is one that packets find ledgers in. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "migrate/fill.h"
#include "table_find.h"

#define SETS  64
#define LINES (SETS * SL_WAYS)

static struct sl_meeting meeting;
static struct sl_set sets[SETS];
static struct sl_line lines[LINES];
static const struct fill fill = {&meeting, sets, lines};

static void table_empty(unsigned int seed)
{
	srandom(seed);
	meeting = (struct sl_meeting){.set_mask = SETS - 1};
	for (int i = 0; i < SL_SECRETS; i++)
		meeting.secret[i] = (uint64_t)random() << 32 ^ random();
	memset(sets, 0, sizeof(sets));
	memset(lines, 0, sizeof(lines));
}

/* The ledger of a source by number; every other one is of IPv6. */
static struct sl_line line_of(uint32_t number)
{
	bool ipv4 = number % 2;

	return (struct sl_line){
		.addr = {ipv4 ? number : (uint64_t)number << 32 | 0xb80d0120, ipv4 ? 0 : number},
		.limit = 7 << 3 | SL_BUCKET << 1 | ipv4,
		.span = 5,
		.made = number,
		.ledger = {.zero = number + 1, .born = 2, .drawn = 3, .blocked = 4},
	};
}

static struct sl_line *find(uint32_t number)
{
	struct sl_line line = line_of(number);
	const struct ledger_key key = {{line.addr[0], line.addr[1]}, line.limit};

	return table_find_mapped(&meeting, sets, lines, &key);
}

/* For each set the keys whose home it is and that are in their other set, told from the lines. */
static void check_away(void)
{
	unsigned int away[SETS] = {0};

	for (unsigned int i = 0; i < LINES; i++) {
		uint16_t tag = sets[i / SL_WAYS].tag[i % SL_WAYS];

		assert_int_equal(!tag, !lines[i].limit);
		if (tag & TAG_AWAY)
			away[set_other(&meeting, i / SL_WAYS, tag)]++;
	}
	for (unsigned int i = 0; i < SETS; i++)
		assert_int_equal(sets[i].away, 2 * away[i]); /* and no lock is held */
}

/* Until it is full and beyond: each line that was put is found whole, and no other. */
static void test_what_is_put_is_found(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 20; seed++) {
		bool put[2 * LINES];
		unsigned int count = 0;

		table_empty(seed);
		for (uint32_t number = 0; number < 2 * LINES; number++) {
			struct sl_line line = line_of(number);

			put[number] = fill_put(&fill, &line);
			count += put[number];
		}
		assert_in_range(count, LINES * 98 / 100, LINES);
		for (uint32_t number = 0; number < 2 * LINES; number++) {
			struct sl_line line = line_of(number), *found = find(number);

			assert_int_equal(found != NULL, put[number]);
			if (found)
				assert_memory_equal(found, &line, sizeof(line));
		}
		check_away();
	}
}

/* Three quarters fit, up to which a gate is sized. */
static void test_three_quarters_fit(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 200; seed++) {
		table_empty(seed);
		for (uint32_t number = 0; number < LINES * 3 / 4; number++) {
			struct sl_line line = line_of(number);

			assert_true(fill_put(&fill, &line));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_put_is_found),
		cmocka_unit_test(test_three_quarters_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
