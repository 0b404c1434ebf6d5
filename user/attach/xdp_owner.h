/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: the XDP program that holds a device, and whose it is. A device has room for one: of a
 * gate, of another software, or the dispatcher of libxdp, which calls several.
 */
#ifndef SLUICE_XDP_OWNER_H
#define SLUICE_XDP_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/gate.h"

#define PROGRAM_NAME 16 /* the kernel's BPF_OBJ_NAME_LEN */

struct xdp_owner {
	uint32_t program_id;	  /* 0: the device has no XDP program */
	char name[PROGRAM_NAME];  /* of the program; "": this process may not see it */
	char gate[GATE_NAME + 1]; /* the gate whose program it is; "": it is no gate's */
};

/* Finds the owner on a device of the current network namespace. */
struct xdp_owner xdp_owner_find(unsigned int ifindex);

/* Whether it is the dispatcher of libxdp. */
bool xdp_owner_is_libxdp(const struct xdp_owner *owner);

#define XDP_OWNER_TEXT (GATE_NAME + 96)

/* Prints whose program it is: "gate 'main'", "program 'xdp_filter', id 7, of another software". */
const char *xdp_owner_format(const struct xdp_owner *owner, char text[XDP_OWNER_TEXT]);

#endif
