/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: an attachment is a program of ours on a hook of a device. Its pin is in the gate's
 * links/, with the name HOOK-MODE-NETNS-IFINDEX-DEVICE. If the hook has links, the link is pinned,
 * and its program beside it. For clsact the program is pinned, by whose id the filter is found.
 */
#ifndef SLUICE_ATTACHMENT_H
#define SLUICE_ATTACHMENT_H

#include <net/if.h>
#include <stdint.h>

#include "attach/netdevs.h"
#include "base/error.h"
#include "gate/pins.h"
#include "gate/maps.h"
#include "rules/devices.h"

struct attachment {
	enum hook hook;
	enum mode mode; /* the mode in use, never auto */
	/* The present device. If it is gone or not found: the one that was attached. */
	uint64_t netns;
	unsigned int ifindex;
	char device[IF_NAMESIZE];
	/* The device when it was attached, which names the pin. */
	struct {
		uint64_t netns;
		unsigned int ifindex;
		char device[IF_NAMESIZE];
	} pinned;
	uint32_t program_id; /* 0: the device or the filter is gone */
	bool device_gone;    /* with program_id 0: the device is gone, not only the filter */
};

/* Returns a new attachment of a device of the current network namespace. */
struct attachment attachment_of(const struct netdev *device, enum hook hook);

enum attachment_pin {
	PIN_ATTACHMENT, /* the link, or for clsact the program */
	PIN_PROGRAM,	/* the program: opening it by id needs CAP_SYS_ADMIN */
	/*
	 * The new program while it is replaced. At every moment the attachment runs the program of
	 * PIN_PROGRAM or PIN_NEXT, so its filter can be found.
	 */
	PIN_NEXT,
	PIN_QDISC, /* marks the clsact qdisc as ours: it is removed with its last filter */
};

struct pin_name {
	char text[PIN_NAME];
};

/* Returns the name of a pin of the attachment in the gate's `links`. */
struct pin_name attachment_pin(const struct attachment *attachment, enum attachment_pin which);

/* --- Reading attachments -------------------------------------------------------------------- */

/* The attach types of tcx (Linux 6.6), which older headers of the build machine lack. */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

#define TCX_FIRST (1U << 3) /* BPF_F_BEFORE: an accepting program must not hide packets from ours */

#define TCX_PROGRAMS_MAX 64 /* programs on one hook of a device */

#define ATTACHMENTS_MAX 256

/* Reads the attachments of a gate whose directory is open. Refuses readers: attach/published.h. */
int attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
		     unsigned int *ret_count);

/* Removes pins of programs without an attachment, from a killed command. The gate is locked. */
int attachments_expire(const struct gate *gate);

/* Sets program_id, device_gone and the present device. Fails if the kernel cannot be asked. */
int attachment_look(const struct gate *gate, struct attachment *attachment);

/* Opens the program that the attachment runs. Returns an fd or a negative errno. */
int attachment_program_open(const struct gate *gate, const struct attachment *attachment);

/*
 * Whether a merged packet counts as one. Generic XDP runs after GRO, and native XDP of a tap sees
 * packets that a process merged. Neither has the number of segments.
 */
bool attachment_merges(const struct attachment *attachment, bool is_tap);

/* Whether both attachments see what a device receives, so that it is charged twice. */
bool attachments_both_receive(const struct attachment *a, const struct attachment *b);

#define COMMAND_TEXT                                                                               \
	(NETNS_OPTION + GATE_NAME + NAME_TYPED + sizeof("sluice -g  attach --  hook ingress"))

/* Formats "sluice -n NETNS -g GATE VERB DEV hook HOOK". verb: "attach" or "detach". */
const char *attachment_command(const char *verb, const struct attachment *attachment,
			       const char *gate, char text[COMMAND_TEXT]);

/* Returns the kernel's id of a program; 0: fd is no program. */
uint32_t program_id_of(int program_fd);

/* --- The owner of a device's XDP program ----------------------------------------------------- */

/* A device has room for one XDP program: of a gate, of another software, or libxdp's dispatcher. */
struct xdp_owner {
	unsigned int ifindex;
	uint32_t program_id;	  /* 0: the device has no XDP program */
	char name[16];		  /* of the program; "": this process may not see it */
	char gate[GATE_NAME + 1]; /* the gate that owns the program; "": no gate does */
};

/* Finds the owner on a device of the current network namespace. */
struct xdp_owner xdp_owner_find(unsigned int ifindex);

/* Whether the program is the dispatcher of libxdp, which calls several programs. */
bool xdp_owner_is_libxdp(const struct xdp_owner *owner);

#define XDP_OWNER_TEXT (GATE_NAME + 96)

/* Formats "gate 'main'", or "a program 'xdp_filter', id 7, of another software". */
const char *xdp_owner_format(const struct xdp_owner *owner, char text[XDP_OWNER_TEXT]);

/*
 * Adds one notice if a new attachment is stacked with another attachment of the gate: on the port
 * of a bridge, bond or team and its master, or on a device and a VLAN, macvlan or ipvlan on it. The
 * gate filters both, so each of these packets is charged twice.
 *
 * Devices of one network namespace only: a macvlan in another namespace than its parent is not
 * found. The ports of a VRF are left out, because its packets pass no hook of the VRF device.
 */
int stacked_note(const struct gate *gate, const struct attachment *made, unsigned int count);

#endif
