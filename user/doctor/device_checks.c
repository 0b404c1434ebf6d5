// SPDX-License-Identifier: GPL-2.0
#include "doctor/device_checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* --- Up and connected ----------------------------------------------------------------------- */

static void link_check(const struct device_facts *facts, struct findings *findings)
{
	const struct link *link = &facts->link;

	if (!link->up) {
		finding_add(findings, FIND_DEVICE_DOWN, link->name, "the device is down");
		finding_advise(findings, "ip %slink set dev %s up", facts->option,
			       word_typed(link->name));
	} else if (!link->carrier) {
		finding_add(findings, FIND_NO_CARRIER, link->name,
			    "the device is up, and nothing is connected to it: the cable is out, "
			    "or the other end is down");
		finding_advise(findings, "ip %s-d link show dev %s", facts->option,
			       word_typed(link->name));
	}
}

/* --- VLANs that XDP does not see ------------------------------------------------------------ */

/*
 * A VLAN that limits ask for, and whose tag XDP does not see; 0: there is none. TC has such a tag
 * beside the frame. A card takes it out; a veth gets it beside the frame from a peer that need not
 * put it in.
 */
static unsigned int vlan_taken(const struct device_facts *facts)
{
	bool are_taken = facts->nic.vlan_strip;

	if (!strcmp(facts->nic.driver, "veth"))
		are_taken = !*facts->peer.name || facts->peer.nic.vlan_insert;
	if (!are_taken)
		return 0;
	return vlans_first_but(&facts->matched, &facts->in_frames);
}

/* --- Mode ----------------------------------------------------------------------------------- */

/* A packet in one buffer, as drivers without frags want it, is at most about that long. */
#define MTU_ONE_BUFFER 3498

struct obstacle {
	const char *text; /* NULL: nothing that is seen */
	const char *exec; /* leads the command into the namespace of its device */
	char command[NAME_TYPED + 48];
};

static void obstacle_set(struct obstacle *obstacle, const char *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void obstacle_set(struct obstacle *obstacle, const char *text, const char *format, ...)
{
	va_list args;

	obstacle->text = text;
	va_start(args, format);
	vsnprintf(obstacle->command, sizeof(obstacle->command), format, args);
	va_end(args);
}

/*
 * Whether the peer of a veth sends with more queues than the veth receives with. The kernel says
 * of such a veth that it has no native XDP, also where the peer is not to be found.
 */
static bool peer_is_wider(const struct device_facts *facts)
{
	const struct nic *nic = &facts->nic;

	if (*facts->peer.name)
		return nic->queues < facts->peer.nic.queues_tx;
	return !strcmp(nic->driver, "veth") && nic->knows_xdp && !(nic->xdp & XDP_NATIVE);
}

static void queues_of_veth(const struct device_facts *facts, struct obstacle *ret)
{
	static const char text[] = "its peer sends with more queues than it receives with";
	const struct nic *nic = &facts->nic;
	const char *name = word_typed(facts->link.name);
	unsigned int wanted = facts->peer.nic.queues_tx;

	if (!*facts->peer.name && nic->queues < nic->queues_max) {
		obstacle_set(ret,
			     "its peer, which is not to be found from here, sends with more queues "
			     "than it receives with, and this gives it all that it can have",
			     "ethtool -L %s rx %u", name, nic->queues_max);
	} else if (!*facts->peer.name) {
		obstacle_set(ret,
			     "its peer, which is not to be found from here, sends with more queues "
			     "than it can receive with: there 'ethtool -L' has to give the peer as "
			     "few for tx as this shows for RX",
			     "ethtool -l %s", name);
	} else if (wanted <= nic->queues_max) {
		obstacle_set(ret, text, "ethtool -L %s rx %u", name, wanted);
	} else {
		obstacle_set(ret, text, "ethtool -L %s tx %u", word_typed(facts->peer.name),
			     nic->queues);
		ret->exec = facts->peer.exec;
	}
}

/* What `ethtool -L` calls queues that receive. */
static const char *queues_word(const struct nic *nic)
{
	return nic->combined ? "combined" : "rx";
}

/* What keeps a driver that has native XDP from it. */
static struct obstacle obstacle_find(const struct device_facts *facts)
{
	struct obstacle ret = {.exec = facts->exec};
	const struct nic *nic = &facts->nic;
	const char *name = word_typed(facts->link.name);
	bool is_veth = !strcmp(nic->driver, "veth");

	if (peer_is_wider(facts))
		queues_of_veth(facts, &ret);
	else if (nic->lro)
		obstacle_set(&ret, "LRO merges packets", "ethtool -K %s lro off", name);
	else if (nic->gro_hw)
		obstacle_set(&ret, "GRO-HW merges packets", "ethtool -K %s rx-gro-hw off", name);
	else if (facts->link.mtu > MTU_ONE_BUFFER && !(nic->xdp & XDP_FRAGS))
		obstacle_set(&ret, "its MTU takes several buffers a packet",
			     "ip link set dev %s mtu 1500", name);
	else if (!is_veth && nic->queues > 1 && nic->queues * 2 > nic->queues_max)
		obstacle_set(&ret,
			     "more than half of its queues are in use, and some drivers need one "
			     "more for each CPU",
			     "ethtool -L %s %s %u", name, queues_word(nic), nic->queues_max / 2);
	return ret;
}

/*
 * The commands that move this attachment, and no other of the gate, to native XDP without a packet
 * unjudged: the new program is there before the old one goes. A hook has room for one program of a
 * gate, so that generic mode goes by way of hook ingress.
 */
static void advise_native(const struct device_facts *facts, struct findings *findings)
{
	char sluice[NETNS_OPTION + GATE_NAME + sizeof("sluice -g ")];
	const char *name = operand_typed(facts->link.name);

	snprintf(sluice, sizeof(sluice), "sluice %s-g %s", facts->option, facts->gate);
	if (facts->attachment->hook == HOOK_XDP)
		finding_advise(findings,
			       "%s attach %s hook ingress && %s detach %s hook xdp && "
			       "%s attach %s hook xdp mode native && %s detach %s hook ingress",
			       sluice, name, sluice, name, sluice, name, sluice, name);
	else
		finding_advise(findings,
			       "%s attach %s hook xdp mode native && %s detach %s hook ingress",
			       sluice, name, sluice, name);
}

/*
 * Whether the driver may have native XDP. A kernel that does not tell leaves it open, and then a
 * driver of a card is taken to have it if something is in its way.
 */
static bool may_have_native(const struct device_facts *facts, const struct obstacle *in_the_way)
{
	const struct nic *nic = &facts->nic;

	if (!nic->knows_xdp)
		return in_the_way->text &&
		       (facts->link.hardware || !strcmp(facts->link.kind, "veth"));
	return nic->xdp & XDP_NATIVE || peer_is_wider(facts);
}

/* Native XDP is not advised where a limit needs what it does not see. */
static bool native_is_wanted(const struct device_facts *facts)
{
	const struct attachment *a = facts->attachment;
	bool is_held = facts->owner.program_id && a->hook != HOOK_XDP;

	if (a->mode == MODE_NATIVE || a->hook == HOOK_EGRESS || facts->is_tap || is_held)
		return false;
	return a->hook == HOOK_XDP || !vlan_taken(facts);
}

static void native_check(const struct device_facts *facts, struct findings *findings)
{
	const struct attachment *a = facts->attachment;
	const struct nic *nic = &facts->nic;
	struct obstacle in_the_way = obstacle_find(facts);

	if (!native_is_wanted(facts) || !may_have_native(facts, &in_the_way))
		return;
	finding_add(findings, FIND_NOT_NATIVE, facts->link.name,
		    "driver %s %s native XDP, and the gate is attached %s %s, where a dropped "
		    "packet costs several times as much%s%s%s",
		    *nic->driver ? nic->driver : "(unknown)", nic->knows_xdp ? "has" : "may have",
		    a->hook == HOOK_XDP ? "in mode" : "on hook",
		    a->hook == HOOK_XDP ? mode_names[a->mode] : hook_names[a->hook],
		    !strcmp(facts->link.kind, "veth") && a->hook == HOOK_INGRESS
			    ? "; but only hook ingress sees what bpf_redirect_peer (Cilium) and "
			      "'mirred ingress redirect' of tc deliver"
			    : "",
		    in_the_way.text ? "; first in the way: " : "", in_the_way.text ?: "");
	if (in_the_way.text)
		finding_advise(findings, "%s%s", in_the_way.exec, in_the_way.command);
	else
		advise_native(facts, findings);
}

/* Of one device: the gate may be attached to others. */
static void advise_ingress(const struct device_facts *facts, struct findings *findings)
{
	const char *name = operand_typed(facts->link.name);

	finding_advise(findings,
		       "sluice %s-g %s attach %s hook ingress && sluice %s-g %s detach %s hook xdp",
		       facts->option, facts->gate, name, facts->option, facts->gate, name);
}

static void merged_check(const struct device_facts *facts, struct findings *findings)
{
	const struct attachment *a = facts->attachment;

	if (!attachment_merges(a, facts->is_tap))
		return;
	finding_add(findings, FIND_MERGED, facts->link.name,
		    "in mode %s%s, a packet that was merged of many (GRO, GSO) counts as one, so "
		    "limits in packets let more pass than they say",
		    mode_names[a->mode], facts->is_tap ? " on a tap" : "");
	advise_ingress(facts, findings);
}

/* A program on hook xdp sees packets before hook ingress does, and may drop or redirect them. */
static void other_xdp_check(const struct device_facts *facts, struct findings *findings)
{
	const struct xdp_owner *owner = &facts->owner;
	bool libxdp = xdp_owner_is_libxdp(owner);

	if (!owner->program_id || *owner->gate || facts->attachment->hook != HOOK_INGRESS)
		return;
	finding_add(findings, FIND_OTHER_XDP, facts->link.name,
		    "an XDP program of another software runs before hook %s, and what it drops "
		    "or redirects, the gate never sees: '%s', id %u%s",
		    hook_names[facts->attachment->hook], owner->name, owner->program_id,
		    libxdp ? ", the dispatcher of libxdp" : "");
	if (libxdp)
		finding_advise(findings, "%sxdp-loader status %s", facts->exec,
			       operand_typed(facts->link.name));
	else
		finding_advise(findings, "bpftool prog show id %u", owner->program_id);
}

/* --- VLANs ---------------------------------------------------------------------------------- */

/* A VLAN device takes its own tag off; what it hands on may have more of them. */
static void vlan_device_check(const struct device_facts *facts, struct findings *findings)
{
	const struct link *link = &facts->link;

	if (!vlans_has(&facts->matched, link->vlan) || vlans_has(&facts->in_frames, link->vlan))
		return;
	finding_add(findings, FIND_VLAN_HIDDEN, link->name,
		    "a limit matches VLAN %u, and this is the device of that VLAN, where packets "
		    "come without the tag: attach the device below it, or leave the VLAN out of "
		    "the limit, as all packets here are of it",
		    link->vlan);
	if (!*facts->lower) {
		finding_advise(findings, "ip %s-d link show dev %s", facts->option,
			       word_typed(link->name));
		return;
	}
	finding_advise(findings, "sluice %s-g %s attach %s && sluice %s-g %s detach %s",
		       facts->option, facts->gate, operand_typed(facts->lower), facts->option,
		       facts->gate, operand_typed(link->name));
}

static void vlan_check(const struct device_facts *facts, struct findings *findings)
{
	const char *name = facts->link.name;
	bool is_veth = !strcmp(facts->nic.driver, "veth");
	unsigned int vlan;

	if (facts->attachment->hook == HOOK_EGRESS)
		return;
	if (!strcmp(facts->link.kind, "vlan")) {
		vlan_device_check(facts, findings);
		return;
	}
	vlan = facts->attachment->hook == HOOK_XDP ? vlan_taken(facts) : 0;
	if (!vlan)
		return;
	finding_add(findings, FIND_VLAN_HIDDEN, name,
		    "a limit matches VLAN %u, and %s the outer tag out of frames before XDP reads "
		    "them: only an inner tag can match",
		    vlan, is_veth ? "the peer of the veth leaves" : "the device takes");
	if (!is_veth)
		finding_advise(findings, "%sethtool -K %s rxvlan off", facts->exec,
			       word_typed(name));
	else if (*facts->peer.name)
		finding_advise(findings, "%sethtool -K %s txvlan off", facts->peer.exec,
			       word_typed(facts->peer.name));
	else
		advise_ingress(facts, findings);
}

/* --- Queues --------------------------------------------------------------------------------- */

/* Virtual devices have as many queues as they were made with, and no hash to spread packets. */
static void queues_check(const struct device_facts *facts, struct findings *findings)
{
	const struct nic *nic = &facts->nic;
	const char *name = facts->link.name;
	/* native XDP may take as many queues again, see obstacle_find() */
	unsigned int most =
		facts->attachment->mode == MODE_NATIVE ? nic->queues_max / 2 : nic->queues_max;

	if (!facts->link.hardware || facts->cpus < 2 || most < 2)
		return;
	if (nic->queues == 1) {
		finding_add(findings, FIND_ONE_QUEUE, name,
			    "it receives with 1 of %u queues, so one CPU judges all packets",
			    nic->queues_max);
		finding_advise(findings, "%sethtool -L %s %s %u", facts->exec, word_typed(name),
			       queues_word(nic), most < facts->cpus ? most : facts->cpus);
	} else if (nic->rss_queues == 1) {
		finding_add(findings, FIND_ONE_QUEUE, name,
			    "it has %u queues to receive, and RSS puts all packets into one, so "
			    "one CPU judges them all",
			    nic->queues);
		finding_advise(findings, "%sethtool -X %s equal %u", facts->exec, word_typed(name),
			       nic->queues);
	}
}

void fq_check(const char *device, const struct holding *fq, struct findings *findings)
{
	if (fq->holds && !fq->is_short)
		return;
	if (!fq->holds)
		finding_add(findings, FIND_NO_FQ, device,
			    "it sends without the qdisc fq, and only fq holds packets back for "
			    "limits that shape");
	else
		finding_add(findings, FIND_FQ_SHORT, device,
			    "its qdisc fq holds fewer packets than limits that shape may let "
			    "wait, and drops the rest");
	if (fq->command)
		finding_advise(findings, "%s", fq->command);
	else
		findings->failed = true;
}

void device_check(const struct device_facts *facts, struct findings *findings)
{
	link_check(facts, findings);
	native_check(facts, findings);
	merged_check(facts, findings);
	other_xdp_check(facts, findings);
	vlan_check(facts, findings);
	queues_check(facts, findings);
}
