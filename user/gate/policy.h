/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: records of policies: from limits as users write them to what packets read, and back. */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <errno.h>
#include <stddef.h>

#include "gate/gate.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

/*
 * Adds the limits and the budget that a record does not inherit to a rule, and sets whether it
 * inherits. The rule's other fields stay.
 */
int policy_limits(const struct sl_policy *policy, struct rule *ret);

/*
 * Finds the record that a policy of this prefix inherits from: that of the next shorter rule with a
 * policy; 0: none. Within a change it is the record of the next generation, if the shorter prefixes
 * are already written. 0, or a negative errno and `ret` is 0.
 */
int policy_parent(const struct gate *gate, const struct sl_prefix *prefix, uint32_t *ret);

/* Not an error of the kernel: the change is refused, which is reported. */
#define POLICY_REFUSED (-ECANCELED)

/*
 * Compiles the limits of a rule, and those of record `parent` (0: none), into a free record for the
 * next generation. before: the record that the rule has now, or 0. A limit keeps its slot while it
 * keeps its name. It keeps its id, and so all levels, while it keeps its key, too. A budget keeps
 * its level. Returns 0, a negative errno, or POLICY_REFUSED: the policy would have more than
 * SL_LIMITS_MAX.
 */
int policy_write(struct gate *gate, uint32_t record, uint32_t before, uint32_t parent,
		 const struct rule *rule);

/*
 * Finds a free record, of the same policy as `before`, or for 0 of a new policy. 0: all policies
 * are used.
 */
uint32_t policy_allocate(struct gate *gate, uint32_t before);

/* Frees a record. Record 0 belongs to no policy, and is ignored. */
void policy_free(struct gate *gate, uint32_t record);

/*
 * Whether a flood of new sources passes by a policy whose limits, inherited ones included, drop: it
 * has no budget, no limit that matches every packet starts empty, and it is for more than one
 * address.
 */
bool policy_lacks_budget(const struct sl_policy *policy);

/* --- Inherited limits in messages ----------------------------------------------------------- */

/* Room for SL_LIMITS_MAX names, each with its policy, and for the budget. */
#define INHERITED_TEXT                                                                             \
	((SL_LIMITS_MAX + 1) * (SL_NAME + PREFIX_TEXT + sizeof("the newcomers' budget of ")))

/* The prefix of the policy that has an inherited limit. home: as in struct sl_policy, not 0. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home);

/*
 * Formats what a policy in force inherits: "syn of default, the newcomers' budget of 10.0.0.0/8".
 * NULL: nothing.
 */
const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT]);

/*
 * Appends "NAME of PREFIX", or for a NULL name "the newcomers' budget of PREFIX", to a text of that
 * length. Returns the new length.
 */
size_t inherited_add(const char *name, const struct sl_prefix *home, char text[INHERITED_TEXT],
		     size_t length);

/* The record in force of policy `number`; NULL: none. */
const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number);

#endif
