/* SPDX-License-Identifier: GPL-2.0 */
/* Network devices of the current namespace. */
#ifndef SLUICE_DEVICE_H
#define SLUICE_DEVICE_H

#include <net/if.h>

#include "log.h"

struct device {
	char name[IF_NAMESIZE];
	unsigned int ifindex;
	bool is_tap; /* what a process, a virtual machine most often, sends by /dev/net/tun */
};

/* Finds a device by name. Fails for one that there is not, and for one whose frames are not
 * Ethernet. */
enum status device_find(const char *name, struct device *ret);

#endif
