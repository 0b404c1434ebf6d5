/* SPDX-License-Identifier: GPL-2.0 */
/* Which limits a policy has from others, or could have, in words. */
#ifndef SLUICE_INHERIT_H
#define SLUICE_INHERIT_H

#include "gate.h"
#include "prefix.h"
#include "ruleset.h"

/* Room for four names, each with its policy, and the budget. */
#define INHERITED_TEXT                                                                             \
	((SL_LIMITS_MAX + 1) * (SL_NAME + PREFIX_TEXT + sizeof("the newcomers' budget of ")))

/* The policy that an inherited limit is written in; home: as in struct sl_policy, not 0. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home);

/* What a policy in force inherits: "syn of default, the newcomers' budget of 10.0.0.0/8"; NULL: nothing. */
const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT]);

/*
 * The policy whose limit of the same name does not hold under this prefix, because `limit` does, and is not for all
 * packets that it is for; NULL: there is none.
 */
const struct sl_prefix *replaced_home(const struct gate *gate, const struct sl_prefix *prefix,
				      const struct limit *limit);

/* What a rule in force would inherit, and does not: in the same words; NULL: nothing. */
const char *lifted_format(const struct gate *gate, const struct rule *rule,
			  char text[INHERITED_TEXT]);

#endif
