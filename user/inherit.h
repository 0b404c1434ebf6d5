/* SPDX-License-Identifier: GPL-2.0 */
/* Which limits a policy has from others, in words. */
#ifndef SLUICE_INHERIT_H
#define SLUICE_INHERIT_H

#include <stddef.h>

#include "gate.h"
#include "prefix.h"

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

#endif
