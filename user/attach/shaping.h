/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: what limits that shape need of the devices. A packet with a departure time waits in the
 * qdisc fq; any other qdisc, and every hook but egress, sends it at once. So an fq must be on the
 * way of every packet: as the root, or below each queue of a root mq.
 */
#ifndef SLUICE_SHAPING_H
#define SLUICE_SHAPING_H

#include "attach/attachment.h"
#include "base/cleanup.h"
#include "rules/ruleset.h"

/* --- Qdiscs of a device ---------------------------------------------------------------------- */

#define QDISC_KIND 16 /* the kernel's IFNAMSIZ */

/* How many packets an fq holds, and for how long. */
struct fq_limits {
	uint32_t limit;	     /* packets */
	uint32_t flow_limit; /* packets of one flow; a socket is one */
	uint64_t horizon_ns; /* the longest time until a departure; UINT64_MAX: any */
	bool horizon_drop; /* a packet beyond the horizon is dropped; otherwise it departs there */
};

/* A qdisc that hands packets to the device. */
struct qdisc {
	uint16_t queue; /* 0: the root; 1 is the first queue of a root mq */
	bool is_fq;
	struct fq_limits fq;
};

/*
 * The qdiscs of a device. Below a root mq the kernel lists the qdiscs that it made itself for the
 * queues in use (real_num_tx_queues), and for other queues only those that a command made, which
 * count, because a queue may come into use. A queue whose qdisc a command removed is not listed,
 * and drops its packets.
 */
struct qdiscs {
	char root[QDISC_KIND]; /* the kind; "noop": none, as on a device that was never up */
	uint32_t handle;       /* of the root; 0: the kernel made it, and no command can name it */
	struct qdisc *list;
	unsigned int count, room;
	unsigned int ifindex;
};

#define QDISCS_NONE                                                                                \
	{                                                                                          \
		.root = "noop"                                                                     \
	}

/* Reads the qdiscs of a device of the current network namespace. qdiscs_free() frees them. */
int qdiscs_read(unsigned int ifindex, const char *device, struct qdiscs *ret);

/*
 * Adds the messages of a dump of RTM_GETQDISC to qdiscs, at first QDISCS_NONE. Returns 0 at the end
 * of the dump, 1 if more of it follows, or a negative errno.
 */
int qdiscs_parse(const void *messages, size_t size, unsigned int ifindex, struct qdiscs *qdiscs);

void qdiscs_free(struct qdiscs *qdiscs);

#define _cleanup_qdiscs_ _cleanup_(qdiscs_free)

/* Whether every packet that the device sends passes an fq. */
bool fq_everywhere(const struct qdiscs *qdiscs);

/*
 * Returns the least limits of a device's fq, or the limits of a new fq. need: the
 * least of the qdiscs that hold less; a qdisc that is no fq counts as a new fq.
 */
struct fq_limits fq_least(const struct qdiscs *qdiscs, const struct fq_limits *need);

/*
 * Returns the command that puts an fq of at least these limits on the way of every packet. It
 * changes only the qdiscs that are no fq, or hold less; "": nothing is missing. The caller frees
 * the text. NULL: out of memory.
 */
char *fq_command(const char *device, const struct qdiscs *qdiscs, const struct fq_limits *need);

/* --- Limits that shape ----------------------------------------------------------------------- */

/* The needs of all limits that shape: how many packets of a key wait, and for how long. */
struct shaping {
	bool any; /* there is such a limit */
	struct fq_limits need;
};

/* Adds what the limits of a rule need. */
void shaping_add(struct shaping *shaping, const struct rule *rule);

/* Returns what the rules in force need. */
int shaping_read(const struct gate *gate, struct shaping *ret);

/*
 * Checks that limits which shape have an effect: fails if there are attachments and none is on hook
 * egress, or, with the command that is missing, if a device on hook egress has no fq. may_lack:
 * a missing fq adds a notice, as an fq does that holds fewer packets than may wait.
 *
 * all: the attachments that the gate will have; NULL: those that it has.
 */
int shaping_check(const struct gate *gate, const struct shaping *shaping,
		  const struct attachment *all, unsigned int count, bool may_lack);

/* shaping_check() for an attachment that is about to be made. */
int shaping_check_new(const struct gate *gate, const struct shaping *shaping,
		      const struct attachment *attachment, bool may_lack);

/* Whether a device on hook egress holds packets back. */
struct holding {
	bool holds;    /* also if it is not known: the device is gone, or cannot be reached */
	bool is_short; /* its fq holds fewer packets than may wait, and drops the rest */
	struct fq_limits least;
	char *command; /* the missing command, which the caller frees; NULL: none, or not known */
};

int shaping_look(const struct shaping *shaping, const struct attachment *attachment,
		 struct holding *ret);

#endif
