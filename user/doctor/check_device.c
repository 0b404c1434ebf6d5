// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"

/* --- The device ----------------------------------------------------------------------------- */

static bool filter_is_dead(struct subject *s, bool device_gone)
{
	const struct attachment *a = &s->device->at;
	char remedy[REMEDY_TEXT];

	if (a->program_id || a->device_gone != device_gone)
		return false;
	subject_set(s, 1, "%s", attachment_remedy(a, s->gate->name, remedy));
	return true;
}

bool device_is_gone(struct subject *s)
{
	return filter_is_dead(s, true);
}

bool filter_is_gone(struct subject *s)
{
	return filter_is_dead(s, false);
}

bool device_is_down(struct subject *s)
{
	return !s->device->traffic->link.is_up;
}

bool carrier_is_missing(struct subject *s)
{
	const struct netdev *link = &s->device->traffic->link;

	return link->is_up && !link->has_carrier;
}

bool fq_is_missing(struct subject *s)
{
	const struct device_facts *device = s->device;

	if (!device->has_fq || device->fq.holds)
		return false;
	if (device->fq.command)
		subject_set(s, 1, "%s", device->fq.command);
	else
		subject_set(s, 1, "tc qdisc show dev %s", word_typed(device->at.device));
	return true;
}

/* --- Mode ----------------------------------------------------------------------------------- */

/* The largest frame that drivers without frags receive in one buffer. */
#define MTU_ONE_BUFFER 3498

static bool is_veth(const struct device_facts *device)
{
	return !strcmp(device->traffic->link.kind, "veth");
}

/*
 * The kernel reports no native XDP for a veth whose peer sends with more queues than the veth
 * receives with.
 */
static bool peer_is_wider(const struct device_facts *device)
{
	const struct nic *nic = &device->nic;

	return is_veth(device) && nic->knows_xdp && !(nic->xdp & XDP_NATIVE);
}

/*
 * Sets part 3 to what keeps a driver from native XDP, and part 4 to the command that ends it.
 * Returns whether something is in the way.
 */
static bool obstacle_find(struct subject *s)
{
	const struct nic *nic = &s->device->nic;
	const char *name = word_typed(s->device->at.device), *text;

	if (peer_is_wider(s->device) && nic->queues < nic->queues_max) {
		text = "its peer sends with more queues than it receives with";
		advise_exec(s, 4, "ethtool -L %s rx %u", name, nic->queues_max);
	} else if (peer_is_wider(s->device)) {
		text = "its peer sends with more queues than it can receive with: give the peer as "
		       "few for tx by 'ethtool -L' as this shows for RX";
		advise_exec(s, 4, "ethtool -l %s", name);
	} else if (nic->lro) {
		text = "LRO merges packets";
		advise_exec(s, 4, "ethtool -K %s lro off", name);
	} else if (nic->gro_hw) {
		text = "GRO-HW merges packets";
		advise_exec(s, 4, "ethtool -K %s rx-gro-hw off", name);
	} else if (s->device->traffic->link.mtu > MTU_ONE_BUFFER && !(nic->xdp & XDP_FRAGS)) {
		text = "its MTU needs several buffers for a packet";
		advise_exec(s, 4, "ip link set dev %s mtu 1500", name);
	} else if (!is_veth(s->device) && nic->queues > 1 && nic->queues * 2 > nic->queues_max) {
		text = "more than half of its queues are in use, and some drivers need another "
		       "queue for each CPU";
		advise_exec(s, 4, "ethtool -L %s %s %u", name, nic->combined ? "combined" : "rx",
			    nic->queues_max / 2);
	} else {
		return false;
	}
	subject_set(s, 3, "; first in the way: %s", text);
	return true;
}

/*
 * Sets part 4 to the commands that move this attachment to native XDP with no packet unjudged: the
 * new program runs before the old one ends. A hook has room for one program of a gate, so generic
 * mode is left by way of hook ingress.
 */
static void advise_native(struct subject *s)
{
	char option[NETNS_OPTION], sluice[NETNS_OPTION + GATE_NAME + sizeof("sluice -g  ")];
	const char *name = operand_typed(s->device->at.device);

	snprintf(sluice, sizeof(sluice), "sluice %s%s", subject_netns(s, option),
		 gate_option(s->gate->name));
	if (s->device->at.hook == HOOK_XDP)
		subject_set(s, 4,
			    "%sattach %s hook ingress && %sdetach %s hook xdp && "
			    "%sattach %s hook xdp mode native && %sdetach %s hook ingress",
			    sluice, name, sluice, name, sluice, name, sluice, name);
	else
		subject_set(s, 4, "%sattach %s hook xdp mode native && %sdetach %s hook ingress",
			    sluice, name, sluice, name);
}

/* Returns a VLAN that limits match, and that XDP does not see because its tag is removed, or 0. */
static unsigned int vlan_stripped(const struct subject *s)
{
	const uint64_t *vlans = s->gate->rule.vlans;

	for (unsigned int id = 1; s->device->nic.vlan_strip && id < VLAN_IDS; id++)
		if (vlans[id / 64] >> id % 64 & 1)
			return id;
	return 0;
}

static bool is_tap(const struct device_facts *device)
{
	return !strcmp(device->traffic->link.kind, "tun");
}

bool mode_is_not_native(struct subject *s)
{
	const struct device_facts *device = s->device;
	const struct attachment *a = &device->at;
	const struct nic *nic = &device->nic;
	bool is_xdp = a->hook == HOOK_XDP, is_blocked, may_have;

	if (a->mode == MODE_NATIVE || a->hook == HOOK_EGRESS || is_tap(device) ||
	    (!is_xdp && (device->owner.program_id || vlan_stripped(s))))
		return false;
	is_blocked = obstacle_find(s);
	/* before Linux 6.3 an obstacle means that the driver of a card has native XDP otherwise */
	may_have = nic->knows_xdp
			   ? nic->xdp & XDP_NATIVE || peer_is_wider(device)
			   : is_blocked && (device->traffic->link.is_hardware || is_veth(device));
	if (!may_have)
		return false;
	subject_set(s, 1, "%s %s", *nic->driver ? nic->driver : "(unknown)",
		    nic->knows_xdp ? "has" : "may have");
	subject_set(s, 2, "%s %s", is_xdp ? "in mode" : "on hook",
		    is_xdp ? mode_names[a->mode] : hook_names[a->hook]);
	if (is_blocked)
		return true;
	if (is_veth(device) && a->hook == HOOK_INGRESS)
		subject_set(
			s, 3,
			"; but only hook ingress sees what bpf_redirect_peer (Cilium) and 'mirred "
			"ingress redirect' of tc deliver");
	advise_native(s);
	return true;
}

bool packets_are_merged(struct subject *s)
{
	bool tap = is_tap(s->device);

	subject_set(s, 1, "%s%s", mode_names[s->device->at.mode], tap ? " on a tap" : "");
	return attachment_merges(&s->device->at, tap);
}

bool xdp_is_held(struct subject *s)
{
	const struct xdp_owner *owner = &s->device->owner;
	bool libxdp = xdp_owner_is_libxdp(owner);

	if (!owner->program_id || *owner->gate || s->device->at.hook != HOOK_INGRESS)
		return false;
	subject_set(s, 1, "'%s', id %u%s", owner->name, owner->program_id,
		    libxdp ? ", the dispatcher of libxdp" : "");
	if (libxdp)
		advise_exec(s, 2, "xdp-loader status %s", operand_typed(s->device->at.device));
	else
		subject_set(s, 2, "bpftool prog show id %u", owner->program_id);
	return true;
}

/* --- VLANs ---------------------------------------------------------------------------------- */

/* A VLAN device removes its own tag; a card removes the outer tag before XDP reads the frame. */
bool vlan_is_hidden(struct subject *s)
{
	const struct netdev *link = &s->device->traffic->link;
	char option[NETNS_OPTION];
	unsigned int vlan = vlan_stripped(s);

	if (s->device->at.hook == HOOK_EGRESS)
		return false;
	if (link->vlan && s->gate->rule.vlans[link->vlan / 64 % 64] >> link->vlan % 64 & 1) {
		subject_set(
			s, 1,
			"a limit matches VLAN %u, and this is the device of that VLAN, where "
			"packets arrive without the tag: attach the device below it, or leave the "
			"VLAN out of the limit",
			link->vlan);
		for (unsigned int i = 0; i < s->facts->traffic_count; i++)
			if (s->facts->traffic[i].netns == s->device->at.netns && link->parent &&
			    s->facts->traffic[i].link.ifindex == link->parent)
				advise_moving(s, 2, s->facts->traffic[i].link.name, "");
		if (!s->part[2])
			subject_set(s, 2, "ip %s-d link show dev %s", subject_netns(s, option),
				    word_typed(link->name));
		return true;
	}
	if (s->device->at.hook != HOOK_XDP || !vlan || link->vlan)
		return false;
	subject_set(s, 1,
		    "a limit matches VLAN %u, and %s the outer tag out of frames before XDP reads "
		    "them: only an inner tag can match",
		    vlan, is_veth(s->device) ? "the peer of the veth leaves" : "the device takes");
	if (is_veth(s->device))
		advise_moving(s, 2, s->device->at.device, " hook ingress");
	else
		advise_exec(s, 2, "ethtool -K %s rxvlan off", word_typed(s->device->at.device));
	return true;
}
