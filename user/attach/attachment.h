/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: reads and names attachments. An attachment is a program of a gate on a hook of a device.
 * For XDP and tcx, the pin HOOK-MODE-NETNS-IFINDEX-DEVICE in the gate's directory links/ is the bpf
 * link, and a second pin is the program. clsact and modes chain and array have no bpf links, so the
 * first pin is the program, whose id identifies the filter or the XDP program of the device. In
 * mode libxdp the first pin is map `secret`, because libxdp loads the program.
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
	enum mode mode;	 /* never MODE_AUTO */
	bool is_generic; /* in modes chain, array and libxdp: the program runs in generic XDP */
	/* How the device was attached. PIN_WORDS stores this. */
	struct array_slot slot; /* in mode array */
	unsigned int priority;	/* in mode libxdp: run priority; otherwise 0 */
	/*
	 * The present name, ifindex and namespace of the device. If the device was not found, their
	 * values when the gate was attached.
	 */
	uint64_t netns;
	unsigned int ifindex;
	char device[IF_NAMESIZE];
	/* The device when it was attached. The pin's name contains these values. */
	struct {
		uint64_t netns;
		unsigned int ifindex;
		char device[IF_NAMESIZE];
	} pinned;
	uint32_t program_id; /* id of the running program; 0 if the device or the filter is gone */
	bool device_gone;    /* the device no longer exists, so program_id is 0 */
};

/* Returns a new attachment of a device of the current network namespace. */
struct attachment attachment_of(const struct netdev *device, enum hook hook);

enum attachment_pin {
	PIN_ATTACHMENT, /* pin of the link or, without a link, of the program */
	PIN_PROGRAM,	/* pin of the program, because an open by id requires CAP_SYS_ADMIN */
	PIN_NEXT,	/* pin of a new program, while it replaces the program of PIN_PROGRAM */
	PIN_CHAIN, /* in modes chain and array: the program array that Sluice's program calls */
	PIN_AFTER, /* in mode chain: the program that was taken over */
	PIN_WORDS, /* in modes array and libxdp: a symlink to the slot or the priority as text */
	PIN_QDISC, /* exists if Sluice added the clsact qdisc; then Sluice may remove it */
};

struct pin_name {
	char text[PIN_NAME];
};

/* Returns the name of a pin for the attachment, in directory `links` of the gate. */
struct pin_name attachment_pin(const struct attachment *attachment, enum attachment_pin which);

/*
 * Makes PIN_WORDS, from which attachments_read() reads the slot or the priority. The kernel and
 * libxdp do not store the path of an array, and only libxdp can read a priority. Returns 0, or a
 * negative errno and adds an error.
 */
int attachment_words_write(const struct gate *gate, const struct attachment *attachment);

/* Parses the name of a pin. Returns false if it is not the pin of an attachment. */
bool attachment_of_pin(const char *name, struct attachment *ret);

/* --- Reading attachments -------------------------------------------------------------------- */

/* Attach types of tcx (Linux 6.6), which the headers of an older build machine lack. */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

/* BPF_F_BEFORE: run first, because a tcx program can end the chain */
#define TCX_FIRST (1U << 3)

#define TCX_PROGRAMS_MAX 64 /* the kernel allows at most 64 programs on one hook of a device */

#define ATTACHMENTS_MAX 256

/*
 * Reads the attachments of a gate whose directory is open. Fails if the user may only read the
 * gate, because opening links requires write permission. attachments_see() works for all users.
 */
int attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
		     unsigned int *ret_count);

/*
 * Removes pins that have no attachment. A killed command may have left them. The caller must have
 * the gate's lock.
 */
int attachments_expire(const struct gate *gate);

/*
 * Asks the kernel for the state of an attachment, and sets its program_id, device_gone, present
 * device and namespace.
 */
int attachment_look(const struct gate *gate, struct attachment *attachment);

/* Returns whether the attachment is a bpf link. */
bool attachment_is_link(const struct attachment *attachment);

/*
 * Returns the mode that a command or a rules file should specify for an attachment. If mode auto
 * selects this mode on this kernel, returns auto, so that the words also work on other kernels.
 */
enum mode attachment_mode(const struct attachment *attachment);

/* Returns whether the attachment is in mode chain or array. */
bool attachment_is_chained(const struct attachment *attachment);

/* Opens the program that runs in the attachment. Returns an fd or a negative errno. */
int attachment_program_open(const struct gate *gate, const struct attachment *attachment);

/*
 * Returns whether the program counts several merged packets as one, because it cannot read their
 * number. Generic XDP runs after GRO. On a tap, a process such as a VM may write merged packets.
 */
bool attachment_merges(const struct attachment *attachment, bool is_tap);

/*
 * Returns whether both attachments are on the same device, and charge packets that the device
 * receives.
 */
bool attachments_both_receive(const struct attachment *a, const struct attachment *b);

#define COMMAND_TEXT                                                                               \
	(NETNS_OPTION + GATE_NAME + NAME_TYPED + MODE_TEXT +                                       \
	 sizeof("sluice -g  attach --  hook ingress "))

/*
 * Formats "sluice -n NETNS -g GATE VERB DEV hook HOOK". verb: "attach" or "detach". For attach,
 * adds the words of the mode, unless mode auto selects it.
 */
const char *attachment_command(const char *verb, const struct attachment *attachment,
			       const char *gate, char text[COMMAND_TEXT]);

/* Returns the kernel's id of a program, or 0 if fd is not a program. */
uint32_t program_id_of(int program_fd);

/* --- The owner of a device's XDP program ----------------------------------------------------- */

/* Owner of the XDP program of a device: a gate, or other software. */
struct xdp_owner {
	unsigned int ifindex;
	uint32_t program_id;	  /* id of the XDP program; 0 if the device has none */
	char name[16];		  /* name of the program; "" if this process may not read it */
	char gate[GATE_NAME + 1]; /* gate that attached the program; "" if no gate did */
};

/* Finds the program on hook xdp of a device in the current network namespace, and its owner. */
struct xdp_owner xdp_owner_find(unsigned int ifindex);

/* Returns whether the program is libxdp's dispatcher, which calls several programs in turn. */
bool xdp_owner_is_libxdp(const struct xdp_owner *owner);

#define XDP_OWNER_TEXT (GATE_NAME + 96)

/* Formats the owner: "gate 'main'", or "a program 'xdp_filter', id 7, of another software". */
const char *xdp_owner_format(const struct xdp_owner *owner, char text[XDP_OWNER_TEXT]);

/*
 * Adds one notice if the device of a new attachment (`made`) is above or below the device of
 * another attachment of the gate, because both would charge each packet. Compares only devices in
 * one network namespace. Ignores a VRF, because packets of its ports pass no hook of the VRF
 * device.
 */
int stacked_note(const struct gate *gate, const struct attachment *made, unsigned int count);

#endif
