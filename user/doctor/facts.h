/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: facts about the host, the gates and their devices. doctor_read() reads them once. The
 * checks in findings.c use only these facts.
 */
#ifndef SLUICE_FACTS_H
#define SLUICE_FACTS_H

#include "attach/attachment.h"
#include "attach/chain.h"
#include "attach/netdevs.h"
#include "doctor/nic.h"
#include "doctor/rule_facts.h"
#include "keep/lock_file.h"
#include "rules/ruleset.h"
#include "sharing/share_state.h"
#include "state/pressure.h"

/* What the user asked doctor to examine. */
struct asked {
	const char *gate;     /* name of the gate; NULL for all gates */
	char *const *devices; /* names of devices in the current network namespace */
	unsigned int count;   /* number of elements in `devices`; 0: all attached devices */
	uint64_t watch_ns;    /* how long to count packets, in ns; 0 skips the checks of traffic */
};

struct host_facts {
	char *missing;	    /* capabilities that this process lacks; NULL: it has all */
	int bpf_err;	    /* negative errno of a trial call of bpf(2); 0 if it succeeded */
	bool has_own_users; /* this process is in a user namespace other than the host's */
	char lockdown[32];  /* "none", "integrity" or "confidentiality"; "" if unknown */
	char *bpffs;	    /* why bpffs cannot be used; NULL if it can be used */
	int jit;	    /* net.core.bpf_jit_enable; -1 if it cannot be read */
	bool has_systemd;
	uint64_t installed_at; /* when sluice was installed: CLOCK_BOOTTIME in ns; 0: unknown */
};

/* Packets that a device received and sent while doctor counted packets. */
struct traffic {
	uint64_t netns;
	struct netdev link;
	uint64_t received, sent;
	bool is_filtered; /* a gate is attached to the device */
};

/* An attachment and its device. */
struct device_facts {
	struct attachment at;
	bool is_asked;		       /* report findings about this device */
	const struct traffic *traffic; /* NULL if the device is gone or cannot be read */
	struct nic nic;
	struct xdp_owner owner; /* owner of the XDP program on this device */
	struct xdp_order order; /* XDP programs that share the device with the gate's */
	uint64_t loaded_at;	/* when the program was loaded: CLOCK_BOOTTIME in ns; 0: unknown */
};

/* Numbers of packets that a gate has judged. */
struct judged {
	uint64_t all;
	uint64_t not_ip; /* packets that are malformed, or neither IPv4 nor IPv6 */
};

struct gate_facts {
	char name[GATE_NAME + 1];
	char *unread;	    /* why the gate could not be read; NULL: the facts are valid */
	char *unseen;	    /* why the attachments could not be read; NULL if they were read */
	bool is_examined;   /* false if only the gate's attachments were read */
	bool hides_devices; /* some attachments may be missing from `devices` */
	struct device_facts *devices;
	unsigned int count;
	struct gate gate;
	struct ruleset rules;
	struct rule_facts rule;	     /* facts about the rules in `rules` */
	struct judged before, after; /* counters before and after the pause */
	uint64_t trial_left_ns;
	bool resize_is_interrupted;
	bool has_file;	     /* /etc/sluice/GATE.yaml exists */
	bool has_share_file; /* /etc/sluice/GATE.share exists */
	enum lock_state kept;
	struct sharing sharing;
	struct table_fill fill;
	struct passing passing;	 /* policies that let a flood of new sources pass */
	unsigned int unbudgeted; /* number of policies without a budget */
	struct sl_prefix first_unbudgeted;
	unsigned int spent; /* number of empty budgets that have dropped packets */
	struct sl_prefix first_spent;
	uint64_t spent_dropped;
	unsigned int observing; /* number of limits with action observe that have refused packets */
	struct {
		struct sl_prefix prefix;
		char name[LIMIT_LABEL];
		uint64_t refused;
	} first_observing;
};

/* A device that the user named. */
struct named_facts {
	const char *name;
	const struct netdev *link; /* the device; NULL if it does not exist */
	struct xdp_owner owner;
};

struct doctor_facts {
	const struct asked *asked;
	uint64_t netns; /* inode of the current network namespace */
	struct host_facts host;
	bool host_is_read;
	/* asked->gate exists; if asked->gate is NULL, at least one gate exists */
	bool has_gates;
	bool hides_devices; /* devices may be attached to gates that could not be read */
	struct gate_facts *gates;
	unsigned int count, room;
	/* /etc/sluice/GATE.yaml exists; GATE is asked->gate or, if that is NULL, the usual gate */
	bool has_file;
	struct named_facts *named; /* an element for each of asked->devices */
	struct traffic *traffic;
	unsigned int traffic_count, traffic_room;
};

/*
 * Reads the facts of gates, and of the host if `has_host` is set. Stores read errors as facts. If a
 * gate has a device, sleeps for asked->watch_ns to count packets. Returns 0 or -ENOMEM.
 */
int doctor_read(const struct asked *asked, bool has_host, struct doctor_facts *ret);
void doctor_free(struct doctor_facts *facts);

#endif
