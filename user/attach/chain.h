/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: mode chain, in which Sluice shares a device with another XDP program. The device runs
 * Sluice's program, which calls the other program by a tail call after a packet has passed. The
 * other program is in slot 0 of a program array of its own (map `chain`), pinned as PIN_CHAIN.
 *
 * Sluice replaces a program that was attached by netlink in one step, so one of the two programs
 * judges every packet. The kernel cannot replace such a program by a bpf link. So Sluice's program
 * is attached by netlink as well: there is no link, and the id of the program identifies the
 * attachment. The program stays attached if every process of Sluice is dead, but a tool that
 * detaches any XDP program also detaches Sluice's.
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
 * Detaches a device in mode chain. Attaches the program in slot 0 again, in one step. If the device
 * does not run Sluice's program, changes nothing on the device. Removes PIN_ATTACHMENT last.
 */
int chain_detach(const struct gate *gate, struct attachment attachment);

/*
 * Loads a program for an attachment in mode chain. The program uses the maps of `next`, and calls
 * the program in slot 0 of the attachment. Returns an fd, or a negative errno and adds an error.
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

#define ORDER_MAX 2

/* The XDP programs of a device, in the order in which they run. */
struct xdp_order {
	unsigned int count; /* 0: Sluice does not share the device, or the order is unknown */
	struct xdp_order_program {
		uint32_t id;
		char name[16]; /* "" if this process may not read it */
		bool is_ours;
	} program[ORDER_MAX];
};

/* Formats the order, such as "sluice_chain (id 12), xdp_counter (id 9)". */
#define XDP_ORDER_TEXT (ORDER_MAX * (16 + sizeof(" (id 4294967295), ")))
const char *xdp_order_format(const struct xdp_order *order, char text[XDP_ORDER_TEXT]);

/* Reads the order. Stores no program for a user who may only read the gate. */
void xdp_order_read(const struct gate *gate, const struct attachment *attachment,
		    struct xdp_order *ret);

#endif
