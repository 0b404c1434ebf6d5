/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: requests of ethtool(8) to the driver of a device. */
#ifndef SLUICE_ETHTOOL_H
#define SLUICE_ETHTOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/ethtool.h>

/* A socket for requests, and the device of the current network namespace that they are about. */
struct ethtool {
	int fd; /* negative: there is none */
	const char *name;
};

struct ethtool ethtool_open(const char *name);
void ethtool_close(struct ethtool *ethtool);

/* Sends a struct of linux/ethtool.h, which the driver fills. False: it does not know this one. */
bool ethtool_ask(const struct ethtool *ethtool, void *command);

/*
 * Room for so many names or counters. The kernel writes as many as the driver has by then: another
 * process may have given it more queues since it was asked for their number.
 */
#define ETHTOOL_ROOM(count) (2 * (size_t)(count) + 1024)

/*
 * Reads the names of a set, such as ETH_SS_FEATURES. free() ends them. NULL: there are none, or out
 * of memory.
 */
struct ethtool_gstrings *ethtool_names(const struct ethtool *ethtool, uint32_t set);
bool ethtool_name_is(const struct ethtool_gstrings *names, unsigned int index, const char *name);

#endif
