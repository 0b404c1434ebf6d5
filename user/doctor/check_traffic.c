// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "doctor/checks.h"
#include "rules/value.h"

/*
 * Check traffic only if at least this many packets arrive in 2 s, because fewer may be ARP and
 * neighbour discovery. A shorter time requires the same number, because such packets arrive in
 * bursts.
 */
#define FLOW_LEAST	   20
#define FLOW_LEAST_SECONDS 2

static uint64_t flow_least(const struct subject *s)
{
	uint64_t least = s->facts->asked->watch_ns * FLOW_LEAST / (FLOW_LEAST_SECONDS * NS_PER_SEC);

	return least > FLOW_LEAST ? least : FLOW_LEAST;
}

/* Returns how many packets the gate judged while doctor counted packets. */
static uint64_t judged_by(const struct gate_facts *gate)
{
	return gate->after.all - gate->before.all;
}

/* Formats the number of packets that the gate judged, such as "judged 17" or "judged none". */
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

/* --- Packets that the gate's own devices moved ---------------------------------------------- */

/*
 * Returns the gate's busiest device if the gate judged less than three quarters of the packets of
 * its devices. Otherwise returns NULL. Stores the number of these packets in *ret_moved. Compares
 * sums, because the gate's counters are not per device.
 */
static const struct device_facts *unjudged_find(const struct subject *s, uint64_t *ret_moved)
{
	uint64_t judged = judged_by(s->gate), moved = 0, most = 0;
	const struct device_facts *busiest = NULL;

	for (unsigned int i = 0; i < s->gate->count; i++) {
		const struct device_facts *device = &s->gate->devices[i];
		const struct netdev *link;
		uint64_t here;

		if (!is_alive(device))
			continue;
		link = &device->traffic->link;
		/*
		 * skip a device if the gate may see fewer packets than the device: packets are
		 * merged, or an XDP program drops packets before hook ingress
		 */
		if (judged && (attachment_merges(&device->at, !strcmp(link->kind, "tun")) ||
			       (device->at.hook == HOOK_INGRESS && link->has_xdp)))
			continue;
		here = device->at.hook == HOOK_EGRESS ? device->traffic->sent
						      : device->traffic->received;
		moved += here;
		if (here > most) {
			most = here;
			busiest = device;
		}
	}
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
	bool sends;

	if (!device)
		return false;
	sends = device->at.hook == HOOK_EGRESS;
	subject_set_device(s, device);
	subject_set(s, 1, "%s %" PRIu64 " packets in %s, but gate '%s' on hook %s %s",
		    sends ? "it sent" : "its devices received", moved,
		    time_format(s->facts->asked->watch_ns, span), s->gate->name,
		    hook_names[device->at.hook], judged_format(s->gate, judged));
	if (device->at.hook == HOOK_XDP && device->at.mode == MODE_NATIVE) {
		subject_set(s, 2,
			    "native XDP does not see packets that bpf_redirect_peer delivers "
			    "(Cilium); hook ingress does");
		advise_moving(s, 3, device->at.device, " hook ingress");
		return true;
	}
	subject_set(s, 2, "%s",
		    sends ? "AF_XDP, other XDP programs and packet sockets with "
			    "PACKET_QDISC_BYPASS bypass it"
			  : "another program on the device may receive them first");
	subject_set(s, 3, "%sbpftool net show dev %s", s->exec, word_typed(device->at.device));
	return true;
}

/* --- Packets on other devices --------------------------------------------------------------- */

/*
 * Report a device without a gate if it receives 100 times as many packets as the gate judges,
 * because the user probably meant that device. A lower factor would report gates that are attached
 * to a quiet network on purpose.
 */
#define ELSEWHERE_TIMES 100

bool traffic_is_elsewhere(struct subject *s)
{
	uint64_t judged = judged_by(s->gate), moved;
	const struct traffic *most = NULL;
	bool is_watched = false, receives = false, has_xdp;
	char span[UNITS_TEXT], text[JUDGED_TEXT];

	for (unsigned int i = 0; i < s->gate->count; i++) {
		const struct device_facts *device = &s->gate->devices[i];

		is_watched |= device->is_asked && is_alive(device);
		receives |= device->at.program_id && device->at.hook != HOOK_EGRESS;
	}
	if (!is_watched || (judged && !receives) || s->facts->hides_devices ||
	    unjudged_find(s, &moved))
		return false;
	for (unsigned int i = 0; i < s->facts->traffic_count; i++) {
		const struct traffic *each = &s->facts->traffic[i];

		if (each->link.is_ethernet && !each->is_filtered &&
		    each->received >= flow_least(s) && each->received > judged * ELSEWHERE_TIMES &&
		    (!most || each->received > most->received))
			most = each;
	}
	if (!most)
		return false;
	has_xdp = most->link.has_xdp;
	subject_set(s, 0, "%s", most->link.name);
	subject_set(s, 1,
		    "it received %" PRIu64 " packets in %s, but gate '%s' %s, because it is not "
		    "attached to this device%s",
		    most->received, time_format(s->facts->asked->watch_ns, span), s->gate->name,
		    judged_format(s->gate, text),
		    has_xdp ? "; another XDP program occupies hook xdp" : "");
	advise_attaching(s, most->netns, s->gate->name, &most->link);
	return true;
}

/* --- Packets that cannot be limited --------------------------------------------------------- */

/*
 * Report non-IP packets only if the gate has counted at least this number. The check also requires
 * that such packets arrive now, because on an idle port the number of ARP and spanning tree packets
 * slowly reaches any bound.
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
	subject_set_device(s, s->gate->count ? &s->gate->devices[0] : NULL);
	return true;
}
