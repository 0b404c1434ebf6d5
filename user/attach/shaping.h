/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: what limits that shape need of the devices. A packet with a departure time waits in the
 * qdisc fq; any other qdisc, and every hook but egress, sends it at once.
 */
#ifndef SLUICE_SHAPING_H
#define SLUICE_SHAPING_H

#include "attach/attachment.h"
#include "attach/qdisc.h"
#include "rules/ruleset.h"

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
