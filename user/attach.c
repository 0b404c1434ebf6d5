// SPDX-License-Identifier: GPL-2.0
#include "attach.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "filter.h"
#include "netns.h"

/* In kernels from 6.6 on; the build machine's headers may be older. */
#define ATTACH_TCX_INGRESS 46
#define ATTACH_TCX_EGRESS  47
#define ATTACH_FIRST	   (1U << 3) /* BPF_F_BEFORE: one that accepts must not hide packets from us */

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

static const char *pin_path(const struct gate *gate, const struct attachment *a,
			    char path[GATE_PATH])
{
	char device[IF_NAMESIZE];

	/* bpffs allows no '.', a device's name no ':' */
	snprintf(device, sizeof(device), "%s", a->device);
	replace(device, '.', ':');
	snprintf(path, GATE_PATH, GATE_ROOT "/%s/links/%s-%s-%" PRIu64 "-%u-%s", gate->name,
		 hook_names[a->hook], mode_names[a->mode], a->netns, a->ifindex, device);
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

/*
 * Says that the device's clsact qdisc is ours, to be removed with our last filter. It pins a program,
 * for something has to be pinned.
 */
static const char *qdisc_path(const struct gate *gate, const struct attachment *a,
			      char path[GATE_PATH])
{
	snprintf(path, GATE_PATH, GATE_ROOT "/%s/links/qdisc-%" PRIu64 "-%u", gate->name, a->netns,
		 a->ifindex);
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

/* For netns_run_in: what to do with the filter of an attachment, and what came of it. */
struct filter_call {
	const struct attachment *attachment;
	uint32_t program_id;
	bool found;
	bool qdisc_is_ours; /* then it goes with its last filter: qdisc_removed */
	bool qdisc_removed;
	int err;
};

static void call_filter_find(void *data)
{
	struct filter_call *call = data;
	const struct attachment *a = call->attachment;

	call->err =
		filter_find(a->ifindex, a->hook == HOOK_INGRESS, call->program_id, &call->found);
}

static void call_filter_remove(void *data)
{
	struct filter_call *call = data;
	const struct attachment *a = call->attachment;
	char device[IF_NAMESIZE];

	call->err = filter_remove(a->ifindex, a->hook == HOOK_INGRESS, call->program_id);
	/* the numbers of namespaces and devices come back: is it still that device? */
	if (!if_indextoname(a->ifindex, device) || strcmp(device, a->device))
		return;
	if (!call->err && call->qdisc_is_ours)
		call->err = qdisc_remove_if_empty(a->ifindex, &call->qdisc_removed);
}

static uint32_t program_id_of(int program_fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(program_fd, &info, &size) ? 0 : info.id;
}

/* What bpf_link_info tells of xdp and tcx alike, with older headers too. */
struct link_info {
	struct bpf_link_info info;
	unsigned int ifindex; /* 0: the device is gone */
};

static bool link_info_get(int link_fd, struct link_info *ret)
{
	__u32 size = sizeof(ret->info);

	*ret = (struct link_info){0};
	if (bpf_obj_get_info_by_fd(link_fd, &ret->info, &size))
		return false;
	ret->ifindex = ret->info.xdp.ifindex; /* tcx has its own at the same place */
	return true;
}

/* The id of the program that the attachment runs now; 0: none. */
static uint32_t program_running(const struct attachment *a, int pin_fd)
{
	struct filter_call call = {.attachment = a};
	struct link_info link;

	if (a->mode == MODE_CLSACT) {
		call.program_id = program_id_of(pin_fd);
		netns_run_in(a->netns, call_filter_find, &call);
		return call.found ? call.program_id : 0;
	}
	return link_info_get(pin_fd, &link) && link.ifindex ? link.info.prog_id : 0;
}

static void attachment_look(const struct gate *gate, struct attachment *a)
{
	char path[GATE_PATH];
	int fd = bpf_obj_get(pin_path(gate, a, path));

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
	char path[GATE_PATH];
	struct dirent **entries = NULL;
	unsigned int count = 0;
	int found;

	snprintf(path, sizeof(path), GATE_ROOT "/%s/links", gate->name);
	found = scandir(path, &entries, is_pin, alphasort);
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

/* --- Attaching ------------------------------------------------------------------------------ */

static int link_create(const struct programs *programs, const struct attachment *a)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts);

	switch (a->hook) {
	case HOOK_XDP:
		opts.flags = a->mode == MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
		return bpf_link_create(programs->xdp, a->ifindex, BPF_XDP, &opts);
	case HOOK_INGRESS:
		opts.flags = ATTACH_FIRST;
		return bpf_link_create(programs->tc, a->ifindex, ATTACH_TCX_INGRESS, &opts);
	default:
		opts.flags = ATTACH_FIRST;
		return bpf_link_create(programs->tc, a->ifindex, ATTACH_TCX_EGRESS, &opts);
	}
}

static int attach_link(const struct gate *gate, const struct programs *programs,
		       const struct attachment *a)
{
	char path[GATE_PATH];
	int fd = link_create(programs, a);
	int err = fd < 0 ? fd : 0;

	if (!err)
		err = bpf_obj_pin(fd, pin_path(gate, a, path)); /* or closing it detaches again */
	if (fd >= 0)
		close(fd);
	return err;
}

/*
 * Pins come before what they stand for: a qdisc or a filter without a pin would be nobody's. A qdisc
 * that turns out to be there already is others'.
 */
static int attach_filter(const struct gate *gate, const struct programs *programs,
			 const struct attachment *a)
{
	char path[GATE_PATH], qdisc[GATE_PATH];
	bool pinned = !bpf_obj_pin(programs->tc, qdisc_path(gate, a, qdisc));
	bool made, removed;
	int err = qdisc_make(a->ifindex, &made);

	if (pinned && !made)
		unlink(qdisc);
	if (err)
		return err;
	err = bpf_obj_pin(programs->tc, pin_path(gate, a, path));
	if (!err) {
		err = filter_add(a->ifindex, a->hook == HOOK_INGRESS, programs->tc);
		if (err)
			unlink(path);
	}
	if (err && made) {
		qdisc_remove_if_empty(a->ifindex, &removed);
		unlink(qdisc);
	}
	return err;
}

static int attach_in_mode(const struct gate *gate, const struct programs *programs,
			  const struct attachment *a)
{
	if (a->mode == MODE_CLSACT)
		return attach_filter(gate, programs, a);
	return attach_link(gate, programs, a);
}

/* Names the XDP program that holds the device. */
static enum status refuse_occupied(const struct attachment *a)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info), id = 0;
	int fd;

	if (!bpf_xdp_query(a->ifindex, 0, &query))
		id = query.prog_id ?: query.drv_prog_id ?: query.skb_prog_id ?: query.hw_prog_id;
	fd = id ? bpf_prog_get_fd_by_id(id) : -1;
	if (fd >= 0) {
		bpf_obj_get_info_by_fd(fd, &info, &size);
		close(fd);
	}
	return fail("%s has an XDP program already: '%s', id %u; detach that first ('bpftool net' "
		    "lists it)",
		    a->device, info.name, id);
}

/* The second best, and what it costs. False: there is none. */
static bool mode_lesser(struct attachment *a, int err)
{
	if (a->mode == MODE_NATIVE) {
		note("%s: no native XDP (%s): attached in generic mode, in which a dropped packet "
		     "costs "
		     "several times as much",
		     a->device, strerror(-err));
		a->mode = MODE_GENERIC;
		return true;
	}
	if (a->mode == MODE_TCX && err != -EPERM) {
		a->mode = MODE_CLSACT; /* works as well; status tells which */
		return true;
	}
	return false;
}

static enum mode mode_best(enum hook hook)
{
	return hook == HOOK_XDP ? MODE_NATIVE : MODE_TCX;
}

/* The attachment of this device and hook, if it is alive; a dead one's pin is removed. */
static enum status find_alive(const struct gate *gate, const struct attachment *want,
			      struct attachment *ret, bool *ret_found)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum status status = attachments_read(gate, all, &count);

	*ret_found = false;
	for (unsigned int i = 0; !status && i < count; i++) {
		struct attachment *a = &all[i];

		if (a->hook != want->hook || a->netns != want->netns || a->ifindex != want->ifindex)
			continue;
		if (!a->program_id) {
			status = detach(gate, a);
			continue;
		}
		*ret = *a;
		*ret_found = true;
	}
	return status;
}

static enum status attach_anew(const struct gate *gate, const struct programs *programs,
			       struct attachment *a, enum mode mode)
{
	int err;

	a->mode = mode == MODE_AUTO ? mode_best(a->hook) : mode;
	err = attach_in_mode(gate, programs, a);
	if (err && err != -EBUSY && err != -EEXIST && mode == MODE_AUTO && mode_lesser(a, err))
		err = attach_in_mode(gate, programs, a);
	if (err == -EBUSY || (err == -EEXIST && a->hook == HOOK_XDP))
		return refuse_occupied(a);
	if (err == -EOPNOTSUPP || err == -EINVAL)
		return fail("%s does not support %s in mode %s (%s): try mode auto", a->device,
			    hook_names[a->hook], mode_names[a->mode], strerror(-err));
	if (err == -ENOENT && a->mode == MODE_CLSACT)
		return fail("cannot attach to %s: this kernel lacks clsact (module sch_ingress) or "
			    "bpf filters (module cls_bpf)",
			    a->device);
	if (err)
		return fail("cannot attach to %s: %s", a->device, why(err));
	attachment_look(gate, a);
	return OK;
}

enum status attach_device(const struct gate *gate, const struct programs *programs,
			  const struct device *device, enum hook hook, enum mode mode,
			  struct attachment *ret, bool *ret_was_there)
{
	struct attachment a = {.hook = hook, .netns = netns_current(), .ifindex = device->ifindex};
	struct attachment there;
	enum status status;

	snprintf(a.device, sizeof(a.device), "%s", device->name);
	status = find_alive(gate, &a, &there, ret_was_there);
	if (status)
		return status;
	if (!*ret_was_there)
		status = attach_anew(gate, programs, &a, mode);
	else if (mode != MODE_AUTO && mode != there.mode)
		status = fail("%s is attached already, in mode %s: detach it first", device->name,
			      mode_names[there.mode]);
	if (!status)
		*ret = *ret_was_there ? there : a;
	return status;
}

/* --- Detaching ------------------------------------------------------------------------------ */

static enum status detach_filter(const struct gate *gate, const struct attachment *a, int pin_fd)
{
	struct filter_call call = {.attachment = a, .program_id = program_id_of(pin_fd)};
	char qdisc[GATE_PATH];

	call.qdisc_is_ours = !access(qdisc_path(gate, a, qdisc), F_OK);
	if (!netns_run_in(a->netns, call_filter_remove, &call))
		note("%s: its network namespace is gone or has no name: if it still exists, so "
		     "does "
		     "the filter",
		     a->device);
	if (call.err && call.err != -ENODEV)
		return fail("cannot remove the filter of %s: %s", a->device, why(call.err));
	if (call.qdisc_removed || call.err == -ENODEV)
		unlink(qdisc);
	return OK;
}

enum status detach(const struct gate *gate, const struct attachment *a)
{
	char path[GATE_PATH];
	int fd = bpf_obj_get(pin_path(gate, a, path));
	enum status status = OK;

	if (fd < 0 && errno != ENOENT)
		return fail("cannot open %s: %s", path, why(errno));
	if (fd >= 0 && a->mode == MODE_CLSACT)
		status = detach_filter(gate, a, fd);
	else if (fd >= 0)
		bpf_link_detach(fd); /* at once; dropping the pin alone detaches some time later */
	if (fd >= 0)
		close(fd);
	if (!status && unlink(path) && errno != ENOENT)
		status = fail("cannot remove %s: %s", path, why(errno));
	return status;
}
