// SPDX-License-Identifier: GPL-2.0
#include "attach/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "attach/attachment.h"
#include "attach/filter.h"
#include "attach/netdevs.h"
#include "attach/xdp_owner.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/pins.h"

/* The room for xdp_other_hook(). */
#define OTHER_HOOK                                                                                 \
	(NETNS_OPTION + GATE_NAME + NAME_TYPED + sizeof("sluice -g  attach --  hook ingress"))

/* The command that filters beside the XDP program of another owner. */
static const char *xdp_other_hook(const struct gate *gate, const struct device *device,
				  char text[OTHER_HOOK])
{
	snprintf(text, OTHER_HOOK, "sluice %s-g %s attach %s hook ingress", netns_typed(),
		 gate->name, operand_typed(device->name));
	return text;
}

/*
 * Fails if a device above or below this device has an XDP program, because the kernel does not
 * allow XDP programs on both. Returns 0 if there is no such device.
 */
static int xdp_relative_refuse(const struct gate *gate, const struct device *device)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	char other[OTHER_HOOK], holder[XDP_OWNER_TEXT];
	const struct netdev *relative;
	struct xdp_owner owner;
	int err = netdevs_read(&devices);
	bool is_ours;

	if (err)
		return err;
	relative = netdevs_find_xdp(&devices, device->ifindex);
	if (!relative)
		return 0;
	owner = xdp_owner_find(relative->ifindex);
	/* hook ingress of this device would charge packets of its own gate twice */
	is_ours = !strcmp(owner.gate, gate->name);
	return error_add(
		EBUSY, "hook-taken", device->name,
		"the kernel allows no XDP program here because %s, %s it, has one: %s; detach that "
		"first%s%s%s",
		relative->name,
		netdevs_are_stacked(&devices, relative->ifindex, device->ifindex) ? "above"
										  : "below",
		xdp_owner_format(&owner, holder), is_ours ? "" : ", or filter beside it: '",
		is_ours ? "" : xdp_other_hook(gate, device, other), is_ours ? "" : "'");
}

/* Fails with the owner of the XDP program, and both ways out. */
static int xdp_owner_refuse(const struct gate *gate, const struct device *device)
{
	struct xdp_owner owner = xdp_owner_find(device->ifindex);
	char other[OTHER_HOOK];
	int err = owner.program_id ? 0 : xdp_relative_refuse(gate, device);

	if (err)
		return err;
	xdp_other_hook(gate, device, other);
	if (*owner.gate)
		return error_add(
			EBUSY, "hook-taken", NULL,
			"%s is attached to gate '%s' on hook xdp already, and has room for one "
			"XDP program: 'sluice %s-g %s detach %s hook xdp' first, or filter beside "
			"it: '%s'",
			device->name, owner.gate, netns_typed(), owner.gate,
			operand_typed(device->name), other);
	if (xdp_owner_is_libxdp(&owner))
		return error_add(
			EBUSY, "hook-taken", NULL,
			"%s has an XDP program already: '%s', id %u, the dispatcher of libxdp; "
			"detach that first ('xdp-loader status' lists what it calls), or filter "
			"behind it: '%s'",
			device->name, owner.name, owner.program_id, other);
	return error_add(EBUSY, "hook-taken", NULL,
			 "%s has an XDP program already: '%s', id %u; detach that first ('bpftool "
			 "net' lists it), or filter behind it: '%s'",
			 device->name, owner.name, owner.program_id, other);
}

/* --- Hooks ---------------------------------------------------------------------------------- */

int attach_choose_hook(const struct netdevs *devices, const struct device *device, enum mode mode,
		       bool reports, enum hook *hook)
{
	const struct netdev *found = netdevs_find(devices, device->ifindex);

	if (*hook == HOOK_EGRESS || !found || strcmp(found->kind, "ifb"))
		return 0;
	if (*hook != HOOK_XDP || mode != MODE_AUTO)
		return error_add(EOPNOTSUPP, "ifb-hook", device->name,
				 "an ifb sees redirected packets only on hook egress; use 'hook "
				 "egress'");
	*hook = HOOK_EGRESS;
	if (reports)
		error_notice("ifb-hook", device->name,
			     "an ifb sees redirected packets only on hook egress, so this hook is "
			     "used");
	return 0;
}

int attach_find_hook(const struct device *device, enum mode mode, bool reports, enum hook *hook)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	int err = netdevs_read(&devices);

	return err ?: attach_choose_hook(&devices, device, mode, reports, hook);
}

/* --- Attaching ------------------------------------------------------------------------------ */

/*
 * Creates a link and pins it: without a pin, closing the link would detach the program. The program
 * is pinned first, so that no link lacks it.
 */
static int attach_link(const struct gate *gate, const struct programs *programs,
		       const struct attachment *a)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = TCX_FIRST);
	int type = a->hook == HOOK_INGRESS ? TCX_INGRESS : TCX_EGRESS, err;
	char name[PIN_NAME], program[PIN_NAME];
	_cleanup_close_ int fd = -1;

	if (a->hook == HOOK_XDP) {
		type = BPF_XDP;
		opts.flags = a->mode == MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	}
	err = pin_replace(&gate->links, attachment_program_pin(a, program), programs->fd[a->hook]);
	if (err)
		return err;
	fd = bpf_link_create(programs->fd[a->hook], a->ifindex, type, &opts);
	err = fd < 0 ? fd : pin_make(&gate->links, attachment_pin(a, name), fd);
	if (err)
		pin_remove(&gate->links, program);
	return err;
}

/*
 * Makes qdisc and filter. Each pin is made before its object, because a qdisc or a filter without a
 * pin counts as foreign. An existing qdisc is foreign.
 */
static int attach_filter(const struct gate *gate, const struct programs *programs,
			 const struct attachment *a)
{
	const struct pins *links = &gate->links;
	char name[PIN_NAME], qdisc[PIN_NAME];
	bool pinned = !pin_make(links, attachment_qdisc_pin(a, qdisc), programs->fd[a->hook]);
	bool made, removed;
	int err = qdisc_make(a->ifindex, &made);

	if (pinned && !made)
		pin_remove(links, qdisc);
	if (err)
		return err;
	err = pin_make(links, attachment_pin(a, name), programs->fd[a->hook]);
	if (!err) {
		err = filter_add(a->ifindex, a->hook == HOOK_INGRESS, programs->fd[a->hook]);
		if (err)
			pin_remove(links, name);
	}
	if (err && made) {
		qdisc_remove_if_empty(a->ifindex, &removed);
		pin_remove(links, qdisc);
	}
	return err;
}

static int attach_in_mode(const struct gate *gate, const struct programs *programs,
			  const struct attachment *a)
{
	return a->mode == MODE_CLSACT ? attach_filter(gate, programs, a)
				      : attach_link(gate, programs, a);
}

/* Attaches in that mode, or for MODE_AUTO in the best mode of the hook that works. */
static int attach_to_hook(const struct gate *gate, const struct programs *programs, enum mode mode,
			  struct attachment *a)
{
	int err;

	a->mode = mode;
	if (mode == MODE_AUTO)
		a->mode = a->hook == HOOK_XDP ? MODE_NATIVE : MODE_TCX;
	err = attach_in_mode(gate, programs, a);
	if (mode != MODE_AUTO || a->mode != MODE_TCX || !err || err == -EBUSY || err == -EEXIST ||
	    err == -EPERM)
		return err;
	a->mode = MODE_CLSACT; /* the same function; `status` shows the mode */
	return attach_in_mode(gate, programs, a);
}

int attach_find(const struct gate *gate, const struct device *device, enum hook hook,
		enum mode mode, struct attachment *ret, bool *ret_found)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, gone = 0;
	int err = attachments_read(gate, all, &count);

	*ret_found = false;
	for (unsigned int i = 0; !err && i < count; i++) {
		struct attachment *a = &all[i];

		/* of this device, or of a device that is gone and had its name and namespace */
		if (a->hook != hook || a->netns != netns_current() ||
		    (a->ifindex != device->ifindex &&
		     !(a->device_gone && !strcmp(a->device, device->name))))
			continue;
		if (!a->program_id) {
			err = detach(gate, a);
			gone++;
			continue;
		}
		*ret = *a;
		*ret_found = true;
	}
	if (err)
		return err;
	if (*ret_found && mode != MODE_AUTO && mode != ret->mode)
		return error_add(
			EEXIST, "other-mode", NULL,
			"%s is attached already, in mode %s: detach it first; with the gate's last "
			"device its rules go, so 'sluice %sdump' them before",
			device->name, mode_names[ret->mode], gate_option(gate->name));
	if (!*ret_found && count - gone >= ATTACHMENTS_MAX)
		return error_add(ENOSPC, "too-many-attachments", NULL,
				 "gate '%s' has %d attachments, the most that it can hold",
				 gate->name, ATTACHMENTS_MAX);
	return 0;
}

/* Whether the error is that of a veth whose peer has more queues than native XDP can take. */
static bool peer_is_wider(const struct device *device, const struct attachment *a, int err)
{
	return err == -ENOSPC && device->is_veth && a->hook == HOOK_XDP && a->mode == MODE_NATIVE;
}

static int attach_failed(const struct gate *gate, const struct device *device,
			 const struct attachment *a, int err)
{
	bool is_unsupported = err == -EOPNOTSUPP || err == -EINVAL;
	char exec[NETNS_EXEC];

	if (err == -EBUSY || (err == -EEXIST && a->hook == HOOK_XDP))
		return xdp_owner_refuse(gate, device);
	/* the kernel's text, "No space left on device", names no queue */
	if (peer_is_wider(device, a, err))
		return error_add(
			err, "peer-wider", NULL,
			"cannot attach to %s in mode native: its peer sends with more queues than "
			"%s receives with: '%sethtool -L %s rx N' gives it as many, N being the TX "
			"that 'ethtool -l' shows of the peer; or try mode auto",
			device->name, device->name, netns_exec(netns_typed(), exec),
			word_typed(device->name));
	/* the port of a bond, or a bond one of whose ports has a program */
	if (is_unsupported && a->hook == HOOK_XDP && xdp_relative_refuse(gate, device))
		return err;
	if (is_unsupported)
		return error_add(err, "mode-unsupported", NULL,
				 "%s does not support %s in mode %s (%s): try mode auto", a->device,
				 hook_names[a->hook], mode_names[a->mode], strerror(-err));
	if (err == -ENOENT && a->mode == MODE_CLSACT)
		return error_add(
			err, "no-clsact", NULL,
			"cannot attach to %s: this kernel lacks clsact (module sch_ingress) or bpf "
			"filters (module cls_bpf)%s",
			a->device,
			a->hook == HOOK_INGRESS ? ": generic XDP ('mode generic') needs neither"
						: "");
	return error_add(err, "attach", NULL, "cannot attach to %s: %s", a->device, why(err));
}

/* Reads what was just attached; what cannot be read is detached again. */
static int attached_look(const struct gate *gate, struct attachment *a)
{
	int err = attachment_look(gate, a);

	if (err)
		detach(gate, a);
	return err;
}

static int attach_here(const struct gate *gate, struct programs *programs,
		       const struct device *device, enum hook hook, enum mode mode,
		       struct attachment *ret)
{
	int err = programs_load(gate, HOOK_BIT(hook), programs);

	*ret = attachment_of(device, hook);
	if (err)
		return err;
	err = attach_to_hook(gate, programs, mode, ret);
	return err ? attach_failed(gate, device, ret, err) : attached_look(gate, ret);
}

/*
 * Attaches to hook xdp in mode auto: native XDP, or else hook ingress. A device without native XDP
 * may pass on packets that the kernel or the sender has merged: XDP would count 45 segments as one
 * packet, while hook ingress has their number.
 */
static int attach_best(const struct gate *gate, struct programs *programs,
		       const struct device *device, struct attachment *ret, bool *ret_was_there)
{
	char cause[128] = "a tap, which hands over merged packets";
	int err;

	*ret_was_there = false;
	*ret = attachment_of(device, HOOK_XDP);
	if (!device->is_tap) {
		err = programs_load(gate, HOOK_BIT(HOOK_XDP), programs);
		if (err)
			return err;
		err = attach_to_hook(gate, programs, MODE_NATIVE, ret);
		if (err == -EBUSY || err == -EEXIST)
			return attach_failed(gate, device, ret, err);
		if (!err)
			return attached_look(gate, ret);
		snprintf(cause, sizeof(cause), "no native XDP (%s)",
			 peer_is_wider(device, ret, err)
				 ? "its peer sends with more queues than it receives with: see "
				   "'sluice doctor'"
				 : strerror(-err));
	}
	err = attach_find(gate, device, HOOK_INGRESS, MODE_AUTO, ret, ret_was_there);
	if (err || *ret_was_there)
		return err;
	err = attach_here(gate, programs, device, HOOK_INGRESS, MODE_AUTO, ret);
	if (!err)
		error_notice(
			"not-native", device->name,
			"%s: attached on hook ingress, where a dropped packet costs several "
			"times as much, and each packet counts that was merged into a larger one",
			cause);
	return err;
}

int attach_device(const struct gate *gate, struct programs *programs, const struct device *device,
		  enum hook hook, enum mode mode, struct attachment *ret, bool *ret_was_there)
{
	if (hook == HOOK_XDP && mode == MODE_AUTO)
		return attach_best(gate, programs, device, ret, ret_was_there);
	*ret_was_there = false;
	return attach_here(gate, programs, device, hook, mode, ret);
}

/* --- Detaching ------------------------------------------------------------------------------ */

/* A filter of clsact that is removed, and what it takes to put it back. */
struct filter_removal {
	const struct attachment *a;
	int program_fd[2];  /* of attachment_pin() and attachment_next_pin(); -ENOENT: no pin */
	bool qdisc_is_ours; /* it is removed with its last filter */
	bool qdisc_is_gone;
	int had_fd; /* the program that the filter ran; -1: there was no filter */
};

/* Removes the filter and the qdisc, in the namespace of the device. Returns 0 or an errno. */
static int filter_remove_here(struct filter_removal *removal)
{
	const struct attachment *a = removal->a;
	bool ingress = a->hook == HOOK_INGRESS, found = false;
	char device[IF_NAMESIZE];
	uint32_t id = 0;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(removal->program_fd) && !found; i++) {
		if (removal->program_fd[i] == -ENOENT)
			continue;
		id = program_id_of(removal->program_fd[i]);
		err = id ? filter_find(a->pinned.ifindex, ingress, id, &found) : -errno;
		if (err)
			return err;
		if (found)
			removal->had_fd = removal->program_fd[i];
	}
	if (found)
		err = filter_remove(a->pinned.ifindex, ingress, id);
	if (err)
		return err;
	/* without our filter only the name shows whether it is the same device */
	if (!found &&
	    (!if_indextoname(a->pinned.ifindex, device) || strcmp(device, a->pinned.device)))
		removal->qdisc_is_gone = true; /* with the device */
	else if (removal->qdisc_is_ours)
		return qdisc_remove_if_empty(a->pinned.ifindex, &removal->qdisc_is_gone);
	return 0;
}

/*
 * Puts the filter back after a step that failed, unless it still exists: the reply to its removal
 * may have been lost.
 */
static void filter_restore(const struct gate *gate, const struct filter_removal *removal)
{
	const struct attachment *a = removal->a;
	bool ingress = a->hook == HOOK_INGRESS, exists = false, is_new = false;
	_cleanup_netns_ int back = -1;
	char qdisc[PIN_NAME];
	int err;

	if (removal->had_fd < 0)
		return;
	err = netns_visit(a->pinned.netns, &back);
	if (!err)
		err = filter_find(a->pinned.ifindex, ingress, program_id_of(removal->had_fd),
				  &exists);
	if (!err && !exists)
		err = qdisc_make(a->pinned.ifindex, &is_new);
	if (!err && !exists)
		err = filter_add(a->pinned.ifindex, ingress, removal->had_fd);
	if (is_new)
		pin_make(&gate->links, attachment_qdisc_pin(a, qdisc), removal->had_fd);
	if (err && err != -ENODEV)
		error_notice("filter-lost", a->device, "cannot put its filter back on hook %s: %s",
			     hook_names[a->hook], why(err));
}

/* Removes the filter, the qdisc if it is ours, and then the pin by which the filter is found. */
static int detach_clsact(const struct gate *gate, const struct attachment *a, int fd)
{
	struct filter_removal removal = {.a = a, .program_fd = {fd, -1}, .had_fd = -1};
	char name[PIN_NAME], next[PIN_NAME], qdisc[PIN_NAME];
	_cleanup_close_ int next_fd = pin_open(&gate->links, attachment_next_pin(a, next));
	_cleanup_netns_ int back = -1;
	int err;

	if (next_fd < 0 && next_fd != -ENOENT)
		return pin_failed("open", &gate->links, next, next_fd);
	removal.program_fd[1] = next_fd;
	removal.qdisc_is_ours = pin_exists(&gate->links, attachment_qdisc_pin(a, qdisc));
	err = netns_visit(a->pinned.netns, &back);
	if (err && err != -ENOENT)
		return error_add(err, "filter-remove", NULL, "cannot remove the filter of %s: %s",
				 a->device, netns_why(err));
	if (err) {
		error_notice("netns-gone", a->device,
			     "its network namespace is gone or has no name: if it still exists, so "
			     "does the filter");
		removal.qdisc_is_gone = true;
	} else {
		err = filter_remove_here(&removal);
		netns_return(&back);
		if (err && err != -ENODEV) {
			error_add(err, "filter-remove", NULL, "cannot remove the filter of %s: %s",
				  a->device, why(err));
			filter_restore(gate, &removal);
			return err;
		}
	}
	if (removal.qdisc_is_gone || err == -ENODEV)
		pin_remove(&gate->links, qdisc);
	err = pin_remove(&gate->links, attachment_pin(a, name));
	if (!err || err == -ENOENT)
		return 0;
	pin_failed("remove", &gate->links, name, err);
	filter_restore(gate, &removal);
	return err;
}

/* If a link cannot be detached, it stays attached and keeps its pin. */
static int detach_link(const struct gate *gate, const struct attachment *a, int fd)
{
	char name[PIN_NAME];
	int err = pin_remove(&gate->links, attachment_pin(a, name)), again;

	if (err)
		return pin_failed("remove", &gate->links, name, err);
	err = bpf_link_detach(fd); /* at once; closing a link without a pin detaches later */
	if (!err)
		return 0;
	error_add(err, "detach", NULL, "cannot detach from %s: %s", a->device, why(err));
	again = pin_make(&gate->links, name, fd);
	return again ? pin_failed("pin", &gate->links, name, again) : err;
}

/*
 * If a step fails, the device filters as before. So permissions are checked first, and the pins of
 * programs are removed last: attachments_expire() removes a pin that is left over. A symbolic link
 * is removed like a pin whose device is gone.
 */
int detach(const struct gate *gate, const struct attachment *a)
{
	char name[PIN_NAME], other[PIN_NAME];
	_cleanup_close_ int fd = pin_open(&gate->links, attachment_pin(a, name));
	int err;

	if (fd < 0 && fd != -ENOENT && fd != -ELOOP)
		return pin_failed("open", &gate->links, name, fd);
	err = pins_check_writable(&gate->links);
	if (!err && fd >= 0)
		err = a->mode == MODE_CLSACT ? detach_clsact(gate, a, fd)
					     : detach_link(gate, a, fd);
	if (err)
		return err;
	if (fd == -ELOOP) {
		err = pin_remove(&gate->links, name);
		if (err)
			return pin_failed("remove", &gate->links, name, err);
	}
	pin_remove(&gate->links, attachment_next_pin(a, other));
	pin_remove(&gate->links, attachment_program_pin(a, other));
	return 0;
}
