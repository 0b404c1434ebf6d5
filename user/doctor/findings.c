// SPDX-License-Identifier: GPL-2.0
#include "doctor/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"

const char *const severity_names[] = {
	[WRONG] = "wrong",
	[ADVICE] = "advice",
};

/* The subjects of a check. The check is called once for each subject. */
enum scope {
	HOST,
	NAMED,	    /* each device that the command line names */
	UNREAD,	    /* each gate, including gates that could not be read */
	GATE,	    /* each gate that could be read */
	ATTACHMENT, /* each attachment that the command line selects */
	/* each attachment that the command line selects and whose device could be read */
	DEVICE,
};

/*
 * Placeholders in texts and advice. A check sets {0} to {4}. The others are:
 *
 *   {gate}    the name of the gate
 *   {-g}      "-g GATE ", or "" for the usual gate
 *   {device}  the device, quoted for a shell
 *   {dev}     the device, quoted as an operand of sluice
 *   {-n}      "-n NETNS " for the namespace of the device
 *   {sluice}  "sluice -n NETNS -g GATE "
 */
static const struct kind {
	const char *id;
	enum severity severity;
	enum scope scope;
	check_fn *check;
	const char *text, *advice;
} kinds[] = {
	/* these findings report that a gate does not filter packets */
	{"bpf-refused", WRONG, HOST, bpf_is_refused, "refuses bpf(2) to this process: {1}; {2}",
	 "{3}"},
	{"bpffs", WRONG, HOST, bpffs_is_hidden, "{1}", "ls -ld /sys/fs/bpf /sys/fs/bpf/sluice"},
	{"no-gate", WRONG, HOST, gate_is_missing, "{1}", "{2}"},
	{"gate-unread", WRONG, UNREAD, gate_is_unread, "{1}", "{2}"},
	{"resize-interrupted", WRONG, GATE, resize_is_interrupted,
	 "a resize was interrupted, so a source can use its limit twice", "sluice {-g}upgrade"},
	{"no-device", WRONG, GATE, gate_has_no_device,
	 "attached to no device, so it filters nothing{1}", "{2}"},
	{"not-attached", WRONG, NAMED, device_is_unattached, "{1}", "{2}"},
	{"device-gone", WRONG, ATTACHMENT, device_is_gone,
	 "the device is gone, but gate '{gate}' still lists it; if it appears again, it must be "
	 "attached again",
	 "{1}"},
	{"filter-gone", WRONG, ATTACHMENT, filter_is_gone,
	 "another program removed the filter of gate '{gate}'", "{1}"},
	{"device-down", WRONG, DEVICE, device_is_down, "the device is down",
	 "ip {-n}link set dev {device} up"},
	{"no-carrier", WRONG, DEVICE, carrier_is_missing,
	 "the device is up, but has no carrier; check the cable and the other end",
	 "ip {-n}-d link show dev {device}"},
	{"no-rules", WRONG, GATE, gate_has_no_rules,
	 "has no rule, so it drops nothing; begin with a limit that only observes, and see "
	 "'sluice stats'",
	 "sluice {-g}set default rate 10kpps burst 20000 action observe"},
	{"nothing-judged", WRONG, GATE, nothing_is_judged, "{1}: {2}", "{3}"},
	{"not-ip", WRONG, GATE, packets_are_not_ip,
	 "{1} packets are neither IPv4 nor IPv6 (such as PPPoE, MPLS, MACsec), so they pass; "
	 "attach the device that decapsulates them, if any",
	 "ip {-n}-d link show"},
	{"allowed-all", WRONG, GATE, all_is_allowed,
	 "all sources are allowed, and no longer prefix is denied or limited, so nothing is "
	 "dropped",
	 "{1}"},
	{"denied-all", WRONG, GATE, all_is_denied,
	 "all {2}sources are denied and no longer prefix is allowed or limited, so all their "
	 "packets are dropped",
	 "{1}"},
	{"covered", WRONG, GATE, limits_are_covered,
	 "longer prefixes cover all of it, so its limits have no effect{1}", "sluice {-g}del {0}"},
	{"flood-passes", WRONG, GATE, flood_passes,
	 "new {1} share no budget, so a flood of new {1} passes; begin with this budget, and see "
	 "NEW SOURCES in sluice-limits(7){2}",
	 "sluice {-g}newcomers {0} rate {3}"},
	{"unshared", WRONG, GATE, limits_are_unshared, "its limits are not shared: {1}", "{2}"},
	/* these findings advise a better configuration */
	{"trial", ADVICE, GATE, trial_is_open,
	 "its rules are on trial, and are undone in {1} s unless they are confirmed",
	 "sluice {-g}confirm"},
	{"older-program", ADVICE, GATE, program_is_older,
	 "its program on {1} was loaded before this version of sluice was installed",
	 "sluice {-g}upgrade"},
	{"not-kept", ADVICE, GATE, gate_is_not_kept,
	 "no process keeps it, so a change of devices, of /etc/sluice/{gate}.yaml or of its lists "
	 "has no effect",
	 "systemctl enable --now sluice@{gate}"},
	{"elsewhere", ADVICE, GATE, traffic_is_elsewhere, "{1}", "{2}"},
	{"observes", ADVICE, GATE, limit_observes, "only observes, and would have dropped {1}{2}",
	 "{3}"},
	{"entry-over-limits", ADVICE, GATE, entry_is_over_limits,
	 "{1} as a whole, so its limits have no effect{2}", "{3}"},
	{"budget-spent", ADVICE, GATE, budget_is_spent,
	 "its budget for newcomers is spent, and has dropped {1}; new sources pass again when the "
	 "flood ends or the budget is raised{2}",
	 "sluice {-g}status"},
	{"no-budget", ADVICE, GATE, budget_is_missing,
	 "new {1} share no budget, so a flood of new {1} would pass; begin with this budget, and "
	 "see NEW SOURCES in sluice-limits(7){2}",
	 "sluice {-g}newcomers {0} rate {3}"},
	{"table-short", ADVICE, GATE, table_is_short,
	 "the table is short of room, so states were evicted or new sources got none; {1}", "{2}"},
	{"not-native", ADVICE, DEVICE, mode_is_not_native,
	 "driver {1} native XDP, but the gate is attached {2}, where a drop costs several times "
	 "as much{3}",
	 "{4}"},
	{"other-xdp", ADVICE, DEVICE, xdp_is_held,
	 "another XDP program runs before hook ingress, so the gate does not see packets that it "
	 "drops or redirects: {1}",
	 "{2}"},
	{"shared-xdp", ADVICE, DEVICE, xdp_is_shared,
	 "its XDP programs run in this order: {1}; a tool that detaches the program of the device "
	 "also stops the gate's",
	 "sluice {-g}status"},
	{"vlan-hidden", ADVICE, DEVICE, vlan_is_hidden, "{1}", "{2}"},
	{"merged", ADVICE, DEVICE, packets_are_merged,
	 "in mode {1}, packets that were merged (GRO, GSO) count as one, so limits in packets "
	 "pass more than they specify",
	 "{sluice}attach {dev} hook ingress && {sluice}detach {dev} hook xdp"},
	{"no-jit", ADVICE, HOST, jit_is_off,
	 "interprets BPF programs, which takes ten times the CPU time",
	 "sysctl net.core.bpf_jit_enable=1"},
	{"rights", ADVICE, HOST, rights_are_missing,
	 "lacks {1}, so doctor cannot examine everything", "sudo sluice doctor"},
	{"unseen", ADVICE, GATE, gate_is_unseen, "{1}", "{2}"},
};

/* --- Texts ---------------------------------------------------------------------------------- */

void subject_set(struct subject *s, unsigned int part, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	s->failed |= !text;
	free(s->part[part]);
	s->part[part] = text;
}

void subject_set_device(struct subject *s, const struct device_facts *device)
{
	s->device = device;
	if (device)
		netns_option(device->at.netns, netns_home(), s->netns);
	else
		snprintf(s->netns, sizeof(s->netns), "%s", netns_typed());
	netns_exec(s->netns, s->exec);
	snprintf(s->sluice, sizeof(s->sluice), "sluice %s%s", s->netns,
		 s->gate ? gate_option(s->gate->name) : "");
}

void advise_moving(struct subject *s, unsigned int part, const char *device, const char *hook)
{
	const struct attachment *a = &s->device->at;

	subject_set(s, part, "%sattach %s%s && %sdetach %s hook %s", s->sluice,
		    operand_typed(device), hook, s->sluice, operand_typed(a->device),
		    hook_names[a->hook]);
}

/* Formats a text or advice: replaces its placeholders. Returns NULL if there is no memory. */
static char *fill_in(const char *template, const struct subject *s)
{
	const char *device = s->device ? s->device->at.device : s->named ? s->named->name : "";
	const struct {
		const char *name, *value;
	} values[] = {
		{"{0}", s->part[0]},
		{"{1}", s->part[1]},
		{"{2}", s->part[2]},
		{"{3}", s->part[3]},
		{"{4}", s->part[4]},
		{"{gate}", s->gate ? s->gate->name : ""},
		{"{-g}", s->gate ? gate_option(s->gate->name) : ""},
		{"{device}", word_typed(device)},
		{"{dev}", operand_typed(device)},
		{"{-n}", s->netns},
		{"{sluice}", s->sluice},
	};
	char *text = strdup("");

	while (text && *template) {
		_cleanup_free_ char *before = text;
		size_t i = 0, taken = 1 + strcspn(template + 1, "{"), length = taken;
		const char *value = template;

		while (i < ARRAY_SIZE(values) &&
		       strncmp(template, values[i].name, strlen(values[i].name)))
			i++;
		if (i < ARRAY_SIZE(values)) {
			taken = strlen(values[i].name);
			value = values[i].value ?: "";
			length = strlen(value);
		}
		if (asprintf(&text, "%s%.*s", before, (int)length, value) < 0)
			text = NULL;
		template += taken;
	}
	if (text)
		text_make_printable(text);
	return text;
}

/* --- Judging -------------------------------------------------------------------------------- */

static void finding_free(struct finding *finding)
{
	free(finding->gate);
	free(finding->object);
	free(finding->text);
	free(finding->advice);
}

static int finding_add(struct findings *findings, const struct kind *kind,
		       const struct subject *subject)
{
	const char *object = subject->device  ? subject->device->at.device
			     : subject->gate  ? subject->gate->name
			     : subject->named ? subject->named->name
					      : "kernel";
	/* gate->name is "/sys/fs/bpf" if the gates could not be listed */
	bool has_gate = subject->gate && *subject->gate->name != '/';
	struct finding finding = {
		.id = kind->id,
		.severity = kind->severity,
		.gate = has_gate ? strdup(subject->gate->name) : NULL,
		.object = strdup(name_shown(subject->part[0] ?: object)),
		.text = fill_in(kind->text, subject),
		.advice = fill_in(kind->advice, subject),
	};

	if (!subject->failed && finding.object && finding.text && finding.advice &&
	    !finding.gate == !has_gate &&
	    array_grow(findings->list, findings->count, findings->room)) {
		findings->list[findings->count++] = finding;
		return 0;
	}
	finding_free(&finding);
	return -ENOMEM;
}

/* Calls a check for one subject. If the check returns true, appends its finding. */
static int subject_check(struct findings *findings, const struct kind *kind, struct subject subject)
{
	int err = 0;

	subject_set_device(&subject, subject.device);
	if (kind->check(&subject))
		err = finding_add(findings, kind, &subject);
	for (unsigned int i = 0; i < SUBJECT_PARTS; i++)
		free(subject.part[i]);
	return err;
}

/* Calls a check for each subject of the check's scope, such as each gate. */
static int kind_check(struct findings *findings, const struct kind *kind,
		      const struct doctor_facts *facts)
{
	struct subject subject = {.facts = facts};
	int err = 0;

	if (kind->scope == HOST)
		return facts->host_is_read ? subject_check(findings, kind, subject) : 0;
	for (unsigned int i = 0; !err && kind->scope == NAMED && i < facts->asked->count; i++) {
		subject.named = &facts->named[i];
		err = subject_check(findings, kind, subject);
	}
	for (unsigned int i = 0; !err && kind->scope >= UNREAD && i < facts->count; i++) {
		const struct gate_facts *gate = &facts->gates[i];

		if (!gate->is_examined || (gate->unread && kind->scope != UNREAD))
			continue;
		subject = (struct subject){.facts = facts, .gate = gate};
		if (kind->scope <= GATE)
			err = subject_check(findings, kind, subject);
		for (unsigned int j = 0; !err && kind->scope > GATE && j < gate->count; j++) {
			subject.device = &gate->devices[j];
			if (subject.device->is_asked &&
			    (kind->scope == ATTACHMENT || subject.device->traffic))
				err = subject_check(findings, kind, subject);
		}
	}
	return err;
}

int doctor_find(const struct doctor_facts *facts, struct findings *ret)
{
	int err = 0;

	*ret = (struct findings){0};
	for (size_t i = 0; !err && i < ARRAY_SIZE(kinds); i++)
		err = kind_check(ret, &kinds[i], facts);
	if (!err)
		return 0;
	findings_free(ret);
	return error_add(err, "no-memory", NULL, "cannot list the findings: %s", why(err));
}

int doctor_top(const char *gate, unsigned int most, struct findings *ret)
{
	struct asked asked = {.gate = gate};
	struct doctor_facts facts;
	int err = doctor_read(&asked, false, &facts);

	*ret = (struct findings){0};
	if (err)
		return err;
	for (unsigned int i = 0; !err && i < facts.count; i++)
		if (facts.gates[i].is_examined && facts.gates[i].unread)
			err = error_add(EIO, "gate-unread", NULL, "%s", facts.gates[i].unread);
	if (!err)
		err = doctor_find(&facts, ret);
	doctor_free(&facts);
	while (ret->count > most)
		finding_free(&ret->list[--ret->count]);
	return err;
}

unsigned int findings_count(const struct findings *findings, enum severity severity)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < findings->count; i++)
		count += findings->list[i].severity == severity;
	return count;
}

void findings_free(struct findings *findings)
{
	for (unsigned int i = 0; i < findings->count; i++)
		finding_free(&findings->list[i]);
	free(findings->list);
	*findings = (struct findings){0};
}
