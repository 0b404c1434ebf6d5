/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: the devices of the current network namespace, as rtnetlink reports them in one dump. */
#ifndef SLUICE_NETDEVS_H
#define SLUICE_NETDEVS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct netdev {
	unsigned int ifindex;
	char name[IF_NAMESIZE];
	char kind[16]; /* "veth", "vlan"; "": none, as of a network card */
	bool is_ethernet;
	bool is_loopback;
	bool is_hardware; /* a function of a device on a bus, such as PCI or virtio */
	bool is_up;
	bool has_carrier;
	bool has_xdp; /* an XDP program is attached */
	unsigned int mtu;
	unsigned int parent; /* of a VLAN, macvlan or ipvlan in the same namespace; or 0 */
	unsigned int master; /* the bridge, bond or team of a port; or 0 */
	uint16_t vlan;	     /* the id of a VLAN device; or 0 */
	uint64_t received, sent;
};

/* Whether frames come from a process, such as a virtual machine, by /dev/net/tun. */
bool netdev_is_tap(const struct netdev *device);

struct netdevs {
	struct netdev *list;
	unsigned int count, room;
};

/* Reads the devices. netdevs_free() frees them. Returns 0 or a negative errno. */
int netdevs_read(struct netdevs *ret);
void netdevs_free(struct netdevs *devices);

#define _cleanup_netdevs_ _cleanup_(netdevs_free)

/* Return NULL if there is no such device. */
const struct netdev *netdevs_find(const struct netdevs *devices, unsigned int ifindex);
const struct netdev *netdevs_find_name(const struct netdevs *devices, const char *name);

/* Finds a device by name. Fails if it does not exist, or if its frames are not Ethernet. */
int device_find(const char *name, struct netdev *ret);

/* device_find() among devices that were read. */
int device_find_in(const struct netdevs *devices, const char *name, struct netdev *ret);

/* Whether `upper` gets packets that `lower` has received, over any number of devices between. */
bool netdevs_are_stacked(const struct netdevs *devices, unsigned int upper, unsigned int lower);

/*
 * Returns a device above or below this device that has an XDP program, which may make the kernel
 * refuse another XDP program; or NULL.
 */
const struct netdev *netdevs_find_xdp(const struct netdevs *devices, unsigned int ifindex);

#endif
