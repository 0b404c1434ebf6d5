/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: the devices of the current network namespace, read from one dump of rtnetlink. */
#ifndef SLUICE_NETDEVS_H
#define SLUICE_NETDEVS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct netdev {
	unsigned int ifindex;
	char name[IF_NAMESIZE];
	char kind[16]; /* kind as in `ip link`, such as "veth"; "" for a network card */
	bool is_ethernet;
	bool is_loopback;
	bool is_hardware; /* the device has a parent on a bus such as PCI or virtio */
	bool is_up;
	bool has_carrier;
	bool has_xdp;	 /* an XDP program is attached to the device */
	uint32_t xdp_id; /* id of this program, or 0 if there are several */
	unsigned int mtu;
	unsigned int parent; /* ifindex of the lower device of a VLAN, macvlan or ipvlan; else 0 */
	unsigned int master; /* ifindex of the bridge, bond or team of a port; else 0 */
	uint16_t vlan;	     /* VLAN id of a VLAN device, otherwise 0 */
	uint64_t received, sent; /* packets */
};

/* Returns whether the device is a tap, to which a process such as a VM writes frames. */
bool netdev_is_tap(const struct netdev *device);

struct netdevs {
	struct netdev *list;
	unsigned int count, room;
};

/* Reads all devices. The caller frees them by netdevs_free(). Returns 0 or a negative errno. */
int netdevs_read(struct netdevs *ret);
void netdevs_free(struct netdevs *devices);

#define _cleanup_netdevs_ _cleanup_(netdevs_free)

/* Find a device. Return NULL if it does not exist. */
const struct netdev *netdevs_find(const struct netdevs *devices, unsigned int ifindex);
const struct netdev *netdevs_find_name(const struct netdevs *devices, const char *name);

/* Finds a device by its name. Fails if no such device exists, or if its frames are not Ethernet. */
int device_find(const char *name, struct netdev *ret);

/* Finds a device like device_find(), in a list that netdevs_read() returned. */
int device_find_in(const struct netdevs *devices, const char *name, struct netdev *ret);

/*
 * Returns whether packets that `lower` receives reach `upper`, directly or through other devices.
 */
bool netdevs_are_stacked(const struct netdevs *devices, unsigned int upper, unsigned int lower);

/*
 * Returns a device above or below this device that has an XDP program, or NULL. If there is such a
 * device, the kernel may refuse an XDP program on this device.
 */
const struct netdev *netdevs_find_xdp(const struct netdevs *devices, unsigned int ifindex);

#endif
