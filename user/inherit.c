// SPDX-License-Identifier: GPL-2.0
#include "inherit.h"

#include <stdio.h>
#include <string.h>

#include "policy.h"

/* A policy that a change is rewriting has two records, of the same prefix. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home)
{
	const struct sl_policy *record = &gate->policies[SL_RECORD(SL_HOME_POLICY(home))];

	return record[0].since ? &record[0].prefix : &record[1].prefix;
}

/* Adds "NAME of PREFIX" to a text of that length, and returns the new length. */
static size_t item_add(const char *name, const struct sl_prefix *home, char text[INHERITED_TEXT],
		       size_t length)
{
	char prefix[PREFIX_TEXT];

	return length + snprintf(text + length, INHERITED_TEXT - length, "%s%s of %s",
				 length ? ", " : "", name, prefix_format(home, prefix));
}

#define BUDGET "the newcomers' budget"

const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT])
{
	size_t length = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (policy->home[slot])
			length = item_add(policy->spec[slot].name,
					  inherit_home(gate, policy->home[slot]), text, length);
	if (policy->newcomers_home)
		length = item_add(BUDGET, inherit_home(gate, SL_HOME(policy->newcomers_home, 0)),
				  text, length);
	return length ? text : NULL;
}

/* Whether a match is for all packets that another one is for, as far as that is plain. */
static bool match_covers(const struct sl_match *match, const struct sl_match *other)
{
	return (match->fact == SL_FACT_ANY && !match->vlan) ||
	       !memcmp(match, other, sizeof(*match));
}

const struct sl_prefix *replaced_home(const struct gate *gate, const struct sl_prefix *prefix,
				      const struct limit *limit)
{
	uint32_t record = policy_parent(gate, prefix);
	const struct sl_policy *parent = &gate->policies[record];

	for (unsigned int slot = 0; record && slot < SL_LIMITS_MAX; slot++)
		if (!strncmp(parent->spec[slot].name, limit->spec.name, SL_NAME) &&
		    !match_covers(&limit->match, &parent->match[slot]))
			return inherit_home(gate,
					    parent->home[slot] ?: SL_HOME(SL_POLICY(record), 0));
	return NULL;
}

const char *lifted_format(const struct gate *gate, const struct rule *rule,
			  char text[INHERITED_TEXT])
{
	uint32_t record = policy_parent(gate, &rule->prefix);
	const struct sl_policy *parent = &gate->policies[record];
	uint32_t home = SL_HOME(SL_POLICY(record), 0);
	size_t length = 0;

	if (!record || !rule->limits || rule_inherits(rule))
		return NULL;
	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (parent->spec[slot].name[0] && !rule_find_limit(rule, parent->spec[slot].name))
			length = item_add(parent->spec[slot].name,
					  inherit_home(gate, parent->home[slot] ?: home), text,
					  length);
	if (parent->newcomers.burst && !rule->newcomers) {
		if (parent->newcomers_home)
			home = SL_HOME(parent->newcomers_home, 0);
		length = item_add(BUDGET, inherit_home(gate, home), text, length);
	}
	return length ? text : NULL;
}
