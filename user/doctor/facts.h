/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: the facts of the host, the gates and their devices, read once. The table of findings
 * (findings.c) judges them and reads nothing itself.
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

/* What is to be examined. */
struct asked {
	const char *gate;     /* NULL: all gates */
	char *const *devices; /* of the current network namespace */
	unsigned int count;   /* 0: all devices that are attached */
	uint64_t watch_ns;    /* how long to watch what arrives; 0: traffic is not judged */
};

struct host_facts {
	char *missing;	   /* capabilities that this process lacks; NULL: none */
	int bpf_err;	   /* of a request to bpf(2); 0: it was done */
	char lockdown[32]; /* "none", "integrity", "confidentiality"; "": not known */
	char *bpffs;	   /* why pins cannot be made or found; NULL: they can */
	int jit;	   /* net.core.bpf_jit_enable; -1: it cannot be read */
	bool has_systemd;
	uint64_t installed_at; /* boot time in ns when this program was installed; 0: unknown */
};

/* What a device has moved while doctor watched. */
struct traffic {
	uint64_t netns;
	struct netdev link;
	uint64_t received, sent;
	bool is_filtered; /* a gate is attached to it */
};

/* An attachment and its device. */
struct device_facts {
	struct attachment at;
	bool is_asked;		       /* findings about it are wanted */
	const struct traffic *traffic; /* NULL: the device is gone, or its namespace is closed */
	struct nic nic;
	struct xdp_owner owner; /* of the program on hook xdp */
	uint64_t loaded_at;	/* boot time in ns when its program was loaded; 0: unknown */
};

/* Packets that a gate has judged. */
struct judged {
	uint64_t all;
	uint64_t not_ip; /* neither IPv4 nor IPv6, or malformed */
};

struct gate_facts {
	char name[GATE_NAME + 1];
	char *unread; /* why the gate cannot be read, and nothing else is known; NULL: it is read */
	char *unseen; /* why its attachments are not known, or not of now; NULL: they are */
	bool is_examined;   /* false: only its attachments are known, which hold devices */
	bool hides_devices; /* devices that are not in the list may be attached */
	struct device_facts *devices;
	unsigned int count;
	struct gate gate;
	struct ruleset rules;
	struct rule_facts rule;	     /* what `rules` say */
	struct judged before, after; /* equal if it was not watched */
	uint64_t trial_left_ns;
	bool resize_is_interrupted;
	bool has_file;	     /* /etc/sluice/GATE.yaml */
	bool has_share_file; /* /etc/sluice/GATE.share */
	enum lock_state kept;
	struct sharing sharing;
	struct table_fill fill;
	struct passing passing;	 /* policies without a budget that a flood passes */
	unsigned int unbudgeted; /* policies without a budget */
	struct sl_prefix first_unbudgeted;
	unsigned int spent; /* budgets of which nothing is left */
	struct sl_prefix first_spent;
	uint64_t spent_dropped;
	unsigned int observing; /* limits that only observe, and have refused packets */
	struct {
		struct sl_prefix prefix;
		char name[LIMIT_LABEL];
		uint64_t refused;
	} first_observing;
};

/* A device that was asked for. */
struct named_facts {
	const char *name;
	const struct netdev *link; /* NULL: it does not exist */
	struct xdp_owner owner;
};

struct doctor_facts {
	const struct asked *asked;
	uint64_t netns; /* the current namespace */
	struct host_facts host;
	bool host_is_read;
	bool has_gates;	    /* a gate exists, though perhaps not one that was asked for */
	bool hides_devices; /* a gate that cannot be read may be attached to any device */
	struct gate_facts *gates;
	unsigned int count, room;
	bool has_file; /* /etc/sluice/GATE.yaml of the gate that was asked for, or the usual */
	struct named_facts *named; /* asked->count of them */
	struct traffic *traffic;
	unsigned int traffic_count, traffic_room;
};

/*
 * Reads the facts. An error that prevents reading is a fact as well. has_host: also of the host. Watches for
 * asked->watch_ns if a device is attached. Returns 0 or -ENOMEM.
 */
int doctor_read(const struct asked *asked, bool has_host, struct doctor_facts *ret);
void doctor_free(struct doctor_facts *facts);

#endif
