/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: where a gate filters. Hooks and their modes, and the devices that a rules file names under
 * `attach`.
 */
#ifndef SLUICE_DEVICES_H
#define SLUICE_DEVICES_H

#include <net/if.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/netns.h"
#include "rules/value.h"

enum hook {
	HOOK_XDP,
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOKS,
};

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

/* Types of values: enum hook, enum mode. */
extern const struct value_type value_hook, value_mode;

/* Parse a hook and a mode. False: there is no such name, which is reported. */
bool hook_parse(const char *name, enum hook *ret);
bool mode_parse(const char *name, enum mode *ret);

/* Refuses a mode that the hook does not have. */
int mode_check(enum hook hook, enum mode mode);

/* --- The devices of a rules file ------------------------------------------------------------ */

#define PLACE_DEVICE 64 /* a pattern may be longer than a name */

/* Devices on which a gate is to filter. */
struct place {
	char device[PLACE_DEVICE]; /* a name, or a pattern of glob(7), such as eth* */
	char netns[NETNS_NAME];	   /* "": the network namespace of the command */
	enum hook hook;
	enum mode mode;
	bool optional; /* it is no error that there is no such device */
};

struct places {
	struct place *list;
	unsigned int count, room;
	bool said; /* a file without `attach` leaves attachments as they are */
};

/* The fields of a place, as words. NULL: not given; each but the device has a default. */
struct place_words {
	const char *device, *hook, *mode, *netns;
	bool optional;
};

/* Parses a place: hook xdp, mode auto. */
int place_parse(const struct place_words *words, struct place *ret);

bool place_is_pattern(const struct place *place);

/*
 * Whether a rules file can name the place. The kernel takes almost any byte in names: not text, and
 * a device's name that reads as a pattern.
 */
bool place_can_be_told(const struct place *place);

int places_add(struct places *places, const struct place *place);
void places_free(struct places *places);

#endif
