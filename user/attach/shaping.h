/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: checks that devices can delay packets, as limits with action shape require. Such a limit
 * sets a packet's departure time on hook egress. The qdisc fq delays the packet until this time;
 * other qdiscs send it at once. So each packet must pass an fq: as the root qdisc, or below each
 * queue of a root mq.
 */
#ifndef SLUICE_SHAPING_H
#define SLUICE_SHAPING_H

#include "attach/attachment.h"
#include "base/cleanup.h"
#include "rules/ruleset.h"

/* --- Qdiscs of a device ---------------------------------------------------------------------- */

#define QDISC_KIND 16 /* buffer size of a qdisc's kind, the kernel's IFNAMSIZ */

/* Options of an fq: how many packets it can delay, and for how long. */
struct fq_limits {
	uint32_t limit;	     /* largest number of packets in the fq */
	uint32_t flow_limit; /* largest number of packets of one flow, such as a socket */
	uint64_t horizon_ns; /* longest delay in ns; UINT64_MAX if the kernel has no limit */
	/* true: drop a packet beyond the horizon; false: send it at the horizon */
	bool horizon_drop;
};

/* A qdisc that packets pass last before the device: the root, or a qdisc below a root mq. */
struct qdisc {
	uint16_t queue; /* queue of the mq, from 1 on; 0: root qdisc */
	bool is_fq;
	struct fq_limits fq;
};

/*
 * The qdiscs of a device. Below a root mq, the kernel lists the qdiscs of queues in use
 * (real_num_tx_queues), and qdiscs that tc added to unused queues. All are checked, because the
 * device may use the unused queues later. If tc deleted the qdisc of a queue, the kernel omits the
 * queue, and the queue drops packets.
 */
struct qdiscs {
	char root[QDISC_KIND]; /* kind of the root qdisc; "noop" on a device that was never up */
	uint32_t handle;       /* handle of the root qdisc; 0 if tc did not create this qdisc */
	struct qdisc *list;
	unsigned int count, room;
	unsigned int ifindex;
};

#define QDISCS_NONE                                                                                \
	{                                                                                          \
		.root = "noop"                                                                     \
	}

/*
 * Reads the qdiscs of a device of the current network namespace. The caller frees them by
 * qdiscs_free(). Returns 0 or a negative errno.
 */
int qdiscs_read(unsigned int ifindex, const char *device, struct qdiscs *ret);

/*
 * Parses one part of a dump of RTM_GETQDISC, and adds the device's qdiscs to `qdiscs`. The caller
 * sets `qdiscs` to QDISCS_NONE before the first part. Returns 0 at the end of the dump, 1 if
 * another part follows, or a negative errno.
 */
int qdiscs_parse(const void *messages, size_t size, unsigned int ifindex, struct qdiscs *qdiscs);

void qdiscs_free(struct qdiscs *qdiscs);

#define _cleanup_qdiscs_ _cleanup_(qdiscs_free)

/* Returns whether the device has an fq for every packet that it sends. */
bool fq_everywhere(const struct qdiscs *qdiscs);

/*
 * Returns the lowest value of each limit among the fqs of a device, or the defaults of a new fq if
 * there is no fq. If `need` is not NULL, ignores fqs that satisfy `need`, and counts a qdisc of
 * another kind as a new fq.
 */
struct fq_limits fq_least(const struct qdiscs *qdiscs, const struct fq_limits *need);

/*
 * Returns a tc command after which each packet passes an fq with at least the limits in `need`.
 * Returns "" if the device already has such an fq, or NULL if there is no memory. The caller frees
 * the text.
 */
char *fq_command(const char *device, const struct qdiscs *qdiscs, const struct fq_limits *need);

/* --- Limits that shape ----------------------------------------------------------------------- */

/* What the gate's limits require of its devices. */
struct shaping {
	bool any; /* at least one limit shapes */
	struct fq_limits need;
	/* first limit with key dst that does not shape, or NULL */
	const struct sl_limit_spec *by_dst;
	const struct sl_prefix *by_dst_prefix;
};

/* Adds the requirements of a rule's limits. The rule must outlive `shaping`, which points to it. */
void shaping_add(struct shaping *shaping, const struct rule *rule);

/* Computes the requirements of all rules in force. Returns 0 or a negative errno. */
int shaping_read(const struct gate *gate, struct shaping *ret);

/*
 * If limits shape, checks that the devices in `all` can delay packets; NULL means all attachments
 * of the gate. Returns an error if no attachment is on hook egress, or if a device on hook egress
 * has no fq. If `may_lack` is set, a missing fq only adds a notice. An fq with too little room adds
 * a notice. If no limit shapes, but limits with key dst need hook egress, adds a notice.
 */
int shaping_check(const struct gate *gate, const struct shaping *shaping,
		  const struct attachment *all, unsigned int count, bool may_lack);

/*
 * Like shaping_check(), for a device that is not attached yet. The caller makes sure that a limit
 * shapes.
 */
int shaping_check_new(const struct gate *gate, const struct shaping *shaping,
		      const struct attachment *attachment, bool may_lack);

/* Result of shaping_look(): whether a device can delay packets. */
struct holding {
	bool holds;    /* the device has an fq for every packet, or its qdiscs cannot be read */
	bool is_short; /* the fq may have to drop packets, because it has too little room */
	struct fq_limits least;
	char *command; /* tc command that adds or enlarges the fq, or NULL; the caller frees it */
};

/* Reads whether the device of an attachment can delay packets. Returns 0 or a negative errno. */
int shaping_look(const struct shaping *shaping, const struct attachment *attachment,
		 struct holding *ret);

#endif
