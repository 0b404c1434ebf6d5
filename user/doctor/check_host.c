// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"

/* --- The kernel ----------------------------------------------------------------------------- */

bool kernel_is_old(struct subject *s)
{
	subject_set(s, 1, "%s", s->facts->host.is_old ?: "");
	return s->facts->host.is_old;
}

bool bpf_is_refused(struct subject *s)
{
	const struct host_facts *host = &s->facts->host;
	bool locked = *host->lockdown && strcmp(host->lockdown, "none");

	if (!host->bpf_err)
		return false;
	subject_set(s, 1, "%s", strerror(-host->bpf_err));
	subject_set(s, 2, "%s%s",
		    locked ? "lockdown is in mode "
			   : "seccomp, as in a container, or a security module may forbid it",
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

/* --- Gates and devices that are not there --------------------------------------------------- */

const struct netdev *busiest_device(const struct doctor_facts *facts)
{
	const struct netdev *busiest = NULL;

	for (unsigned int i = 0; i < facts->traffic_count; i++) {
		const struct netdev *link = &facts->traffic[i].link;

		if (facts->traffic[i].netns == facts->netns && link->is_ethernet && link->is_up &&
		    (!busiest || link->received > busiest->received))
			busiest = link;
	}
	return busiest;
}

/*
 * Advises to attach a gate to a device, or if there is none, to look for one. XDP has room for one
 * program: beside another program, a gate uses hook ingress.
 */
static void advise_attaching(struct subject *s, const char *gate, const char *device, bool has_xdp)
{
	if (device)
		subject_set(s, 2, "sluice %s%sattach %s%s", netns_typed(), gate_option(gate),
			    operand_typed(device), has_xdp ? " hook ingress" : "");
	else
		subject_set(s, 2, "ip %slink show", netns_typed());
}

/* Advises to attach the busiest device. Returns what the text ends with if there is none. */
static const char *advise_busiest(struct subject *s, const char *gate)
{
	const struct netdev *busiest = busiest_device(s->facts);

	advise_attaching(s, gate, busiest ? busiest->name : NULL, busiest && busiest->has_xdp);
	return busiest ? ""
		       : "; no Ethernet device is up here: 'sluice attach' takes the device by "
			 "which "
			 "packets come, once it is up";
}

bool gate_is_missing(struct subject *s)
{
	const char *asked = s->facts->asked->gate, *gate = asked ?: GATE_USUAL;

	if (s->facts->has_gates)
		return false;
	subject_set(s, 0, "%s", gate);
	if (!s->facts->has_file) {
		const char *end = advise_busiest(s, gate);

		subject_set(s, 1,
			    asked ? "there is no gate of that name%s"
				  : "there is no gate, so nothing is filtered%s",
			    end);
		return true;
	}
	subject_set(
		s, 1,
		"there is no such gate, though /etc/sluice/%s.yaml describes it: the file is not "
		"applied",
		gate);
	if (s->facts->host.has_systemd)
		subject_set(s, 2, "systemctl enable --now sluice@%s", gate);
	else
		subject_set(s, 2, "sluice %s%sapply /etc/sluice/%s.yaml", netns_typed(),
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
	const struct named_facts *named = s->named;
	const char *gate = s->facts->asked->gate;
	char holder[XDP_OWNER_TEXT];

	for (unsigned int i = 0; i < s->facts->count; i++) {
		const struct gate_facts *each = &s->facts->gates[i];

		if (each->is_examined && each->hides_devices)
			return false;
		for (unsigned int j = 0; each->is_examined && j < each->count; j++)
			if (!strcmp(each->devices[j].at.device, named->name) &&
			    each->devices[j].at.netns == s->facts->netns)
				return false;
	}
	advise_attaching(s, gate ?: GATE_USUAL, named->exists ? named->name : NULL,
			 named->owner.program_id);
	if (!named->exists)
		subject_set(s, 1, "there is no such device in this network namespace");
	else if (named->owner.program_id)
		subject_set(
			s, 1,
			"%s attached to it: hook xdp, which has room for one program, is held by "
			"%s, and hook ingress is free for a gate",
			gate ? "the gate is not" : "no gate is",
			xdp_owner_format(&named->owner, holder));
	else
		subject_set(s, 1, "%s attached to it", gate ? "the gate is not" : "no gate is");
	return true;
}
