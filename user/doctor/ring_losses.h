/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: packets that found no room in the receive ring of a device, so that no program saw them.
 * Drivers count them under several names, and one packet may be in two of these. Each counter is
 * compared with itself alone: the largest of them now may be another one than before.
 */
#ifndef SLUICE_RING_LOSSES_H
#define SLUICE_RING_LOSSES_H

#include <stdint.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>

#define RING_COUNTERS 11

struct ring_losses {
	uint64_t count[RING_COUNTERS];
	uint32_t known; /* a bit for each counter that was read */
};

/* Descriptors of a receive ring; 0: the driver does not tell. */
struct ring_size {
	unsigned int now, most;
};

/* Read what the driver of a device of the current network namespace tells. */
void ring_losses_read(const char *name, struct ring_losses *ret);
struct ring_size ring_size_read(const char *name);

/* Takes what the kernel counts of every device. */
void ring_losses_take_link(const struct rtnl_link_stats64 *link, struct ring_losses *ret);

/*
 * Takes the counters of a driver. Names and values are read one after the other: if a driver has
 * another number of them by then, as with other queues, nothing tells whose value is whose, and all
 * of them stay unknown.
 */
void ring_losses_take(const struct ethtool_gstrings *names, const struct ethtool_stats *stats,
		      struct ring_losses *ret);

/* What the counters that are known both times grew by: the most of any. */
uint64_t ring_losses_growth(const struct ring_losses *now, const struct ring_losses *then);

#endif
