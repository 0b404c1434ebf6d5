/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: the qdiscs through which a device sends. Only the qdisc fq holds a packet back until its
 * departure time, so a limit that shapes needs one on the way of every packet: as the root, or
 * below each queue of a root mq.
 */
#ifndef SLUICE_QDISC_H
#define SLUICE_QDISC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/netdevs.h"

#define QDISC_KIND 16 /* the kernel's IFNAMSIZ */

/* How many packets an fq holds, and for how long. */
struct fq_limits {
	uint32_t limit;	     /* packets */
	uint32_t flow_limit; /* packets of one flow; a socket is one */
	uint64_t horizon_ns; /* the longest time until a departure; UINT64_MAX: any */
	bool horizon_drop;   /* a packet beyond the horizon is dropped; else it departs there */
};

/* A qdisc that hands packets to the device. */
struct qdisc {
	uint16_t queue; /* 0: the root; 1 is the first queue of a root mq */
	bool is_fq;
	struct fq_limits fq;
};

/*
 * The qdiscs of a device. Of a root mq the kernel lists the qdiscs that it made itself for the
 * queues in use (real_num_tx_queues), and of the others only those that a command made. One of
 * these that is no fq counts, as its queue may come into use. A queue from which a command took the
 * qdisc is not listed, and drops its packets.
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
int qdiscs_read(const struct device *device, struct qdiscs *ret);

/*
 * Adds to qdiscs, at first QDISCS_NONE, what messages of a dump of RTM_GETQDISC say of a device.
 * Returns 0 at the end of the dump, 1 when more of it follows, or a negative errno.
 */
int qdiscs_parse(const void *messages, size_t size, unsigned int ifindex, struct qdiscs *qdiscs);

void qdiscs_free(struct qdiscs *qdiscs);

#define _cleanup_qdiscs_ _cleanup_(qdiscs_free)

/* Whether every packet that the device sends passes an fq. */
bool fq_everywhere(const struct qdiscs *qdiscs);

/*
 * The least limits of a device's fq; where it has none, those of one that is made without options.
 * horizon_drop: of any of them.
 */
struct fq_limits fq_least(const struct qdiscs *qdiscs);

/*
 * The command that puts an fq of at least these limits on the way of every packet. It changes only
 * the qdiscs that are no fq, or hold less; "": there is none. need: zero limits ask for nothing.
 * free() ends the text; NULL: out of memory.
 */
char *fq_command(const struct device *device, const struct qdiscs *qdiscs,
		 const struct fq_limits *need);

#endif
