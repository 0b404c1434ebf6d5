// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"

/* --- The kernel ----------------------------------------------------------------------------- */

bool bpf_is_refused(struct subject *s)
{
	const struct host_facts *host = &s->facts->host;
	bool locked = *host->lockdown && strcmp(host->lockdown, "none");

	if (!host->bpf_err)
		return false;
	subject_set(s, 1, "%s", strerror(-host->bpf_err));
	if (host->has_own_users) {
		subject_set(
			s, 2,
			"its user namespace is not the host's, so its capabilities do not count");
		subject_set(s, 3, "cat /proc/self/uid_map");
		return true;
	}
	subject_set(s, 2, "%s%s",
		    locked ? "lockdown is in mode "
			   : "seccomp (in containers) or a security module may forbid it",
		    locked ? host->lockdown : "");
	subject_set(s, 3,
		    locked ? "cat /sys/kernel/security/lockdown"
			   : "grep Seccomp: /proc/self/status");
	return true;
}

bool bpffs_is_hidden(struct subject *s)
{
	subject_set(s, 0, "%s", BPFFS);
	subject_set(s, 1, "%s", s->facts->host.bpffs ?: "");
	return s->facts->host.bpffs;
}

bool jit_is_off(struct subject *s)
{
	return !s->facts->host.jit;
}

bool rights_are_missing(struct subject *s)
{
	subject_set(s, 0, "process");
	subject_set(s, 1, "%s", s->facts->host.missing ?: "");
	return s->facts->host.missing;
}

/* --- Gates and devices that do not exist ---------------------------------------------------- */

void advise_attaching(struct subject *s, uint64_t netns, const char *gate,
		      const struct netdev *device)
{
	char option[NETNS_OPTION];

	netns_option(netns, netns_home(), option);
	if (device)
		subject_set(s, 2, "sluice %s%sattach %s%s", option, gate_option(gate),
			    operand_typed(device->name), device->has_xdp ? " hook ingress" : "");
	else
		subject_set(s, 2, "ip %slink show", option);
}

/*
 * Finds the device of the current network namespace that received the most packets. Sets the advice
 * (part 2) to the command that attaches a gate to it. Returns "", or words to append to the
 * finding's text if no device is up.
 */
static const char *advise_busiest(struct subject *s, const char *gate)
{
	const struct netdev *busiest = NULL;

	for (unsigned int i = 0; i < s->facts->traffic_count; i++) {
		const struct netdev *link = &s->facts->traffic[i].link;

		if (s->facts->traffic[i].netns == s->facts->netns && link->is_ethernet &&
		    link->is_up && (!busiest || link->received > busiest->received))
			busiest = link;
	}
	advise_attaching(s, s->facts->netns, gate, busiest);
	return busiest ? ""
		       : "; no Ethernet device is up here; first start the device that receives "
			 "the packets";
}

bool gate_is_missing(struct subject *s)
{
	const char *asked = s->facts->asked->gate, *gate = asked ?: GATE_USUAL, *end;

	if (s->facts->has_gates)
		return false;
	subject_set(s, 0, "%s", gate);
	if (!s->facts->has_file) {
		end = advise_busiest(s, gate);
		subject_set(s, 1,
			    asked ? "there is no gate of that name%s"
				  : "there is no gate, so nothing is filtered%s",
			    end);
		return true;
	}
	subject_set(s, 1,
		    "there is no gate of that name, because /etc/sluice/%s.yaml is not applied",
		    gate);
	if (s->facts->host.has_systemd)
		subject_set(s, 2, "systemctl enable --now sluice@%s", gate);
	else
		subject_set(s, 2, "sluice %s%sapply /etc/sluice/%s.yaml", s->netns,
			    gate_option(gate), gate);
	return true;
}

bool gate_has_no_device(struct subject *s)
{
	if (s->gate->count || s->gate->hides_devices)
		return false;
	subject_set(s, 1, "%s", advise_busiest(s, s->gate->name));
	return true;
}

bool device_is_unattached(struct subject *s)
{
	const char *gate = s->facts->asked->gate;
	const struct netdev *link = s->named->link;
	const char *none = gate ? "the gate is not" : "no gate is";
	char holder[XDP_OWNER_TEXT];

	for (unsigned int i = 0; i < s->facts->count; i++) {
		const struct gate_facts *each = &s->facts->gates[i];

		if (each->is_examined && each->hides_devices)
			return false;
		for (unsigned int j = 0; each->is_examined && j < each->count; j++)
			if (!strcmp(each->devices[j].at.device, s->named->name) &&
			    each->devices[j].at.netns == s->facts->netns)
				return false;
	}
	advise_attaching(s, s->facts->netns, gate ?: GATE_USUAL, link);
	if (!link)
		subject_set(s, 1, "there is no such device in this network namespace");
	else if (s->named->owner.program_id)
		subject_set(s, 1, "%s attached to it, and %s occupies hook xdp; use hook ingress",
			    none, xdp_owner_format(&s->named->owner, holder));
	else
		subject_set(s, 1, "%s attached to it", none);
	return true;
}
