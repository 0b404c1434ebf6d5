// SPDX-License-Identifier: GPL-2.0
#include "attach/stack.h"

#include <stdio.h>

#include "base/error.h"
#include "base/netns.h"
#include "base/text.h"

static bool filters_like(const struct attachment *a, const struct attachment *b)
{
	return a->program_id && b->program_id && a->netns == b->netns &&
	       (a->hook == HOOK_EGRESS) == (b->hook == HOOK_EGRESS);
}

/* Returns whether each port of the device has an attachment in the same direction. */
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

unsigned int stacked_find(const struct netdevs *links, uint64_t netns, const struct attachment *all,
			  unsigned int count, const struct attachment *made,
			  unsigned int made_count, struct stacked *ret)
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

/* --- Words ---------------------------------------------------------------------------------- */

const char *stacked_format(const struct stacked *stacked, const char *gate, char text[STACKED_TEXT])
{
	bool sends = stacked->upper->hook == HOOK_EGRESS;

	snprintf(text, STACKED_TEXT,
		 "it %s packets %s %s, and gate '%s' filters both, so each of these packets is "
		 "charged and counted twice",
		 sends ? "sends" : "gets", sends ? "by" : "of", stacked->lower->device, gate);
	return text;
}

const char *stacked_remedy(const struct stacked *stacked, const char *gate,
			   char text[STACKED_REMEDY])
{
	const struct attachment *a = stacked->surplus;
	char option[NETNS_OPTION];

	snprintf(text, STACKED_REMEDY, "sluice %s-g %s detach %s hook %s",
		 netns_option(a->netns, netns_home(), option), gate, operand_typed(a->device),
		 hook_names[a->hook]);
	return text;
}

int stacked_note(const struct gate *gate, const struct attachment *made, unsigned int count)
{
	char text[STACKED_TEXT], remedy[STACKED_REMEDY], more[64] = "";
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int there, found = 0;
	struct stacked first, pair;
	uint64_t netns = 0;
	int err;

	if (!count)
		return 0;
	err = attachments_read(gate, all, &there);
	for (unsigned int i = 0; !err && i < count; i++) {
		_cleanup_netdevs_ struct netdevs devices = {0};
		_cleanup_netns_ int back = -1;
		unsigned int here;

		if (made[i].netns == netns) /* attachments are made by namespace */
			continue;
		netns = made[i].netns;
		if (!netns_visit(netns, &back))
			err = netdevs_read(&devices);
		here = stacked_find(&devices, netns, all, there, made, count, &pair);
		if (here && !found)
			first = pair;
		found += here;
	}
	if (found > 1)
		snprintf(more, sizeof(more), "; %u more %s", found - 1,
			 plural(found - 1, "pair", "pairs"));
	if (found)
		error_notice("charged-twice", first.upper->device,
			     "%s; to charge them once: '%s'%s",
			     stacked_format(&first, gate->name, text),
			     stacked_remedy(&first, gate->name, remedy), more);
	return err;
}
