// SPDX-License-Identifier: GPL-2.0
#include "doctor/ring_losses.h"

#include <stdlib.h>

#include "base/array.h"
#include "doctor/ethtool.h"

/* The counters of the kernel come first. */
enum { LINK_MISSED, LINK_FIFO, LINK_COUNTERS };

/* What drivers call packets that found no descriptor. */
static const char *const driver_names[] = {
	"port.rx_dropped",  "rx_discards",	"rx_discards_phy",
	"rx_fifo_errors",   "rx_missed_errors", "rx_no_dma_resources",
	"rx_out_of_buffer", "rx_overruns",	"rx_total_discard_pkts",
};

_Static_assert(LINK_COUNTERS + ARRAY_SIZE(driver_names) == RING_COUNTERS, "room for each counter");

static void counter_set(struct ring_losses *losses, unsigned int index, uint64_t count)
{
	losses->count[index] = count;
	losses->known |= 1U << index;
}

void ring_losses_take_link(const struct rtnl_link_stats64 *link, struct ring_losses *ret)
{
	counter_set(ret, LINK_MISSED, link->rx_missed_errors);
	counter_set(ret, LINK_FIFO, link->rx_fifo_errors);
}

void ring_losses_take(const struct ethtool_gstrings *names, const struct ethtool_stats *stats,
		      struct ring_losses *ret)
{
	if (stats->n_stats != names->len)
		return;
	for (unsigned int i = 0; i < stats->n_stats; i++)
		for (size_t j = 0; j < ARRAY_SIZE(driver_names); j++)
			if (ethtool_name_is(names, i, driver_names[j]))
				counter_set(ret, LINK_COUNTERS + j, stats->data[i]);
}

void ring_losses_read(const char *name, struct ring_losses *ret)
{
	struct ethtool ethtool = ethtool_open(name);
	struct ethtool_gstrings *names = ethtool_names(&ethtool, ETH_SS_STATS);
	struct ethtool_stats *stats =
		names ? calloc(1,
			       sizeof(*stats) + ETHTOOL_ROOM(names->len) * sizeof(stats->data[0]))
		      : NULL;

	if (stats) {
		stats->cmd = ETHTOOL_GSTATS;
		stats->n_stats = names->len;
		if (ethtool_ask(&ethtool, stats))
			ring_losses_take(names, stats, ret);
	}
	free(stats);
	free(names);
	ethtool_close(&ethtool);
}

struct ring_size ring_size_read(const char *name)
{
	struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};
	struct ethtool ethtool = ethtool_open(name);
	bool told = ethtool_ask(&ethtool, &ring);

	ethtool_close(&ethtool);
	return told ? (struct ring_size){ring.rx_pending, ring.rx_max_pending}
		    : (struct ring_size){0};
}

uint64_t ring_losses_growth(const struct ring_losses *now, const struct ring_losses *then)
{
	uint64_t most = 0;

	for (unsigned int i = 0; i < RING_COUNTERS; i++) {
		/* one that was set back, as by a driver that starts again, tells nothing */
		if (!(now->known & then->known & 1U << i) || now->count[i] <= then->count[i])
			continue;
		if (now->count[i] - then->count[i] > most)
			most = now->count[i] - then->count[i];
	}
	return most;
}
