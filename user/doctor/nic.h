/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: reads the properties of a device from its driver (ethtool), and its XDP features. */
#ifndef SLUICE_NIC_H
#define SLUICE_NIC_H

#include <stdbool.h>

#define NIC_DRIVER 32

/* Bits of enum netdev_xdp_act, which headers before Linux 6.3 lack. */
#define XDP_NATIVE 1U /* the driver runs XDP programs */
/* the driver accepts XDP programs for packets that are in several buffers */
#define XDP_FRAGS (1U << 5)

/* Properties of a device. A property that the driver does not report is 0 or false. */
struct nic {
	char driver[NIC_DRIVER];
	bool lro;			 /* the device merges received packets */
	bool vlan_strip;		 /* the device strips outer VLAN tags (802.1Q) */
	unsigned int queues, queues_max; /* receive queues */
	bool combined;	  /* queues are set by `ethtool -L DEV combined N`, not by `rx N` */
	bool knows_xdp;	  /* the kernel reports `xdp` (Linux 6.3) */
	unsigned int xdp; /* bits XDP_NATIVE and XDP_FRAGS */
};

/* Reads the properties of a device in the current network namespace. */
struct nic nic_read(const char *name, unsigned int ifindex);

#endif
