// SPDX-License-Identifier: GPL-2.0
#include "inherit.h"

#include <stdio.h>

#include "policy.h"

/* A policy that a change is rewriting has two records, of the same prefix. */
const struct sl_prefix *inherit_home(const struct gate *gate, uint32_t home)
{
	const struct sl_policy *record = &gate->policies[SL_RECORD(SL_HOME_POLICY(home))];

	return record[0].since ? &record[0].prefix : &record[1].prefix;
}

size_t inherited_add(const char *name, const struct sl_prefix *home, char text[INHERITED_TEXT],
		     size_t length)
{
	char prefix[PREFIX_TEXT];

	return length + snprintf(text + length, INHERITED_TEXT - length, "%s%s of %s",
				 length ? ", " : "", name ?: "the newcomers' budget",
				 prefix_format(home, prefix));
}

const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT])
{
	size_t length = 0;

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		if (policy->home[slot])
			length =
				inherited_add(policy->spec[slot].name,
					      inherit_home(gate, policy->home[slot]), text, length);
	if (policy->newcomers_home)
		length = inherited_add(NULL, inherit_home(gate, SL_HOME(policy->newcomers_home, 0)),
				       text, length);
	return length ? text : NULL;
}
