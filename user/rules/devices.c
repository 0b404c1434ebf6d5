// SPDX-License-Identifier: GPL-2.0
#include "rules/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* --- Types ---------------------------------------------------------------------------------- */

const char *const hook_names[HOOKS] = {
	[HOOK_XDP] = "xdp",
	[HOOK_INGRESS] = "ingress",
	[HOOK_EGRESS] = "egress",
};

const char *const mode_names[MODES] = {
	[MODE_AUTO] = "auto",	  [MODE_NATIVE] = "native", [MODE_GENERIC] = "generic",
	[MODE_TCX] = "tcx",	  [MODE_CLSACT] = "clsact", [MODE_CHAIN] = "chain",
	[MODE_LIBXDP] = "libxdp", [MODE_ARRAY] = "array",
};

const struct value_type value_hook = VALUE_CHOICE("xdp|ingress|egress", hook_names, 0);
const struct value_type value_given_hook = {
	.name = "xdp|ingress|egress",
	.parse = choice_parse,
	.words = hook_names,
	.word_count = HOOKS,
	.least = 1,
};
/* Mode array is not a word, because it requires a slot. */
const struct value_type value_mode = {
	.name = "auto|native|generic|tcx|clsact|chain|libxdp",
	.parse = choice_parse,
	.words = mode_names,
	.word_count = MODE_ARRAY,
};

int mode_check(enum hook hook, const struct array_slot *slot, unsigned int priority,
	       enum mode *mode)
{
	bool tc;

	if (*slot->path && *mode != MODE_AUTO && *mode != MODE_ARRAY)
		return error_misuse("two-modes", "array",
				    "is a mode, and contradicts mode %s; write one of them",
				    mode_names[*mode]);
	if (*slot->path)
		*mode = MODE_ARRAY;
	/* mode auto may choose mode libxdp */
	if (priority && *mode != MODE_LIBXDP && (*mode != MODE_AUTO || hook != HOOK_XDP))
		return error_misuse("unexpected", "priority",
				    "only mode libxdp has a priority; omit it, or write mode "
				    "libxdp");
	tc = *mode == MODE_TCX || *mode == MODE_CLSACT;
	if (*mode == MODE_AUTO || tc == (hook != HOOK_XDP))
		return 0;
	return error_misuse("wrong-mode", hook == HOOK_XDP ? "hook xdp" : "hooks of TC",
			    "no mode %s; write %s", mode_names[*mode],
			    hook == HOOK_XDP ? "auto, native, generic, chain or libxdp"
					     : "auto, tcx or clsact");
}

const char *mode_format(enum mode mode, const struct array_slot *slot, unsigned int priority,
			char text[MODE_TEXT])
{
	if (mode == MODE_ARRAY)
		snprintf(text, MODE_TEXT, "array %s %u", word_typed(slot->path), slot->slot);
	else if (mode == MODE_LIBXDP && priority && priority != PRIORITY_DEFAULT)
		snprintf(text, MODE_TEXT, "mode libxdp priority %u", priority);
	else
		snprintf(text, MODE_TEXT, "mode %s", mode_names[mode]);
	return text;
}

static int slot_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	const char *space = strrchr(text, ' '), *end;
	struct array_slot slot = {0};

	end = space ? number_read(space + 1, UINT16_MAX, &slot.slot) : NULL;
	if (!end || *end || *text != '/' || !text_is_printable(text) ||
	    (size_t)(space - text) >= sizeof(slot.path))
		return value_refuse(type, "bad-slot", what, text, "not a pin and a slot");
	memcpy(slot.path, text, space - text);
	memcpy(ret, &slot, sizeof(slot));
	return 0;
}

const char *slot_format(const struct array_slot *slot, char text[SLOT_TEXT])
{
	snprintf(text, SLOT_TEXT, "%s %u", slot->path, slot->slot);
	return text;
}

const struct value_type value_slot = {
	.name = "PIN SLOT",
	.parse = slot_parse,
	.expected = "write the absolute path of a pinned program array and a number",
	.extent = VALUE_NUMBERS,
};

const struct value_type value_priority = VALUE_NUMBER(1, PRIORITY_MAX, "write 1 to 65535");

/* Parses a device name, as the kernel accepts it, or a pattern of such names. */
static int device_parse(const struct value_type *type, const char *what, const char *text,
			void *ret)
{
	size_t room = strpbrk(text, "*?[\\") ? PLACE_DEVICE : IF_NAMESIZE;

	(void)type;
	if (!*text || strlen(text) >= room || strpbrk(text, "/: \t\n") || !strcmp(text, ".") ||
	    !strcmp(text, ".."))
		return error_misuse("bad-device", object_of(what, text),
				    "not a device name; write at most %d characters, or a "
				    "pattern such as eth* of at most %d",
				    IF_NAMESIZE - 1, PLACE_DEVICE - 1);
	strcpy(ret, text);
	return 0;
}

const struct value_type value_device = {.name = "DEV", .parse = device_parse};

static bool netns_is_name(const char *name)
{
	return *name && strlen(name) < NETNS_NAME && !strchr(name, '/') && *name != '.';
}

static int netns_parse(const struct value_type *type, const char *what, const char *text, void *ret)
{
	(void)type;
	if (!netns_is_name(text))
		return error_misuse("bad-netns", object_of(what, text),
				    "not the name of a network namespace; see 'ip netns'");
	strcpy(ret, text);
	return 0;
}

const struct value_type value_netns = {.name = "NETNS", .parse = netns_parse};

/* --- Places --------------------------------------------------------------------------------- */

bool place_is_nameable(const struct place *place)
{
	return !place_is_pattern(place) && text_is_printable(place->device) &&
	       text_is_printable(place->netns) && (!*place->netns || netns_is_name(place->netns));
}

const char *place_mode(const struct place *place)
{
	return place->mode == MODE_AUTO || place->mode == MODE_ARRAY ? NULL
								     : mode_names[place->mode];
}

int places_add(struct places *places, const struct place *place)
{
	if (!array_grow(places->list, places->count, places->room))
		return error_add(ENOMEM, "no-memory", NULL, "out of memory for %u devices",
				 places->count + 1);
	places->list[places->count++] = *place;
	return 0;
}

void places_free(struct places *places)
{
	free(places->list);
	*places = (struct places){0};
}
