/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: an attachment is a program of ours on a hook of a device. Its pin is below the gate's
 * links/, with the name HOOK-MODE-NETNS-IFINDEX-DEVICE. Where the hook has links, the link is
 * pinned, and its program beside it; for clsact the program is, by whose id the filter is found.
 */
#ifndef SLUICE_ATTACHMENT_H
#define SLUICE_ATTACHMENT_H

#include <net/if.h>
#include <stdint.h>

#include "attach/netdevs.h"
#include "base/log.h"
#include "gate/pins.h"
#include "gate/object.h"
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

/* A new attachment of a device of the current network namespace. */
struct attachment attachment_of(const struct device *device, enum hook hook);

/* Formats the name of the attachment's pin in the gate's `links`. */
const char *attachment_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * Formats the name of the pin of the program: opening a program by id needs CAP_SYS_ADMIN. For
 * clsact it is attachment_pin().
 */
const char *attachment_program_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * Formats the name of a second pin, which exists while the program is replaced. At every moment
 * the attachment runs the program of one of the two pins, so its filter can be recognised.
 */
const char *attachment_next_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * Formats the name of the pin that marks the clsact qdisc as ours: it is removed with its filter.
 */
const char *attachment_qdisc_pin(const struct attachment *attachment, char name[PIN_NAME]);

/* --- Reading attachments -------------------------------------------------------------------- */

/* The attach types of tcx, which older headers of the build machine lack (Linux 6.6). */
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

/*
 * Sets program_id, device_gone and the present device of an attachment. Fails if the kernel cannot
 * be asked, for example if there is no memory.
 */
int attachment_look(const struct gate *gate, struct attachment *attachment);

/*
 * Whether a merged packet counts as one. Generic XDP runs after GRO, and native XDP of a tap sees
 * packets that a process merged. Neither knows the number of segments.
 */
bool attachment_merges(const struct attachment *attachment, bool is_tap);

/* Whether both attachments see what a device receives, so that it is charged twice. */
bool attachments_both_receive(const struct attachment *a, const struct attachment *b);

#define REMEDY_TEXT                                                                                \
	(NETNS_OPTION + GATE_NAME + NAME_TYPED + sizeof("sluice -g  attach --  hook ingress"))

/*
 * Returns the command for an attachment that filters nothing: it detaches a device that is gone,
 * and attaches again otherwise.
 */
const char *attachment_remedy(const struct attachment *attachment, const char *gate,
			      char text[REMEDY_TEXT]);

/* The kernel's id of a program; 0: fd is no program. */
uint32_t program_id_of(int program_fd);

/* The kernel's id of a pinned program; 0: there is none. */
uint32_t program_id_pinned(const struct pins *pins, const char *name);

#endif
