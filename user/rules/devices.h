/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: hooks and their modes, and the devices that a rules file names under `attach`.
 */
#ifndef SLUICE_DEVICES_H
#define SLUICE_DEVICES_H

#include <net/if.h>
#include <stdbool.h>
#include <string.h>

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

/* Returns an error if the hook does not have the mode. */
int mode_check(enum hook hook, enum mode mode);

#define PLACE_DEVICE 64 /* a pattern may be longer than a name */

extern const struct value_type value_hook;   /* enum hook */
extern const struct value_type value_mode;   /* enum mode */
extern const struct value_type value_device; /* char[PLACE_DEVICE]: a name, or a pattern */
extern const struct value_type value_netns;  /* char[NETNS_NAME] */

/* --- The devices of a rules file ------------------------------------------------------------ */

/* Devices on which a gate is to filter. */
struct place {
	char device[PLACE_DEVICE]; /* a name, or a pattern of glob(7), such as eth* */
	char netns[NETNS_NAME];	   /* "": the network namespace of the command */
	enum hook hook;
	enum mode mode;
	bool optional; /* it is no error if there is no such device */
};

struct places {
	struct place *list;
	unsigned int count, room;
	bool specified; /* a file without `attach` leaves attachments unchanged */
};

static inline bool place_is_pattern(const struct place *place)
{
	return strpbrk(place->device, "*?[\\");
}

/*
 * Whether a rules file can name the place. The kernel accepts almost any byte in names: not text,
 * and a device's name that reads as a pattern.
 */
bool place_is_nameable(const struct place *place);

int places_add(struct places *places, const struct place *place);
void places_free(struct places *places);

#endif
