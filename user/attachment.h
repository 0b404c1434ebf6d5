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

#include "device.h"
#include "gate.h"
#include "pins.h"

enum hook {
	HOOK_XDP,
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOKS,
};

enum mode {
	MODE_AUTO, /* the best that works: native then generic, or tcx then clsact */
	MODE_NATIVE,
	MODE_GENERIC,
	MODE_TCX,
	MODE_CLSACT,
	MODES,
};

extern const char *const hook_names[HOOKS];
extern const char *const mode_names[MODES];

struct attachment {
	enum hook hook;
	enum mode mode; /* obtained */
	uint64_t netns; /* of the device */
	unsigned int ifindex;
	char device[IF_NAMESIZE]; /* as it was called when attached */
	uint32_t program_id;	  /* 0: the device, or the filter, is gone */
};

#define ATTACHMENTS_MAX 256

/* A hook or a mode by its name; false, having said what there is: no such thing. */
bool hook_parse(const char *name, enum hook *ret);
bool mode_parse(const char *name, enum mode *ret);

/* Refuses a mode that the hook does not have. */
enum status mode_check(enum hook hook, enum mode mode);

/* Reads the attachments of a gate; the gate needs only its name. */
enum status attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count);

/* Finds out whether the attachment is alive: fills in program_id. */
void attachment_look(const struct gate *gate, struct attachment *attachment);

/* The device with the longest frames that is attached to the gate; ifindex 0: none is. */
enum status attachments_longest_frame(const struct gate *gate, struct device *ret);

/* The path of the attachment's pin. */
const char *attachment_path(const struct gate *gate, const struct attachment *attachment,
			    char path[PINS_PATH]);

/*
 * The path of the pin that says that the device's clsact qdisc is ours, to be removed with our last
 * filter. It pins a program, for something has to be pinned.
 */
const char *attachment_qdisc_path(const struct gate *gate, const struct attachment *attachment,
				  char path[PINS_PATH]);

/* The id of a program; 0: it is none. */
uint32_t program_id_of(int program_fd);

#endif
