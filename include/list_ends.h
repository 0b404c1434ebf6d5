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

/* The expiry of a prefix on a list. */
struct list_end {
	__u32 until; /* 0: none */
	__u32 list;  /* index of the list */
};

/*
 * A prefix can expire on two lists. Field `timed` of its rule has these bits:
 *   0 to 5    index of the list with the later expiry, which is `list_until`
 *   6 to 11   index of the list with the earlier expiry, XOR the other index; 0: no such list
 *   12 to 16  S, and
 *   17 to 31  N: the earlier expiry is (list_until / 2^S - N) * 2^S
 * So the earlier expiry is exact if the difference is less than 36 minutes (2^15 units). Otherwise
 * it is rounded up, by less than 1/16384 of the difference. It is a multiple of 2^S, so it does not
 * move when the later expiry is written again.
 */
#define LIST_ENDS	    2
#define LIST_END_INDEX_BITS 6
#define LIST_END_SHIFT_BITS 5
#define LIST_END_N_BITS	    15

/* Returns the later expiry of a rule (which: 0), or the earlier expiry (1). */
static inline struct list_end list_end_get(__u32 list_until, __u32 timed, int which)
{
	struct list_end end = {list_until, timed % SL_LIST_PLACES};
	__u32 other = timed >> LIST_END_INDEX_BITS, shift = other >> LIST_END_INDEX_BITS;

	if (!which)
		return end;
	other %= SL_LIST_PLACES;
	shift %= 1U << LIST_END_SHIFT_BITS;
	end.list ^= other;
	end.until = list_until && other
			    ? ((list_until >> shift) - (timed >> (32 - LIST_END_N_BITS))) << shift
			    : 0;
	return end;
}

/* Returns the unit of the earlier expiry of a rule: 2^S. */
static inline __u32 list_end_unit(__u32 timed)
{
	return 1U << (timed >> 2 * LIST_END_INDEX_BITS) % (1U << LIST_END_SHIFT_BITS);
}

/* Sets both expiries of a rule, in any order. If both exist, their lists must differ. */
static inline void list_ends_set(struct list_end a, struct list_end b, __u32 *list_until,
				 __u32 *timed)
{
	struct list_end later = a.until >= b.until ? a : b, earlier = a.until >= b.until ? b : a;
	__u32 shift = 0, n = later.until - earlier.until;

	*list_until = later.until;
	*timed = later.until ? later.list : 0;
	if (!earlier.until)
		return;
	while (n >> LIST_END_N_BITS) {
		shift++;
		n = (later.until >> shift) - (((earlier.until - 1) >> shift) + 1);
	}
	*timed |= (later.list ^ earlier.list) << LIST_END_INDEX_BITS |
		  shift << 2 * LIST_END_INDEX_BITS | n << (32 - LIST_END_N_BITS);
}

/* Removes the expiries on lists that are not in mask `lists`. */
static inline void list_ends_keep(__u64 lists, __u32 *list_until, __u32 *timed)
{
	struct list_end ends[LIST_ENDS];

	for (int i = 0; i < LIST_ENDS; i++) {
		ends[i] = list_end_get(*list_until, *timed, i);
		if (!(lists >> ends[i].list & 1))
			ends[i].until = 0;
	}
	list_ends_set(ends[0], ends[1], list_until, timed);
}

/*
 * Returns the mask `lists`, without lists on which the prefix has expired. Lowers *end to the
 * earliest expiry in the future. If a new list gets the index of an expired list, the new list does
 * not apply to the prefix until a command writes the rule.
 */
static inline __u64 entries_in_force(__u64 lists, __u32 list_until, __u32 timed, __u32 now,
				     __u32 *end)
{
	for (int i = 0; i < LIST_ENDS; i++) {
		struct list_end has = list_end_get(list_until, timed, i);

		if (!has.until || !(lists >> has.list & 1))
			continue;
		if (has.until <= now)
			lists &= ~(1ULL << has.list);
		else
			*end = end_first(*end, has.until);
	}
	return lists;
}

#endif
