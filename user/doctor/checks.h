/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: the checks of the table in findings.c. Each is a function of the facts alone: it returns
 * whether the finding is true of its subject, and sets the parts of its text and advice.
 */
#ifndef SLUICE_CHECKS_H
#define SLUICE_CHECKS_H

#include "doctor/facts.h"

#define SUBJECT_PARTS 5

struct subject {
	const struct doctor_facts *facts;
	const struct named_facts *named;   /* of a check of a device that was asked for */
	const struct gate_facts *gate;	   /* of a check of a gate, or of a device */
	const struct device_facts *device; /* of a check of a device */
	unsigned int nth;		   /* how often this check was true of this subject */
	bool has_more;			   /* set by the check: it may be true again */
	/*
	 * Set by the check. part 0: the object; NULL: the name of the subject. 1 to 4: {1} to {4}
	 */
	char *part[SUBJECT_PARTS];
	bool failed; /* out of memory */
};

/* Sets a part. */
void subject_set(struct subject *subject, unsigned int part, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Set a part to a command in the namespace of the subject's device: of another tool; or the
 * commands that attach a device on another hook before they detach the subject's device.
 */
void advise_exec(struct subject *subject, unsigned int part, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void advise_moving(struct subject *subject, unsigned int part, const char *device,
		   const char *hook);

/* The option "-n NETNS " of a command about the subject's device, or about an attachment. */
const char *subject_netns(const struct subject *subject, char text[NETNS_OPTION]);

typedef bool check_fn(struct subject *subject);

/* The host, and devices that were asked for: check_host.c */
check_fn kernel_is_old, bpf_is_refused, bpffs_is_hidden, gate_is_missing, device_is_unattached,
	jit_is_off, rights_are_missing;

/* A gate: check_gate.c */
check_fn gate_is_unread, resize_is_interrupted, gate_has_no_device, gate_has_no_rules,
	all_is_allowed, all_is_denied, egress_is_needed, limits_are_covered, flood_passes,
	entry_is_over_limits, list_is_unread, program_is_older, trial_is_open, gate_is_not_kept,
	limit_observes, budget_is_missing, budget_is_spent, table_is_short, gate_is_unseen,
	packets_are_charged_twice;

/* Sharing: check_share.c */
check_fn limits_are_unshared, limits_are_divided;

/* Traffic: check_traffic.c */
check_fn nothing_is_judged, packets_are_not_ip, traffic_is_elsewhere, ring_overruns;

/* A device: check_device.c */
check_fn device_is_gone, filter_is_gone, device_is_down, carrier_is_missing, fq_is_missing,
	mode_is_not_native, xdp_is_held, vlan_is_hidden, packets_are_merged;

/* Whether a gate is attached to the device on hook egress, or on another hook. */
const struct device_facts *gate_first_device(const struct gate_facts *gate, bool egress);

/* The device of the current network namespace that receives most; NULL: none is up. */
const struct netdev *busiest_device(const struct doctor_facts *facts);

#endif
