/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: the facts of an attached device, its driver and its XDP program. */
#ifndef SLUICE_DEVICE_FACTS_H
#define SLUICE_DEVICE_FACTS_H

#include "attach/attachment.h"
#include "attach/xdp_owner.h"
#include "doctor/link_facts.h"
#include "doctor/nic.h"
#include "doctor/veth_peer.h"
#include "doctor/vlans.h"

struct device_facts {
	const char *gate;
	const struct attachment *attachment; /* alive */
	char option[NETNS_OPTION]; /* "-n NETNS ": what sluice and ip need to get to the device */
	char exec[NETNS_EXEC];	   /* "ip netns exec NETNS ": the same for other commands */
	struct link link;
	char lower[IF_NAMESIZE]; /* of a VLAN device: the device below it; "": not found */
	struct nic nic;
	struct peer peer;
	struct xdp_owner owner; /* of the device's XDP program */
	bool is_tap;
	struct vlans matched;	/* VLANs that limits ask for */
	struct vlans in_frames; /* see vlans_in_frames() */
	unsigned int cpus;	/* that are there */
};

/* Reads what is to be read of the device. False: its network namespace cannot be entered. */
bool device_facts_read(const struct attachment *attachment, struct device_facts *ret);

/* What the device carries, in Mbit/s; 0: it is not known. */
uint64_t device_speed(const struct device_facts *facts);

#endif
