/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: how much of a prefix longer ones take, by the sum of their sizes. */
#ifndef SLUICE_COVER_H
#define SLUICE_COVER_H

#include "rules/ruleset.h"

/* A part of a prefix: all of it is COVER_ALL. */
typedef unsigned __int128 cover;

#define COVER_ALL ((cover)1 << 127)

/*
 * The part of the prefix of a rule that longer prefixes take, of those rules that `takes` is true
 * of. What lies within another one counts once. set: sorted, one rule a prefix.
 */
cover cover_of(const struct ruleset *set, unsigned int index,
	       bool (*takes)(const struct rule *rule, const struct sl_list_info *lists));

#endif
