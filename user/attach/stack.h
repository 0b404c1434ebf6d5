/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: stacked attachments, which both see a packet: the port of a bridge, bond or team and its
 * master, or a device and a VLAN, macvlan or ipvlan on it. If a gate filters both, each of these
 * packets is charged twice.
 *
 * Devices of one network namespace only: a macvlan in another namespace than its parent is not
 * found. The ports of a VRF are left out, because its packets pass no hook of the VRF device.
 */
#ifndef SLUICE_STACK_H
#define SLUICE_STACK_H

#include "attach/attachment.h"
#include "attach/netdevs.h"

/* Two attachments that a packet passes one after the other. */
struct stacked {
	const struct attachment *upper, *lower;
	const struct attachment *surplus; /* can be detached: no packet would be missed */
};

/*
 * Finds pairs of attachments of one network namespace that filter in the same direction. made: one
 * of each pair is among these. Returns the number of pairs, and stores the first.
 */
unsigned int stacked_find(const struct netdevs *links, uint64_t netns, const struct attachment *all,
			  unsigned int count, const struct attachment *made,
			  unsigned int made_count, struct stacked *ret);

#define STACKED_TEXT (2 * IF_NAMESIZE + GATE_NAME + 128)

/* "it gets packets of DEV, and gate 'GATE' filters both: ..." */
const char *stacked_format(const struct stacked *stacked, const char *gate,
			   char text[STACKED_TEXT]);

#define STACKED_REMEDY                                                                             \
	(NETNS_OPTION + GATE_NAME + NAME_TYPED + sizeof("sluice -g  detach --  hook ingress"))

/* The command that detaches the surplus attachment. */
const char *stacked_remedy(const struct stacked *stacked, const char *gate,
			   char text[STACKED_REMEDY]);

/* Adds one notice if a new attachment is stacked with another attachment of the gate. */
int stacked_note(const struct gate *gate, const struct attachment *made, unsigned int count);

#endif
