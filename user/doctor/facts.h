/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: facts about the host, the gates and their devices. doctor_read() reads them once. The
 * checks in findings.c judge them, and read nothing else.
 */
#ifndef SLUICE_FACTS_H
#define SLUICE_FACTS_H

#include "attach/attachment.h"
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
	unsigned int count;   /* number of device names; 0 for all attached devices */
	uint64_t watch_ns;    /* time to watch packets, in ns; 0 skips the checks of traffic */
};

struct host_facts {
	char *missing;	   /* capabilities that this process lacks; NULL if it lacks none */
	int bpf_err;	   /* negative errno of a trial call of bpf(2); 0 if it succeeded */
	char lockdown[32]; /* "none", "integrity" or "confidentiality"; "" if unknown */
	char *bpffs;	   /* why bpffs cannot be used; NULL if it can be used */
	int jit;	   /* net.core.bpf_jit_enable; -1 if it cannot be read */
	bool has_systemd;
	uint64_t installed_at; /* CLOCK_BOOTTIME of the installation, in ns; 0: unknown */
};

/* The packets that a device received and sent while doctor watched. */
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
	struct xdp_owner owner; /* owner of the program on hook xdp */
	uint64_t loaded_at;	/* CLOCK_BOOTTIME of loading the program, in ns; 0: unknown */
};

/* Packets that a gate has judged. */
struct judged {
	uint64_t all;
	uint64_t not_ip; /* packets that are neither IPv4 nor IPv6, or malformed */
};

struct gate_facts {
	char name[GATE_NAME + 1];
	char *unread; /* why the gate cannot be read, and no fact is valid; NULL if it is read */
	char *unseen; /* why its attachments are not known; NULL if they are known */
	bool is_examined;   /* false if only the attachments of the gate are read */
	bool hides_devices; /* the gate may have devices that are not in `devices` */
	struct device_facts *devices;
	unsigned int count;
	struct gate gate;
	struct ruleset rules;
	struct rule_facts rule;	     /* facts about `rules` */
	struct judged before, after; /* counters before and after the watch */
	uint64_t trial_left_ns;
	bool resize_is_interrupted;
	bool has_file;	     /* /etc/sluice/GATE.yaml exists */
	bool has_share_file; /* /etc/sluice/GATE.share exists */
	enum lock_state kept;
	struct sharing sharing;
	struct table_fill fill;
	struct passing passing;	 /* policies that pass a flood now, because they have no budget */
	unsigned int unbudgeted; /* policies without a budget */
	struct sl_prefix first_unbudgeted;
	unsigned int spent; /* budgets without credit that have dropped packets */
	struct sl_prefix first_spent;
	uint64_t spent_dropped;
	unsigned int observing; /* number of limits that observe and have refused packets */
	struct {
		struct sl_prefix prefix;
		char name[LIMIT_LABEL];
		uint64_t refused;
	} first_observing;
};

/* A device that the user named. */
struct named_facts {
	const char *name;
	const struct netdev *link; /* NULL if the device does not exist */
	struct xdp_owner owner;
};

struct doctor_facts {
	const struct asked *asked;
	uint64_t netns; /* the current namespace */
	struct host_facts host;
	bool host_is_read;
	bool has_gates;	    /* a gate exists, or if asked->gate is set, that gate exists */
	bool hides_devices; /* a gate that cannot be read may be attached to any device */
	struct gate_facts *gates;
	unsigned int count, room;
	bool has_file; /* /etc/sluice/GATE.yaml exists for asked->gate, or for the usual gate */
	struct named_facts *named; /* an element for each of asked->devices */
	struct traffic *traffic;
	unsigned int traffic_count, traffic_room;
};

/*
 * Reads the facts of gates and, if has_host, of the host. An error that prevents reading is stored
 * as a fact. Sleeps for asked->watch_ns if a device is attached. Returns 0 or -ENOMEM.
 */
int doctor_read(const struct asked *asked, bool has_host, struct doctor_facts *ret);
void doctor_free(struct doctor_facts *facts);

#endif
