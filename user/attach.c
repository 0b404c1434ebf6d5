// SPDX-License-Identifier: GPL-2.0
#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/if_link.h>

#include "filter.h"
#include "netns.h"

/* In kernels from 6.6 on; the build machine's headers may be older. */
#define ATTACH_TCX_INGRESS 46
#define ATTACH_TCX_EGRESS  47
#define ATTACH_FIRST	   (1U << 3) /* BPF_F_BEFORE: one that accepts must not hide packets from us */

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
	char path[PINS_PATH];
	int fd = link_create(programs, a);
	int err = fd < 0 ? fd : 0;

	if (!err)
		err = bpf_obj_pin(
			fd, attachment_path(gate, a, path)); /* or closing it detaches again */
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
	char path[PINS_PATH], qdisc[PINS_PATH];
	bool pinned = !bpf_obj_pin(programs->tc, attachment_qdisc_path(gate, a, qdisc));
	bool made, removed;
	int err = qdisc_make(a->ifindex, &made);

	if (pinned && !made)
		unlink(qdisc);
	if (err)
		return err;
	err = bpf_obj_pin(programs->tc, attachment_path(gate, a, path));
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

/* The second best mode; false: there is none. */
static bool mode_lesser(struct attachment *a, int err)
{
	if (a->mode == MODE_NATIVE)
		a->mode = MODE_GENERIC;
	else if (a->mode == MODE_TCX && err != -EPERM)
		a->mode = MODE_CLSACT; /* works as well; status tells which */
	else
		return false;
	return true;
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
	if (!status && !*ret_found && count >= ATTACHMENTS_MAX)
		status = fail("gate '%s' has %d attachments, the most that it can hold", gate->name,
			      ATTACHMENTS_MAX);
	return status;
}

static enum status attach_anew(const struct gate *gate, const struct programs *programs,
			       struct attachment *a, enum mode mode)
{
	int err, first_err;

	a->mode = mode == MODE_AUTO ? mode_best(a->hook) : mode;
	err = first_err = attach_in_mode(gate, programs, a);
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
	if (mode == MODE_AUTO && a->mode == MODE_GENERIC)
		note("%s: no native XDP (%s): attached in generic mode, in which a dropped packet "
		     "costs several times as much",
		     a->device, strerror(-first_err));
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

/* For netns_run_in: the filter to remove, and what came of it. */
struct remove_call {
	const struct attachment *attachment;
	uint32_t program_id;
	bool qdisc_is_ours; /* then it goes with its last filter */
	bool qdisc_removed;
	int err;
};

static void call_filter_remove(void *data)
{
	struct remove_call *call = data;
	const struct attachment *a = call->attachment;
	char device[IF_NAMESIZE];

	call->err = filter_remove(a->ifindex, a->hook == HOOK_INGRESS, call->program_id);
	/* the numbers of namespaces and devices come back: is it still that device? */
	if (!if_indextoname(a->ifindex, device) || strcmp(device, a->device))
		return;
	if (!call->err && call->qdisc_is_ours)
		call->err = qdisc_remove_if_empty(a->ifindex, &call->qdisc_removed);
}

static enum status detach_filter(const struct gate *gate, const struct attachment *a, int pin_fd)
{
	struct remove_call call = {.attachment = a, .program_id = program_id_of(pin_fd)};
	char qdisc[PINS_PATH];

	call.qdisc_is_ours = !access(attachment_qdisc_path(gate, a, qdisc), F_OK);
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
	char path[PINS_PATH];
	int fd = bpf_obj_get(attachment_path(gate, a, path));
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
