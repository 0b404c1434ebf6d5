// SPDX-License-Identifier: GPL-2.0
#include "doctor/traffic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "rules/value.h"
#include "state/stats.h"

/*
 * Fewer packets in the span are what any network sends by itself: ARP, neighbour discovery. They
 * come in bursts, so that a short span may have as many of them as one of two seconds.
 */
#define FLOW_LEAST	   20
#define FLOW_LEAST_SECONDS 2

/*
 * Fewer packets in all do not tell what a gate is for. Nor do those of an idle port, on which ARP
 * and spanning tree are all that there is: they have to come now, too.
 */
#define NOT_IP_LEAST 1000

/* --- Reading -------------------------------------------------------------------------------- */

int judged_read(const struct gate *gate, struct judged *ret)
{
	struct stats stats;
	int status = stats_read(gate, &stats);
	const struct sl_cell *reason = stats.total.reason;

	if (status)
		return status;
	ret->all = counters_passed(&stats.total).packets + counters_dropped(&stats.total).packets;
	ret->not_ip = reason[SL_PASS_NOT_IP].packets + reason[SL_PASS_SHORT].packets +
		      reason[SL_PASS_BAD_HEADER].packets;
	stats_free(&stats);
	return OK;
}

/* What a counter grew by; 0 where it was set back, as by a driver that starts again. */
static uint64_t growth(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

int flows_add(struct flows *flows, uint64_t netns, const struct link_facts *before,
		      const struct link_facts *after)
{
	for (unsigned int i = 0; i < after->count; i++) {
		const struct link *now = &after->list[i];
		const struct link *then = link_facts_find(before, now->ifindex);

		if (!then)
			continue;
		if (!array_grow(flows->list, flows->count, flows->room))
			return failure("cannot compare the devices: out of memory");
		flows->list[flows->count++] = (struct flow){
			.netns = netns,
			.link = *now,
			.received = growth(now->received, then->received),
			.sent = growth(now->sent, then->sent),
			.lost = ring_losses_growth(&now->losses, &then->losses),
		};
	}
	return OK;
}

void flows_free(struct flows *flows)
{
	free(flows->list);
	*flows = (struct flows){0};
}

/* --- Judging -------------------------------------------------------------------------------- */

static uint64_t flow_least(const struct flows *flows)
{
	uint64_t least = flows->span_ns * FLOW_LEAST / (FLOW_LEAST_SECONDS * NS_PER_SEC);

	return least > FLOW_LEAST ? least : FLOW_LEAST;
}

static const struct flow *flow_of(const struct flows *flows, const struct attachment *a)
{
	for (unsigned int i = 0; i < flows->count; i++)
		if (flows->list[i].netns == a->netns && flows->list[i].link.ifindex == a->ifindex)
			return &flows->list[i];
	return NULL;
}

/* What passes the hook of an attachment. */
static uint64_t flow_at(const struct flow *flow, enum hook hook)
{
	return hook == HOOK_EGRESS ? flow->sent : flow->received;
}

static uint64_t judged_in_span(const struct gate_traffic *gate)
{
	return growth(gate->after.all, gate->before.all);
}

/* The attachment that filters what the master of a port receives; NULL: there is none. */
static const struct attachment *master_find(const struct gate_traffic *gate,
					    const struct flow *port)
{
	for (unsigned int i = 0; i < gate->count; i++) {
		const struct attachment *a = &gate->attachments[i];

		if (a->program_id && a->hook != HOOK_EGRESS && a->netns == port->netns &&
		    a->ifindex == port->link.master)
			return a;
	}
	return NULL;
}

static bool gate_receives(const struct gate_traffic *gate)
{
	for (unsigned int i = 0; i < gate->count; i++)
		if (gate->attachments[i].program_id && gate->attachments[i].hook != HOOK_EGRESS)
			return true;
	return false;
}

/*
 * If a gate judges fewer packets than 1 in 100 of what a device without a gate receives, it
 * probably was to filter that device. With more it may filter a quiet network beside a busy network
 * that needs no filter. The gate of a bridge is to filter what the ports receive, so it has to
 * judge more than half of that.
 */
#define ELSEWHERE_TIMES 100
#define PORT_TIMES	2

/*
 * The busiest device that no gate is attached to, among the namespaces that were looked at, and
 * before all others a port of a device that the gate is attached to.
 */
static const struct flow *flow_elsewhere(const struct gate_traffic *gate, const struct flows *flows)
{
	uint64_t judged = judged_in_span(gate);
	const struct flow *most = NULL;
	bool most_is_port = false;

	if (judged && !gate_receives(gate))
		return NULL;
	for (unsigned int i = 0; i < flows->count; i++) {
		const struct flow *flow = &flows->list[i];
		bool is_port = master_find(gate, flow);

		if (!flow->link.ethernet || flow->judged_in || flow->judged_out ||
		    flow->received < flow_least(flows) ||
		    flow->received <= judged * (is_port ? PORT_TIMES : ELSEWHERE_TIMES))
			continue;
		if (!most || is_port > most_is_port ||
		    (is_port == most_is_port && flow->received > most->received)) {
			most = flow;
			most_is_port = is_port;
		}
	}
	return most;
}

/*
 * Advises to attach a device where its packets are. XDP has room for one program: beside the
 * program of another software, a gate takes hook ingress.
 */
static void advise_attaching(const struct gate_traffic *gate, const struct flow *flow, bool egress,
			     struct findings *findings)
{
	char option[NETNS_OPTION];

	finding_advise(findings, "sluice %s-g %s attach %s%s",
		       netns_option(flow->netns, netns_home(), option), gate->gate,
		       operand_typed(flow->link.name),
		       egress		    ? " hook egress"
		       : flow->link.has_xdp ? " hook ingress"
					    : "");
}

#define JUDGED_TEXT 32

static const char *judged_format(const struct gate_traffic *gate, char text[JUDGED_TEXT])
{
	uint64_t judged = judged_in_span(gate);

	snprintf(text, JUDGED_TEXT, judged ? "judged %" PRIu64 : "judged none", judged);
	return text;
}

/* Where it is not known which devices have a gate, none is advised for this one. */
static void elsewhere_check(const struct gate_traffic *gate, const struct flows *flows,
			    struct findings *findings)
{
	const struct flow *flow = flows->holders_unseen ? NULL : flow_elsewhere(gate, flows);
	const struct attachment *master = flow ? master_find(gate, flow) : NULL;
	char span[UNITS_TEXT], judged[JUDGED_TEXT];

	if (!flow)
		return;
	finding_add(findings, FIND_ELSEWHERE, flow->link.name,
		    "it received %" PRIu64 " packets in %s, and gate '%s' %s: the gate is not "
		    "attached here%s%s%s%s",
		    flow->received, time_format(flows->span_ns, span), gate->gate,
		    judged_format(gate, judged), master ? ", but to " : "",
		    master ? name_shown(master->device) : "",
		    master ? ", which does not see what is forwarded to other ports" : "",
		    flow->link.has_xdp ? ", and another XDP program holds hook xdp" : "");
	advise_attaching(gate, flow, false, findings);
}

/*
 * Whether the gate counts each packet that the device counts there. Merged packets count as one,
 * and another XDP program before hook ingress may drop packets by design.
 */
static bool is_comparable(const struct attachment *a, const struct flow *flow)
{
	return !attachment_merges(a, !strcmp(flow->link.kind, "tun")) &&
	       !(a->hook == HOOK_INGRESS && flow->link.has_xdp);
}

/* Why packets that the device counted may miss the attachment. */
static const char *unjudged_cause(const struct attachment *a)
{
	if (a->hook == HOOK_XDP && a->mode == MODE_NATIVE)
		return "native XDP does not see packets that bpf_redirect_peer delivers (Cilium); "
		       "hook ingress does";
	if (a->hook == HOOK_EGRESS)
		return "AF_XDP, other XDP programs and packet sockets with PACKET_QDISC_BYPASS "
		       "bypass it";
	return "another program on the device may take them first";
}

static void unjudged_tell(const struct gate_traffic *gate, const struct attachment *a,
			  uint64_t moved, const struct flows *flows, struct findings *findings)
{
	bool has_more = moved > flow_at(flow_of(flows, a), a->hook);
	char option[NETNS_OPTION], exec[NETNS_EXEC], span[UNITS_TEXT], judged[JUDGED_TEXT];
	const char *name = operand_typed(a->device);

	finding_add(findings, FIND_NOTHING_JUDGED, a->device,
		    "it%s %s %" PRIu64 " packets in %s, and gate '%s' on hook %s %s: %s",
		    has_more ? " and other devices of the gate" : "",
		    a->hook == HOOK_EGRESS ? "sent" : "received", moved,
		    time_format(flows->span_ns, span), gate->gate, hook_names[a->hook],
		    judged_format(gate, judged), unjudged_cause(a));
	netns_option(a->netns, netns_home(), option);
	if (a->hook == HOOK_XDP && a->mode == MODE_NATIVE)
		finding_advise(findings,
			       "sluice %s-g %s attach %s hook ingress && sluice %s-g %s detach %s "
			       "hook xdp",
			       option, gate->gate, name, option, gate->gate, name);
	else
		finding_advise(findings, "%sbpftool net show dev %s", netns_exec(option, exec),
			       word_typed(a->device));
}

/*
 * Reports the busiest device of the gate if the gate judged less than three quarters of what its
 * devices moved. Its counters do not specify the device or the direction, so they are compared with
 * the sum: in a container whose gate also filters what it sends, half of that is judged.
 */
static bool unjudged_check(const struct gate_traffic *gate, const struct flows *flows,
			   struct findings *findings)
{
	uint64_t judged = judged_in_span(gate), moved = 0, most = 0;
	unsigned int busiest = 0;

	for (unsigned int i = 0; i < gate->count; i++) {
		const struct attachment *a = &gate->attachments[i];
		const struct flow *flow = a->program_id ? flow_of(flows, a) : NULL;
		uint64_t here = flow ? flow_at(flow, a->hook) : 0;

		if (!flow || (judged && !is_comparable(a, flow)))
			continue;
		moved += here;
		if (here > most) {
			most = here;
			busiest = i;
		}
	}
	if (busiest >= gate->asked || most < flow_least(flows) || judged >= moved - moved / 4)
		return false;
	unjudged_tell(gate, &gate->attachments[busiest], moved, flows, findings);
	return true;
}

/* All hooks of the gate are quiet, and a device moves packets the other way. */
static void other_way_tell(const struct gate_traffic *gate, const struct attachment *a,
			   const struct flows *flows, struct findings *findings)
{
	const struct flow *flow = flow_of(flows, a);
	bool sends = a->hook != HOOK_EGRESS;
	char span[UNITS_TEXT];

	finding_add(findings, FIND_ELSEWHERE, a->device,
		    "it %s %" PRIu64 " packets in %s, and gate '%s' is attached on hook %s, for "
		    "what it %s",
		    sends ? "sent" : "received", sends ? flow->sent : flow->received,
		    time_format(flows->span_ns, span), gate->gate, hook_names[a->hook],
		    sends ? "receives" : "sends");
	advise_attaching(gate, flow, sends, findings);
}

/* Finds the packets that the gate did not judge. */
static void missing_check(const struct gate_traffic *gate, const struct flows *flows,
			  struct findings *findings)
{
	unsigned int alive = 0;

	if (unjudged_check(gate, flows, findings))
		return;
	for (unsigned int i = 0; i < gate->asked; i++) {
		const struct attachment *a = &gate->attachments[i];
		const struct flow *flow = a->program_id ? flow_of(flows, a) : NULL;
		bool egress = a->hook == HOOK_EGRESS;

		if (!flow)
			continue;
		alive++;
		if (!judged_in_span(gate) &&
		    (egress ? flow->received : flow->sent) >= flow_least(flows) &&
		    !(egress ? flow->judged_in : flow->judged_out)) {
			other_way_tell(gate, a, flows, findings);
			return;
		}
	}
	if (alive)
		elsewhere_check(gate, flows, findings);
}

static void not_ip_check(const struct gate_traffic *gate, const struct flows *flows,
			 struct findings *findings)
{
	uint64_t all = gate->after.all, not_ip = gate->after.not_ip;
	uint64_t now = growth(not_ip, gate->before.not_ip);
	char option[NETNS_OPTION] = "";

	if (not_ip < NOT_IP_LEAST || not_ip * 2 < all || now < flow_least(flows) ||
	    now * 2 < growth(all, gate->before.all))
		return;
	finding_add(findings, FIND_NOT_IP, gate->gate,
		    "%" PRIu64 " of %" PRIu64 " packets are neither IPv4 nor IPv6, such as PPPoE, "
		    "MPLS or MACsec, and pass: attach the Ethernet device that unwraps them, if "
		    "there is one",
		    not_ip, all);
	if (gate->count)
		netns_option(gate->attachments[0].netns, netns_home(), option);
	finding_advise(findings, "ip %s-d link show", option);
}

/* Twice the ring, as far as the device has it; a ring of full size leaves only more CPUs. */
static void overrun_tell(const struct attachment *a, const struct flows *flows,
			 struct findings *findings)
{
	const struct flow *flow = flow_of(flows, a);
	const struct ring_size *ring = &flow->link.ring;
	bool is_full_size = ring->now && ring->now >= ring->most;
	const char *name = word_typed(a->device);
	char option[NETNS_OPTION], exec[NETNS_EXEC], span[UNITS_TEXT];

	finding_add(findings, FIND_RING_OVERRUN, a->device,
		    "%" PRIu64 " %s in %s found its receive ring full, and %s lost before any "
		    "program: %s",
		    flow->lost, plural(flow->lost, "packet", "packets"),
		    time_format(flows->span_ns, span), plural(flow->lost, "was", "were"),
		    is_full_size ? "the ring has its full size, so the packets need more queues, "
				   "and a CPU for each"
				 : "a larger ring bridges the time until a CPU comes");
	netns_exec(netns_option(a->netns, netns_home(), option), exec);
	if (is_full_size)
		finding_advise(findings, "%sethtool -l %s", exec, name);
	else if (ring->now)
		finding_advise(findings, "%sethtool -G %s rx %u", exec, name,
			       2 * ring->now < ring->most ? 2 * ring->now : ring->most);
	else
		finding_advise(findings, "%sethtool -g %s", exec, name);
}

static void lost_check(const struct gate_traffic *gate, const struct flows *flows,
		       struct findings *findings)
{
	for (unsigned int i = 0; i < gate->asked; i++) {
		const struct attachment *a = &gate->attachments[i];
		const struct flow *flow = a->program_id ? flow_of(flows, a) : NULL;

		if (flow && flow->lost && a->hook != HOOK_EGRESS)
			overrun_tell(a, flows, findings);
	}
}

void traffic_check(const struct gate_traffic *gate, const struct flows *flows,
		   struct findings *findings)
{
	missing_check(gate, flows, findings);
	not_ip_check(gate, flows, findings);
	lost_check(gate, flows, findings);
}
