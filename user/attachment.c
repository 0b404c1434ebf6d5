// SPDX-License-Identifier: GPL-2.0
#include "attachment.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netns.h"

const char *const hook_names[HOOKS] = {
	[HOOK_XDP] = "xdp",
	[HOOK_INGRESS] = "ingress",
	[HOOK_EGRESS] = "egress",
};

const char *const mode_names[MODES] = {
	[MODE_AUTO] = "auto", [MODE_NATIVE] = "native", [MODE_GENERIC] = "generic",
	[MODE_TCX] = "tcx",   [MODE_CLSACT] = "clsact",
};

/* --- Pins ----------------------------------------------------------------------------------- */

static void replace(char *text, char from, char to)
{
	for (; *text; text++)
		if (*text == from)
			*text = to;
}

static const char *pin_format(const struct attachment *a, const char *lead, char name[PIN_NAME])
{
	char device[IF_NAMESIZE];

	/* bpffs allows no '.', a device's name no ':' */
	snprintf(device, sizeof(device), "%s", a->pinned.device);
	replace(device, '.', ':');
	snprintf(name, PIN_NAME, "%s%s-%s-%" PRIu64 "-%u-%s", lead, hook_names[a->hook],
		 mode_names[a->mode], a->pinned.netns, a->pinned.ifindex, device);
	return name;
}

const char *attachment_pin(const struct attachment *a, char name[PIN_NAME])
{
	return pin_format(a, "", name);
}

/* No hook is called `next`: who reads the pins takes it for no attachment. */
const char *attachment_next_pin(const struct attachment *a, char name[PIN_NAME])
{
	return pin_format(a, "next-", name);
}

static int name_find(const char *const names[], int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

enum status mode_check(enum hook hook, enum mode mode)
{
	bool tc = mode == MODE_TCX || mode == MODE_CLSACT;

	if (mode == MODE_AUTO || tc == (hook != HOOK_XDP))
		return OK;
	return misuse("hook %s has no mode %s: %s", hook_names[hook], mode_names[mode],
		      hook == HOOK_XDP ? "auto, native or generic" : "auto, tcx or clsact");
}

const char *attachment_qdisc_pin(const struct attachment *a, char name[PIN_NAME])
{
	snprintf(name, PIN_NAME, "qdisc-%" PRIu64 "-%u", a->pinned.netns, a->pinned.ifindex);
	return name;
}

bool hook_parse(const char *name, enum hook *ret)
{
	int found = name_find(hook_names, HOOKS, name);

	if (found < 0) {
		misuse("there is no hook '%s': xdp, ingress or egress", name);
		return false;
	}
	*ret = found;
	return true;
}

bool mode_parse(const char *name, enum mode *ret)
{
	int found = name_find(mode_names, MODES, name);

	if (found < 0) {
		misuse("there is no mode '%s': auto, native, generic, tcx or clsact", name);
		return false;
	}
	*ret = found;
	return true;
}

static bool pin_parse(const char *name, struct attachment *ret)
{
	struct attachment a = {0};
	char hook[16], mode[16];
	int hook_found, mode_found;

	if (sscanf(name, "%15[a-z]-%15[a-z]-%" SCNu64 "-%u-%15s", hook, mode, &a.pinned.netns,
		   &a.pinned.ifindex, a.pinned.device) != 5)
		return false;
	hook_found = name_find(hook_names, HOOKS, hook);
	mode_found = name_find(mode_names, MODES, mode);
	if (hook_found < 0 || mode_found < 0)
		return false;
	a.hook = hook_found;
	a.mode = mode_found;
	replace(a.pinned.device, ':', '.');
	*ret = a;
	return true;
}

struct attachment attachment_of(const struct device *device, enum hook hook)
{
	struct attachment a = {.hook = hook, .netns = netns_current(), .ifindex = device->ifindex};

	memcpy(a.device, device->name, sizeof(a.device));
	a.pinned.netns = a.netns;
	a.pinned.ifindex = a.ifindex;
	memcpy(a.pinned.device, a.device, sizeof(a.device));
	return a;
}

/* --- All of them --------------------------------------------------------------------------- */

static int is_pin(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

enum status attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count)
{
	struct dirent **entries;
	unsigned int count = 0;
	int found;
	enum status status = pins_list(&gate->links, is_pin, &entries, &found);

	if (status)
		return status;
	for (int i = 0; i < found; i++) {
		if (count < ATTACHMENTS_MAX && pin_parse(entries[i]->d_name, &ret[count]))
			attachment_look(gate, &ret[count++]);
		free(entries[i]);
	}
	free(entries);
	*ret_count = count;
	return OK;
}
