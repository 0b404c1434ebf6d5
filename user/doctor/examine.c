// SPDX-License-Identifier: GPL-2.0
#include "doctor/examine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/shaping.h"
#include "attach/stack.h"
#include "attach/xdp_owner.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/device_checks.h"
#include "doctor/gate_checks.h"
#include "doctor/host_checks.h"
#include "doctor/rule_checks.h"
#include "doctor/watch.h"
#include "gate/rules.h"

/* --- Devices of a gate ---------------------------------------------------------------------- */

/* Returns what the device carries, in Mbit/s; 0: it is not known. */
static uint64_t device_examine(const struct patient *patient, const struct attachment *a,
			       const struct ruleset *set, struct findings *findings)
{
	struct device_facts facts;

	if (!device_facts_read(a, &facts)) {
		finding_add(findings, FIND_UNSEEN, a->device,
			    "it is in a network namespace that cannot be entered, so neither the "
			    "device nor its driver is looked at");
		finding_advise(findings, "%s", messages_advice());
		return 0;
	}
	facts.gate = patient->gate.name;
	facts.matched = vlans_matched(set);
	device_check(&facts, findings);
	return device_speed(&facts);
}

/* Tells an attachment that filters nothing. */
static void dead_tell(const struct patient *patient, const struct attachment *a,
		      struct findings *findings)
{
	char remedy[REMEDY_TEXT];

	finding_add(findings, a->device_gone ? FIND_DEVICE_GONE : FIND_FILTER_GONE, a->device,
		    a->device_gone ? "the device is gone, and gate '%s' still lists it: one that "
				     "comes back is attached by hand, or by 'sluice keep'"
				   : "the filter of gate '%s' is gone from the device: another "
				     "program removed it",
		    patient->gate.name);
	finding_advise(findings, "%s", attachment_remedy(a, patient->gate.name, remedy));
}

static void twice_check(const struct patient *patient, struct findings *findings)
{
	for (unsigned int i = 0; i < patient->asked; i++)
		for (unsigned int j = 0; j < i; j++) {
			const struct attachment *a = &patient->attachments[i];
			char option[NETNS_OPTION];

			if (!attachments_both_receive(a, &patient->attachments[j]))
				continue;
			finding_add(findings, FIND_CHARGED_TWICE, a->device,
				    "gate '%s' is attached on hooks xdp and ingress: each packet "
				    "that it receives is charged, and counted, twice",
				    patient->gate.name);
			finding_advise(findings, "sluice %s-g %s detach %s hook ingress",
				       netns_option(a->netns, netns_home(), option),
				       patient->gate.name, operand_typed(a->device));
		}
}

static void stacked_tell(void *data, const struct stacked *stacked)
{
	char text[STACKED_TEXT], remedy[STACKED_REMEDY];
	struct findings *findings = data;

	finding_add(findings, FIND_CHARGED_TWICE, stacked->upper->device, "%s",
		    stacked_format(stacked, findings->gate, text));
	finding_advise(findings, "%s", stacked_remedy(stacked, findings->gate, remedy));
}

/* Checks all attachments, because the command may name only one of two stacked devices. */
static void stacked_check(const struct patient *patient, struct findings *findings)
{
	if (patient->asked &&
	    stacked_find(patient->attachments, patient->count, stacked_tell, findings))
		findings->failed = true;
}

/* Shaping: the qdisc fq, where a limit needs it. */
static void shaping_examine(const struct patient *patient, struct findings *findings)
{
	struct shaping shaping;

	if (shaping_read(&patient->gate, &shaping) || !shaping.any)
		return;
	for (unsigned int i = 0; i < patient->asked; i++) {
		const struct attachment *a = &patient->attachments[i];
		struct holding fq;

		if (a->hook != HOOK_EGRESS || !a->program_id || shaping_look(&shaping, a, &fq))
			continue;
		fq_check(a->device, &fq, findings);
		free(fq.command);
	}
}

/* Also tells the rules' checks where the gate is attached. */
static void devices_examine(const struct patient *patient, const struct ruleset *set,
			    struct rule_facts *facts, struct findings *findings)
{
	struct findings unasked = {0};
	bool speed_is_known = true;

	for (unsigned int i = 0; i < patient->count; i++) {
		const struct attachment *a = &patient->attachments[i];
		uint64_t speed;

		if (!a->program_id) {
			speed_is_known = false;
			if (i < patient->asked)
				dead_tell(patient, a, findings);
			continue;
		}
		facts->egress |= a->hook == HOOK_EGRESS;
		if (!facts->attached)
			facts->attached = a;
		if (a->hook != HOOK_XDP && !facts->merging)
			facts->merging = a;
		speed = device_examine(patient, a, set, i < patient->asked ? findings : &unasked);
		speed_is_known &= speed != 0;
		facts->link_mbit += speed;
	}
	findings_free(&unasked);
	if (!speed_is_known)
		facts->link_mbit = 0;
	twice_check(patient, findings);
	stacked_check(patient, findings);
	shaping_examine(patient, findings);
}

/* --- Gates ---------------------------------------------------------------------------------- */

/* More than one source usually sends, and what examples of the manual have. */
#define LIMIT_BEGIN "10kpps burst 20000"

/*
 * Advises to attach a gate to the device that is likely to be meant. XDP has room for one program:
 * beside one that is there, a gate takes hook ingress. Without such a device the text of the
 * finding has to say what is looked for.
 */
static void advise_attaching(const char *gate, const char *device, bool has_xdp,
			     struct findings *findings)
{
	if (device)
		finding_advise(findings, "sluice %s%sattach %s%s", netns_typed(), gate_option(gate),
			       operand_typed(device), has_xdp ? " hook ingress" : "");
	else
		finding_advise(findings, "ip %slink show", netns_typed());
}

static void advise_busiest(const char *gate, const struct link *busiest, struct findings *findings)
{
	advise_attaching(gate, busiest ? busiest->name : NULL, busiest && busiest->has_xdp,
			 findings);
}

/* What follows where there is no device to advise. */
static const char *device_missing(const struct link *busiest)
{
	return busiest ? ""
		       : "; no Ethernet device is up here: 'sluice attach' takes the one by which "
			 "packets come, once it is up";
}

static void emptiness_check(const struct patient *patient, const struct ruleset *set,
			    const struct link *busiest, struct findings *findings)
{
	const char *gate = patient->gate.name;

	if (!patient->count && !patient->unseen) {
		finding_add(findings, FIND_NO_DEVICE, gate,
			    "the gate is attached to no device, so it filters nothing%s",
			    device_missing(busiest));
		advise_busiest(gate, busiest, findings);
	}
	if (!set->count) {
		finding_add(findings, FIND_NO_RULES, gate,
			    "the gate has no rule: it counts packets, and drops none. To begin "
			    "with, a limit that only observes: 'sluice stats' then tells how many "
			    "packets a drop would take, and 'sluice sources' whose");
		finding_advise(findings, "sluice %sset default rate %s action observe",
			       gate_option(gate), LIMIT_BEGIN);
	}
}

static void patient_examine(const struct patient *patient, const struct link *busiest,
			    struct findings *findings)
{
	struct rule_facts facts = {.gate = patient->gate.name, .machine = patient->gate.machine};
	char *messages = NULL, **before = messages_keep(&messages);
	struct ruleset set = {0};
	int status = rules_read(&patient->gate, &set);

	findings->gate = patient->gate.name;
	if (!status) {
		devices_examine(patient, &set, &facts, findings);
		emptiness_check(patient, &set, busiest, findings);
		ruleset_check(&set, &facts, findings);
		status = gate_examine(&patient->gate, &set, findings);
	}
	messages_keep(before);
	if (status)
		messages_tell(messages, FIND_GATE_UNREAD, patient->gate.name, findings);
	else
		free(messages);
	findings->gate = NULL;
	ruleset_free(&set);
}

/* Where the package's service has its files. */
#define SERVICE_FILE "/etc/sluice/%s.yaml"

/* Adds a finding if the service has a file for a gate that is not there. Returns whether it has. */
static bool unapplied_tell(const char *gate, struct findings *findings)
{
	char file[sizeof(SERVICE_FILE) + GATE_NAME];

	snprintf(file, sizeof(file), SERVICE_FILE, gate);
	if (access(file, F_OK))
		return false;
	finding_add(findings, FIND_NO_GATE, gate,
		    "there is no such gate, though %s describes it: the file is not applied", file);
	if (!access(SYSTEMD_RUNS, F_OK))
		finding_advise(findings, "systemctl enable --now sluice@%s", gate);
	else
		finding_advise(findings, "sluice %s%sapply %s", netns_typed(), gate_option(gate),
			       file);
	return true;
}

static void no_gate_tell(const struct asked *asked, const struct link *busiest,
			 struct findings *findings)
{
	const char *gate = asked->gate ?: GATE_USUAL;

	if (unapplied_tell(gate, findings))
		return;
	finding_add(findings, FIND_NO_GATE, gate,
		    asked->gate ? "there is no gate of that name%s"
				: "there is no gate, so nothing is filtered%s",
		    device_missing(busiest));
	advise_busiest(gate, busiest, findings);
}

/* --- Devices that were asked for ------------------------------------------------------------ */

/* A gate that cannot be read is told of elsewhere. */
static struct xdp_owner owner_find(unsigned int ifindex)
{
	char *messages = NULL, **before = messages_keep(&messages);
	struct xdp_owner owner = xdp_owner_find(ifindex);

	messages_keep(before);
	free(messages);
	return owner;
}

static void unattached_tell(const struct asked *asked, const char *name, const struct watch *watch,
			    struct findings *findings)
{
	const struct link *link = watch_named(watch, name);
	char *messages = NULL, **before = messages_keep(&messages);
	struct xdp_owner owner = {0};
	char holder[XDP_OWNER_TEXT];
	struct device device;
	int status = device_find(name, &device);

	messages_keep(before);
	if (!status)
		owner = owner_find(device.ifindex);
	finding_add(findings, FIND_NOT_ATTACHED, name, "%s%s%s%s",
		    messages	  ? messages
		    : asked->gate ? "the gate is not attached to it"
				  : "no gate is attached to it",
		    owner.program_id ? ": hook xdp, which has room for one program, is held by "
				     : "",
		    owner.program_id ? xdp_owner_format(&owner, holder) : "",
		    owner.program_id ? ", and hook ingress is free for a gate" : "");
	advise_attaching(asked->gate ?: GATE_USUAL, status ? NULL : name, link && link->has_xdp,
			 findings);
	free(messages);
}

/* --- All of it ------------------------------------------------------------------------------ */

int examine(const struct asked *asked, struct examined *ret, struct findings *findings)
{
	struct patients patients = {0};
	int status = OK;
	struct host_facts host;
	struct watch watch;

	*ret = (struct examined){0};
	host = host_read();
	host_check(&host, findings);
	host_free(&host);
	patients_take(asked, &patients, findings);
	watch_begin(&patients, &watch, findings);
	if (!patients.exist)
		no_gate_tell(asked, watch_busiest(&watch), findings);
	ret->gates = patients.count;
	for (unsigned int i = 0; i < patients.count; i++)
		ret->attachments += patients.list[i].asked;
	/* first: the rules of a large gate take longer than the span that is told */
	if (ret->attachments)
		status = watch_end(&watch, &patients, asked->watch_ns, &ret->judged, findings);
	for (unsigned int i = 0; i < patients.count; i++)
		patient_examine(&patients.list[i], watch_busiest(&watch), findings);
	for (unsigned int i = 0; i < asked->count; i++)
		if (!patients_filter(&patients, asked->devices[i]))
			unattached_tell(asked, asked->devices[i], &watch, findings);
	watch_free(&watch);
	patients_free(&patients);
	findings_sort(findings);
	if (!status && findings->failed)
		status = failure("cannot tell all findings: out of memory");
	return status;
}
