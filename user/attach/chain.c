// SPDX-License-Identifier: GPL-2.0
#include "attach/chain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <sys/param.h>

#include "attach/components.h"
#include "attach/program_array.h"
#include "attach/refuse.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/maps.h"

/* --- Slots ---------------------------------------------------------------------- */

/* Returns the slots after `slot` that Sluice's program calls. */
static struct sl_chain slots_after(uint32_t slot, uint32_t count)
{
	return (struct sl_chain){slot + 1, MIN(count, slot + 1 + SL_CHAIN_SLOTS)};
}

/*
 * Opens the program in slot 0. It is another program than that of PIN_AFTER if its owner replaced
 * it there. Returns -ENOENT if the slot is empty.
 */
static int after_open(const struct gate *gate, const struct attachment *a, int array_fd)
{
	_cleanup_close_ int fd = pin_open(&gate->links, attachment_pin(a, PIN_AFTER).text);
	uint32_t id = array_get(array_fd, 0);
	int other;

	if (!id)
		return -ENOENT;
	if (fd >= 0 && program_id_of(fd) == id)
		return steal_fd(&fd);
	other = bpf_prog_get_fd_by_id(id);
	return other < 0 ? -errno : other;
}

/* --- Attaching ------------------------------------------------------------------------------ */

int chain_slot_replace(const struct gate *gate, const struct attachment *a, int program_fd)
{
	_cleanup_close_ int array = pin_open(&gate->links, attachment_pin(a, PIN_CHAIN).text);
	uint32_t slot;

	if (array < 0)
		return array;
	if (!array_find(array, a->program_id, &slot))
		return -ENOENT;
	return program_fd < 0 ? bpf_map_delete_elem(array, &slot)
			      : array_set(array, slot, program_fd);
}

int chain_replace(const struct attachment *a, int before_fd, int program_fd)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = before_fd);
	__u32 flags = a->is_generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;

	if (before_fd < 0)
		return bpf_xdp_attach(a->ifindex, program_fd, flags | XDP_FLAGS_UPDATE_IF_NOEXIST,
				      NULL);
	return bpf_xdp_attach(a->ifindex, program_fd, flags | XDP_FLAGS_REPLACE, &opts);
}

/*
 * Opens the XDP program of the device, and finds its mode. Stores -1 if the device has none.
 * Returns an error if mode chain cannot take the program over.
 */
static int before_open(const struct gate *gate, const struct netdev *device, struct attachment *a,
		       struct xdp_owner *ret, int *ret_fd)
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
	if (*ret->gate || xdp_owner_is_libxdp(ret))
		return xdp_owner_refuse(gate, device);
	if (!a->is_generic && query.attach_mode != XDP_ATTACHED_DRV)
		return error_add(EBUSY, "hook-taken", NULL,
				 "%s has an XDP program in hardware, which mode chain cannot take "
				 "over; detach that first, or filter after it on hook ingress",
				 device->name);
	*ret_fd = bpf_prog_get_fd_by_id(ret->program_id);
	if (*ret_fd < 0)
		return error_add(errno, "program-open", NULL,
				 "cannot open the XDP program of %s, id %u: %s", device->name,
				 ret->program_id,
				 errno == EPERM ? "this requires CAP_SYS_ADMIN; run it as root"
						: why(errno));
	return 0;
}

static int chain_failed(const struct gate *gate, const struct netdev *device,
			const struct attachment *a, const struct xdp_owner *before, int err)
{
	bool is_unsupported = err == -EOPNOTSUPP || (err == -EINVAL && !before->program_id);

	if ((err == -EEXIST || is_unsupported) && xdp_relative_refuse(gate, device))
		return err;
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
	if (is_unsupported)
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
	int err;

	*ret_array = array_make();
	err = *ret_array < 0 ? *ret_array : 0;
	if (!err && before_fd >= 0)
		err = array_set(*ret_array, 0, before_fd);
	err = err ?: array_find_frags(*ret_array, ret_has_frags);
	if (err == -EINVAL)
		return error_add(err, "not-callable", NULL,
				 "%s has an XDP program that the kernel lets no other program "
				 "call: '%s', id %u; detach that first, or filter after it on hook "
				 "ingress",
				 device->name, before->name, before->program_id);
	if (err)
		return error_add(err, "attach", NULL, "cannot make the program array of %s: %s",
				 device->name, why(err));
	*ret_program =
		program_load_chain(gate, *ret_array, (struct sl_chain){0, 1}, *ret_has_frags);
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
	err = before_open(gate, device, &a, &owner, &before)
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
			chain_failed(gate, device, &a, &owner, err);
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
	_cleanup_close_ int array = pin_open(&gate->links, name.text);
	struct sl_chain slots = {0, 1};
	uint32_t slot = 0, count = 0;
	bool has_frags;
	int err;

	if (array < 0)
		return pin_failed("open", &gate->links, name.text, array);
	err = array_count(array, &count) ?: array_find_frags(array, &has_frags);
	if (err)
		return error_add(err, "program-open", NULL,
				 "cannot read the program array of %s: %s", a->device, why(err));
	if (a->mode == MODE_ARRAY && array_find(array, a->program_id, &slot))
		slots = slots_after(slot, count);
	return program_load_chain(next, array, slots, has_frags);
}

/* --- Mode array ----------------------------------------------------------------------------- */

/* Returns whether the XDP program of the device uses the array. */
static bool root_uses(unsigned int ifindex, int array_fd)
{
	uint32_t program_id = 0, used[64], array_id = gate_map_id(array_fd);
	struct bpf_prog_info info = {.nr_map_ids = ARRAY_SIZE(used), .map_ids = (uintptr_t)used};
	__u32 size = sizeof(info);
	_cleanup_close_ int fd = -1;

	if (bpf_xdp_query_id(ifindex, 0, &program_id) || !program_id)
		return false;
	fd = bpf_prog_get_fd_by_id(program_id);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return fd < 0;
	for (uint32_t i = 0; i < MIN(info.nr_map_ids, ARRAY_SIZE(used)); i++)
		if (used[i] == array_id)
			return true;
	return false;
}

/*
 * Finds the slot that has the attachment's program. If an upgrade was killed, the slot may have the
 * program of PIN_NEXT. Works even if the device is gone. Returns whether there is such a slot.
 */
static bool slot_find(const struct gate *gate, const struct attachment *a, int array_fd,
		      uint32_t *ret)
{
	for (enum attachment_pin pin = PIN_PROGRAM; pin <= PIN_NEXT; pin++) {
		_cleanup_close_ int fd = pin_open(&gate->links, attachment_pin(a, pin).text);

		if (fd >= 0 && array_find(array_fd, program_id_of(fd), ret))
			return true;
	}
	return false;
}

/*
 * Returns an error if a slot of the array has a program of this gate. Each packet would reach both
 * programs, and be charged twice.
 */
static int array_refuse_twice(const struct gate *gate, const struct array_slot *at, int array_fd)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	uint32_t slot;
	int err = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !err && i < count; i++)
		if (all[i].mode == MODE_ARRAY && slot_find(gate, &all[i], array_fd, &slot))
			return error_add(EEXIST, "slot-taken", at->path,
					 "slot %u has a program of gate '%s' for %s already, which "
					 "judges the packets of all devices that use this array; "
					 "to use another slot, detach %s first",
					 slot, gate->name, all[i].device, all[i].device);
	return err;
}

/* Opens the array, and returns an error if Sluice's program cannot be in this slot of it. */
static int array_open(const struct gate *gate, const struct array_slot *at, uint32_t *ret_count,
		      bool *ret_has_frags, int *ret_fd)
{
	static const char gates[] = BPFFS "/" PINS_ROOT "/";
	uint32_t holder;
	int err;

	if (!strncmp(at->path, gates, sizeof(gates) - 1))
		return error_add(EINVAL, "array-of-gate", at->path,
				 "is the array of a gate, which has no slot for a gate; attach one "
				 "of the two gates on hook ingress");
	*ret_fd = bpf_obj_get(at->path);
	if (*ret_fd < 0)
		return error_add(errno, "array-open", at->path, "cannot open it: %s", why(errno));
	err = array_count(*ret_fd, ret_count);
	if (err)
		return error_add(err, "not-an-array", at->path,
				 "not a pinned program array; see 'bpftool map show pinned %s'",
				 word_typed(at->path));
	if (at->slot >= *ret_count)
		return error_add(ERANGE, "no-such-slot", at->path,
				 "has no slot %u; its last slot is %u", at->slot, *ret_count - 1);
	err = array_refuse_twice(gate, at, *ret_fd);
	if (err)
		return err;
	holder = array_get(*ret_fd, at->slot);
	if (holder)
		return error_add(EBUSY, "slot-taken", at->path,
				 "slot %u has a program already, id %u; choose another slot, or "
				 "see 'bpftool prog show id %u'",
				 at->slot, holder, holder);
	err = array_find_frags(*ret_fd, ret_has_frags);
	return err ? error_add(err, "not-callable", at->path,
			       "its programs cannot call sluice's program, which is of type XDP: "
			       "%s",
			       why(err))
		   : 0;
}

int array_attach(const struct gate *gate, const struct netdev *device, const struct array_slot *at,
		 struct attachment *ret)
{
	struct attachment a = attachment_of(device, HOOK_XDP);
	_cleanup_close_ int array = -1, program = -1;
	const struct pins *links = &gate->links;
	bool has_frags = true;
	uint32_t count = 0;
	int err;

	a.mode = MODE_ARRAY;
	a.slot = *at;
	err = array_open(gate, at, &count, &has_frags, &array);
	if (err)
		return err;
	program = program_load_chain(gate, array, slots_after(at->slot, count), has_frags);
	if (program < 0)
		return program;
	err = attachment_words_write(gate, &a);
	if (err)
		return err;
	err = pin_replace(links, attachment_pin(&a, PIN_CHAIN).text, array)
		      ?: pin_make(links, attachment_pin(&a, PIN_ATTACHMENT).text, program);
	if (err)
		pin_failed("make", links, attachment_pin(&a, PIN_ATTACHMENT).text, err);
	if (!err) {
		err = array_set(array, at->slot, program);
		if (err)
			error_add(err, "slot-set", at->path, "cannot change slot %u: %s", at->slot,
				  why(err));
	}
	err = err ?: attachment_look(gate, &a);
	*ret = a;
	if (err)
		chain_detach(gate, a);
	else if (!root_uses(device->ifindex, array))
		error_notice("array-unused", device->name,
			     "its XDP program does not use this array, so the gate may see no "
			     "packet of it");
	return err;
}

/* --- Detaching ------------------------------------------------------------------------------ */

/* Attaches the other program again instead of Sluice's. The caller has entered the namespace. */
static int after_restore(const struct gate *gate, const struct attachment *a)
{
	_cleanup_close_ int ours = attachment_program_open(gate, a);
	_cleanup_close_ int array = pin_open(&gate->links, attachment_pin(a, PIN_CHAIN).text);
	_cleanup_close_ int after = -1;

	/* without its pin, the kernel empties the array */
	after = array == -ENOENT ? pin_open(&gate->links, attachment_pin(a, PIN_AFTER).text)
		: array < 0	 ? array
				 : after_open(gate, a, array);
	if (ours < 0)
		return ours;
	if (after < 0 && after != -ENOENT)
		return after;
	return chain_replace(a, ours, after < 0 ? -1 : after);
}

/*
 * Empties the slot if it has a program of the attachment. Does so even if the device is gone,
 * because other devices may use the array.
 */
static int array_leave(const struct gate *gate, struct attachment *a)
{
	for (enum attachment_pin pin = PIN_PROGRAM; pin <= PIN_NEXT; pin++) {
		_cleanup_close_ int fd = pin_open(&gate->links, attachment_pin(a, pin).text);
		int err;

		a->program_id = fd < 0 ? 0 : program_id_of(fd);
		err = a->program_id ? chain_slot_replace(gate, a, -1) : 0;
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

/*
 * Adds an error if a device above or below this device keeps the kernel from replacing its program.
 * The caller has entered the namespace.
 */
static int relative_refuse(const struct attachment *a)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	const struct netdev *relative;
	int err = netdevs_read(&devices);

	relative = err ? NULL : netdevs_find_xdp(&devices, a->ifindex);
	return relative ? error_add(EEXIST, "hook-taken", a->device,
				    "%s has an XDP program, so the kernel does not let sluice "
				    "return %s to the other program; detach the program of %s "
				    "first",
				    relative->name, a->device, relative->name)
			: err;
}

/* Gives the device back to the other program. Adds an error if this fails. */
static int chain_leave(const struct gate *gate, const struct attachment *a)
{
	struct attachment now = *a;
	_cleanup_netns_ int back = -1;
	int err = netns_visit(a->netns, &back) ?: after_restore(gate, a);

	if (!err || err == -ENODEV)
		return 0;
	/* -EEXIST: the device runs another program by now, or the kernel allows no replacement */
	if (err == -EEXIST && !attachment_look(gate, &now) && !now.program_id)
		return 0;
	if (err == -EEXIST && relative_refuse(a))
		return err;
	return error_add(err, "detach", NULL, "cannot detach from %s: %s", a->device, why(err));
}

int chain_detach(const struct gate *gate, struct attachment a)
{
	struct pin_name name = attachment_pin(&a, PIN_ATTACHMENT);
	int err = attachment_look(gate, &a);

	if (err)
		return err;
	if (a.mode == MODE_ARRAY) {
		err = array_leave(gate, &a);
		if (err)
			return error_add(err, "detach", NULL, "cannot empty the slot of %s: %s",
					 a.device, why(err));
	} else if (a.program_id) {
		err = chain_leave(gate, &a);
		if (err)
			return err;
	}
	err = pin_remove(&gate->links, name.text);
	if (err && err != -ENOENT)
		return pin_failed("remove", &gate->links, name.text, err);
	pin_remove(&gate->links, attachment_pin(&a, PIN_NEXT).text);
	pin_remove(&gate->links, attachment_pin(&a, PIN_AFTER).text);
	pin_remove(&gate->links, attachment_pin(&a, PIN_CHAIN).text);
	pin_remove(&gate->links, attachment_pin(&a, PIN_WORDS).text);
	return 0;
}

/* --- The order of programs ------------------------------------------------------------------ */

static void order_add(struct xdp_order *order, uint32_t id, bool is_ours, int slot)
{
	struct xdp_order_program *program = &order->program[order->count];
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	_cleanup_close_ int fd = -1;

	if (order->count == ORDER_MAX || !id)
		return;
	fd = bpf_prog_get_fd_by_id(id);
	*program = (struct xdp_order_program){.id = id, .is_ours = is_ours, .slot = slot};
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
		memcpy(program->name, info.name, sizeof(program->name));
	order->count++;
}

static void order_components(const struct gate *gate, const struct attachment *a,
			     struct xdp_order *ret)
{
	_cleanup_close_ int secret = pin_open(&gate->links, attachment_pin(a, PIN_ATTACHMENT).text);
	struct components components;
	_cleanup_netns_ int back = -1;

	if (secret < 0 || netns_visit(a->netns, &back))
		return;
	components_read(a->ifindex, gate_map_id(secret), &components);
	order_add(ret, components.dispatcher_id, false, -1);
	for (unsigned int i = 0; i < components.count; i++)
		order_add(ret, components.list[i].id, components.list[i].is_ours, -1);
}

const char *xdp_order_format(const struct xdp_order *order, char text[XDP_ORDER_TEXT])
{
	size_t length = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < order->count; i++) {
		const struct xdp_order_program *program = &order->program[i];

		length +=
			snprintf(text + length, XDP_ORDER_TEXT - length, "%s%s (id %u",
				 i ? ", " : "", *program->name ? program->name : "?", program->id);
		length += program->slot < 0 ? snprintf(text + length, XDP_ORDER_TEXT - length, ")")
					    : snprintf(text + length, XDP_ORDER_TEXT - length,
						       ", slot %d)", program->slot);
	}
	return text;
}

void xdp_order_read(const struct gate *gate, const struct attachment *a, struct xdp_order *ret)
{
	_cleanup_netns_ int back = -1;
	_cleanup_close_ int array = -1;
	uint32_t root = 0, count;

	*ret = (struct xdp_order){0};
	if (a->mode == MODE_LIBXDP && a->program_id && !gate->dir.reads_only) {
		order_components(gate, a, ret);
		return;
	}
	if (!attachment_is_chained(a) || !a->program_id || gate->dir.reads_only)
		return;
	array = pin_open(&gate->links, attachment_pin(a, PIN_CHAIN).text);
	if (array < 0)
		return;
	if (a->mode == MODE_CHAIN) {
		order_add(ret, a->program_id, true, -1);
		order_add(ret, array_get(array, 0), false, -1);
		return;
	}
	if (!netns_visit(a->netns, &back) && !bpf_xdp_query_id(a->ifindex, 0, &root))
		order_add(ret, root, false, -1);
	if (array_count(array, &count))
		return;
	for (uint32_t slot = 0; slot < count && ret->count < ORDER_MAX; slot++) {
		uint32_t id = array_get(array, slot);

		order_add(ret, id, id == a->program_id, slot);
	}
}
