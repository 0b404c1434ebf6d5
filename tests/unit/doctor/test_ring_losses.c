// SPDX-License-Identifier: GPL-2.0
/* user/doctor/ring_losses.h: counters of lost packets, each compared with itself. */
#include <stdlib.h>
#include "test.h"
#include "doctor/ring_losses.h"

#define MOST 4

/* What a driver tells: names, and values that may be more or fewer. */
struct told {
	const char *name[MOST];
	uint64_t value[MOST];
	unsigned int values;
};

static struct ring_losses take(const struct told *told)
{
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + MOST * ETH_GSTRING_LEN);
	struct ethtool_stats *stats = calloc(1, sizeof(*stats) + MOST * sizeof(stats->data[0]));
	struct ring_losses losses = {0};

	assert_non_null(names);
	assert_non_null(stats);
	for (; names->len < MOST && told->name[names->len]; names->len++)
		strcpy((char *)names->data + names->len * ETH_GSTRING_LEN, told->name[names->len]);
	stats->n_stats = told->values;
	memcpy(stats->data, told->value, sizeof(told->value));
	ring_losses_take(names, stats, &losses);
	free(names);
	free(stats);
	return losses;
}

static const struct {
	const char *name;
	struct told before, after;
	uint64_t growth;
} cases[] = {
	{"a counter grows",
	 {{"rx_bytes", "rx_missed_errors"}, {5, 10}, 2},
	 {{"rx_bytes", "rx_missed_errors"}, {900, 13}, 2},
	 3},
	{"each is compared with itself, not with the largest before",
	 {{"rx_missed_errors", "rx_fifo_errors"}, {100, 90}, 2},
	 {{"rx_missed_errors", "rx_fifo_errors"}, {100, 105}, 2},
	 15},
	{"a packet may be in two of them",
	 {{"rx_missed_errors", "rx_fifo_errors"}, {10, 20}, 2},
	 {{"rx_missed_errors", "rx_fifo_errors"}, {13, 24}, 2},
	 4},
	{"one that could not be read before tells nothing",
	 {{NULL}, {0}, 0},
	 {{"rx_missed_errors"}, {5000}, 1},
	 0},
	{"one that was set back tells nothing",
	 {{"rx_missed_errors"}, {5000}, 1},
	 {{"rx_missed_errors"}, {7}, 1},
	 0},
	{"queues came between the names and the values, which are of others now",
	 {{"rx_bytes", "rx_missed_errors"}, {5, 10}, 2},
	 {{"rx_bytes", "rx_missed_errors"}, {900, 800, 10}, 3},
	 0},
	{"queues went between them",
	 {{"rx_missed_errors", "rx_bytes"}, {10, 5}, 2},
	 {{"rx_missed_errors", "rx_bytes"}, {900}, 1},
	 0},
};

static void test_growth(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ring_losses before = take(&cases[i].before), after = take(&cases[i].after);

		print_message("# %s\n", cases[i].name);
		assert_int_equal(ring_losses_growth(&after, &before), cases[i].growth);
	}
}

static void test_what_the_kernel_counts_of_every_device(void **state)
{
	struct ring_losses before = {0}, after = {0};

	(void)state;
	ring_losses_take_link(&(struct rtnl_link_stats64){.rx_missed_errors = 3}, &before);
	ring_losses_take_link(
		&(struct rtnl_link_stats64){.rx_missed_errors = 3, .rx_fifo_errors = 2}, &after);
	assert_int_equal(ring_losses_growth(&after, &before), 2);
}

/* A device without such counters, and one that is not there. */
static void test_a_driver_that_tells_none(void **state)
{
	struct ring_losses losses = {0};

	(void)state;
	ring_losses_read("lo", &losses);
	ring_losses_read("nosuch", &losses);
	assert_int_equal(losses.known, 0);
	assert_int_equal(ring_size_read("nosuch").most, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_what_the_kernel_counts_of_every_device),
		cmocka_unit_test(test_a_driver_that_tells_none),
	};

	return cmocka_run_group_tests_name("ring_losses", tests, NULL, NULL);
}
