// SPDX-License-Identifier: GPL-2.0
#include "doctor/cover.h"

#include "rules/prefix.h"

/* Bits from a prefix to a longer one: 1 halves it. `default` is two families. */
static unsigned int bits_between(const struct sl_prefix *prefix, const struct sl_prefix *longer)
{
	return prefix->bits ? longer->bits - prefix->bits : longer->bits - SL_FAMILY_BITS + 1;
}

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
		bits = bits_between(prefix, counted);
		sum += bits < 128 ? COVER_ALL >> bits : 0;
	}
	return sum;
}
