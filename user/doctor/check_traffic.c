// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"
#include "rules/value.h"

/*
 * Any network sends fewer packets than this in 2 s by itself: ARP, neighbour discovery. They come
 * in bursts, so a shorter span may have as many.
 */
#define FLOW_LEAST	   20
#define FLOW_LEAST_SECONDS 2

static uint64_t flow_least(const struct subject *s)
{
	uint64_t least = s->facts->asked->watch_ns * FLOW_LEAST / (FLOW_LEAST_SECONDS * NS_PER_SEC);

	return least > FLOW_LEAST ? least : FLOW_LEAST;
}

/* The packets that the gate judged while doctor watched. */
static uint64_t judged_by(const struct gate_facts *gate)
{
	return gate->after.all - gate->before.all;
}

/* "judged 17", "judged none" */
#define JUDGED_TEXT 32
static const char *judged_format(const struct gate_facts *gate, char text[JUDGED_TEXT])
{
	uint64_t judged = judged_by(gate);

	snprintf(text, JUDGED_TEXT, judged ? "judged %" PRIu64 : "judged none", judged);
	return text;
}

static bool is_alive(const struct device_facts *device)
{
	return device->at.program_id && device->traffic;
}

const struct device_facts *gate_first_device(const struct gate_facts *gate, bool egress)
{
	for (unsigned int i = 0; i < gate->count; i++)
		if (gate->devices[i].at.program_id &&
		    (gate->devices[i].at.hook == HOOK_EGRESS) == egress)
			return &gate->devices[i];
	return NULL;
}

/* --- Packets that the gate's own devices moved ---------------------------------------------- */

/*
 * Whether the gate counts each packet that the device counts. Merged packets count as one, and
 * another XDP program before hook ingress may drop packets by design.
 */
static bool is_comparable(const struct device_facts *device)
{
	const struct netdev *link = &device->traffic->link;

	return !attachment_merges(&device->at, !strcmp(link->kind, "tun")) &&
	       !(device->at.hook == HOOK_INGRESS && link->has_xdp);
}

/*
 * Returns the busiest device of the gate if the gate judged less than three quarters of what its
 * devices moved. Its counters do not name the device or the direction, so they are compared with
 * the sum: in a container whose gate also filters what it sends, half of that is judged.
 */
static const struct device_facts *unjudged_find(const struct subject *s, uint64_t *ret_moved)
{
	uint64_t judged = judged_by(s->gate), moved = 0, most = 0;
	const struct device_facts *busiest = NULL;

	for (unsigned int i = 0; i < s->gate->count; i++) {
		const struct device_facts *device = &s->gate->devices[i];
		uint64_t here;

		if (!is_alive(device) || (judged && !is_comparable(device)))
			continue;
		here = device->at.hook == HOOK_EGRESS ? device->traffic->sent
						      : device->traffic->received;
		moved += here;
		if (here > most) {
			most = here;
			busiest = device;
		}
	}
	if (ret_moved)
		*ret_moved = moved;
	if (!busiest || !busiest->is_asked || most < flow_least(s) || judged >= moved - moved / 4)
		return NULL;
	return busiest;
}

bool nothing_is_judged(struct subject *s)
{
	uint64_t moved;
	const struct device_facts *device = unjudged_find(s, &moved);
	char span[UNITS_TEXT], judged[JUDGED_TEXT];
	const struct attachment *a;
	bool sends;

	if (!device)
		return false;
	a = &device->at;
	sends = a->hook == HOOK_EGRESS;
	s->device = device;
	subject_set(s, 1, "%s %" PRIu64 " packets in %s, and gate '%s' on hook %s %s",
		    sends ? "it sent" : "its devices received", moved,
		    time_format(s->facts->asked->watch_ns, span), s->gate->name,
		    hook_names[a->hook], judged_format(s->gate, judged));
	if (a->hook == HOOK_XDP && a->mode == MODE_NATIVE) {
		subject_set(s, 2,
			    "native XDP does not see packets that bpf_redirect_peer delivers "
			    "(Cilium); hook ingress does");
		advise_moving(s, 3, a->device, " hook ingress");
		return true;
	}
	subject_set(s, 2, "%s",
		    sends ? "AF_XDP, other XDP programs and packet sockets with "
			    "PACKET_QDISC_BYPASS bypass it"
			  : "another program on the device may take them first");
	advise_exec(s, 3, "bpftool net show dev %s", word_typed(a->device));
	return true;
}

/* --- Packets on other devices --------------------------------------------------------------- */

/*
 * A gate that judges fewer packets than 1 in 100 of what a device without a gate receives was
 * probably to filter that device. With more it may filter a quiet network beside a busy network
 * that needs no filter. The gate of a bridge is to filter what the ports receive, so it has to
 * judge more than half of that.
 */
#define ELSEWHERE_TIMES 100
#define PORT_TIMES	2

/* Returns the attachment that filters what the master of a port receives, or NULL. */
static const struct attachment *master_find(const struct gate_facts *gate,
					    const struct traffic *port)
{
	for (unsigned int i = 0; i < gate->count; i++) {
		const struct attachment *a = &gate->devices[i].at;

		if (a->program_id && a->hook != HOOK_EGRESS && a->netns == port->netns &&
		    a->ifindex == port->link.master)
			return a;
	}
	return NULL;
}

/*
 * Returns the busiest device without a gate, and before all others a port of a device that the gate
 * is attached to.
 */
static const struct traffic *elsewhere_find(const struct subject *s)
{
	uint64_t judged = judged_by(s->gate);
	const struct traffic *most = NULL;
	bool most_is_port = false;

	if (s->facts->hides_devices || (judged && !gate_first_device(s->gate, false)))
		return NULL;
	for (unsigned int i = 0; i < s->facts->traffic_count; i++) {
		const struct traffic *each = &s->facts->traffic[i];
		bool is_port = master_find(s->gate, each);

		if (!each->link.is_ethernet || each->judged_in || each->judged_out ||
		    each->received < flow_least(s) ||
		    each->received <= judged * (is_port ? PORT_TIMES : ELSEWHERE_TIMES))
			continue;
		if (!most || is_port > most_is_port ||
		    (is_port == most_is_port && each->received > most->received)) {
			most = each;
			most_is_port = is_port;
		}
	}
	return most;
}

bool traffic_is_elsewhere(struct subject *s)
{
	char span[UNITS_TEXT], judged[JUDGED_TEXT], option[NETNS_OPTION];
	const struct attachment *master;
	const struct traffic *traffic;
	bool is_watched = false;

	for (unsigned int i = 0; i < s->gate->count; i++)
		is_watched |= s->gate->devices[i].is_asked && is_alive(&s->gate->devices[i]);
	traffic = is_watched && !unjudged_find(s, NULL) ? elsewhere_find(s) : NULL;
	if (!traffic)
		return false;
	master = master_find(s->gate, traffic);
	subject_set(s, 0, "%s", traffic->link.name);
	subject_set(s, 1,
		    "it received %" PRIu64 " packets in %s, and gate '%s' %s: the gate is not "
		    "attached here%s%s%s%s",
		    traffic->received, time_format(s->facts->asked->watch_ns, span), s->gate->name,
		    judged_format(s->gate, judged), master ? ", but to " : "",
		    master ? name_shown(master->device) : "",
		    master ? ", which does not see what is forwarded to other ports" : "",
		    traffic->link.has_xdp ? ", and another XDP program holds hook xdp" : "");
	/* XDP has room for one program: beside another program, a gate uses hook ingress */
	subject_set(s, 2, "sluice %s%sattach %s%s",
		    netns_option(traffic->netns, netns_home(), option), gate_option(s->gate->name),
		    operand_typed(traffic->link.name),
		    traffic->link.has_xdp ? " hook ingress" : "");
	return true;
}

/* --- Packets that cannot be limited --------------------------------------------------------- */

/*
 * Fewer packets in all do not show what a gate is for. An idle port has only ARP and spanning tree,
 * so the packets have to arrive now, too.
 */
#define NOT_IP_LEAST 1000

bool packets_are_not_ip(struct subject *s)
{
	uint64_t all = s->gate->after.all, not_ip = s->gate->after.not_ip;
	uint64_t now = not_ip - s->gate->before.not_ip;

	if (not_ip < NOT_IP_LEAST || not_ip * 2 < all || now < flow_least(s) ||
	    now * 2 < judged_by(s->gate))
		return false;
	subject_set(s, 0, "%s", s->gate->name);
	subject_set(s, 1, "%" PRIu64 " of %" PRIu64, not_ip, all);
	s->device = s->gate->count ? &s->gate->devices[0] : NULL;
	return true;
}

/* Advises to double the ring, up to its maximum; after that only more CPUs help. */
bool ring_overruns(struct subject *s)
{
	uint64_t missed = s->device->traffic->missed;
	const struct nic *nic = &s->device->nic;
	const char *name = word_typed(s->device->at.device);
	bool is_largest = nic->ring && nic->ring >= nic->ring_max;
	char span[UNITS_TEXT];

	if (!missed || s->device->at.hook == HOOK_EGRESS)
		return false;
	subject_set(s, 1, "%" PRIu64 " %s in %s", missed, plural(missed, "packet", "packets"),
		    time_format(s->facts->asked->watch_ns, span));
	subject_set(s, 2, "%s",
		    is_largest ? "the ring has its full size, so the packets need more queues, and "
				 "a CPU for each"
			       : "a larger ring bridges the time until a CPU comes");
	if (nic->ring && !is_largest)
		advise_exec(s, 3, "ethtool -G %s rx %u", name,
			    2 * nic->ring < nic->ring_max ? 2 * nic->ring : nic->ring_max);
	else
		advise_exec(s, 3, "ethtool -%c %s", is_largest ? 'l' : 'g', name);
	return true;
}
