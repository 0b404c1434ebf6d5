// SPDX-License-Identifier: GPL-2.0
#include "attach/places.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "attach/published.h"
#include "attach/netdevs.h"
#include "base/array.h"
#include "base/netns.h"

/* --- Telling attachments as places ---------------------------------------------------------- */

enum mode attachment_mode(const struct attachment *a)
{
	return a->mode == (a->hook == HOOK_XDP ? MODE_NATIVE : MODE_TCX) ? MODE_AUTO : a->mode;
}

bool attachment_place(const struct attachment *a, struct place *ret)
{
	struct place place = {.hook = a->hook, .mode = attachment_mode(a)};
	char netns[NETNS_NAME];

	/* a name that is cut, or stands for the initial namespace, is not that of the namespace */
	if (!netns_name(a->netns, netns) || (*netns && netns_named(netns) != a->netns))
		return false;
	snprintf(place.device, sizeof(place.device), "%s", a->device);
	memcpy(place.netns, netns, sizeof(place.netns));
	if (!place_can_be_told(&place))
		return false;
	*ret = place;
	return true;
}

int gate_places(const struct gate *gate, struct places *ret)
{
	struct places places = {0};
	struct seen seen;
	int status = attachments_see(gate, &seen);

	for (unsigned int i = 0; !status && i < seen.count; i++) {
		struct place place;

		if (!seen.all[i].program_id)
			continue;
		if (attachment_place(&seen.all[i], &place))
			status = places_add(&places, &place);
		else
			note("%s: no file can name it, or its network namespace: it is left out",
			     seen.all[i].device);
	}
	places.said = places.count;
	if (status)
		places_free(&places);
	else
		*ret = places;
	return status;
}

/* --- Devices of places ---------------------------------------------------------------------- */

/* The argument of call_devices(): finds the devices of a place in its namespace. */
struct search {
	const struct place *place;
	struct placings *placings;
	struct netdevs links; /* of the devices in the namespace */
	int status;
	bool found;
	bool tells; /* of what has no effect; not each time that a process tries again */
};

/* NULL: none is planned there yet. */
static const struct attachment *find_wanted(const struct placings *placings,
					    const struct attachment *a)
{
	for (unsigned int i = 0; i < placings->wanted_count; i++) {
		const struct attachment *other = &placings->wanted[i];

		if (other->netns == a->netns && other->ifindex == a->ifindex &&
		    other->hook == a->hook)
			return other;
	}
	return NULL;
}

static void search_add(struct search *search, const struct device *device)
{
	struct attachment a = attachment_of(device, search->place->hook);
	struct placings *placings = search->placings;
	const struct attachment *first;

	a.mode = search->place->mode;
	search->status = attach_choose_hook(&search->links, device, a.mode, search->tells, &a.hook);
	if (search->status)
		return;
	first = find_wanted(placings, &a);
	search->found = true;
	if (first && first->mode != a.mode && search->tells)
		note("attach: an earlier item means %s, too, on hook %s: mode %s counts, and mode "
		     "%s has no effect",
		     device->name, hook_names[a.hook], mode_names[first->mode], mode_names[a.mode]);
	if (first)
		return;
	if (placings->wanted_count == ATTACHMENTS_MAX)
		search->status = failure("attach: '%s' makes more than %d attachments, the most "
					 "that a gate can hold",
					 search->place->device, ATTACHMENTS_MAX);
	else if (!array_grow(placings->wanted, placings->wanted_count, placings->wanted_room))
		search->status = failure("cannot keep %u devices: out of memory",
					 placings->wanted_count + 1);
	else
		placings->wanted[placings->wanted_count++] = a;
}

static void search_name(struct search *search, const char *name)
{
	struct device device;

	search->status = device_find(name, &device);
	if (!search->status)
		search_add(search, &device);
}

/* Whether a pattern means the device: on hooks other than egress an ifb sees no packet. */
static bool pattern_takes(const struct search *search, const struct if_nameindex *device)
{
	const struct netdev *link = netdevs_find(&search->links, device->if_index);

	return strcmp(device->if_name, "lo") &&
	       (search->place->hook == HOOK_EGRESS || !link || strcmp(link->kind, "ifb")) &&
	       !fnmatch(search->place->device, device->if_name, 0);
}

/* A pattern means what carries Ethernet, and not the loopback device. */
static void search_pattern(struct search *search)
{
	struct if_nameindex *names = if_nameindex();
	bool carries;

	if (!names)
		search->status = failure("cannot list the devices for '%s': %s",
					 search->place->device, why(errno));
	for (struct if_nameindex *each = names; !search->status && each->if_index; each++) {
		if (!pattern_takes(search, each))
			continue;
		search->status = device_carries_ethernet(each->if_name, &carries);
		if (!search->status && carries)
			search_name(search, each->if_name);
	}
	if (names)
		if_freenameindex(names);
}

static void search_place(struct search *search)
{
	const struct place *place = search->place;
	bool exists = true;

	if (place_is_pattern(place)) {
		search_pattern(search);
		return;
	}
	if (place->optional)
		search->status = device_exists(place->device, &exists);
	if (!search->status && exists)
		search_name(search, place->device);
}

static void call_devices(void *data)
{
	struct search *search = data;

	search->status = netdevs_read(&search->links);
	if (search->status)
		return;
	search_place(search);
	netdevs_free(&search->links);
}

static int place_search(const struct place *place, bool tells, struct placings *placings,
			bool *ret_found)
{
	struct search search = {.place = place, .placings = placings, .tells = tells};
	uint64_t netns = *place->netns ? netns_named(place->netns) : netns_current();

	*ret_found = false;
	if (!netns && errno != ENOENT)
		return failure("cannot open network namespace '%s': %s", place->netns, why(errno));
	if (!netns && place->optional)
		return OK;
	if (!netns)
		return failure("attach: there is no network namespace '%s' for %s: see 'ip netns "
			       "list', or say optional: true",
			       place->netns, place->device);
	if (!netns_run_in(netns, call_devices, &search))
		return failure("attach: cannot enter network namespace '%s' for %s: %s",
			       place->netns, place->device, netns_why(errno));
	*ret_found = search.found;
	if (search.status || search.found || place->optional)
		return search.status;
	return failure("attach: no device is named as '%s': see 'ip link', or say optional: true",
		       place->device);
}

/* --- The plan ------------------------------------------------------------------------------- */

static bool mode_serves(enum mode has, enum mode wanted)
{
	return wanted == MODE_AUTO || has == wanted;
}

/*
 * The attachment on the device and hook of one that is wanted; -1: none. A change of mode that was
 * killed may have left two, of which one serves. Hook xdp in mode auto is served by hook ingress,
 * too, where there is nothing on hook xdp, as attach_device() does it.
 */
static int find_there(const struct attachment *all, unsigned int count,
		      const struct attachment *wanted)
{
	bool may_be_ingress = wanted->hook == HOOK_XDP && wanted->mode == MODE_AUTO;
	int ingress = -1, other = -1;

	for (unsigned int i = 0; i < count; i++) {
		if (!all[i].program_id || all[i].netns != wanted->netns ||
		    all[i].ifindex != wanted->ifindex)
			continue;
		if (all[i].hook == wanted->hook && mode_serves(all[i].mode, wanted->mode))
			return i;
		if (all[i].hook == wanted->hook)
			other = i;
		if (all[i].hook == HOOK_INGRESS)
			ingress = i;
	}
	return other < 0 && may_be_ingress ? ingress : other;
}

static int placing_add(struct placings *placings, const struct placing *placing)
{
	if (!array_grow(placings->list, placings->count, placings->room))
		return failure("cannot keep %u devices: out of memory", placings->count + 1);
	placings->list[placings->count++] = *placing;
	return OK;
}

/* Marks the attachments that stay, or are replaced, and plans what is missing. */
static int plan_wanted(struct placings *placings, const struct attachment *all, unsigned int count,
		       bool *stays)
{
	int status = OK;

	for (unsigned int i = 0; !status && i < placings->wanted_count; i++) {
		struct placing placing = {.attachment = placings->wanted[i]};
		int there = find_there(all, count, &placing.attachment);

		if (there >= 0) {
			stays[there] = true;
			if (mode_serves(all[there].mode, placing.attachment.mode))
				continue;
			placing.replaces = true;
			placing.before = all[there];
		}
		status = placing_add(placings, &placing);
	}
	return status;
}

/* What no file can name is no file's to detach: a dump leaves it out, too. */
static int plan_unwanted(struct placings *placings, const struct attachment *a)
{
	struct place place;

	if (attachment_place(a, &place))
		return placing_add(placings, &(struct placing){.attachment = *a, .detaches = true});
	note("%s: no file can name it, or its network namespace: it stays attached on hook %s",
	     a->device, hook_names[a->hook]);
	return OK;
}

/*
 * Plans the way from the attachments that are there to the wanted ones. What filters nothing any
 * more goes first: it may have the pin that its device is to have anew.
 */
static int plan_make(struct placings *placings, const struct attachment *all, unsigned int count,
		     bool detaches)
{
	bool stays[ATTACHMENTS_MAX] = {false};
	int status = OK;

	for (unsigned int i = 0; !status && detaches && i < count; i++)
		if (!all[i].program_id)
			status = placing_add(placings, &(struct placing){.attachment = all[i],
									 .detaches = true});
	if (!status)
		status = plan_wanted(placings, all, count, stays);
	for (unsigned int i = 0; !status && detaches && i < count; i++)
		if (!stays[i] && all[i].program_id)
			status = plan_unwanted(placings, &all[i]);
	return status;
}

/* As above, and notes that a device is missing that is not optional, instead of failing. */
static int place_search_or_note(const struct place *place, struct placings *placings)
{
	struct place optional = *place;
	int status;
	bool found;

	optional.optional = true;
	status = place_search(&optional, true, placings, &found);
	if (!status && !found && !place->optional)
		note("attach: no device is named as '%s'%s%s: 'apply' refuses the file for that, "
		     "and 'keep' waits for one",
		     place->device, *place->netns ? " in network namespace " : "", place->netns);
	return status;
}

int placings_plan(const struct gate *gate, const struct places *places, bool may_lack,
		  struct placings *ret)
{
	struct seen seen = {.sight = SIGHT_LINKS};
	struct placings placings = {0};
	int status = places->said ? attachments_see(gate, &seen) : OK;
	bool found;

	if (!status && seen.sight == SIGHT_NONE) /* which was said */
		status = FAILED;
	for (unsigned int i = 0; !status && i < places->count; i++)
		status = may_lack ? place_search_or_note(&places->list[i], &placings)
				  : place_search(&places->list[i], true, &placings, &found);
	if (!status)
		status = plan_make(&placings, seen.all, seen.count, places->said);
	if (status)
		placings_free(&placings);
	else
		*ret = placings;
	return status;
}

int placings_plan_present(const struct gate *gate, const struct places *places, bool *ret_missing,
			  struct placings *ret)
{
	struct attachment all[ATTACHMENTS_MAX];
	struct placings placings = {0};
	unsigned int count = 0;
	int status = places->said ? attachments_read(gate, all, &count) : OK;

	for (unsigned int i = 0; !status && i < places->count; i++) {
		struct place place = places->list[i];
		bool found;

		place.optional = true;
		if (place_search(&place, false, &placings, &found)) {
			placings.failed++;
			found = true; /* or not: it is not known */
		}
		ret_missing[i] = !found && !places->list[i].optional;
	}
	if (!status)
		status = plan_make(&placings, all, count, places->said && !placings.failed);
	if (status)
		placings_free(&placings);
	else
		*ret = placings;
	return status;
}

/* --- Making it so --------------------------------------------------------------------------- */

/* The argument of call_attach(): attaches in the namespace of the device. */
struct attach_call {
	const struct gate *gate;
	struct programs *programs;
	struct attachment *attachment; /* its device, hook and mode; and then as it was made */
	bool beside;		       /* the hook has an attachment in another mode */
	int status;
	bool was_there;
};

/* Finds the device by its number, as it may have another name by now, and else by its name. */
static void call_attach(void *data)
{
	struct attach_call *call = data;
	struct attachment *a = call->attachment;
	enum mode mode = a->mode;
	char name[IF_NAMESIZE];
	struct device device;

	call->status = device_find(if_indextoname(a->ifindex, name) ? name : a->device, &device);
	if (!call->status && !call->beside)
		call->status = attach_find(call->gate, &device, a->hook, mode, a, &call->was_there);
	if (!call->status && !call->was_there)
		call->status = attach_device(call->gate, call->programs, &device, a->hook, mode, a,
					     &call->was_there);
}

static int attach_there(struct attach_call *call)
{
	if (!netns_run_in(call->attachment->netns, call_attach, call))
		return failure("cannot enter the network namespace of %s: %s",
			       call->attachment->device, netns_why(errno));
	return call->status;
}

/*
 * Changes the mode on a hook of TC: it holds both programs at once, so no packet passes unjudged,
 * and one that meets both is charged twice.
 */
static int replace_tc(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	struct attach_call call = {.gate = gate,
				   .programs = programs,
				   .attachment = &placing->attachment,
				   .beside = true};
	int status = attach_there(&call);

	if (status)
		return status;
	status = detach(gate, &placing->before);
	if (status)
		detach(gate, &placing->attachment);
	return status;
}

/*
 * Changes the mode on hook xdp, which holds one program. Meanwhile hook ingress judges, where the
 * gate is not attached to it anyway.
 */
static int replace_xdp(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	struct attachment ingress = placing->before;
	struct attach_call guard = {.gate = gate, .programs = programs, .attachment = &ingress};
	struct attach_call again = guard, call = guard;
	int status, guarded;

	ingress.hook = HOOK_INGRESS;
	ingress.mode = MODE_AUTO;
	again.attachment = &placing->before;
	call.attachment = &placing->attachment;
	guarded = attach_there(&guard);
	status = detach(gate, &placing->before);
	if (!status && (status = attach_there(&call)))
		attach_there(&again);
	if (guarded)
		note("%s: for a moment its packets passed unjudged", placing->attachment.device);
	else if (!guard.was_there)
		status = detach(gate, &ingress) ?: status;
	return status;
}

static int placing_replace(const struct gate *gate, struct programs *programs,
			   struct placing *placing)
{
	int status = placing->before.hook == HOOK_XDP ? replace_xdp(gate, programs, placing)
						      : replace_tc(gate, programs, placing);

	if (!status)
		note("%s: attached in mode %s instead of %s", placing->attachment.device,
		     mode_names[placing->attachment.mode], mode_names[placing->before.mode]);
	return status;
}

static int placing_make(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	struct attach_call call = {
		.gate = gate, .programs = programs, .attachment = &placing->attachment};
	int status;

	if (placing->detaches)
		status = detach(gate, &placing->attachment);
	else if (placing->replaces)
		status = placing_replace(gate, programs, placing);
	else
		status = attach_there(&call);
	placing->done = !status && !call.was_there;
	return status;
}

static int placing_undo(const struct gate *gate, struct programs *programs, struct placing *placing)
{
	struct placing back = {.attachment = placing->attachment, .detaches = !placing->detaches};

	if (placing->detaches && !placing->attachment.program_id)
		return OK; /* it filtered nothing */
	if (placing->replaces)
		back = (struct placing){.attachment = placing->before,
					.before = placing->attachment,
					.replaces = true};
	return placing_make(gate, programs, &back);
}

/* The last first: what was detached filters again before what was attached goes. */
static int undo(const struct gate *gate, struct programs *programs, struct placings *placings)
{
	int status = OK;

	for (unsigned int i = placings->count; i--;) {
		struct placing *placing = &placings->list[i];

		if (placing->done)
			status = placing_undo(gate, programs, placing) ?: status;
		placing->done = false;
	}
	return status;
}

int placings_make(const struct gate *gate, struct placings *placings)
{
	struct programs programs = PROGRAMS_CLOSED;
	int status = OK;

	for (unsigned int i = 0; !status && i < placings->count; i++)
		status = placing_make(gate, &programs, &placings->list[i]);
	if (status)
		undo(gate, &programs, placings);
	programs_close(&programs);
	return status;
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

int placings_undo(const struct gate *gate, struct placings *placings)
{
	struct programs programs = PROGRAMS_CLOSED;
	int status = undo(gate, &programs, placings);

	programs_close(&programs);
	return status;
}

void placings_make_present(const struct gate *gate, struct programs *programs,
			   struct placings *placings)
{
	for (unsigned int i = 0; i < placings->count; i++)
		placings->failed += placing_make(gate, programs, &placings->list[i]) != OK;
}

void placings_free(struct placings *placings)
{
	free(placings->list);
	free(placings->wanted);
	*placings = (struct placings){0};
}
