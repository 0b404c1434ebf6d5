/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attachments: a program of ours on a hook of a device. Each is one pin below the gate's links/, whose
 * name says all about it: HOOK-MODE-NETNS-IFINDEX-DEVICE. Where the hook has links, the pin is the link;
 * for clsact it is the program, by whose id the filter is found.
 */
#ifndef SLUICE_ATTACHMENT_H
#define SLUICE_ATTACHMENT_H

#include <net/if.h>
#include <stdint.h>

#include "base/log.h"
#include "gate/gate.h"
#include "gate/object.h"

enum mode {
	MODE_AUTO, /* the best that works: native, or else hook ingress; tcx, or else clsact */
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
	bool is_tap; /* what a process, a virtual machine most often, sends by /dev/net/tun */
};

/* Finds a device by name. Fails for one that there is not, and for one whose frames are not
 * Ethernet. */
enum status device_find(const char *name, struct device *ret);

struct attachment {
	enum hook hook;
	enum mode mode; /* obtained */
	/* The device as it is now; gone, or not to be found: as it was when it was attached. */
	uint64_t netns;
	unsigned int ifindex;
	char device[IF_NAMESIZE];
	/* As it was when it was attached: what the pin is called. */
	struct {
		uint64_t netns;
		unsigned int ifindex;
		char device[IF_NAMESIZE];
	} pinned;
	uint32_t program_id; /* 0: the device, or the filter, is gone */
	bool device_gone;    /* with program_id 0: else it is there, and the filter is gone */
};

/* A hook or a mode by its name; false, having said what there is: no such thing. */
bool hook_parse(const char *name, enum hook *ret);
bool mode_parse(const char *name, enum mode *ret);

/* Refuses a mode that the hook does not have. */
enum status mode_check(enum hook hook, enum mode mode);

/* The attachment of a device of the current network namespace as it is to be. */
struct attachment attachment_of(const struct device *device, enum hook hook);

/* The attachment that a pin's name tells; false: it is no attachment's. */
bool attachment_of_pin(const char *name, struct attachment *ret);

/* The name of the attachment's pin, in the gate's `links`. */
const char *attachment_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * The name of a second pin, for clsact, while another program is put under the filter: the filter runs the one or
 * the other program, and at every moment is known to be ours.
 */
const char *attachment_next_pin(const struct attachment *attachment, char name[PIN_NAME]);

/*
 * The name of the pin that says that the device's clsact qdisc is ours, to be removed with our last
 * filter. It pins a program, for something has to be pinned.
 */
const char *attachment_qdisc_pin(const struct attachment *attachment, char name[PIN_NAME]);

/* --- State ---------------------------------------------------------------------------------- */

/* What kernels from 6.6 on call the hooks of tcx; the build machine's headers may be older. */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

#define TCX_FIRST (1U << 3) /* BPF_F_BEFORE: one that accepts must not hide packets from us */

#define TCX_PROGRAMS_MAX 64 /* on one hook of a device */

#define ATTACHMENTS_MAX 256

/* Reads the attachments of a gate, of which only the directory need be open. */
enum status attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count);

/* Finds out whether the attachment is alive, and where its device is now. */
void attachment_look(const struct gate *gate, struct attachment *attachment);

/* The id of a program; 0: it is none. */
uint32_t program_id_of(int program_fd);

/* The same of a pinned one. */
uint32_t program_id_pinned(const struct pins *pins, const char *name);

#endif
