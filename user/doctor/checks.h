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
	/* Beginnings of commands in the namespace of `device`. */
	char netns[NETNS_OPTION];				       /* "-n NETNS " */
	char exec[NETNS_EXEC];					       /* "ip netns exec NETNS " */
	char sluice[NETNS_OPTION + GATE_NAME + sizeof("sluice -g  ")]; /* with the gate */
	/*
	 * Set by the check. part 0: the object, {0}; NULL: the name of the subject. 1 to 4: {1} to {4}
	 */
	char *part[SUBJECT_PARTS];
	bool failed; /* out of memory */
};

/* Sets a part. */
void subject_set(struct subject *s, unsigned int part, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the device, and the beginnings of commands. NULL: the current namespace. */
void subject_set_device(struct subject *s, const struct device_facts *device);

/* Sets a part to the commands that attach `device` before they detach the subject's device. */
void advise_moving(struct subject *s, unsigned int part, const char *device, const char *hook);

/*
 * Sets part 2 to the command that attaches a gate to a device; NULL: that lists devices. XDP has
 * room for one program: beside another program, a gate uses hook ingress.
 */
void advise_attaching(struct subject *s, uint64_t netns, const char *gate,
		      const struct netdev *device);

typedef bool check_fn(struct subject *s);

/* The host, and devices that were asked for: check_host.c */
check_fn bpf_is_refused, bpffs_is_hidden, gate_is_missing, device_is_unattached, jit_is_off,
	rights_are_missing;

/* A gate: check_gate.c */
check_fn gate_is_unread, resize_is_interrupted, gate_has_no_device, gate_has_no_rules,
	all_is_allowed, all_is_denied, limits_are_covered, flood_passes, entry_is_over_limits,
	program_is_older, trial_is_open, gate_is_not_kept, limit_observes, budget_is_missing,
	budget_is_spent, table_is_short, gate_is_unseen, limits_are_unshared;

/* Traffic: check_traffic.c */
check_fn nothing_is_judged, packets_are_not_ip, traffic_is_elsewhere;

/* A device: check_device.c */
check_fn device_is_gone, filter_is_gone, device_is_down, carrier_is_missing, mode_is_not_native,
	xdp_is_held, vlan_is_hidden, packets_are_merged;

#endif
