/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds the content of a rule in a generation, without expired lists and list entries. Pure
 * functions. Times are in the unit of struct sl_rule_content.
 */
#ifndef SLUICE_LIST_ENDS_H
#define SLUICE_LIST_ENDS_H

#include "sluice.h"

/* Returns `cur` or `prev` of a rule: the content that is in force in this generation. */
static inline const struct sl_rule_content *rule_content(const struct sl_rule *rule,
							 __u32 generation)
{
	return (__s32)(rule->since - generation) > 0 ? &rule->prev : &rule->cur;
}

/*
 * Returns the index in `list_ends` of the list with this bit. A multiplication by a de Bruijn
 * sequence maps each bit to a different index. BPF has no instruction that counts zero bits.
 */
static inline __u32 list_end_index(__u64 bit)
{
	return bit * 0x03f79d71b4cb0a89ULL >> 58;
}

/* Returns the earlier of two expiries. The value 0 means never. */
static inline __u32 end_first(__u32 a, __u32 b)
{
	return b && (!a || b < a) ? b : a;
}

/*
 * Removes expired lists from mask `lists`. Lowers *end to the earliest expiry of the remaining
 * lists.
 */
static inline __u64 lists_in_force(const struct sl_gate *gate, __u64 lists, __u32 now, __u32 *end)
{
	__u64 left = lists & gate->lists_ending;

	for (int i = 0; i < SL_LIST_PLACES && left; i++) {
		__u64 bit = left & -left;
		__u32 until = gate->list_ends[list_end_index(bit) % SL_LIST_PLACES];

		left ^= bit;
		if (until > now)
			*end = end_first(*end, until);
		else
			lists ^= bit;
	}
	return lists;
}

/*
 * Returns the mask `lists`, without list `timed` if the prefix's entry on that list expired at
 * `until`. 0 means that the entry never expires. If the expiry is in the future, lowers *end to
 * `until`. If a new list gets the index of an expired list, the new list does not apply to the
 * prefix until a command writes the rule.
 */
static inline __u64 entries_in_force(__u64 lists, __u32 until, __u32 timed, __u32 now, __u32 *end)
{
	__u64 bit = 1ULL << timed % SL_LIST_PLACES;

	if (!until || !(lists & bit))
		return lists;
	if (until <= now)
		return lists & ~bit;
	*end = end_first(*end, until);
	return lists;
}

#endif
