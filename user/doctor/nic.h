/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: what the driver of a device tells: ethtool(8), and the kernel's XDP features. */
#ifndef SLUICE_NIC_H
#define SLUICE_NIC_H

#include <stdbool.h>
#include <stdint.h>

#define NIC_DRIVER 32

/* Bits of the features of XDP (enum netdev_xdp_act), which headers before Linux 6.3 lack. */
#define XDP_NATIVE 1U	     /* the driver runs XDP programs */
#define XDP_FRAGS  (1U << 5) /* also of packets in several buffers */

/* Unknown numbers are 0, and unknown features false: not each driver tells each. */
struct nic {
	char driver[NIC_DRIVER];
	bool lro;			 /* the device merges packets */
	bool gro_hw;			 /* the same, so that they can be split again */
	bool vlan_strip;		 /* it takes outer VLAN tags (802.1Q) out of frames */
	bool svlan_strip;		 /* and those of providers (802.1ad) */
	bool vlan_insert;		 /* frames to send need not hold their outer tag */
	unsigned int queues, queues_max; /* for receiving */
	unsigned int queues_tx;
	bool combined;		 /* a queue receives and sends: `combined` of ethtool -L */
	unsigned int rss_queues; /* how many of them its indirection table has */
	uint64_t speed_mbit;
	bool knows_xdp;	  /* the kernel tells the features of XDP: since Linux 6.3 */
	unsigned int xdp; /* XDP_NATIVE, XDP_FRAGS */
};

/* Reads what a device of the current network namespace tells. */
struct nic nic_read(const char *name, unsigned int ifindex);

#endif
