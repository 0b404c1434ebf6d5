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
 * allow XDP programs on both. Returns OK if there is no such device.
 */
static int xdp_relative_refuse(const struct gate *gate, const struct device *device)
{
	char other[OTHER_HOOK], holder[XDP_OWNER_TEXT];
	const struct netdev *link;
	struct netdevs links;
	int status = netdevs_read(&links);

	if (status)
		return status;
	link = netdevs_find_xdp(&links, device->ifindex);
	if (link) {
		struct xdp_owner owner = xdp_owner_find(link->ifindex);
		bool above = netdevs_are_stacked(&links, link->ifindex, device->ifindex);
		/* hook ingress of this device would charge packets of its own gate twice */
		bool is_ours = !strcmp(owner.gate, gate->name);

		status = failure(
			"%s: the kernel allows no XDP program here because %s, %s it, has one: "
			"%s; detach that first%s%s%s",
			device->name, link->name, above ? "above" : "below",
			xdp_owner_format(&owner, holder), is_ours ? "" : ", or filter beside it: '",
			is_ours ? "" : xdp_other_hook(gate, device, other), is_ours ? "" : "'");
	}
	netdevs_free(&links);
	return status;
}

/* Fails with a message that names the owner of the XDP program, and both ways out. */
static int xdp_owner_refuse(const struct gate *gate, const struct device *device)
{
	struct xdp_owner owner = xdp_owner_find(device->ifindex);
	char other[OTHER_HOOK];
	int status = owner.program_id ? OK : xdp_relative_refuse(gate, device);

	if (status)
		return status;
	xdp_other_hook(gate, device, other);
	if (*owner.gate)
		return failure(
			"%s is attached to gate '%s' on hook xdp already, and has room for one "
			"XDP program: 'sluice %s-g %s detach %s hook xdp' first, or filter "
			"beside it: '%s'",
			device->name, owner.gate, netns_typed(), owner.gate,
			operand_typed(device->name), other);
	if (xdp_owner_is_libxdp(&owner))
		return failure(
			"%s has an XDP program already: '%s', id %u, the dispatcher of libxdp; "
			"detach that first ('xdp-loader status' lists what it calls), or filter "
			"behind it: '%s'",
			device->name, owner.name, owner.program_id, other);
	return failure(
		"%s has an XDP program already: '%s', id %u; detach that first ('bpftool net' "
		"lists it), or filter behind it: '%s'",
		device->name, owner.name, owner.program_id, other);
}

/* --- Hooks ---------------------------------------------------------------------------------- */

int attach_choose_hook(const struct netdevs *links, const struct device *device, enum mode mode,
		       bool reports, enum hook *hook)
{
	const struct netdev *link = netdevs_find(links, device->ifindex);

	if (*hook == HOOK_EGRESS || !link || strcmp(link->kind, "ifb"))
		return OK;
	if (*hook != HOOK_XDP || mode != MODE_AUTO)
		return failure("%s: an ifb sees redirected packets only on hook egress; use 'hook "
			       "egress'",
			       device->name);
	*hook = HOOK_EGRESS;
	if (reports)
		note("%s: an ifb sees redirected packets only on hook egress, so this hook is used",
		     device->name);
	return OK;
}

int attach_find_hook(const struct device *device, enum mode mode, bool reports, enum hook *hook)
{
	struct netdevs links;
	int status = netdevs_read(&links);

	if (status)
		return status;
	status = attach_choose_hook(&links, device, mode, reports, hook);
	netdevs_free(&links);
	return status;
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
	int type = a->hook == HOOK_INGRESS ? TCX_INGRESS : TCX_EGRESS, fd, err;
	char name[PIN_NAME], program[PIN_NAME];

	if (a->hook == HOOK_XDP) {
		type = BPF_XDP;
		opts.flags = a->mode == MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	}
	err = pin_replace(&gate->links, attachment_program_pin(a, program),
			    programs->fd[a->hook]);
	if (err)
		return err;
	fd = bpf_link_create(programs->fd[a->hook], a->ifindex, type, &opts);
	err = fd < 0 ? fd : pin_make(&gate->links, attachment_pin(a, name), fd);
	if (fd >= 0)
		close(fd);
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
	if (a->mode == MODE_CLSACT)
		return attach_filter(gate, programs, a);
	return attach_link(gate, programs, a);
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

/* Whether it is of this device, or of one that is gone and had its name and its namespace. */
static bool attachment_is_of(const struct attachment *a, const struct device *device)
{
	if (a->netns != netns_current())
		return false;
	return a->ifindex == device->ifindex ||
	       (a->device_gone && !strcmp(a->device, device->name));
}

int attach_find(const struct gate *gate, const struct device *device, enum hook hook,
		enum mode mode, struct attachment *ret, bool *ret_found)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, gone = 0;
	int status = attachments_read(gate, all, &count);

	*ret_found = false;
	for (unsigned int i = 0; !status && i < count; i++) {
		struct attachment *a = &all[i];

		if (a->hook != hook || !attachment_is_of(a, device))
			continue;
		if (!a->program_id) {
			status = detach(gate, a);
			gone++;
			continue;
		}
		*ret = *a;
		*ret_found = true;
	}
	if (status)
		return status;
	if (*ret_found && mode != MODE_AUTO && mode != ret->mode)
		return failure(
			"%s is attached already, in mode %s: detach it first; with the gate's "
			"last device its rules go, so 'sluice %sdump' them before",
			device->name, mode_names[ret->mode], gate_option(gate->name));
	if (!*ret_found && count - gone >= ATTACHMENTS_MAX)
		return failure("gate '%s' has %d attachments, the most that it can hold",
			       gate->name, ATTACHMENTS_MAX);
	return OK;
}

/* Whether the error is that of a veth whose peer has more queues than native XDP can take. */
static bool peer_is_wider(const struct device *device, const struct attachment *a, int err)
{
	return err == -ENOSPC && device->is_veth && a->hook == HOOK_XDP && a->mode == MODE_NATIVE;
}

/* The kernel's error is ENOSPC, whose text, "No space left on device", names no queue. */
static int peer_refuse(const struct device *device)
{
	char exec[NETNS_EXEC];

	return failure("cannot attach to %s in mode native: its peer sends with more queues than "
		       "%s receives with: '%sethtool -L %s rx N' gives it as many, N being the TX "
		       "that 'ethtool -l' shows of the peer; or try mode auto",
		       device->name, device->name, netns_exec(netns_typed(), exec),
		       word_typed(device->name));
}

static int attach_failed(const struct gate *gate, const struct device *device,
			 const struct attachment *a, int err)
{
	if (err == -EBUSY || (err == -EEXIST && a->hook == HOOK_XDP))
		return xdp_owner_refuse(gate, device);
	if (peer_is_wider(device, a, err))
		return peer_refuse(device);
	/* the port of a bond, or a bond one of whose ports has a program */
	if ((err == -EOPNOTSUPP || err == -EINVAL) && a->hook == HOOK_XDP &&
	    xdp_relative_refuse(gate, device))
		return FAILED;
	if (err == -EOPNOTSUPP || err == -EINVAL)
		return failure("%s does not support %s in mode %s (%s): try mode auto", a->device,
			       hook_names[a->hook], mode_names[a->mode], strerror(-err));
	if (err == -ENOENT && a->mode == MODE_CLSACT)
		return failure(
			"cannot attach to %s: this kernel lacks clsact (module sch_ingress) or "
			"bpf filters (module cls_bpf)%s",
			a->device,
			a->hook == HOOK_INGRESS ? ": generic XDP ('mode generic') needs neither"
						: "");
	return failure("cannot attach to %s: %s", a->device, why(err));
}

/* Looks at what was just attached; what cannot be looked at is detached again. */
static int attached_look(const struct gate *gate, struct attachment *a)
{
	if (!attachment_look(gate, a))
		return OK;
	detach(gate, a);
	return FAILED;
}

static int attach_here(const struct gate *gate, struct programs *programs,
		       const struct device *device, enum hook hook, enum mode mode,
		       struct attachment *ret)
{
	struct attachment a = attachment_of(device, hook);
	int status = programs_load(gate, HOOK_BIT(hook), programs);
	int err;

	if (status)
		return status;
	err = attach_to_hook(gate, programs, mode, &a);
	if (err)
		return attach_failed(gate, device, &a, err);
	status = attached_look(gate, &a);
	*ret = a;
	return status;
}

/*
 * Attaches to hook ingress instead of XDP. A device without native XDP may pass on packets that the
 * kernel or the sender has merged: XDP would count 45 segments as one packet, while hook ingress
 * has their number. cause: why XDP is not used.
 */
static int attach_ingress(const struct gate *gate, struct programs *programs,
			  const struct device *device, const char *cause, struct attachment *ret,
			  bool *ret_was_there)
{
	int status = attach_find(gate, device, HOOK_INGRESS, MODE_AUTO, ret, ret_was_there);

	if (status || *ret_was_there)
		return status;
	status = attach_here(gate, programs, device, HOOK_INGRESS, MODE_AUTO, ret);
	if (!status)
		note("%s: %s: attached on hook ingress, where a dropped packet costs several times "
		     "as much, and each packet counts that was merged into a larger one",
		     device->name, cause);
	return status;
}

/* Attaches to hook xdp in mode auto. */
static int attach_best(const struct gate *gate, struct programs *programs,
		       const struct device *device, struct attachment *ret, bool *ret_was_there)
{
	struct attachment a = attachment_of(device, HOOK_XDP);
	char cause[128] = "a tap, which hands over merged packets";
	int err;

	*ret_was_there = false;
	if (!device->is_tap) {
		if (programs_load(gate, HOOK_BIT(HOOK_XDP), programs))
			return FAILED;
		err = attach_to_hook(gate, programs, MODE_NATIVE, &a);
		if (err == -EBUSY || err == -EEXIST)
			return attach_failed(gate, device, &a, err);
		if (!err) {
			*ret = a;
			return attached_look(gate, ret);
		}
		snprintf(cause, sizeof(cause), "no native XDP (%s)",
			 peer_is_wider(device, &a, err)
				 ? "its peer sends with more queues than it receives with: see "
				   "'sluice doctor'"
				 : strerror(-err));
	}
	return attach_ingress(gate, programs, device, cause, ret, ret_was_there);
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

/* The programs that the filter of a clsact attachment may run. */
enum filter_pin {
	PIN_FILTER, /* attachment_pin() */
	PIN_NEXT,   /* attachment_next_pin() */
	FILTER_PINS,
};

/* The argument of the calls that remove a filter and put it back. */
struct filter_call {
	const struct attachment *attachment;
	int program_fd[FILTER_PINS]; /* -ENOENT: no such pin */
	bool qdisc_is_ours;	     /* it is removed with its last filter */
	bool qdisc_is_gone;
	bool qdisc_is_new; /* it was made again */
	int had_fd;	   /* the program that the filter ran; -1: there was no filter */
	uint32_t had_id;
	int err;
};

/* Finds which program the filter runs. */
static void filter_find_program(struct filter_call *call)
{
	const struct attachment *a = call->attachment;
	bool found = false;

	for (int i = 0; i < FILTER_PINS && !found && !call->err; i++) {
		if (call->program_fd[i] == -ENOENT)
			continue;
		call->had_id = program_id_of(call->program_fd[i]);
		call->err = call->had_id ? filter_find(a->pinned.ifindex, a->hook == HOOK_INGRESS,
						       call->had_id, &found)
					 : -errno;
		if (found)
			call->had_fd = call->program_fd[i];
	}
}

static void call_filter_remove(void *data)
{
	struct filter_call *call = data;
	const struct attachment *a = call->attachment;
	char device[IF_NAMESIZE];
	bool found;

	filter_find_program(call);
	if (call->had_fd >= 0)
		call->err = filter_remove(a->pinned.ifindex, a->hook == HOOK_INGRESS, call->had_id,
					  &found);
	if (call->err)
		return;
	/*
	 * without our filter only the name shows whether it is the same device: numbers are reused
	 */
	if (call->had_fd < 0 &&
	    (!if_indextoname(a->pinned.ifindex, device) || strcmp(device, a->pinned.device)))
		call->qdisc_is_gone = true; /* with the device */
	else if (call->qdisc_is_ours)
		call->err = qdisc_remove_if_empty(a->pinned.ifindex, &call->qdisc_is_gone);
}

/* Adds the filter again unless it still exists: the reply to its removal may have been lost. */
static void call_filter_restore(void *data)
{
	struct filter_call *call = data;
	const struct attachment *a = call->attachment;
	bool ingress = a->hook == HOOK_INGRESS, there;

	call->err = filter_find(a->pinned.ifindex, ingress, call->had_id, &there);
	if (call->err || there)
		return;
	call->err = qdisc_make(a->pinned.ifindex, &call->qdisc_is_new);
	if (!call->err)
		call->err = filter_add(a->pinned.ifindex, ingress, call->had_fd);
}

/* Puts the filter back after a step that failed, which was reported. */
static int filter_restore(const struct gate *gate, struct filter_call *call)
{
	const struct attachment *a = call->attachment;
	char qdisc[PIN_NAME];

	if (call->had_fd < 0)
		return FAILED;
	if (!netns_run_in(a->pinned.netns, call_filter_restore, call))
		call->err = -errno;
	if (call->qdisc_is_new)
		pin_make(&gate->links, attachment_qdisc_pin(a, qdisc), call->had_fd);
	if (call->err && call->err != -ENODEV)
		note("%s: cannot put its filter back on hook %s: %s", a->device,
		     hook_names[a->hook], why(call->err));
	return FAILED;
}

/* Removes the filter, the qdisc if it is ours, and then the pin by which the filter is found. */
static int detach_filter(const struct gate *gate, struct filter_call *call)
{
	const struct attachment *a = call->attachment;
	char name[PIN_NAME], qdisc[PIN_NAME];

	call->qdisc_is_ours = pin_exists(&gate->links, attachment_qdisc_pin(a, qdisc));
	if (!netns_run_in(a->pinned.netns, call_filter_remove, call)) {
		if (errno != ENOENT)
			return failure("cannot remove the filter of %s: %s", a->device,
				       netns_why(errno));
		note("%s: its network namespace is gone or has no name: if it still exists, so "
		     "does the filter",
		     a->device);
		call->qdisc_is_gone = true;
	}
	if (call->err && call->err != -ENODEV) {
		failure("cannot remove the filter of %s: %s", a->device, why(call->err));
		return filter_restore(gate, call);
	}
	if (call->qdisc_is_gone || call->err == -ENODEV)
		pin_remove(&gate->links, qdisc);
	call->err = pin_remove(&gate->links, attachment_pin(a, name));
	if (!call->err || call->err == -ENOENT)
		return OK;
	pin_failed("remove", &gate->links, name, call->err);
	return filter_restore(gate, call);
}

/* If a link cannot be detached, it stays attached and keeps its pin. */
static int detach_link(const struct gate *gate, const struct attachment *a, int fd)
{
	char name[PIN_NAME];
	int err = pin_remove(&gate->links, attachment_pin(a, name));

	if (err)
		return pin_failed("remove", &gate->links, name, err);
	err = bpf_link_detach(fd); /* at once; closing a link without a pin detaches later */
	if (!err)
		return OK;
	failure("cannot detach from %s: %s", a->device, why(err));
	err = pin_make(&gate->links, name, fd);
	return err ? pin_failed("pin", &gate->links, name, err) : FAILED;
}

static int detach_clsact(const struct gate *gate, const struct attachment *a, int fd)
{
	struct filter_call call = {.attachment = a, .had_fd = -1};
	int status;
	char next[PIN_NAME];

	call.program_fd[PIN_FILTER] = fd;
	call.program_fd[PIN_NEXT] = pin_open(&gate->links, attachment_next_pin(a, next));
	if (call.program_fd[PIN_NEXT] < 0 && call.program_fd[PIN_NEXT] != -ENOENT)
		return pin_failed("open", &gate->links, next, call.program_fd[PIN_NEXT]);
	status = detach_filter(gate, &call);
	if (call.program_fd[PIN_NEXT] >= 0)
		close(call.program_fd[PIN_NEXT]);
	return status;
}

/*
 * If a step fails, the device filters as before. So permissions are checked first, and the pins of
 * programs are removed last: attachments_settle() removes a pin that is left over. A symbolic link
 * is removed like a pin whose device is gone.
 */
int detach(const struct gate *gate, const struct attachment *a)
{
	char name[PIN_NAME], other[PIN_NAME];
	int fd = pin_open(&gate->links, attachment_pin(a, name)), err;
	int status = OK;

	if (fd < 0 && fd != -ENOENT && fd != -ELOOP)
		return pin_failed("open", &gate->links, name, fd);
	status = pins_check_writable(&gate->links);
	if (!status && fd >= 0)
		status = a->mode == MODE_CLSACT ? detach_clsact(gate, a, fd)
						: detach_link(gate, a, fd);
	if (fd >= 0)
		close(fd);
	if (status)
		return status;
	if (fd == -ELOOP) {
		err = pin_remove(&gate->links, name);
		if (err)
			return pin_failed("remove", &gate->links, name, err);
	}
	pin_remove(&gate->links, attachment_next_pin(a, other));
	pin_remove(&gate->links, attachment_program_pin(a, other));
	return OK;
}
