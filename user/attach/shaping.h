/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: what limits that shape need of the devices. A packet with a departure time waits in the
 * qdisc fq; any other qdisc, and every hook but egress, lets it go at once.
 */
#ifndef SLUICE_SHAPING_H
#define SLUICE_SHAPING_H

#include "attach/attachment.h"
#include "attach/qdisc.h"
#include "gate/gate.h"
#include "rules/ruleset.h"

/* What all limits that shape need together: how many packets of a key wait, and for how long. */
struct shaping {
	bool any; /* there is such a limit */
	struct fq_limits need;
};

/* Adds what the limits of a rule need. */
void shaping_add(struct shaping *shaping, const struct rule *rule);

/* What the rules in force need. */
int shaping_read(const struct gate *gate, struct shaping *ret);

/*
 * Checks that limits which shape find a hook that can: fails if the gate is attached, and not on
 * hook egress. `more`: an attachment that is about to be made; or NULL.
 */
int shaping_check_hooks(const struct gate *gate, const struct shaping *shaping,
			const struct attachment *more);

/*
 * Checks that a device on hook egress holds packets back. Fails, with the command that is missing,
 * unless may_lack: then that is a note. A note too if an fq holds fewer packets than may wait.
 */
int shaping_check_device(const struct shaping *shaping, const struct attachment *attachment,
			 bool may_lack);

/* shaping_check_hooks(), and shaping_check_device() for each attachment of the gate. */
int shaping_check(const struct gate *gate, const struct shaping *shaping, bool may_lack);

/* shaping_check() for the attachments that the gate is about to have in place of its own. */
int shaping_check_planned(const struct gate *gate, const struct shaping *shaping,
			  const struct attachment *all, unsigned int count, bool may_lack);

/* Whether a device on hook egress holds packets back. */
struct holding {
	bool holds;    /* also if it is not known: the device is gone, or cannot be reached */
	bool is_short; /* its fq holds fewer packets than may wait, and drops the rest */
	struct fq_limits least;
	char *command; /* that puts an fq there; the caller frees it. NULL: none, or not known */
};

int shaping_look(const struct shaping *shaping, const struct attachment *attachment,
		 struct holding *ret);

#endif
