// SPDX-License-Identifier: GPL-2.0
#include "rules/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

/* --- Hooks and modes ------------------------------------------------------------------------ */

const char *const hook_names[HOOKS] = {
	[HOOK_XDP] = "xdp",
	[HOOK_INGRESS] = "ingress",
	[HOOK_EGRESS] = "egress",
};

const char *const mode_names[MODES] = {
	[MODE_AUTO] = "auto", [MODE_NATIVE] = "native", [MODE_GENERIC] = "generic",
	[MODE_TCX] = "tcx",   [MODE_CLSACT] = "clsact",
};

const struct value_type value_hook = VALUE_CHOICE("xdp|ingress|egress", hook_names, HOOK_XDP);
const struct value_type value_mode =
	VALUE_CHOICE("auto|native|generic|tcx|clsact", mode_names, MODE_AUTO);

bool hook_parse(const char *name, enum hook *ret)
{
	int found = word_find(hook_names, HOOKS, name);

	if (found < 0) {
		misuse("there is no hook '%s': xdp, ingress or egress", name);
		return false;
	}
	*ret = found;
	return true;
}

bool mode_parse(const char *name, enum mode *ret)
{
	int found = word_find(mode_names, MODES, name);

	if (found < 0) {
		misuse("there is no mode '%s': auto, native, generic, tcx or clsact", name);
		return false;
	}
	*ret = found;
	return true;
}

int mode_check(enum hook hook, enum mode mode)
{
	bool tc = mode == MODE_TCX || mode == MODE_CLSACT;

	if (mode == MODE_AUTO || tc == (hook != HOOK_XDP))
		return OK;
	return misuse("hook %s has no mode %s: %s", hook_names[hook], mode_names[mode],
		      hook == HOOK_XDP ? "auto, native or generic" : "auto, tcx or clsact");
}

/* --- Places --------------------------------------------------------------------------------- */

static bool text_is_pattern(const char *text)
{
	return strpbrk(text, "*?[\\");
}

/* What the kernel takes for the name of a device, and no slash, which no pattern could mean. */
static int device_check(const char *name)
{
	size_t room = text_is_pattern(name) ? PLACE_DEVICE : IF_NAMESIZE;

	if (*name && strlen(name) < room && !strpbrk(name, "/: \t\n") && strcmp(name, ".") &&
	    strcmp(name, ".."))
		return OK;
	return misuse("device '%s': write the name of a device, at most %d letters, or a pattern "
		      "such as eth*, at most %d",
		      name, IF_NAMESIZE - 1, PLACE_DEVICE - 1);
}

static bool netns_is_name(const char *name)
{
	return *name && strlen(name) < NETNS_NAME && !strchr(name, '/') && *name != '.';
}

int place_parse(const struct place_words *words, struct place *ret)
{
	struct place place = {.optional = words->optional};
	int status = device_check(words->device);

	if (!status && words->netns && !netns_is_name(words->netns))
		status = misuse("netns '%s': write the name of a network namespace, as 'ip netns' "
				"lists it",
				words->netns);
	if (!status && words->hook && !hook_parse(words->hook, &place.hook))
		status = MISUSED;
	if (!status && words->mode && !mode_parse(words->mode, &place.mode))
		status = MISUSED;
	if (!status)
		status = mode_check(place.hook, place.mode);
	if (status)
		return status;
	snprintf(place.device, sizeof(place.device), "%s", words->device);
	snprintf(place.netns, sizeof(place.netns), "%s", words->netns ?: "");
	*ret = place;
	return OK;
}

bool place_is_pattern(const struct place *place)
{
	return text_is_pattern(place->device);
}

bool place_can_be_told(const struct place *place)
{
	return !place_is_pattern(place) && text_is_printable(place->device) &&
	       text_is_printable(place->netns) && (!*place->netns || netns_is_name(place->netns));
}

int places_add(struct places *places, const struct place *place)
{
	if (!array_grow(places->list, places->count, places->room))
		return failure("cannot keep %u devices: out of memory", places->count + 1);
	places->list[places->count++] = *place;
	return OK;
}

void places_free(struct places *places)
{
	free(places->list);
	*places = (struct places){0};
}
