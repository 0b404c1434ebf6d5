// SPDX-License-Identifier: GPL-2.0
#include "doctor/device_facts.h"

#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"

/* The argument of facts_there(): read in the namespace of the device. */
struct looking {
	struct device_facts *facts;
	bool found;
};

static void vlans_take(const struct link_facts *links, struct device_facts *facts)
{
	const struct link *lower = NULL;

	facts->in_frames = vlans_in_frames(links, &facts->link, facts->nic.svlan_strip);
	if (!strcmp(facts->link.kind, "vlan") && !facts->link.lower_is_elsewhere)
		lower = link_facts_find(links, facts->link.lower);
	if (lower)
		memcpy(facts->lower, lower->name, sizeof(facts->lower));
}

static void facts_there(void *data)
{
	struct looking *looking = data;
	struct device_facts *facts = looking->facts;
	struct link_facts links = {0};
	const struct link *link;
	struct device device;

	if (link_facts_read(&links))
		return;
	link = link_facts_find(&links, facts->attachment->ifindex);
	if (link) {
		facts->link = *link;
		facts->nic = nic_read(link->name, link->ifindex);
		facts->is_tap = !device_find(link->name, &device) && device.is_tap;
		facts->owner = xdp_owner_find(link->ifindex);
		vlans_take(&links, facts);
		peer_find(&links, link, &facts->peer);
		looking->found = true;
	}
	link_facts_free(&links);
}

bool device_facts_read(const struct attachment *attachment, struct device_facts *ret)
{
	struct looking looking = {.facts = ret};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN); /* a device has no use for more queues */

	*ret = (struct device_facts){.attachment = attachment, .cpus = cpus > 0 ? cpus : 1};
	netns_option(attachment->netns, netns_home(), ret->option);
	netns_exec(ret->option, ret->exec);
	netns_run_in(attachment->netns, facts_there, &looking);
	return looking.found;
}

/* The speed that a virtual device tells is none, unless it is that of the device below. */
uint64_t device_speed(const struct device_facts *facts)
{
	static const char *const kinds[] = {"veth", "tun", "dummy", "ifb", "netkit"};

	return word_find(kinds, ARRAY_SIZE(kinds), facts->link.kind) < 0 ? facts->nic.speed_mbit
									 : 0;
}
