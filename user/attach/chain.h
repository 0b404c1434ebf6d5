/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: modes chain and array, in which Sluice shares a device with other XDP programs.
 *
 * In mode chain, the device runs
 * Sluice's program, which calls the other program by a tail call after a packet has passed. The
 * other program is in slot 0 of a program array of its own (map `chain`), pinned as PIN_CHAIN.
 *
 * Sluice replaces a program that was attached by netlink in one step, so one of the two programs
 * judges every packet. The kernel cannot replace such a program by a bpf link. So Sluice's program
 * is attached by netlink as well: there is no link, and the id of the program identifies the
 * attachment. The program stays attached if every process of Sluice is dead, but a tool that
 * detaches any XDP program also detaches Sluice's.
 *
 * In mode array, the device runs another program, which calls programs of a pinned program array,
 * as the root program of katran does. Sluice's program is in one slot of this array, which
 * PIN_CHAIN pins as well. A packet that passes goes on to the next slots. The id of the program
 * identifies the slot.
 */
#ifndef SLUICE_CHAIN_H
#define SLUICE_CHAIN_H

#include "attach/attachment.h"

/*
 * Attaches the gate to a device in mode chain. Takes over the XDP program of the device, if it has
 * one. Fails if that program belongs to a gate, a bpf link or libxdp, or if the kernel cannot call
 * it from another program.
 */
int chain_attach(const struct gate *gate, const struct netdev *device, struct attachment *ret);

/*
 * Attaches the gate in mode array: puts its program into a slot of a program array. Fails if the
 * slot is not empty.
 */
int array_attach(const struct gate *gate, const struct netdev *device, const struct array_slot *at,
		 struct attachment *ret);

/*
 * Replaces the attachment's program in its slot in mode array. Empties the slot if `program_fd` is
 * -1. Returns 0, -ENOENT if no slot has the program, or another negative errno.
 */
int chain_slot_replace(const struct gate *gate, const struct attachment *attachment,
		       int program_fd);

/*
 * Detaches a device in mode chain or array. In mode array, empties the slot if it has Sluice's
 * program. In mode chain, attaches the program in slot 0 again, in one step. If the device does not
 * run Sluice's program, changes nothing on the device. If the kernel refuses, keeps all pins,
 * because without PIN_CHAIN the slot becomes empty.
 */
int chain_detach(const struct gate *gate, struct attachment attachment);

/*
 * Loads a program for an attachment in mode chain or array. The program uses the maps of `next`.
 * Returns an fd, or a negative errno and adds an error.
 */
int chain_load(const struct gate *gate, const struct gate *next,
	       const struct attachment *attachment);

/*
 * Replaces the program of the attachment, or returns -EEXIST if the device runs another program
 * than `before_fd`. If `program_fd` is -1, the device runs no program afterwards. The caller must
 * be in the network namespace of the device. Returns 0 or a negative errno, and adds no error.
 */
int chain_replace(const struct attachment *attachment, int before_fd, int program_fd);

/* --- The order of programs ------------------------------------------------------------------ */

#define ORDER_MAX 16

/* The XDP programs of a device, in the order in which they run. */
struct xdp_order {
	unsigned int count; /* 0: Sluice does not share the device, or the order is unknown */
	struct xdp_order_program {
		uint32_t id;
		char name[16]; /* "" if this process may not read it */
		bool is_ours;
		int slot; /* in mode array: slot of the program; -1: none */
	} program[ORDER_MAX];
};

/* Formats the order, such as "sluice_chain (id 12), other (id 9)". */
#define XDP_ORDER_TEXT (ORDER_MAX * 64)
const char *xdp_order_format(const struct xdp_order *order, char text[XDP_ORDER_TEXT]);

/* Reads the order. Stores no program for a user who may only read the gate. */
void xdp_order_read(const struct gate *gate, const struct attachment *attachment,
		    struct xdp_order *ret);

#endif
