/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: rules that have no effect, or not the one that they seem to have. Functions of the rules
 * and of some facts alone.
 *
 *   cases          tells the first case of a finding, and counts the others
 *   cover          how much of a prefix longer ones take
 *   entry_checks   entries that allow or deny
 *   rule_checks    limits and budgets
 */
#ifndef SLUICE_RULE_CHECKS_H
#define SLUICE_RULE_CHECKS_H

#include "attach/attachment.h"
#include "base/host.h"
#include "doctor/finding.h"
#include "rules/ruleset.h"

/* What else decides whether a rule has an effect. */
struct rule_facts {
	const char *gate;
	struct machine machine;
	uint64_t link_mbit; /* what the attached devices carry together; 0: not known */
	bool egress;	    /* a device is attached on hook egress */
	const struct attachment *attached; /* the first that is alive; NULL: none */
	const struct attachment *merging;  /* the same on a hook that gets merged packets */
};

/* set: sorted, one rule a prefix, as rules_read() returns it. */
void ruleset_check(const struct ruleset *set, const struct rule_facts *facts,
		   struct findings *findings);

#endif
