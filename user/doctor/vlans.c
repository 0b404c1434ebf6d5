// SPDX-License-Identifier: GPL-2.0
#include "doctor/vlans.h"

#include <string.h>

/* A loop of VLAN devices cannot be made; a dump that was changed meanwhile may show one. */
#define STACK_MOST 16

void vlans_add(struct vlans *vlans, unsigned int id)
{
	if (id < VLAN_IDS)
		vlans->bits[id / 64] |= 1ULL << id % 64;
}

bool vlans_has(const struct vlans *vlans, unsigned int id)
{
	return id < VLAN_IDS && vlans->bits[id / 64] >> id % 64 & 1;
}

unsigned int vlans_first_but(const struct vlans *vlans, const struct vlans *but)
{
	for (unsigned int id = 1; id < VLAN_IDS; id++)
		if (vlans_has(vlans, id) && !vlans_has(but, id))
			return id;
	return 0;
}

struct vlans vlans_matched(const struct ruleset *set)
{
	struct vlans vlans = {0};

	for (unsigned int i = 0; i < set->count; i++)
		for (unsigned int j = 0; j < set->rules[i].limits; j++)
			if (set->rules[i].limit[j].match.vlan)
				vlans_add(&vlans, set->rules[i].limit[j].match.vlan);
	return vlans;
}

static bool is_vlan(const struct link *link)
{
	return !strcmp(link->kind, "vlan");
}

/*
 * How many tags a VLAN device takes off of frames of `link`, its own included; 0: it is not above
 * it. A bridge or bond hands on the frames of its ports.
 */
static unsigned int tags_above(const struct link_facts *links, const struct link *link,
			       const struct link *above)
{
	unsigned int tags = 0;

	while (above && is_vlan(above) && tags < STACK_MOST) {
		unsigned int lower = above->lower_is_elsewhere ? 0 : above->lower;

		tags++;
		if (lower && (lower == link->ifindex || lower == link->master))
			return tags;
		above = link_facts_find(links, lower);
	}
	return 0;
}

struct vlans vlans_in_frames(const struct link_facts *links, const struct link *link,
			     bool strips_svlans)
{
	unsigned int taken = is_vlan(link) ? 0 : 1;
	struct vlans vlans = {0};

	for (unsigned int i = 0; i < links->count; i++) {
		const struct link *above = &links->list[i];
		unsigned int tags = tags_above(links, link, above);

		if (tags > taken || (tags && above->is_svlan && !strips_svlans))
			vlans_add(&vlans, above->vlan);
	}
	return vlans;
}
