/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: what the driver of a device reports by ethtool(8), and the kernel's XDP features. */
#ifndef SLUICE_NIC_H
#define SLUICE_NIC_H

#include <stdbool.h>

#define NIC_DRIVER 32

/* Bits of the XDP features (enum netdev_xdp_act), which headers before Linux 6.3 lack. */
#define XDP_NATIVE 1U	     /* the driver runs XDP programs */
#define XDP_FRAGS  (1U << 5) /* also on packets in several buffers */

/* Unknown numbers are 0, and unknown features false: drivers report different parts. */
struct nic {
	char driver[NIC_DRIVER];
	bool lro;			 /* the device merges packets */
	bool vlan_strip;		 /* removes outer VLAN tags (802.1Q) from frames */
	unsigned int queues, queues_max; /* for receiving */
	bool combined;			 /* a queue receives and sends: `combined` of ethtool -L */
	bool knows_xdp;			 /* the kernel reports XDP features: since Linux 6.3 */
	unsigned int xdp;		 /* XDP_NATIVE, XDP_FRAGS */
};

/* Reads what is known of a device of the current network namespace. */
struct nic nic_read(const char *name, unsigned int ifindex);

#endif
