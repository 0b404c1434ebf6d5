/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: hooks, modes and their words, and the entries of `attach` in a rules file. */
#ifndef SLUICE_DEVICES_H
#define SLUICE_DEVICES_H

#include <net/if.h>
#include <stdbool.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "rules/value.h"

enum hook {
	HOOK_XDP,
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOKS,
};

enum mode {
	MODE_AUTO, /* on XDP: native, otherwise hook ingress; on TC: tcx, otherwise clsact */
	MODE_NATIVE,
	MODE_GENERIC,
	MODE_TCX,
	MODE_CLSACT,
	MODE_CHAIN,  /* on XDP: take over the device's program, and run it afterwards */
	MODE_LIBXDP, /* on XDP: a component of the dispatcher of libxdp */
	MODE_ARRAY,  /* on XDP: a program in a slot of another program's program array */
	MODES,
};

extern const char *const hook_names[HOOKS];
extern const char *const mode_names[MODES];

#define PLACE_DEVICE 64 /* size of a device name or of a pattern of names */

/* A slot of a pinned program array. */
struct array_slot {
	char path[128]; /* absolute path; "": none */
	unsigned int slot;
};

/* Formats a slot as in a rules file: "PIN SLOT". */
#define SLOT_TEXT (sizeof(((struct array_slot *)0)->path) + sizeof(" 65535"))
const char *slot_format(const struct array_slot *slot, char text[SLOT_TEXT]);

/* Run priorities of mode libxdp. The default is the same as in libxdp. */
#define PRIORITY_DEFAULT 50
#define PRIORITY_MAX	 65535

/*
 * Checks that the words of an attachment fit together. A slot sets mode array. priority: 0 if none
 * is specified. Returns 0, or -EINVAL and adds an error.
 */
int mode_check(enum hook hook, const struct array_slot *slot, unsigned int priority,
	       enum mode *mode);

/*
 * Formats the words of a mode: "mode native", "mode libxdp priority 5" or "array PIN SLOT". Omits
 * the default priority.
 */
#define MODE_TEXT (NAME_TYPED + sizeof("array  65535"))
const char *mode_format(enum mode mode, const struct array_slot *slot, unsigned int priority,
			char text[MODE_TEXT]);

extern const struct value_type value_slot;	 /* struct array_slot, from PIN SLOT */
extern const struct value_type value_priority;	 /* unsigned int */
extern const struct value_type value_hook;	 /* enum hook */
extern const struct value_type value_given_hook; /* parses enum hook plus 1 */
extern const struct value_type value_mode;	 /* enum mode */
extern const struct value_type value_device;	 /* device name or pattern, in char[PLACE_DEVICE] */
extern const struct value_type value_netns;	 /* char[NETNS_NAME] */

/* --- The devices of a rules file ------------------------------------------------------------ */

/* An entry of `attach` in a rules file: devices that a gate filters, and the hook. */
struct place {
	char device[PLACE_DEVICE]; /* name of a device, or a pattern as in glob(7), such as eth* */
	char netns[NETNS_NAME];	   /* network namespace; "" means the command's namespace */
	enum hook hook;
	enum mode mode;
	struct array_slot slot; /* for mode array */
	unsigned int priority;	/* for mode libxdp: run priority; 0: not specified */
	bool optional;		/* a missing device is not an error */
};

struct places {
	struct place *list;
	unsigned int count, room;
	bool specified; /* the file has key `attach`; if not, attachments stay unchanged */
};

static inline bool place_is_pattern(const struct place *place)
{
	return strpbrk(place->device, "*?[\\");
}

/*
 * Returns whether the device name of a place can be written in a rules file. The kernel accepts
 * almost any byte in a device name, so a name may be unprintable or look like a pattern.
 */
bool place_is_nameable(const struct place *place);

/* Returns the value of key `mode` in a rules file, or NULL if the place needs no such key. */
const char *place_mode(const struct place *place);

int places_add(struct places *places, const struct place *place);
void places_free(struct places *places);

#endif
