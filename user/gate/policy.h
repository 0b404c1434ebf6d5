/* SPDX-License-Identifier: GPL-2.0 */
/* The records of policies: from limits as people write them to what packets read, and back. */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <errno.h>
#include <stddef.h>

#include "gate/gate.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

/* The limits of a record that are its own, by slot, its own budget, and whether it inherits; the rule's other fields stay. */
enum status policy_limits(const struct sl_policy *policy, struct rule *ret);

/* Computes what packets read of a policy from its prefix and from its limits as they are written. */
void policy_compile(struct sl_policy *policy, const struct machine *machine);

/*
 * The record that a policy of this prefix inherits from: that of the next shorter rule that has one; 0: there is none.
 * Within a change, of the rules as they will be, if the shorter ones are written.
 */
uint32_t policy_parent(const struct gate *gate, const struct sl_prefix *prefix);

/* No errno: refused, and said why. */
#define POLICY_REFUSED (-ECANCELED)

/*
 * Compiles the limits of a rule, and those of record `parent` (0: none), into a free record for the
 * next generation. before: the record that the rule has now, or 0. A limit keeps its slot while it
 * keeps its name. It keeps its id, and so all levels, while it keeps its key too. A budget keeps
 * its level. Returns 0, a negative errno, or POLICY_REFUSED: there would be more than
 * SL_LIMITS_MAX.
 */
int policy_write(struct gate *gate, uint32_t record, uint32_t before, uint32_t parent,
		 const struct rule *rule);

/* A free record: of the same policy as `before`, or, for 0, of a new one; 0: there is no policy left. */
uint32_t policy_allocate(struct gate *gate, uint32_t before);

/* Record 0 belongs to no policy, and is left alone. */
void policy_free(struct gate *gate, uint32_t record);

/*
 * Whether a flood of new sources passes by a policy although its limits, inherited ones among them, drop: it has no
 * budget, and no limit starts empty for every packet.
 */
bool policy_lacks_budget(const struct sl_policy *policy);

/* --- What a policy inherits, in words ------------------------------------------------------- */

/* Room for four names, each with its policy, and the budget. */
#define INHERITED_TEXT                                                                             \
	((SL_LIMITS_MAX + 1) * (SL_NAME + PREFIX_TEXT + sizeof("the newcomers' budget of ")))

/* The policy that an inherited limit is written in; home: as in struct sl_policy, not 0. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home);

/* What a policy in force inherits: "syn of default, the newcomers' budget of 10.0.0.0/8"; NULL: nothing. */
const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT]);

/*
 * Adds "NAME of PREFIX", or without a name "the newcomers' budget of PREFIX", to a text of that length. The new
 * length.
 */
size_t inherited_add(const char *name, const struct sl_prefix *home, char text[INHERITED_TEXT],
		     size_t length);

/* The policy in force with this number; NULL: it has none. */
const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number);

#endif
