// SPDX-License-Identifier: GPL-2.0
#include "attach/places.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/libxdp.h"
#include "attach/published.h"
#include "base/cleanup.h"
#include "base/netns.h"

/* --- Attachments as places ------------------------------------------------------------------ */

/*
 * Converts an attachment to an `attach` item of a rules file. Returns false if no item can specify
 * the attachment, for example because its namespace has no name.
 */
static bool attachment_place(const struct attachment *a, struct place *ret)
{
	struct place place = {.hook = a->hook, .mode = attachment_mode(a), .slot = a->slot};

	if (a->priority != PRIORITY_DEFAULT)
		place.priority = a->priority;
	if (a->mode == MODE_ARRAY && !*a->slot.path)
		return false;
	/* the namespace may have no name, or a name that netns_name() truncated */
	if (!netns_name(a->netns, place.netns) ||
	    (*place.netns && netns_named(place.netns) != a->netns))
		return false;
	snprintf(place.device, sizeof(place.device), "%s", a->device);
	*ret = place;
	return place_is_nameable(&place);
}

int gate_places(const struct gate *gate, struct places *ret)
{
	struct places places = {0};
	struct place place;
	struct seen seen;
	int err = attachments_see(gate, &seen);

	for (unsigned int i = 0; !err && i < seen.count; i++) {
		if (!seen.all[i].program_id)
			continue;
		if (attachment_place(&seen.all[i], &place))
			err = places_add(&places, &place);
		else
			error_notice("unnamed-device", seen.all[i].device,
				     "a rules file cannot name it or its network namespace; it is "
				     "omitted");
	}
	places.specified = places.count;
	if (err)
		places_free(&places);
	else
		*ret = places;
	return err;
}

/* --- Devices of places ---------------------------------------------------------------------- */

/* Plans to attach one device that an item matches, unless an earlier item also matches it. */
static int device_want(const struct place *place, const struct netdev *device, enum missing missing,
		       struct placings *placings)
{
	struct attachment a = attachment_of(device, place->hook);
	char words[MODE_TEXT], first_words[MODE_TEXT];
	int err = attach_choose_hook(device, place->mode, missing != MISSING_SILENT, &a.hook);

	if (err)
		return err;
	a.mode = place->mode;
	a.slot = place->slot;
	a.priority = place->priority ?: a.mode == MODE_LIBXDP ? PRIORITY_DEFAULT : 0;
	for (unsigned int i = 0; i < placings->wanted_count; i++) {
		const struct attachment *first = &placings->wanted[i];

		if (first->netns != a.netns || first->ifindex != a.ifindex || first->hook != a.hook)
			continue;
		mode_format(first->mode, &first->slot, first->priority, first_words);
		mode_format(a.mode, &a.slot, a.priority, words);
		if (strcmp(first_words, words) && missing != MISSING_SILENT)
			error_notice("item-repeated", "attach",
				     "an earlier item also matches %s on hook %s; its %s is used, "
				     "and %s has no effect",
				     device->name, hook_names[a.hook], first_words, words);
		return 0;
	}
	if (placings->wanted_count == ATTACHMENTS_MAX)
		return error_add(
			ENOSPC, "too-many-attachments", "attach",
			"'%s' makes more than %d attachments, the most that a gate can have",
			place->device, ATTACHMENTS_MAX);
	placings->wanted[placings->wanted_count++] = a;
	return 0;
}

/*
 * Plans to attach the devices of an item in the current namespace. A pattern such as eth* matches
 * only Ethernet devices, and not loopback. It matches an ifb only on hook egress, because packets
 * in an ifb pass no other hook.
 */
static int devices_want(const struct place *place, enum missing missing, struct placings *placings,
			bool *ret_found)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	struct netdev device;
	int err = netdevs_read(&devices);

	if (err)
		return err;
	if (!place_is_pattern(place)) {
		if ((place->optional || missing != MISSING_FAILS) &&
		    !netdevs_find_name(&devices, place->device))
			return 0;
		*ret_found = true;
		err = device_find_in(&devices, place->device, &device);
		return err ?: device_want(place, &device, missing, placings);
	}
	for (unsigned int i = 0; !err && i < devices.count; i++) {
		const struct netdev *each = &devices.list[i];

		if (!each->is_ethernet || fnmatch(place->device, each->name, 0) ||
		    (place->hook != HOOK_EGRESS && !strcmp(each->kind, "ifb")))
			continue;
		*ret_found = true;
		err = device_want(place, each, missing, placings);
	}
	return err;
}

/*
 * Plans to attach the devices that an item matches. Sets *ret_found if the item matches a device.
 */
static int place_want(const struct place *place, enum missing missing, struct placings *placings,
		      bool *ret_found)
{
	uint64_t netns = *place->netns ? netns_named(place->netns) : netns_current();
	char where[NETNS_NAME + sizeof(" in network namespace ''")];
	_cleanup_netns_ int back = -1;
	int err;

	*ret_found = false;
	if (!netns && errno != ENOENT)
		return error_add(errno, "netns-open", NULL,
				 "cannot open network namespace '%s': %s", place->netns,
				 why(errno));
	if (netns) {
		err = netns_visit(netns, &back);
		if (err)
			return error_add(err, "netns-enter", "attach",
					 "cannot enter network namespace '%s' for %s: %s",
					 place->netns, place->device, netns_why(err));
		err = devices_want(place, missing, placings, ret_found);
		if (err)
			return err;
	}
	if (*ret_found || place->optional || missing == MISSING_SILENT)
		return 0;
	snprintf(where, sizeof(where), "%s%s%s", *place->netns ? " in network namespace '" : "",
		 place->netns, *place->netns ? "'" : "");
	if (missing == MISSING_FAILS)
		return error_add(ENODEV, "no-such-device", "attach",
				 "no device matches '%s'%s; see 'ip link' and 'ip netns list', or "
				 "write 'optional: true'",
				 place->device, where);
	error_notice("no-such-device", "attach",
		     "no device matches '%s'%s; 'apply' refuses the file, and 'keep' waits for a "
		     "device",
		     place->device, where);
	return 0;
}

/* --- The plan ------------------------------------------------------------------------------- */

static struct way way_of(const struct attachment *a)
{
	return (struct way){a->hook, a->mode, a->slot, a->priority};
}

static bool serves(const struct attachment *has, const struct attachment *wanted)
{
	const struct way way = way_of(wanted);

	return has->hook == wanted->hook ? attachment_serves(has, &way) : wanted->mode == MODE_AUTO;
}

/*
 * Returns the index of the existing attachment that is equal to `wanted`, or that `wanted` will
 * replace. Returns -1 if there is none. Prefers an attachment in the wanted mode, because a killed
 * change of mode may leave an attachment in each mode. For hook xdp in mode auto, accepts hook
 * ingress, because attach_device() uses hook ingress if native XDP fails.
 */
static int find_there(const struct attachment *all, unsigned int count,
		      const struct attachment *wanted)
{
	int ingress = -1, other = -1;

	for (unsigned int i = 0; i < count; i++) {
		if (!all[i].program_id || all[i].netns != wanted->netns ||
		    all[i].ifindex != wanted->ifindex)
			continue;
		if (all[i].hook == wanted->hook && serves(&all[i], wanted))
			return i;
		if (all[i].hook == wanted->hook)
			other = i;
		if (all[i].hook == HOOK_INGRESS)
			ingress = i;
	}
	return other < 0 && wanted->hook == HOOK_XDP && wanted->mode == MODE_AUTO ? ingress : other;
}

/*
 * Plans the steps from the existing to the wanted attachments. First detaches attachments whose
 * program is gone, because a wanted attachment may need the name of their pins. Keeps the
 * attachments of devices that no rules file can name.
 */
static void plan_make(struct placings *placings, const struct attachment *all, unsigned int count,
		      bool detaches)
{
	bool stays[ATTACHMENTS_MAX] = {false};
	struct place place;

	for (unsigned int i = 0; detaches && i < count; i++)
		if (!all[i].program_id)
			placings->list[placings->count++] =
				(struct placing){.attachment = all[i], .detaches = true};
	for (unsigned int i = 0; i < placings->wanted_count; i++) {
		struct placing placing = {.attachment = placings->wanted[i]};
		int there = find_there(all, count, &placing.attachment);

		if (there >= 0) {
			stays[there] = true;
			if (serves(&all[there], &placing.attachment))
				continue;
			placing.replaces = true;
			placing.before = all[there];
		}
		placings->list[placings->count++] = placing;
	}
	for (unsigned int i = 0; detaches && i < count; i++) {
		if (stays[i] || !all[i].program_id)
			continue;
		if (attachment_place(&all[i], &place))
			placings->list[placings->count++] =
				(struct placing){.attachment = all[i], .detaches = true};
		else
			error_notice("unnamed-device", all[i].device,
				     "a rules file cannot name it or its network namespace; it "
				     "stays attached on hook %s",
				     hook_names[all[i].hook]);
	}
}

int placings_plan(const struct gate *gate, const struct places *places, enum missing missing,
		  bool *ret_missing, struct placings *ret)
{
	struct seen seen = {.sight = SIGHT_LINKS};
	int err = places->specified ? attachments_see(gate, &seen) : 0;

	ret->count = ret->wanted_count = ret->failed = 0;
	if (!err && seen.sight == SIGHT_NONE) /* attachments_see() has added a notice */
		err = -EACCES;
	for (unsigned int i = 0; !err && i < places->count; i++) {
		bool found;
		int failed = place_want(&places->list[i], missing, ret, &found);

		if (missing == MISSING_SILENT)
			ret->failed += failed != 0;
		else
			err = failed;
		if (ret_missing)
			ret_missing[i] = !failed && !found && !places->list[i].optional;
	}
	if (!err)
		plan_make(ret, seen.all, seen.count, places->specified && !ret->failed);
	return err;
}

/* --- Executing the plan --------------------------------------------------------------------- */

/*
 * Attaches the gate in the network namespace of the device. Finds the device by its ifindex or, if
 * that does not exist, by its name. beside: permit that the hook has an attachment in another mode.
 * Sets `ret_existed` if the gate was already attached.
 */
static int attach_there(const struct gate *gate, struct programs *programs, struct attachment *a,
			bool beside, bool *ret_existed)
{
	const struct way way = way_of(a);
	_cleanup_netns_ int back = -1;
	char name[IF_NAMESIZE];
	struct netdev device;
	int err = netns_visit(a->netns, &back);

	*ret_existed = false;
	if (err)
		return error_add(err, "netns-enter", NULL,
				 "cannot enter the network namespace of %s: %s", a->device,
				 netns_why(err));
	return device_find(if_indextoname(a->ifindex, name) ? name : a->device, &device)
		       ?: attach_device(gate, programs, &device, &way, beside, a, ret_existed);
}

/*
 * Changes the mode on hook ingress or egress. Attaches the new program before it detaches the old
 * program, so that a program checks every packet. Both programs may charge a packet.
 */
static int replace_tc(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	bool existed;
	int err = attach_there(gate, programs, &placing->attachment, true, &existed);

	if (err)
		return err;
	err = detach(gate, &placing->before);
	if (err)
		detach(gate, &placing->attachment);
	return err;
}

/*
 * Changes the mode on hook xdp, which runs only one program. A temporary program on hook ingress
 * filters packets during the change.
 */
static int replace_xdp(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	struct attachment ingress = placing->before;
	bool had_ingress, unused;
	int err, unguarded;

	ingress.hook = HOOK_INGRESS;
	ingress.mode = MODE_AUTO;
	unguarded = attach_there(gate, programs, &ingress, false, &had_ingress);
	err = detach(gate, &placing->before);
	if (!err) {
		err = attach_there(gate, programs, &placing->attachment, false, &unused);
		if (err)
			attach_there(gate, programs, &placing->before, false, &unused);
	}
	if (unguarded)
		error_notice("unjudged", placing->attachment.device,
			     "its packets passed without a check while the mode changed");
	else if (!had_ingress)
		err = detach(gate, &ingress) ?: err;
	return err;
}

/*
 * Changes the run priority in mode libxdp. libxdp changes the order of components only by a new
 * component, which is added before the old component is removed. Removes PIN_WORDS meanwhile: if
 * this fails or is killed, libxdp_expire() asks libxdp for the priority.
 */
static int replace_component(const struct gate *gate, struct placing *placing)
{
	struct attachment a = placing->before;
	int err;

	a.priority = placing->attachment.priority;
	pin_remove(&gate->links, attachment_pin(&a, PIN_WORDS).text);
	err = libxdp_replace(gate, gate, a.priority, &a);
	if (err)
		return error_add(err, "priority", a.device,
				 "cannot change its run priority to %u: %s", a.priority, why(err));
	placing->attachment = a;
	return attachment_words_write(gate, &a);
}

static int placing_make(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	struct attachment *a = &placing->attachment;
	char words[MODE_TEXT], words_before[MODE_TEXT];
	bool existed = false;
	int err;

	if (placing->detaches)
		err = detach(gate, a);
	else if (!placing->replaces)
		err = attach_there(gate, programs, a, false, &existed);
	else if (placing->before.mode == MODE_LIBXDP &&
		 (a->mode == MODE_LIBXDP || a->mode == MODE_AUTO))
		err = replace_component(gate, placing);
	else if (placing->before.hook == HOOK_XDP)
		err = replace_xdp(gate, programs, placing);
	else
		err = replace_tc(gate, programs, placing);
	if (!err && placing->replaces)
		error_notice("mode-changed", a->device, "attached with %s instead of %s",
			     mode_format(a->mode, &a->slot, a->priority, words),
			     mode_format(placing->before.mode, &placing->before.slot,
					 placing->before.priority, words_before));
	placing->done = !err && !existed;
	return err;
}

/*
 * Undoes the steps in reverse order, so that old attachments are restored before new attachments
 * are removed.
 */
int placings_undo(const struct gate *gate, struct placings *placings)
{
	_cleanup_(programs_close) struct programs programs = PROGRAMS_CLOSED;
	int err = 0;

	for (unsigned int i = placings->count; i--;) {
		struct placing *placing = &placings->list[i];
		struct placing back = {.attachment = placing->attachment,
				       .detaches = !placing->detaches};

		if (!placing->done)
			continue;
		placing->done = false;
		if (placing->detaches && !placing->attachment.program_id)
			/* it ran no program before this change, so there is nothing to restore */
			continue;
		if (placing->replaces)
			back = (struct placing){.attachment = placing->before,
						.before = placing->attachment,
						.replaces = true};
		err = placing_make(gate, &programs, &back) ?: err;
	}
	return err;
}

int placings_make(const struct gate *gate, struct placings *placings)
{
	_cleanup_(programs_close) struct programs programs = PROGRAMS_CLOSED;

	for (unsigned int i = 0; i < placings->count; i++) {
		int err = placing_make(gate, &programs, &placings->list[i]);

		if (!err)
			continue;
		placings_undo(gate, placings);
		return err;
	}
	return 0;
}

void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings)
{
	for (unsigned int i = 0; i < placings->count; i++)
		placings->failed += placing_make(gate, programs, &placings->list[i]) != 0;
}

unsigned int placings_made(const struct placings *placings, struct attachment ret[ATTACHMENTS_MAX])
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < placings->count; i++) {
		const struct placing *placing = &placings->list[i];

		if (placing->done && !placing->detaches && count < ATTACHMENTS_MAX)
			ret[count++] = placing->attachment;
	}
	return count;
}
