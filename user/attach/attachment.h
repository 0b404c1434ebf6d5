/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: an attachment is a program of ours on a hook of a device. Its pin is below the gate's
 * links/, with the name HOOK-MODE-NETNS-IFINDEX-DEVICE. Where the hook has links, the link is
 * pinned; for clsact the program is, by whose id the filter is found.
 */
#ifndef SLUICE_ATTACHMENT_H
#define SLUICE_ATTACHMENT_H

#include <net/if.h>
#include <stdint.h>

#include "base/log.h"
#include "gate/gate.h"
#include "gate/object.h"

enum mode {
	MODE_AUTO, /* native, or else hook ingress; tcx, or else clsact */
	MODE_NATIVE,
	MODE_GENERIC,
	MODE_TCX,
	MODE_CLSACT,
	MODES,
};

extern const char *const hook_names[HOOKS];
extern const char *const mode_names[MODES];

struct device {
	char name[IF_NAMESIZE];
	unsigned int ifindex;
	bool is_tap; /* frames come from a process, such as a virtual machine, by /dev/net/tun */
};

/* Finds a device by name. Fails for a missing one, and for one whose frames are not Ethernet. */
enum status device_find(const char *name, struct device *ret);

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

/* Parse a hook and a mode. False: there is no such name, which is reported. */
bool hook_parse(const char *name, enum hook *ret);
bool mode_parse(const char *name, enum mode *ret);

/* Refuses a mode that the hook does not have. */
enum status mode_check(enum hook hook, enum mode mode);

/* A new attachment of a device of the current network namespace. */
struct attachment attachment_of(const struct device *device, enum hook hook);

/* Parses the name of a pin. False: it is no attachment's. */
bool attachment_of_pin(const char *name, struct attachment *ret);

/* Formats the name of the attachment's pin in the gate's `links`. */
const char *attachment_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * Formats the name of a second pin that clsact needs while the filter's program is replaced: the
 * filter runs the program of one of the two pins at every moment, and so is known to be ours.
 */
const char *attachment_next_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * Formats the name of the pin which marks the device's clsact qdisc as ours, so that it is removed
 * with our last filter. The pinned object is a program, as a pin needs some object.
 */
const char *attachment_qdisc_pin(const struct attachment *attachment, char name[PIN_NAME]);

/* --- Reading attachments -------------------------------------------------------------------- */

/* The attach types of tcx, which older headers of the build machine lack (Linux 6.6). */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

#define TCX_FIRST (1U << 3) /* BPF_F_BEFORE: an accepting program must not hide packets from ours */

#define TCX_PROGRAMS_MAX 64 /* programs on one hook of a device */

#define ATTACHMENTS_MAX 256

/* Reads the attachments of a gate. Only its directory has to be open. */
enum status attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count);

/* Sets program_id, device_gone and the present device of an attachment. */
void attachment_look(const struct gate *gate, struct attachment *attachment);

/* The kernel's id of a program; 0: fd is no program. */
uint32_t program_id_of(int program_fd);

/* The kernel's id of a pinned program; 0: there is none. */
uint32_t program_id_pinned(const struct pins *pins, const char *name);

#endif
