// SPDX-License-Identifier: GPL-2.0
#include "attach/attachment.h"

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

#include "attach/components.h"
#include "attach/filter.h"
#include "attach/program_array.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"

/* --- Pins ----------------------------------------------------------------------------------- */

/*
 * Prefixes of the names of pins. A name without a prefix begins with a hook, and no hook is named
 * "program", "next", "chain", "after" or "words".
 */
static const char *const leads[] = {
	[PIN_ATTACHMENT] = "",	[PIN_PROGRAM] = "program-", [PIN_NEXT] = "next-",
	[PIN_CHAIN] = "chain-", [PIN_AFTER] = "after-",	    [PIN_WORDS] = "words-",
};

/*
 * Replaces character `from` by `to`. bpffs forbids '.' in names, so a pin's name has ':' for '.'.
 */
static void replace(char *text, char from, char to)
{
	while ((text = strchr(text, from)))
		*text = to;
}

struct pin_name attachment_pin(const struct attachment *a, enum attachment_pin which)
{
	struct pin_name name;
	int length;

	if (which == PIN_QDISC) {
		snprintf(name.text, PIN_NAME, "qdisc-%" PRIu64 "-%u", a->pinned.netns,
			 a->pinned.ifindex);
		return name;
	}
	if (which == PIN_PROGRAM && !attachment_is_link(a))
		which = PIN_ATTACHMENT;
	length = snprintf(name.text, PIN_NAME, "%s%s-%s-%" PRIu64 "-%u-", leads[which],
			  hook_names[a->hook], mode_names[a->mode], a->pinned.netns,
			  a->pinned.ifindex);
	snprintf(name.text + length, PIN_NAME - length, "%s", a->pinned.device);
	replace(name.text + length, '.', ':');
	return name;
}

bool attachment_of_pin(const char *name, struct attachment *ret)
{
	struct attachment a = {0};
	char hook[16], mode[16];
	int hook_found, mode_found;

	if (sscanf(name, "%15[a-z]-%15[a-z]-%" SCNu64 "-%u-%15s", hook, mode, &a.pinned.netns,
		   &a.pinned.ifindex, a.pinned.device) != 5)
		return false;
	hook_found = word_find(hook_names, HOOKS, hook);
	mode_found = word_find(mode_names, MODES, mode);
	if (hook_found < 0 || mode_found < 0)
		return false;
	a.hook = hook_found;
	a.mode = mode_found;
	replace(a.pinned.device, ':', '.');
	*ret = a;
	return true;
}

struct attachment attachment_of(const struct netdev *device, enum hook hook)
{
	struct attachment a = {.hook = hook, .netns = netns_current(), .ifindex = device->ifindex};

	memcpy(a.device, device->name, sizeof(a.device));
	a.pinned.netns = a.netns;
	a.pinned.ifindex = a.ifindex;
	memcpy(a.pinned.device, a.device, sizeof(a.device));
	return a;
}

int attachment_words_write(const struct gate *gate, const struct attachment *a)
{
	struct pin_name name = attachment_pin(a, PIN_WORDS);
	char words[SLOT_TEXT];
	int err;

	if (a->mode == MODE_ARRAY)
		slot_format(&a->slot, words);
	else
		snprintf(words, sizeof(words), "%u", a->priority);
	err = pin_note(&gate->links, name.text, words);
	return err ? pin_failed("make", &gate->links, name.text, err) : 0;
}

/* Reads what attachment_words_write() wrote. Leaves the attachment unchanged if this fails. */
static void words_read(const struct gate *gate, struct attachment *a)
{
	char words[SLOT_TEXT];
	unsigned int mark = error_count();

	if ((a->mode != MODE_ARRAY && a->mode != MODE_LIBXDP) ||
	    pin_note_read(&gate->links, attachment_pin(a, PIN_WORDS).text, words, sizeof(words)))
		return;
	if (a->mode == MODE_ARRAY)
		value_parse(&value_slot, NULL, words, &a->slot);
	else
		value_parse(&value_priority, NULL, words, &a->priority);
	error_drop(mark);
}

enum mode attachment_mode(const struct attachment *a)
{
	return a->mode == (a->hook == HOOK_XDP ? MODE_NATIVE : MODE_TCX) ? MODE_AUTO : a->mode;
}

bool attachment_is_chained(const struct attachment *a)
{
	return a->mode == MODE_CHAIN || a->mode == MODE_ARRAY;
}

bool attachment_is_link(const struct attachment *a)
{
	return a->mode != MODE_CLSACT && a->mode != MODE_LIBXDP && !attachment_is_chained(a);
}

/* --- Programs ------------------------------------------------------------------------------- */

uint32_t program_id_of(int program_fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(program_fd, &info, &size) ? 0 : info.id;
}

int attachment_program_open(const struct gate *gate, const struct attachment *a)
{
	if (a->mode == MODE_LIBXDP) /* libxdp has the program's pin */
		return bpf_prog_get_fd_by_id(a->program_id);
	for (enum attachment_pin pin = PIN_PROGRAM; pin <= PIN_NEXT; pin++) {
		_cleanup_close_ int fd = pin_open(&gate->links, attachment_pin(a, pin).text);

		if (fd >= 0 && program_id_of(fd) == a->program_id)
			return steal_fd(&fd);
	}
	return bpf_prog_get_fd_by_id(a->program_id); /* no pin of the program exists */
}

/*
 * Returns whether the program runs on the XDP or tcx hook of device a->ifindex. Sets
 * `ret_is_generic` if it runs in generic XDP.
 */
static bool hook_runs(const struct attachment *a, uint32_t program_id, bool *ret_is_generic)
{
	int type = a->hook == HOOK_INGRESS ? TCX_INGRESS : TCX_EGRESS;
	__u32 ids[TCX_PROGRAMS_MAX], count = TCX_PROGRAMS_MAX;
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (a->mode != MODE_TCX) {
		if (bpf_xdp_query(a->ifindex, 0, &query))
			return false;
		*ret_is_generic = query.attach_mode == XDP_ATTACHED_SKB;
		return query.skb_prog_id == program_id || query.drv_prog_id == program_id ||
		       query.hw_prog_id == program_id || query.prog_id == program_id;
	}
	/* pass the ifindex as target_fd, because target_fd and target_ifindex are one union */
	if (bpf_prog_query(a->ifindex, type, 0, NULL, ids, &count))
		return false;
	for (__u32 i = 0; i < count; i++)
		if (ids[i] == program_id)
			return true;
	return false;
}

/* --- Devices and what they run -------------------------------------------------------------- */

/* A result of device_look(): the device with an ifindex in a namespace. */
struct sighting {
	char device[IF_NAMESIZE]; /* name of the device; "" if the ifindex does not exist */
	bool runs;		  /* the device runs the program */
	bool is_generic;	  /* the device runs the program in generic XDP */
};

/*
 * Finds the name of device a->ifindex in a network namespace. If `program_id` is not 0, finds
 * whether the device runs that program. Returns 0 or a negative errno, and adds no error.
 */
static int device_look(const struct attachment *a, uint64_t netns, uint32_t program_id,
		       struct sighting *ret)
{
	_cleanup_netns_ int back = -1;
	int err = netns_visit(netns, &back);

	*ret = (struct sighting){0};
	if (err)
		return err;
	if (!if_indextoname(a->ifindex, ret->device)) {
		ret->device[0] = '\0';
		return errno == ENXIO ? 0 : -errno;
	}
	if (program_id && a->mode == MODE_CLSACT)
		return filter_find(a->ifindex, a->hook == HOOK_INGRESS, program_id, &ret->runs);
	ret->runs = program_id && hook_runs(a, program_id, &ret->is_generic);
	return 0;
}

/*
 * Returns whether another attachment of the gate has this device. Compares names, because an
 * ifindex is unique only within a namespace.
 */
static bool is_of_another(const struct gate *gate, const struct attachment *a, uint64_t netns,
			  const char *device)
{
	struct attachment other = {.hook = a->hook,
				   .pinned = {.netns = netns, .ifindex = a->ifindex}};

	snprintf(other.pinned.device, sizeof(other.pinned.device), "%s", device);
	for (other.mode = MODE_AUTO + 1; other.mode < MODES; other.mode++)
		if (pin_exists(&gate->links, attachment_pin(&other, PIN_ATTACHMENT).text))
			return true;
	return false;
}

/*
 * Finds the device of a link. The kernel reports the link's ifindex, but not the network namespace.
 * So this searches first the namespace in which the link was attached, then all namespaces. Returns
 * 0 or a negative errno.
 */
static int link_look(const struct gate *gate, struct attachment *a, int link_fd)
{
	_cleanup_free_ uint64_t *all = NULL;
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	struct sighting seen;
	unsigned int count;
	uint64_t netns = a->pinned.netns;
	int err;

	if (bpf_obj_get_info_by_fd(link_fd, &info, &size))
		return -errno;
	if (!info.xdp.ifindex) /* info.xdp and info.tcx store the ifindex at the same offset */
		return 0;
	a->program_id = info.prog_id;
	a->ifindex = info.xdp.ifindex;
	device_look(a, netns, a->program_id, &seen);
	err = seen.runs ? 0 : netns_list(&all, &count);
	if (err)
		return err;
	for (unsigned int i = 0; !seen.runs && i < count; i++) {
		netns = all[i];
		device_look(a, netns, a->program_id, &seen);
		seen.runs = seen.runs && !is_of_another(gate, a, netns, seen.device);
	}
	if (seen.runs) {
		a->netns = netns;
		memcpy(a->device, seen.device, sizeof(a->device));
	}
	return 0;
}

/* Returns whether the path of the array has another map, as after a restart of its owner. */
static bool array_is_replaced(const struct attachment *a, int array_fd)
{
	_cleanup_close_ int fd = *a->slot.path ? bpf_obj_get(a->slot.path) : -1;

	return fd >= 0 && gate_map_id(fd) != gate_map_id(array_fd);
}

/* Calls device_look(). In mode array, the program runs if a slot has it. */
static int program_find(const struct gate *gate, const struct attachment *a, uint32_t id,
			struct sighting *ret)
{
	_cleanup_close_ int array = pin_open(&gate->links, attachment_pin(a, PIN_CHAIN).text);
	int err = device_look(a, a->netns, id, ret);
	uint32_t slot;

	if (!err && a->mode == MODE_ARRAY)
		ret->runs = *ret->device && array >= 0 && array_find(array, id, &slot) &&
			    !array_is_replaced(a, array);
	return err;
}

/*
 * Finds the device that runs XDP program `id` in any network namespace. A device that moves to
 * another namespace keeps its XDP program, but may get another ifindex.
 */
static void moved_find(struct attachment *a, uint32_t id, struct sighting *ret)
{
	_cleanup_free_ uint64_t *all = NULL;
	unsigned int count = 0;

	if (!id || netns_list(&all, &count))
		return;
	for (unsigned int i = 0; !ret->runs && i < count; i++) {
		_cleanup_netdevs_ struct netdevs devices = {0};
		_cleanup_netns_ int back = -1;
		unsigned int mark = error_count();

		if (netns_visit(all[i], &back) || netdevs_read(&devices))
			error_drop(mark);
		for (unsigned int j = 0; !ret->runs && j < devices.count; j++) {
			if (devices.list[j].xdp_id != id)
				continue;
			a->netns = all[i];
			a->ifindex = devices.list[j].ifindex;
			device_look(a, a->netns, id, ret);
		}
	}
}

/*
 * Finds the filter or device that runs program `program_fd`, or the program that PIN_NEXT pins.
 * In modes other than chain, searches only the network namespace in the pin's name, because a
 * device loses its filters if it moves to another namespace. If this user may not enter the
 * namespace, assumes that the program runs. Returns 0 or a negative errno.
 */
static int program_look(const struct gate *gate, struct attachment *a, int program_fd)
{
	uint32_t ids[2] = {program_id_of(program_fd)}, id = ids[0];
	_cleanup_close_ int next = -1;
	struct sighting seen;
	int err;

	if (!id)
		return -errno;
	next = pin_open(&gate->links, attachment_pin(a, PIN_NEXT).text);
	ids[1] = next < 0 ? 0 : program_id_of(next);
	err = program_find(gate, a, id, &seen);
	if (!err && !seen.runs) {
		id = ids[1];
		err = program_find(gate, a, id, &seen);
	}
	for (int i = 0; a->mode == MODE_CHAIN && err != -EPERM && !seen.runs && i < 2; i++) {
		id = ids[i];
		moved_find(a, id, &seen);
	}
	if (seen.runs || err == -EPERM)
		a->program_id = id;
	a->is_generic = seen.is_generic;
	if (seen.runs)
		memcpy(a->device, seen.device, sizeof(a->device));
	/* -ENOENT: the filter is gone, because its network namespace is gone */
	return err == -EPERM || err == -ENOENT ? 0 : err;
}

/* Finds the component of libxdp's dispatcher that uses map `secret_fd`. */
static int component_look(struct attachment *a, int secret_fd)
{
	struct components components;
	_cleanup_netns_ int back = -1;
	struct sighting seen;
	int err = device_look(a, a->netns, 0, &seen) ?: netns_visit(a->netns, &back);

	if (err)
		return err == -EPERM || err == -ENOENT ? 0 : err;
	components_read(a->ifindex, gate_map_id(secret_fd), &components);
	for (unsigned int i = 0; i < components.count; i++)
		if (components.list[i].is_ours)
			a->program_id = components.list[i].id;
	a->is_generic = components.is_generic;
	if (a->program_id)
		memcpy(a->device, seen.device, sizeof(a->device));
	return 0;
}

int attachment_look(const struct gate *gate, struct attachment *a)
{
	struct pin_name name = attachment_pin(a, PIN_ATTACHMENT);
	_cleanup_close_ int fd = pin_open(&gate->links, name.text);
	struct sighting seen;
	int err = 0;

	if (fd < 0 && fd != -ENOENT && fd != -ELOOP)
		return pin_failed("open", &gate->links, name.text, fd);
	a->program_id = 0;
	a->netns = a->pinned.netns;
	a->ifindex = a->pinned.ifindex;
	memcpy(a->device, a->pinned.device, sizeof(a->device));
	if (fd >= 0 && a->mode == MODE_LIBXDP)
		err = component_look(a, fd);
	else if (fd >= 0)
		err = attachment_is_link(a) ? link_look(gate, a, fd) : program_look(gate, a, fd);
	if (err)
		return pin_failed("read", &gate->links, name.text, err);
	/* if the name differs, another device has reused the ifindex */
	a->device_gone = !a->program_id && (device_look(a, a->netns, 0, &seen) ||
					    strcmp(seen.device, a->pinned.device));
	return 0;
}

bool attachment_merges(const struct attachment *a, bool is_tap)
{
	return a->mode == MODE_GENERIC || a->is_generic || (a->hook == HOOK_XDP && is_tap);
}

bool attachments_both_receive(const struct attachment *a, const struct attachment *b)
{
	return a->program_id && b->program_id && a->netns == b->netns && a->ifindex == b->ifindex &&
	       a->hook != b->hook && a->hook != HOOK_EGRESS && b->hook != HOOK_EGRESS;
}

const char *attachment_command(const char *verb, const struct attachment *a, const char *gate,
			       char text[COMMAND_TEXT])
{
	char option[NETNS_OPTION], words[MODE_TEXT] = "";
	enum mode mode = attachment_mode(a);
	bool has_mode = mode != MODE_AUTO && !strcmp(verb, "attach");

	if (has_mode)
		mode_format(mode, &a->slot, a->priority, words);
	snprintf(text, COMMAND_TEXT, "sluice %s-g %s %s %s hook %s%s%s",
		 netns_option(a->netns, netns_home(), option), gate, verb, operand_typed(a->device),
		 hook_names[a->hook], has_mode ? " " : "", words);
	return text;
}

/* --- Attachments of a gate ------------------------------------------------------------------ */

static int is_pin(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int attachments_expire(const struct gate *gate)
{
	struct dirent **entries;
	int count;
	int err = pins_list(&gate->links, is_pin, &entries, &count);

	if (err)
		return err;
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		for (enum attachment_pin pin = PIN_PROGRAM; pin <= PIN_WORDS; pin++) {
			size_t length = strlen(leads[pin]);

			if (!strncmp(name, leads[pin], length) &&
			    !pin_exists(&gate->links, name + length))
				pin_remove(&gate->links, name);
		}
		free(entries[i]);
	}
	free(entries);
	return 0;
}

int attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
		     unsigned int *ret_count)
{
	struct dirent **entries;
	int found, err;

	*ret_count = 0;
	err = gate->dir.reads_only ? pins_refuse_change(&gate->dir)
				   : pins_list(&gate->links, is_pin, &entries, &found);
	if (err)
		return err;
	for (int i = 0; i < found; i++) {
		struct attachment *a = &ret[*ret_count];

		if (!err && *ret_count < ATTACHMENTS_MAX &&
		    attachment_of_pin(entries[i]->d_name, a)) {
			words_read(gate, a);
			err = attachment_look(gate, a);
			++*ret_count;
		}
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* --- The owner of a device's XDP program ----------------------------------------------------- */

/* Callback of gates_for_each(): if the program belongs to this gate, stores the gate's name. */
static int owner_look(const char *name, void *data)
{
	struct gate gate = GATE_CLOSED;
	struct attachment all[ATTACHMENTS_MAX];
	struct xdp_owner *owner = data;
	unsigned int count = 0;

	snprintf(gate.name, sizeof(gate.name), "%s", name);
	/* ignore errors: the program may belong to another gate */
	if (!gate_dir_open(&gate))
		attachments_read(&gate, all, &count);
	for (unsigned int i = 0; i < count; i++)
		if (all[i].hook == HOOK_XDP && all[i].program_id == owner->program_id &&
		    all[i].ifindex == owner->ifindex)
			memcpy(owner->gate, gate.name, sizeof(gate.name));
	gate_close(&gate);
	return 0;
}

struct xdp_owner xdp_owner_find(unsigned int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct xdp_owner owner = {.ifindex = ifindex};
	struct bpf_prog_info info = {0};
	_cleanup_close_ int fd = -1;
	__u32 size = sizeof(info);

	if (bpf_xdp_query(ifindex, 0, &query))
		return owner;
	owner.program_id = query.prog_id       ?: query.drv_prog_id
			   ?: query.skb_prog_id ?: query.hw_prog_id;
	if (!owner.program_id)
		return owner;
	gates_for_each(owner_look, NULL, &owner);
	fd = bpf_prog_get_fd_by_id(owner.program_id);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
		snprintf(owner.name, sizeof(owner.name), "%s", info.name);
	return owner;
}

bool xdp_owner_is_libxdp(const struct xdp_owner *owner)
{
	return !strcmp(owner->name, "xdp_dispatcher");
}

const char *xdp_owner_format(const struct xdp_owner *owner, char text[XDP_OWNER_TEXT])
{
	bool named = *owner->name;

	if (*owner->gate)
		snprintf(text, XDP_OWNER_TEXT, "gate '%s'", owner->gate);
	else
		snprintf(text, XDP_OWNER_TEXT, "a program%s%s%s, id %u, of another software%s",
			 named ? " '" : "", owner->name, named ? "'" : "", owner->program_id,
			 xdp_owner_is_libxdp(owner) ? ": the dispatcher of libxdp" : "");
	return text;
}

/* --- Stacked attachments --------------------------------------------------------------------- */

/*
 * Two attachments that filter the same packets, because the device of `lower` is a lower device of
 * `upper`.
 */
struct stacked {
	const struct attachment *upper, *lower;
	const struct attachment *surplus; /* the attachment of the pair to detach */
};

static bool filters_like(const struct attachment *a, const struct attachment *b)
{
	return a->program_id && b->program_id && a->netns == b->netns &&
	       (a->hook == HOOK_EGRESS) == (b->hook == HOOK_EGRESS);
}

/* Returns whether all ports of bridge, bond or team `upper` are filtered in the same direction. */
static bool ports_are_filtered(const struct netdevs *links, const struct attachment *all,
			       unsigned int count, const struct attachment *upper)
{
	for (unsigned int i = 0; i < links->count; i++) {
		const struct netdev *port = &links->list[i];
		bool found = port->master != upper->ifindex;

		for (unsigned int j = 0; !found && j < count; j++)
			found = all[j].ifindex == port->ifindex && filters_like(&all[j], upper);
		if (!found)
			return false;
	}
	return true;
}

static bool is_among(const struct attachment *a, const struct attachment *made, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (made[i].netns == a->netns && made[i].ifindex == a->ifindex &&
		    made[i].hook == a->hook)
			return true;
	return false;
}

/*
 * Finds pairs of attachments that filter the same packets twice: their devices are stacked, in one
 * network namespace, and they filter the same direction. At least one of a pair is in `made`.
 * Returns the number of pairs, and stores the first pair.
 */
static unsigned int stacked_find(const struct netdevs *links, uint64_t netns,
				 const struct attachment *all, unsigned int count,
				 const struct attachment *made, unsigned int made_count,
				 struct stacked *ret)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < count; j++) {
			const struct attachment *upper = &all[i], *lower = &all[j];

			if (upper->netns != netns || !filters_like(upper, lower) ||
			    (!is_among(upper, made, made_count) &&
			     !is_among(lower, made, made_count)) ||
			    !netdevs_are_stacked(links, upper->ifindex, lower->ifindex) || found++)
				continue;
			*ret = (struct stacked){upper, lower, upper};
			if (!ports_are_filtered(links, all, count, upper))
				ret->surplus = lower;
		}
	return found;
}

int stacked_note(const struct gate *gate, const struct attachment *made, unsigned int count)
{
	char command[COMMAND_TEXT], more[64] = "";
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int there, found = 0;
	struct stacked first = {0}, pair = {0};
	uint64_t netns = 0;
	bool sends;
	int err = count ? attachments_read(gate, all, &there) : 0;

	for (unsigned int i = 0; !err && i < count; i++) {
		_cleanup_netdevs_ struct netdevs devices = {0};
		_cleanup_netns_ int back = -1;
		unsigned int here;

		if (made[i].netns == netns) /* this namespace was just searched */
			continue;
		netns = made[i].netns;
		if (!netns_visit(netns, &back))
			err = netdevs_read(&devices);
		here = stacked_find(&devices, netns, all, there, made, count, &pair);
		if (here && !found)
			first = pair;
		found += here;
	}
	if (!found)
		return err;
	if (found > 1)
		snprintf(more, sizeof(more), "; %u more %s", found - 1,
			 plural(found - 1, "pair", "pairs"));
	sends = first.upper->hook == HOOK_EGRESS;
	error_notice("charged-twice", first.upper->device,
		     "it %s packets %s %s, and gate '%s' filters both, so each of these packets is "
		     "charged and counted twice; to charge them once: '%s'%s",
		     sends ? "sends" : "gets", sends ? "by" : "of", first.lower->device, gate->name,
		     attachment_command("detach", first.surplus, gate->name, command), more);
	return err;
}
