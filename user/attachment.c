// SPDX-License-Identifier: GPL-2.0
#include "attachment.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "filter.h"
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

const char *attachment_path(const struct gate *gate, const struct attachment *a,
			    char path[PINS_PATH])
{
	char device[IF_NAMESIZE];

	/* bpffs allows no '.', a device's name no ':' */
	snprintf(device, sizeof(device), "%s", a->device);
	replace(device, '.', ':');
	snprintf(path, PINS_PATH, PINS_ROOT "/%s/" PINS_LINKS "/%s-%s-%" PRIu64 "-%u-%s",
		 gate->name, hook_names[a->hook], mode_names[a->mode], a->netns, a->ifindex,
		 device);
	return path;
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

const char *attachment_qdisc_path(const struct gate *gate, const struct attachment *a,
				  char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, PINS_ROOT "/%s/" PINS_LINKS "/qdisc-%" PRIu64 "-%u", gate->name,
		 a->netns, a->ifindex);
	return path;
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

	if (sscanf(name, "%15[a-z]-%15[a-z]-%" SCNu64 "-%u-%15s", hook, mode, &a.netns, &a.ifindex,
		   a.device) != 5)
		return false;
	hook_found = name_find(hook_names, HOOKS, hook);
	mode_found = name_find(mode_names, MODES, mode);
	if (hook_found < 0 || mode_found < 0)
		return false;
	a.hook = hook_found;
	a.mode = mode_found;
	replace(a.device, ':', '.');
	*ret = a;
	return true;
}

/* --- What is alive -------------------------------------------------------------------------- */

struct find_call {
	const struct attachment *attachment;
	uint32_t program_id;
	bool found;
};

/* For netns_run_in. A filter that cannot be asked for is not found. */
static void call_filter_find(void *data)
{
	struct find_call *call = data;
	const struct attachment *a = call->attachment;

	if (filter_find(a->ifindex, a->hook == HOOK_INGRESS, call->program_id, &call->found))
		call->found = false;
}

uint32_t program_id_of(int program_fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(program_fd, &info, &size) ? 0 : info.id;
}

/* The id of the program that a link runs; 0: its device is gone. */
static uint32_t link_program(int link_fd)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(link_fd, &info, &size))
		return 0;
	return info.xdp.ifindex ? info.prog_id : 0; /* tcx has its ifindex at the same place */
}

/* The id of the program that the attachment runs now; 0: none. */
static uint32_t program_running(const struct attachment *a, int pin_fd)
{
	struct find_call call = {.attachment = a};

	if (a->mode != MODE_CLSACT)
		return link_program(pin_fd);
	call.program_id = program_id_of(pin_fd);
	netns_run_in(a->netns, call_filter_find, &call);
	return call.found ? call.program_id : 0;
}

void attachment_look(const struct gate *gate, struct attachment *a)
{
	char path[PINS_PATH];
	int fd = bpf_obj_get(attachment_path(gate, a, path));

	a->program_id = fd < 0 ? 0 : program_running(a, fd);
	if (fd >= 0)
		close(fd);
}

static int is_pin(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

enum status attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count)
{
	char path[PINS_PATH];
	struct dirent **entries = NULL;
	unsigned int count = 0;
	int found;

	found = scandir(pins_path(gate->name, PINS_LINKS, path), &entries, is_pin, alphasort);
	if (found < 0 && errno != ENOENT)
		return fail("cannot read %s: %s", path, why(errno));
	for (int i = 0; i < found; i++) {
		if (count < ATTACHMENTS_MAX && pin_parse(entries[i]->d_name, &ret[count]))
			attachment_look(gate, &ret[count++]);
		free(entries[i]);
	}
	free(entries);
	*ret_count = count;
	return OK;
}

static void call_device_look(void *data)
{
	struct device *device = data;

	if (!device_look(device))
		device->mtu = 0;
}

enum status attachments_longest_frame(const struct gate *gate, struct device *ret)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum status status = attachments_read(gate, all, &count);

	*ret = (struct device){0};
	for (unsigned int i = 0; !status && i < count; i++) {
		struct device device = {.ifindex = all[i].ifindex};

		if (!all[i].program_id)
			continue;
		netns_run_in(all[i].netns, call_device_look, &device);
		if (device.mtu > ret->mtu)
			*ret = device;
	}
	return status;
}
