// SPDX-License-Identifier: GPL-2.0
#include "doctor/cover.h"

#include "rules/prefix.h"

cover cover_of(const struct ruleset *set, unsigned int index,
	       bool (*takes)(const struct rule *rule, const struct sl_list_info *lists))
{
	const struct sl_prefix *prefix = &set->rules[index].prefix, *counted = NULL;
	cover sum = 0;

	for (unsigned int i = index + 1; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		unsigned int bits;

		if (!prefix_covers(prefix, &rule->prefix))
			break;
		if (counted && prefix_covers(counted, &rule->prefix))
			continue;
		if (!takes(rule, set->lists))
			continue;
		counted = &rule->prefix;
		/* how often the prefix is halved; `default` is two families */
		bits = counted->bits - (prefix->bits ?: SL_FAMILY_BITS - 1);
		sum += bits < 128 ? COVER_ALL >> bits : 0;
	}
	return sum;
}
