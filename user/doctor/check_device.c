// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"

/* --- The device ----------------------------------------------------------------------------- */

bool device_is_gone(struct subject *s)
{
	const struct attachment *a = &s->device->at;

	subject_set(s, 1, "sluice -g %s detach %s", s->gate->name, operand_typed(a->device));
	return !a->program_id && a->device_gone;
}

bool filter_is_gone(struct subject *s)
{
	const struct attachment *a = &s->device->at;
	char command[COMMAND_TEXT];

	subject_set(s, 1, "%s", attachment_command("attach", a, s->gate->name, command));
	return !a->program_id && !a->device_gone;
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

/* --- Mode ----------------------------------------------------------------------------------- */

/* Largest MTU with which a driver without XDP frags gets each frame in one buffer, in bytes. */
#define MTU_ONE_BUFFER 3498

static bool is_kind(const struct device_facts *device, const char *kind)
{
	return !strcmp(device->traffic->link.kind, kind);
}

/*
 * Returns whether the peer of a veth has more TX queues than the veth has RX queues. In that case
 * the kernel reports that the veth lacks native XDP.
 */
static bool peer_is_wider(const struct device_facts *device)
{
	const struct nic *nic = &device->nic;

	return is_kind(device, "veth") && nic->knows_xdp && !(nic->xdp & XDP_NATIVE);
}

/*
 * Returns a reason why a driver may refuse native XDP, or NULL if no reason is known. Sets
 * s->part[4] to the command that removes the obstacle.
 */
static const char *obstacle_find(struct subject *s)
{
	const struct nic *nic = &s->device->nic;
	const char *name = word_typed(s->device->at.device);

	if (peer_is_wider(s->device) && nic->queues < nic->queues_max) {
		subject_set(s, 4, "%sethtool -L %s rx %u", s->exec, name, nic->queues_max);
		return "its peer has more transmit queues than it has receive queues";
	}
	if (peer_is_wider(s->device)) {
		subject_set(s, 4, "%sethtool -l %s", s->exec, name);
		return "its peer has more transmit queues than it can have receive queues; reduce "
		       "the queues of the peer by 'ethtool -L'";
	}
	if (nic->lro) {
		subject_set(s, 4, "%sethtool -K %s lro off", s->exec, name);
		return "LRO merges packets";
	}
	if (s->device->traffic->link.mtu > MTU_ONE_BUFFER && !(nic->xdp & XDP_FRAGS)) {
		subject_set(s, 4, "%sip link set dev %s mtu 1500", s->exec, name);
		return "with its MTU, a packet can need several buffers";
	}
	if (!is_kind(s->device, "veth") && nic->queues > 1 && nic->queues * 2 > nic->queues_max) {
		subject_set(s, 4, "%sethtool -L %s %s %u", s->exec, name,
			    nic->combined ? "combined" : "rx", nic->queues_max / 2);
		return "more than half of its queues are in use, but some drivers need one more "
		       "for each CPU";
	}
	return NULL;
}

static bool vlan_matches(const struct subject *s, unsigned int id)
{
	return id && id < VLAN_IDS && s->gate->rule.vlans[id / 64] >> id % 64 & 1;
}

/*
 * Returns a VLAN id that a limit matches, if the device strips VLAN tags before XDP runs. Otherwise
 * returns 0.
 */
static unsigned int vlan_stripped(const struct subject *s)
{
	for (unsigned int id = 1; s->device->nic.vlan_strip && id < VLAN_IDS; id++)
		if (vlan_matches(s, id))
			return id;
	return 0;
}

bool mode_is_not_native(struct subject *s)
{
	const struct device_facts *device = s->device;
	const struct attachment *a = &device->at;
	const struct nic *nic = &device->nic;
	bool is_xdp = a->hook == HOOK_XDP, is_veth = is_kind(device, "veth"), may_have;
	const char *obstacle, *name = operand_typed(a->device), *sluice = s->sluice;

	if (a->mode == MODE_NATIVE || attachment_is_chained(a) || a->mode == MODE_LIBXDP ||
	    a->hook == HOOK_EGRESS || is_kind(device, "tun") ||
	    (!is_xdp && (device->owner.program_id || vlan_stripped(s))))
		return false;
	obstacle = obstacle_find(s);
	/* if the features are unknown, assume that the driver may support native XDP */
	may_have = nic->knows_xdp ? nic->xdp & XDP_NATIVE || peer_is_wider(device)
				  : obstacle && (device->traffic->link.is_hardware || is_veth);
	if (!may_have)
		return false;
	subject_set(s, 1, "%s %s", *nic->driver ? nic->driver : "(unknown)",
		    nic->knows_xdp ? "has" : "may have");
	subject_set(s, 2, "%s %s", is_xdp ? "in mode" : "on hook",
		    is_xdp ? mode_names[a->mode] : hook_names[a->hook]);
	if (obstacle) {
		subject_set(s, 3, "; native mode may fail first: %s", obstacle);
		return true;
	}
	if (is_veth && !is_xdp)
		subject_set(
			s, 3,
			"; but only hook ingress sees packets from bpf_redirect_peer (Cilium) and "
			"from 'mirred ingress redirect' of tc");
	/*
	 * Each command line attaches a program before it detaches one, so that the gate sees every
	 * packet. Hook xdp runs only one program. So a program on hook ingress filters while the
	 * generic program on hook xdp is replaced.
	 */
	if (is_xdp)
		subject_set(s, 4,
			    "%sattach %s hook ingress && %sdetach %s hook xdp && "
			    "%sattach %s hook xdp mode native && %sdetach %s hook ingress",
			    sluice, name, sluice, name, sluice, name, sluice, name);
	else
		subject_set(s, 4, "%sattach %s hook xdp mode native && %sdetach %s hook ingress",
			    sluice, name, sluice, name);
	return true;
}

bool packets_are_merged(struct subject *s)
{
	bool tap = is_kind(s->device, "tun");

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
		subject_set(s, 2, "%sxdp-loader status %s", s->exec,
			    operand_typed(s->device->at.device));
	else
		subject_set(s, 2, "bpftool prog show id %u", owner->program_id);
	return true;
}

bool xdp_is_shared(struct subject *s)
{
	char text[XDP_ORDER_TEXT];

	subject_set(s, 1, "%s", xdp_order_format(&s->device->order, text));
	return s->device->order.count > 1;
}

/* --- VLANs ---------------------------------------------------------------------------------- */

/*
 * Returns whether a limit matches a VLAN id whose tag the program cannot see. A VLAN device removes
 * its tag. A network card, or the peer of a veth, may remove the outer tag before XDP runs.
 */
bool vlan_is_hidden(struct subject *s)
{
	const struct netdev *link = &s->device->traffic->link;
	unsigned int vlan = vlan_stripped(s);
	bool is_veth = is_kind(s->device, "veth");

	if (s->device->at.hook == HOOK_EGRESS)
		return false;
	if (vlan_matches(s, link->vlan)) {
		subject_set(
			s, 1,
			"a limit matches VLAN %u, but packets on the device of that VLAN have no "
			"tag; attach the parent device instead",
			link->vlan);
		subject_set(s, 2, "ip %s-d link show dev %s", s->netns, word_typed(link->name));
		for (unsigned int i = 0; i < s->facts->traffic_count; i++)
			if (s->facts->traffic[i].netns == s->device->at.netns && link->parent &&
			    s->facts->traffic[i].link.ifindex == link->parent)
				advise_moving(s, 2, s->facts->traffic[i].link.name, "");
		return true;
	}
	if (s->device->at.hook != HOOK_XDP || !vlan || link->vlan)
		return false;
	subject_set(
		s, 1,
		"a limit matches VLAN %u, but the %s removes the outer tag before XDP reads the "
		"frame, so only an inner tag can match",
		vlan, is_veth ? "peer of the veth" : "device");
	if (is_veth)
		advise_moving(s, 2, s->device->at.device, " hook ingress");
	else
		subject_set(s, 2, "%sethtool -K %s rxvlan off", s->exec,
			    word_typed(s->device->at.device));
	return true;
}
