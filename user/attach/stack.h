/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: stacked devices, which both see a packet: the port of a bridge, bond or team and its
 * master (IFLA_MASTER), or a device and a VLAN, macvlan or ipvlan on it (IFLA_LINK). If a gate
 * filters both, each of these packets is charged twice.
 *
 * Devices of one network namespace only: a macvlan in another namespace than its lower device is
 * not found. The ports of a VRF are left out, because its packets pass no hook of the VRF device.
 */
#ifndef SLUICE_STACK_H
#define SLUICE_STACK_H

#include "attach/attachment.h"

struct stack_link {
	unsigned int ifindex;
	unsigned int lower;  /* the parent of a VLAN, macvlan or ipvlan; or 0 */
	unsigned int master; /* the bridge, bond or team of a port; or 0 */
	bool has_xdp;	     /* an XDP program is attached */
	bool is_ifb;	     /* redirected packets pass its hook egress only */
	char name[IF_NAMESIZE];
};

struct stack {
	struct stack_link *list;
	unsigned int count, room;
};

/* Reads the devices of the current network namespace. */
int stack_read(struct stack *ret);
void stack_free(struct stack *stack);

/* Returns NULL if there is no device of that number. */
const struct stack_link *stack_find(const struct stack *stack, unsigned int ifindex);

/* Whether `upper` gets packets that `lower` has received, over any number of devices between. */
bool stack_is_above(const struct stack *stack, unsigned int upper, unsigned int lower);

/*
 * Returns a device above or below this device that has an XDP program, which may make the kernel
 * refuse another XDP program; or NULL.
 */
const struct stack_link *stack_find_xdp(const struct stack *stack, unsigned int ifindex);

/* Two attachments that a packet passes one after the other. */
struct stacked {
	const struct attachment *upper, *lower;
	const struct attachment *surplus; /* can be detached: no packet would be missed */
};

typedef void stacked_call(void *data, const struct stacked *stacked);

/* Calls `call` for each pair of stacked attachments that filter in the same direction. */
int stacked_find(const struct attachment *all, unsigned int count, stacked_call *call,
			 void *data);

#define STACKED_TEXT (2 * IF_NAMESIZE + GATE_NAME + 128)

/* "it gets packets of DEV, and gate 'GATE' filters both: ..." */
const char *stacked_format(const struct stacked *stacked, const char *gate,
			   char text[STACKED_TEXT]);

#define STACKED_REMEDY                                                                             \
	(NETNS_OPTION + GATE_NAME + NAME_TYPED + sizeof("sluice -g  detach --  hook ingress"))

/* The command that detaches the surplus attachment. */
const char *stacked_remedy(const struct stacked *stacked, const char *gate,
			   char text[STACKED_REMEDY]);

/* Notes once if a new attachment is stacked with another attachment of the gate. */
int stacked_note(const struct gate *gate, const struct attachment *made,
			 unsigned int count);

#endif
