/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: the checks that the table in findings.c lists. A check reads only the facts. It returns
 * whether the subject (a gate, a device, or the host) has the problem, and sets the variable parts
 * of the finding's text and advice.
 */
#ifndef SLUICE_CHECKS_H
#define SLUICE_CHECKS_H

#include "doctor/facts.h"

#define SUBJECT_PARTS 5

struct subject {
	const struct doctor_facts *facts;
	/* the named device, if the check is called for each named device */
	const struct named_facts *named;
	const struct gate_facts *gate;	   /* the gate, if the check is for a gate or its devices */
	const struct device_facts *device; /* the device, if the check is for a device */
	/* prefixes for commands that the finding prints, such as "sluice -n NETNS " */
	char netns[NETNS_OPTION];				       /* "-n NETNS " */
	char exec[NETNS_EXEC];					       /* "ip netns exec NETNS " */
	char sluice[NETNS_OPTION + GATE_NAME + sizeof("sluice -g  ")]; /* sluice -n NETNS -g GATE */
	/*
	 * The texts for {0} to {4} in the finding's text and advice. part[0] is the object of the
	 * finding; NULL: the subject's name.
	 */
	char *part[SUBJECT_PARTS];
	bool failed; /* whether an allocation for a text in `part` failed */
};

void subject_set(struct subject *s, unsigned int part, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Sets s->device, and the command prefixes for its network namespace. If `device` is NULL, the
 * prefixes are for the current namespace.
 */
void subject_set_device(struct subject *s, const struct device_facts *device);

/* Sets part[part] of `s` to commands that first attach `device`, and then detach s->device. */
void advise_moving(struct subject *s, unsigned int part, const char *device, const char *hook);

/*
 * Sets s->part[2] to the command that attaches a gate to a device, or that lists devices if
 * `device` is NULL. The command uses hook ingress if another program occupies hook xdp.
 */
void advise_attaching(struct subject *s, uint64_t netns, const char *gate,
		      const struct netdev *device);

typedef bool check_fn(struct subject *s);

/* Checks of the host, and of devices that the command line names. Defined in check_host.c. */
check_fn bpf_is_refused, bpffs_is_hidden, gate_is_missing, device_is_unattached, jit_is_off,
	rights_are_missing;

/* Checks of a gate. Defined in check_gate.c. */
check_fn gate_is_unread, resize_is_interrupted, gate_has_no_device, gate_has_no_rules,
	all_is_allowed, all_is_denied, limits_are_covered, flood_passes, entry_is_over_limits,
	program_is_older, trial_is_open, gate_is_not_kept, limit_observes, budget_is_missing,
	budget_is_spent, table_is_short, gate_is_unseen, limits_are_unshared;

/* checks of traffic, in check_traffic.c */
check_fn nothing_is_judged, packets_are_not_ip, traffic_is_elsewhere;

/* checks of a device, in check_device.c */
check_fn device_is_gone, filter_is_gone, device_is_down, carrier_is_missing, mode_is_not_native,
	xdp_is_held, xdp_is_shared, vlan_is_hidden, packets_are_merged;

#endif
