// SPDX-License-Identifier: GPL-2.0
#include "attach/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "attach/chain.h"
#include "attach/components.h"
#include "attach/filter.h"
#include "attach/libxdp.h"
#include "attach/refuse.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"

/* --- Refusals ------------------------------------------------------------------------------- */

/*
 * Returns whether native XDP failed because the peer of a veth has more TX queues than the veth has
 * RX queues.
 */
static bool peer_is_wider(const struct netdev *device, const struct attachment *a, int err)
{
	return err == -ENOSPC && !strcmp(device->kind, "veth") && a->mode == MODE_NATIVE;
}

static int attach_failed(const struct gate *gate, const struct netdev *device,
			 const struct attachment *a, int err)
{
	bool is_unsupported = err == -EOPNOTSUPP || err == -EINVAL;
	char exec[NETNS_EXEC];

	if (err == -EBUSY || (err == -EEXIST && a->hook == HOOK_XDP))
		return xdp_owner_refuse(gate, device);
	/* ENOSPC here means that the device has too few RX queues */
	if (peer_is_wider(device, a, err))
		return error_add(
			err, "peer-wider", NULL,
			"cannot attach to %s in mode native: its peer has more TX queues than %s "
			"has RX queues; use mode auto, or set N to the peer's TX of 'ethtool -l': "
			"'%sethtool -L %s rx N'",
			device->name, device->name, netns_exec(netns_typed(), exec),
			word_typed(device->name));
	/* the kernel accepts an XDP program either on a bond or on its ports */
	if (is_unsupported && a->hook == HOOK_XDP && xdp_relative_refuse(gate, device))
		return err;
	if (is_unsupported)
		return error_add(err, "mode-unsupported", NULL,
				 "%s does not support %s in mode %s (%s); use mode auto", a->device,
				 hook_names[a->hook], mode_names[a->mode], strerror(-err));
	if (err == -ENOENT && a->mode == MODE_CLSACT)
		return error_add(
			err, "no-clsact", NULL,
			"cannot attach to %s: this kernel lacks clsact (module sch_ingress) or bpf "
			"filters (module cls_bpf)%s",
			a->device,
			a->hook == HOOK_INGRESS ? "; generic XDP requires neither: 'mode generic'"
						: "");
	return error_add(err, "attach", NULL, "cannot attach to %s: %s", a->device, why(err));
}

int attach_choose_hook(const struct netdev *device, enum mode mode, bool reports, enum hook *hook)
{
	if (*hook == HOOK_EGRESS || strcmp(device->kind, "ifb"))
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

/* --- Attaching ------------------------------------------------------------------------------ */

/*
 * Creates a link and pins it, because a link without a pin is detached when its fd is closed. Pins
 * the program before the link, so that each link has a pinned program even if the command is
 * killed.
 */
static int attach_link(const struct gate *gate, const struct programs *programs,
		       const struct attachment *a)
{
	struct pin_name program = attachment_pin(a, PIN_PROGRAM);
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = TCX_FIRST);
	int type = a->hook == HOOK_INGRESS ? TCX_INGRESS : TCX_EGRESS;
	int err = pin_replace(&gate->links, program.text, programs->fd[a->hook]);
	_cleanup_close_ int fd = -1;

	if (err)
		return err;
	if (a->hook == HOOK_XDP) {
		type = BPF_XDP;
		opts.flags = a->mode == MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	}
	fd = bpf_link_create(programs->fd[a->hook], a->ifindex, type, &opts);
	err = fd < 0 ? fd : pin_make(&gate->links, attachment_pin(a, PIN_ATTACHMENT).text, fd);
	if (err)
		pin_remove(&gate->links, program.text);
	return err;
}

/*
 * Adds a filter. If the device has no clsact qdisc, first adds the qdisc. Pins the program before
 * it adds the qdisc or filter, because Sluice only removes qdiscs and filters that have a pin.
 */
static int attach_filter(const struct gate *gate, const struct programs *programs,
			 const struct attachment *a)
{
	struct pin_name name = attachment_pin(a, PIN_ATTACHMENT),
			qdisc = attachment_pin(a, PIN_QDISC);
	const struct pins *links = &gate->links;
	int fd = programs->fd[a->hook], err;
	bool pinned = !pin_make(links, qdisc.text, fd), made, removed;
	bool ingress = a->hook == HOOK_INGRESS, exists = false;

	err = qdisc_make(a->ifindex, &made);
	if (pinned && !made)
		pin_remove(links, qdisc.text);
	err = err ?: pin_make(links, name.text, fd);
	if (!err) {
		err = filter_add(a->ifindex, ingress, fd);
		/* after an error, the kernel may still have added the filter */
		if (err && !filter_find(a->ifindex, ingress, program_id_of(fd), &exists) && exists)
			err = 0;
		if (err)
			pin_remove(links, name.text);
	}
	if (err && made) {
		qdisc_remove_if_empty(a->ifindex, &removed);
		pin_remove(links, qdisc.text);
	}
	return err;
}

/*
 * Attaches in mode `mode`. On hook xdp, MODE_AUTO means native XDP. On another hook, MODE_AUTO
 * means tcx; if the kernel has no tcx, it means clsact.
 */
static int attach_to_hook(const struct gate *gate, const struct programs *programs, enum mode mode,
			  struct attachment *a)
{
	int err;

	a->mode = mode != MODE_AUTO ? mode : a->hook == HOOK_XDP ? MODE_NATIVE : MODE_TCX;
	if (a->mode == MODE_CLSACT)
		return attach_filter(gate, programs, a);
	err = attach_link(gate, programs, a);
	if (mode != MODE_AUTO || a->mode != MODE_TCX || !err || err == -EBUSY || err == -EEXIST ||
	    err == -EPERM)
		return err;
	a->mode = MODE_CLSACT;
	return attach_filter(gate, programs, a);
}

bool attachment_serves(const struct attachment *a, const struct way *way)
{
	const struct array_slot *slot = &way->slot;

	if (way->mode != MODE_AUTO && way->mode != a->mode)
		return false;
	if (way->mode == MODE_ARRAY)
		return slot->slot == a->slot.slot && !strcmp(slot->path, a->slot.path);
	return a->mode != MODE_LIBXDP || !way->priority || way->priority == a->priority;
}

/*
 * Finds the gate's attachment on a hook of a device. Detaches attachments on this hook whose
 * program is gone. Returns an error if the attachment is in another way, or if the gate already has
 * the largest number of attachments.
 */
static int attach_find(const struct gate *gate, const struct netdev *device, const struct way *way,
		       struct attachment *ret, bool *ret_found)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, gone = 0;
	char words[MODE_TEXT];
	int err = attachments_read(gate, all, &count);

	*ret_found = false;
	for (unsigned int i = 0; !err && i < count; i++) {
		struct attachment *a = &all[i];

		/* find the attachment of a removed device that had the same name */
		if (a->hook != way->hook || a->netns != netns_current() ||
		    (a->ifindex != device->ifindex &&
		     !(a->device_gone && !strcmp(a->device, device->name))))
			continue;
		if (a->program_id) {
			*ret = *a;
			*ret_found = true;
		} else {
			err = detach(gate, a);
			gone++;
		}
	}
	if (err)
		return err;
	if (*ret_found && !attachment_serves(ret, way))
		return error_add(
			EEXIST, "other-mode", NULL,
			"%s is attached already, with %s; detach it first, and save the rules if "
			"it is the gate's last device: 'sluice %sdump'",
			device->name, mode_format(ret->mode, &ret->slot, ret->priority, words),
			gate_option(gate->name));
	if (!*ret_found && count - gone >= ATTACHMENTS_MAX)
		return error_add(ENOSPC, "too-many-attachments", NULL,
				 "gate '%s' has %d attachments, the most that a gate can have",
				 gate->name, ATTACHMENTS_MAX);
	return 0;
}

/*
 * Loads the program, and attaches it. If the kernel refuses the mode and `ret_falls_back` is not
 * NULL, sets *ret_falls_back, adds no error, and returns the errno. The caller can then try another
 * hook.
 */
static int attach_here(const struct gate *gate, struct programs *programs,
		       const struct netdev *device, enum hook hook, enum mode mode,
		       struct attachment *ret, bool *ret_falls_back)
{
	int err = programs_load(gate, HOOK_BIT(hook), programs);

	*ret = attachment_of(device, hook);
	if (err)
		return err;
	err = attach_to_hook(gate, programs, mode, ret);
	if (err && ret_falls_back && err != -EBUSY && err != -EEXIST) {
		*ret_falls_back = true;
		return err;
	}
	if (err)
		return attach_failed(gate, device, ret, err);
	err = attachment_look(gate, ret);
	if (err)
		detach(gate, ret);
	return err;
}

/* Returns whether the device has a dispatcher of libxdp, whose components are pinned. */
static bool has_dispatcher(const struct netdev *device)
{
	struct components components;

	components_read(device->ifindex, 0, &components);
	return components.dispatcher_id;
}

/*
 * In mode auto, uses hook ingress on a tap and on a device without native XDP, because such a
 * device may deliver merged packets. XDP would count a merged packet of up to 45 segments as one
 * packet. Hook ingress counts the segments.
 */
int attach_device(const struct gate *gate, struct programs *programs, const struct netdev *device,
		  const struct way *way, bool beside, struct attachment *ret, bool *ret_existed)
{
	enum hook hook = way->hook;
	enum mode mode = way->mode;
	char cause[128] = "a tap delivers merged packets";
	bool is_best = hook == HOOK_XDP && mode == MODE_AUTO, falls_back = netdev_is_tap(device);
	int err = 0;

	*ret_existed = false;
	if (!beside)
		err = attach_find(gate, device, way, ret, ret_existed);
	if (err || *ret_existed)
		return err;
	if (mode == MODE_CHAIN)
		return chain_attach(gate, device, ret);
	if (mode == MODE_LIBXDP || (is_best && has_dispatcher(device)))
		return libxdp_attach(gate, device, way->priority ?: PRIORITY_DEFAULT, ret);
	if (mode == MODE_ARRAY)
		return array_attach(gate, device, &way->slot, ret);
	if (!is_best)
		return attach_here(gate, programs, device, hook, mode, ret, NULL);
	if (!falls_back) {
		err = attach_here(gate, programs, device, hook, MODE_NATIVE, ret, &falls_back);
		if (!falls_back)
			return err;
		snprintf(cause, sizeof(cause), "the device has no native XDP (%s)",
			 peer_is_wider(device, ret, err)
				 ? "its peer has more TX queues than it has RX queues: see "
				   "'sluice doctor'"
				 : strerror(-err));
	}
	err = attach_find(gate, device, &(struct way){.hook = HOOK_INGRESS}, ret, ret_existed);
	if (err || *ret_existed)
		return err;
	err = attach_here(gate, programs, device, HOOK_INGRESS, MODE_AUTO, ret, NULL);
	if (!err)
		error_notice(
			"not-native", device->name,
			"%s, so hook ingress is used: it counts each segment of a merged packet, "
			"but dropping a packet costs several times as much",
			cause);
	return err;
}

/* --- Detaching ------------------------------------------------------------------------------ */

/* If detaching failed after the filter was removed, adds the filter again. */
static void filter_restore(const struct gate *gate, const struct attachment *a, int program_fd)
{
	bool ingress = a->hook == HOOK_INGRESS, exists = false, is_new = false;
	_cleanup_netns_ int back = -1;
	int err;

	if (program_fd < 0)
		return;
	err = netns_visit(a->netns, &back)
		      ?: filter_find(a->ifindex, ingress, a->program_id, &exists);
	if (!err && !exists)
		err = qdisc_make(a->ifindex, &is_new)
			      ?: filter_add(a->ifindex, ingress, program_fd);
	if (is_new)
		pin_make(&gate->links, attachment_pin(a, PIN_QDISC).text, program_fd);
	if (err && err != -ENODEV)
		error_notice("filter-lost", a->device, "cannot restore its filter on hook %s: %s",
			     hook_names[a->hook], why(err));
}

/*
 * Removes the filter. If Sluice added the clsact qdisc, and no filter is left, removes the qdisc as
 * well. The caller has entered the device's network namespace. Returns 0 or a negative errno.
 */
static int filter_remove(const struct attachment *a, bool qdisc_is_ours, bool *ret_qdisc_is_gone)
{
	int err = a->program_id
			  ? filter_change(a->ifindex, a->hook == HOOK_INGRESS, a->program_id, -1)
			  : 0;

	if (err && err != -ENOENT)
		return err;
	*ret_qdisc_is_gone = !a->program_id && a->device_gone;
	return *ret_qdisc_is_gone || !qdisc_is_ours
		       ? 0
		       : qdisc_remove_if_empty(a->ifindex, ret_qdisc_is_gone);
}

/* Removes the pins last, so that a repeated command can still find the filter and the qdisc. */
static int detach_clsact(const struct gate *gate, struct attachment a)
{
	struct pin_name name = attachment_pin(&a, PIN_ATTACHMENT),
			qdisc = attachment_pin(&a, PIN_QDISC);
	bool qdisc_is_ours = pin_exists(&gate->links, qdisc.text), qdisc_is_gone = false;
	_cleanup_netns_ int back = -1;
	_cleanup_close_ int fd = -1;
	int err = attachment_look(gate, &a);

	if (err)
		return err;
	if (a.program_id) {
		fd = attachment_program_open(gate, &a);
		if (fd < 0)
			return pin_failed("open", &gate->links, name.text, -errno);
	}
	err = netns_visit(a.netns, &back);
	if (err == -ENOENT) {
		error_notice("netns-gone", a.device,
			     "its network namespace is gone or has no name; if the namespace "
			     "still exists, the filter does as well");
		qdisc_is_gone = true;
		err = 0;
	} else if (err) {
		return error_add(err, "filter-remove", NULL, "cannot remove the filter of %s: %s",
				 a.device, netns_why(err));
	} else {
		err = filter_remove(&a, qdisc_is_ours, &qdisc_is_gone);
		netns_return(&back);
	}
	if (err && err != -ENODEV) {
		error_add(err, "filter-remove", NULL, "cannot remove the filter of %s: %s",
			  a.device, why(err));
		filter_restore(gate, &a, fd);
		return err;
	}
	if (qdisc_is_gone || err == -ENODEV)
		pin_remove(&gate->links, qdisc.text);
	err = pin_remove(&gate->links, name.text);
	if (!err || err == -ENOENT)
		return 0;
	pin_failed("remove", &gate->links, name.text, err);
	filter_restore(gate, &a, fd);
	return err;
}

/* Detaches a link. If the kernel refuses, pins the link again, because the program still runs. */
static int detach_link(const struct gate *gate, const struct attachment *a, int fd)
{
	struct pin_name name = attachment_pin(a, PIN_ATTACHMENT);
	int err = pin_remove(&gate->links, name.text), again;

	if (err)
		return pin_failed("remove", &gate->links, name.text, err);
	err = bpf_link_detach(fd); /* detaches now; close(2) may detach later */
	if (!err)
		return 0;
	error_add(err, "detach", NULL, "cannot detach from %s: %s", a->device, why(err));
	again = pin_make(&gate->links, name.text, fd);
	return again ? pin_failed("pin", &gate->links, name.text, again) : err;
}

/*
 * Detaches a device. Checks permissions first, because the device must filter as before if this
 * fails. Removes the pins of programs last. If the command is killed before, attachments_expire()
 * removes them later. If the pin was replaced by a symbolic link (-ELOOP), only removes pins.
 */
int detach(const struct gate *gate, const struct attachment *a)
{
	struct pin_name name = attachment_pin(a, PIN_ATTACHMENT);
	_cleanup_close_ int fd = pin_open(&gate->links, name.text);
	int err;

	if (fd < 0 && fd != -ENOENT && fd != -ELOOP)
		return pin_failed("open", &gate->links, name.text, fd);
	err = pins_check_writable(&gate->links);
	if (!err && a->mode == MODE_LIBXDP)
		return libxdp_detach(gate, *a);
	if (!err && attachment_is_chained(a))
		return chain_detach(gate, *a);
	if (!err && fd >= 0)
		err = a->mode == MODE_CLSACT ? detach_clsact(gate, *a) : detach_link(gate, a, fd);
	if (err)
		return err;
	if (fd == -ELOOP) {
		err = pin_remove(&gate->links, name.text);
		if (err)
			return pin_failed("remove", &gate->links, name.text, err);
	}
	pin_remove(&gate->links, attachment_pin(a, PIN_NEXT).text);
	pin_remove(&gate->links, attachment_pin(a, PIN_PROGRAM).text);
	return 0;
}

/* --- Replacing programs ---------------------------------------------------------------------- */

static int program_replace(const struct gate *gate, const struct attachment *a, int program_fd)
{
	_cleanup_netns_ int back = -1;
	_cleanup_close_ int fd = -1;

	if (a->mode == MODE_ARRAY)
		return chain_slot_replace(gate, a, program_fd);
	if (a->mode == MODE_CHAIN) {
		fd = attachment_program_open(gate, a);
		return fd < 0 ? -errno
			      : netns_visit(a->netns, &back) ?: chain_replace(a, fd, program_fd);
	}
	if (a->mode == MODE_CLSACT)
		return netns_visit(a->netns, &back)
			       ?: filter_change(a->ifindex, a->hook == HOOK_INGRESS, a->program_id,
						program_fd);
	fd = pin_open(&gate->links, attachment_pin(a, PIN_ATTACHMENT).text);
	return fd < 0 ? fd : bpf_link_update(fd, program_fd, NULL);
}

/*
 * Replaces the program of an attachment, and updates its program_id. At any time, PIN_PROGRAM or
 * PIN_NEXT pins the running program. If the command is killed, it may leave the other pin, which
 * the next replacement removes.
 */
static int attachment_switch(const struct gate *gate, struct attachment *a, int program_fd)
{
	struct pin_name name = attachment_pin(a, PIN_PROGRAM), next = attachment_pin(a, PIN_NEXT);
	struct pin_name qdisc = attachment_pin(a, PIN_QDISC);
	const struct pins *links = &gate->links;
	_cleanup_close_ int fd = pin_open(links, name.text);
	struct attachment now = *a;
	int err = 0;

	if (fd < 0 || program_id_of(fd) != a->program_id)
		err = pin_rename(links, next.text, links, name.text);
	if (err == -ENOENT && attachment_is_link(a))
		/* a link keeps its program even if the program has no pin */
		err = 0;
	err = err ?: pin_replace(links, next.text, program_fd);
	if (err)
		return err;
	err = program_replace(gate, a, program_fd);
	/* if it is unknown which program runs, keep both pins */
	if (err && !attachment_look(gate, &now)) {
		if (now.program_id == program_id_of(program_fd))
			err = 0;
		else
			pin_remove(links, next.text);
	}
	if (err)
		return err;
	err = pin_rename(links, next.text, links, name.text);
	if (err)
		return err;
	/* replace the qdisc's pin, because its reference keeps the old program in memory */
	if (a->mode == MODE_CLSACT && pin_exists(links, qdisc.text) &&
	    !pin_replace(links, next.text, program_fd))
		pin_rename(links, next.text, links, qdisc.text);
	a->program_id = program_id_of(program_fd);
	return 0;
}

void replacements_close(struct replacements *replacements)
{
	while (replacements->count) {
		struct replaced *one = &replacements->one[--replacements->count];

		close_fd(&one->program_fd);
		close_fd(&one->chain_fd);
	}
}

static void note_skipped(const struct attachment *a)
{
	char netns[NETNS_NAME];

	if (netns_name(a->netns, netns))
		error_notice("nothing-to-switch", a->device,
			     "the %s is gone, so no program was replaced on hook %s",
			     a->device_gone ? "device" : "filter", hook_names[a->hook]);
	else
		error_notice("netns-gone", a->device,
			     "its network namespace is gone or has no name; if the namespace "
			     "still exists, the device keeps its old program on hook %s",
			     hook_names[a->hook]);
}

static int replacements_open(const struct gate *gate, struct replacements *replacements)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int err = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !err && i < count; i++) {
		const struct attachment *a = &all[i];
		int fd;

		if (!a->program_id) {
			note_skipped(a);
			continue;
		}
		fd = attachment_program_open(gate, a);
		if (fd < 0)
			return error_add(errno, "program-open", NULL,
					 "cannot open program %u of %s, which an undo requires: %s",
					 a->program_id, a->device,
					 errno == EPERM ? "its pin was removed, so this requires "
							  "CAP_SYS_ADMIN: run it as root"
							: why(errno));
		replacements->one[replacements->count++] =
			(struct replaced){*a, a->program_id, fd, -1};
	}
	return err;
}

/*
 * Switches the program of an attachment. Returns 0 on success, or if the attachment is gone because
 * its device was removed. Otherwise returns a negative errno.
 */
static int switch_or_gone(const struct gate *gate, struct attachment *a, int program_fd)
{
	unsigned int mark = error_count();
	int err = attachment_switch(gate, a, program_fd);

	if (err && !attachment_look(gate, a) && !a->program_id)
		return 0;
	error_drop(mark);
	return err;
}

/* Attaches the old programs again. Returns whether every attachment has its old program. */
static bool programs_restore(const struct gate *gate, struct replacements *replacements)
{
	bool restored = true;

	for (unsigned int i = replacements->count; i--;) {
		struct attachment *a = &replacements->one[i].attachment;
		int err;

		if (a->program_id == replacements->one[i].before)
			continue;
		/* libxdp has loaded the old program, so use this version's with the old maps */
		err = a->mode == MODE_LIBXDP
			      ? libxdp_replace(gate, gate, 0, a)
			      : switch_or_gone(gate, a, replacements->one[i].program_fd);
		if (!err)
			continue;
		error_notice("program-lost", a->device, "cannot restore the program on hook %s: %s",
			     hook_names[a->hook], why(err));
		restored = false;
	}
	return restored;
}

/* Returns why the kernel did not replace a program. The device still runs it. */
static const char *why_kept(const struct attachment *a, int err)
{
	return a->mode == MODE_CHAIN && err == -EEXIST
		       ? "a device above it has an XDP program; detach that program first"
		       : why(err);
}

static int replacements_switch(const struct gate *gate, const struct gate *next,
			       const struct programs *programs, struct replacements *replacements)
{
	for (unsigned int i = 0; i < replacements->count; i++) {
		struct attachment *a = &replacements->one[i].attachment;
		int chain_fd = replacements->one[i].chain_fd;
		int err = a->mode == MODE_LIBXDP
				  ? libxdp_replace(gate, next, 0, a)
				  : switch_or_gone(gate, a,
						   chain_fd < 0 ? programs->fd[a->hook] : chain_fd);

		if (err)
			return error_add(err, "program-switch", NULL,
					 "cannot replace the program of %s on hook %s: %s%s",
					 a->device, hook_names[a->hook], why_kept(a, err),
					 programs_restore(gate, replacements)
						 ? "; every device has its old program"
						 : "");
	}
	return 0;
}

int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	unsigned int hooks = 0, count;
	int err;

	ret->count = 0;
	err = replacements_open(gate, ret);
	for (unsigned int i = 0; !err && i < ret->count; i++) {
		struct replaced *one = &ret->one[i];

		if (one->attachment.mode == MODE_LIBXDP)
			continue;
		if (!attachment_is_chained(&one->attachment)) {
			hooks |= HOOK_BIT(one->attachment.hook);
			continue;
		}
		one->chain_fd = chain_load(gate, next, &one->attachment);
		err = one->chain_fd < 0 ? one->chain_fd : 0;
	}
	err = err ?: programs_load(next, hooks, &programs)
		  ?: replacements_switch(gate, next, &programs, ret);
	programs_close(&programs);
	if (err) {
		replacements_close(ret);
		return err;
	}
	count = ret->count;
	ret->count = 0;
	for (unsigned int i = 0; i < count; i++) {
		/* the attachment runs no program, because its device or filter is gone */
		if (!ret->one[i].attachment.program_id) {
			note_skipped(&ret->one[i].attachment);
			close_fd(&ret->one[i].program_fd);
			close_fd(&ret->one[i].chain_fd);
			continue;
		}
		ret->one[ret->count++] = ret->one[i];
	}
	return 0;
}
