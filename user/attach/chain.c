// SPDX-License-Identifier: GPL-2.0
#include "attach/chain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/maps.h"

/* --- The other program ---------------------------------------------------------------------- */

/* Loads an XDP program that passes all packets. */
static int pass_load(bool has_frags)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_XDP,
		    .prog_flags = has_frags ? BPF_F_XDP_HAS_FRAGS : 0);

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "sluice_probe", "GPL", insns, 2, &opts);
}

static int array_make(void)
{
	return bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "chain", sizeof(__u32), sizeof(__u32), 1,
			      NULL);
}

static int slot_set(int array_fd, int program_fd)
{
	__u32 first = 0;

	return bpf_map_update_elem(array_fd, &first, &program_fd, BPF_ANY);
}

/*
 * Finds whether a program reads packets of several buffers (xdp.frags). A program can call only
 * programs that are like it in this respect, and the kernel does not report it. So this puts the
 * program into an array that has a program of a known kind. Returns -EINVAL if no program can call
 * it, for example because it is bound to a device.
 */
static int frags_find(int program_fd, bool *ret_has_frags)
{
	int err = -EINVAL;

	for (int has_frags = 1; err == -EINVAL && has_frags >= 0; has_frags--) {
		_cleanup_close_ int array = array_make();
		_cleanup_close_ int pass = pass_load(has_frags);

		if (array < 0 || pass < 0)
			return array < 0 ? array : pass;
		*ret_has_frags = has_frags;
		err = slot_set(array, pass) ?: slot_set(array, program_fd);
	}
	return err;
}

/* Returns the id of the program in slot 0, or 0 if the slot is empty. */
static uint32_t slot_get(int array_fd)
{
	__u32 first = 0, id;

	return bpf_map_lookup_elem(array_fd, &first, &id) ? 0 : id;
}

/*
 * Opens the program in slot 0. It is another program than that of PIN_AFTER if its owner replaced
 * it there. Returns -ENOENT if the slot is empty.
 */
static int after_open(const struct gate *gate, const struct attachment *a, int array_fd)
{
	_cleanup_close_ int fd = pin_open(&gate->links, attachment_pin(a, PIN_AFTER).text);
	uint32_t id = slot_get(array_fd);
	int other;

	if (!id)
		return -ENOENT;
	if (fd >= 0 && program_id_of(fd) == id)
		return steal_fd(&fd);
	other = bpf_prog_get_fd_by_id(id);
	return other < 0 ? -errno : other;
}

/* --- Attaching ------------------------------------------------------------------------------ */

int chain_replace(const struct attachment *a, int before_fd, int program_fd)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = before_fd);
	__u32 flags = a->is_generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;

	if (before_fd < 0)
		return bpf_xdp_attach(a->ifindex, program_fd, flags | XDP_FLAGS_UPDATE_IF_NOEXIST,
				      NULL);
	return bpf_xdp_attach(a->ifindex, program_fd, flags | XDP_FLAGS_REPLACE, &opts);
}

/* Adds the error that mode chain cannot take over the program of another owner. */
static int refuse_owned(const struct netdev *device, const struct xdp_owner *owner)
{
	char holder[XDP_OWNER_TEXT];

	return error_add(EBUSY, "hook-taken", NULL,
			 "%s has an XDP program of %s, which mode chain cannot take over; detach "
			 "that first, or filter after it on hook ingress",
			 device->name, xdp_owner_format(owner, holder));
}

/*
 * Opens the XDP program of the device, and finds its mode. Stores -1 if the device has none.
 * Returns an error if mode chain cannot take the program over.
 */
static int before_open(const struct netdev *device, struct attachment *a, struct xdp_owner *ret,
		       int *ret_fd)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int err = bpf_xdp_query(device->ifindex, 0, &query);

	*ret_fd = -1;
	if (err)
		return error_add(err, "attach", NULL, "cannot read the XDP program of %s: %s",
				 device->name, why(err));
	if (query.attach_mode == XDP_ATTACHED_NONE)
		return 0;
	a->is_generic = query.attach_mode == XDP_ATTACHED_SKB;
	*ret = xdp_owner_find(device->ifindex);
	if (*ret->gate || xdp_owner_is_libxdp(ret) ||
	    (!a->is_generic && query.attach_mode != XDP_ATTACHED_DRV))
		return refuse_owned(device, ret);
	*ret_fd = bpf_prog_get_fd_by_id(ret->program_id);
	if (*ret_fd < 0)
		return error_add(errno, "program-open", NULL,
				 "cannot open the XDP program of %s, id %u: %s", device->name,
				 ret->program_id,
				 errno == EPERM ? "this requires CAP_SYS_ADMIN; run it as root"
						: why(errno));
	return 0;
}

static int chain_failed(const struct netdev *device, const struct attachment *a,
			const struct xdp_owner *before, int err)
{
	if (err == -EBUSY)
		return error_add(err, "hook-taken", NULL,
				 "%s has an XDP program that is attached by a bpf link: '%s', id "
				 "%u; mode chain can take over only a program that is attached by "
				 "netlink; 'bpftool link' lists its owner",
				 device->name, before->name, before->program_id);
	if (err == -EEXIST)
		return error_add(err, "hook-taken", NULL,
				 "another process changed the XDP program of %s meanwhile; try "
				 "again",
				 device->name);
	if (err == -EOPNOTSUPP || (err == -EINVAL && !before->program_id))
		return error_add(err, "mode-unsupported", NULL,
				 "%s has no XDP program, and does not support native XDP (%s); "
				 "use mode auto",
				 device->name, strerror(-err));
	return error_add(err, "attach", NULL, "cannot attach to %s in mode %s: %s", device->name,
			 mode_names[a->mode], why(err));
}

/*
 * Makes the program array, and loads Sluice's program for it. Puts `before_fd` into the array,
 * unless it is -1. Sluice's program gets frags if the other program has them.
 */
static int chain_make(const struct gate *gate, const struct netdev *device, int before_fd,
		      const struct xdp_owner *before, bool *ret_has_frags, int *ret_array,
		      int *ret_program)
{
	int err = before_fd < 0 ? 0 : frags_find(before_fd, ret_has_frags);

	if (err == -EINVAL)
		return error_add(err, "not-callable", NULL,
				 "%s has an XDP program that the kernel lets no other program "
				 "call: '%s', id %u; detach that first, or filter after it on hook "
				 "ingress",
				 device->name, before->name, before->program_id);
	*ret_array = array_make();
	err = err ?: *ret_array < 0 ? *ret_array : 0;
	if (!err && before_fd >= 0)
		err = slot_set(*ret_array, before_fd);
	if (err)
		return error_add(err, "attach", NULL, "cannot make the program array of %s: %s",
				 device->name, why(err));
	*ret_program = program_load_chain(gate, *ret_array, *ret_has_frags);
	return *ret_program < 0 ? *ret_program : 0;
}

int chain_attach(const struct gate *gate, const struct netdev *device, struct attachment *ret)
{
	struct attachment a = attachment_of(device, HOOK_XDP);
	_cleanup_close_ int before = -1, array = -1, program = -1;
	const struct pins *links = &gate->links;
	struct xdp_owner owner = {0};
	bool has_frags = true;
	int err;

	a.mode = MODE_CHAIN;
	err = before_open(device, &a, &owner, &before)
		      ?: chain_make(gate, device, before, &owner, &has_frags, &array, &program);
	if (err)
		return err;
	/* pin everything first, so that a kill leaves no program that the gate does not know */
	err = pin_replace(links, attachment_pin(&a, PIN_CHAIN).text, array);
	if (!err && before >= 0)
		err = pin_replace(links, attachment_pin(&a, PIN_AFTER).text, before);
	err = err ?: pin_make(links, attachment_pin(&a, PIN_ATTACHMENT).text, program);
	if (err)
		pin_failed("make", links, attachment_pin(&a, PIN_ATTACHMENT).text, err);
	if (!err) {
		err = chain_replace(&a, before, program);
		if (err)
			chain_failed(device, &a, &owner, err);
	}
	if (!err)
		err = attachment_look(gate, &a);
	*ret = a;
	if (err)
		chain_detach(gate, a);
	else if (!has_frags)
		error_notice("no-frags", device->name,
			     "program '%s' accepts no packets of several buffers, so neither does "
			     "the device; its MTU must fit in one buffer",
			     owner.name);
	return err;
}

int chain_load(const struct gate *gate, const struct gate *next, const struct attachment *a)
{
	struct pin_name name = attachment_pin(a, PIN_CHAIN);
	_cleanup_close_ int array = pin_open(&gate->links, name.text), after = -1;
	bool has_frags = true;
	int err;

	if (array < 0)
		return pin_failed("open", &gate->links, name.text, array);
	/* the array's kind stays that of its first program, which PIN_AFTER still is */
	after = pin_open(&gate->links, attachment_pin(a, PIN_AFTER).text);
	err = after == -ENOENT ? 0 : after < 0 ? after : frags_find(after, &has_frags);
	if (err)
		return error_add(err, "program-open", NULL,
				 "cannot read the program that runs after Sluice on %s: %s",
				 a->device, why(err));
	return program_load_chain(next, array, has_frags);
}

/* --- Detaching ------------------------------------------------------------------------------ */

/* Attaches the other program again instead of Sluice's. The caller has entered the namespace. */
static int after_restore(const struct gate *gate, const struct attachment *a)
{
	_cleanup_close_ int ours = attachment_program_open(gate, a);
	_cleanup_close_ int array = pin_open(&gate->links, attachment_pin(a, PIN_CHAIN).text);
	_cleanup_close_ int after = array < 0 ? array : after_open(gate, a, array);

	if (ours < 0)
		return -errno;
	if (after < 0 && after != -ENOENT)
		return after;
	return chain_replace(a, ours, after < 0 ? -1 : after);
}

int chain_detach(const struct gate *gate, struct attachment a)
{
	struct pin_name name = attachment_pin(&a, PIN_ATTACHMENT);
	_cleanup_netns_ int back = -1;
	int err = attachment_look(gate, &a);

	if (err)
		return err;
	if (a.program_id) {
		err = netns_visit(a.netns, &back) ?: after_restore(gate, &a);
		/* the device is gone, or runs another program by now */
		if (err && err != -ENODEV && err != -EEXIST)
			return error_add(err, "detach", NULL, "cannot detach from %s: %s", a.device,
					 why(err));
		netns_return(&back);
	}
	err = pin_remove(&gate->links, name.text);
	if (err && err != -ENOENT)
		return pin_failed("remove", &gate->links, name.text, err);
	pin_remove(&gate->links, attachment_pin(&a, PIN_NEXT).text);
	pin_remove(&gate->links, attachment_pin(&a, PIN_AFTER).text);
	pin_remove(&gate->links, attachment_pin(&a, PIN_CHAIN).text);
	return 0;
}

/* --- The order of programs ------------------------------------------------------------------ */

static void order_add(struct xdp_order *order, uint32_t id, bool is_ours)
{
	struct xdp_order_program *program = &order->program[order->count++];
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	*program = (struct xdp_order_program){.id = id, .is_ours = is_ours};
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
		memcpy(program->name, info.name, sizeof(program->name));
}

const char *xdp_order_format(const struct xdp_order *order, char text[XDP_ORDER_TEXT])
{
	size_t length = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < order->count; i++) {
		const struct xdp_order_program *program = &order->program[i];

		length +=
			snprintf(text + length, XDP_ORDER_TEXT - length, "%s%s (id %u)",
				 i ? ", " : "", *program->name ? program->name : "?", program->id);
	}
	return text;
}

void xdp_order_read(const struct gate *gate, const struct attachment *a, struct xdp_order *ret)
{
	_cleanup_close_ int array = -1;
	uint32_t after;

	*ret = (struct xdp_order){0};
	if (a->mode != MODE_CHAIN || !a->program_id || gate->dir.reads_only)
		return;
	array = pin_open(&gate->links, attachment_pin(a, PIN_CHAIN).text);
	after = array < 0 ? 0 : slot_get(array);
	order_add(ret, a->program_id, true);
	if (after)
		order_add(ret, after, false);
}
