/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds the rule that decides about a source. Tries the rules that cover the source, the longest
 * first. Pure functions, except for clock_until(). A file that includes this header must define
 * clock_until() before the include. It returns the time in the unit of `until`.
 */
#ifndef SLUICE_LOOKUP_H
#define SLUICE_LOOKUP_H

#include "list_ends.h"

#ifndef BPF_GLOBAL
#define BPF_GLOBAL static inline
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/*
 * The progress of one lookup. The longest rule in force decides. Exception: if a list denies at
 * this rule, a runtime allow (`sluice allow`) at a shorter prefix overrides the list. So if a list
 * denies and the gate has runtime allows, the lookup continues with shorter rules. If it finds a
 * runtime allow first, it ignores all denies of lists, and the longest of the remaining rules
 * decides.
 */
struct lookup {
	__u32 version; /* policy version that decides; 0: no rule decides */
	/* earliest time at which `version` may change, in the unit of sl_rule_content; 0: never */
	__u32 until;
	/*
	 * Policy version that decides if a runtime allow overrides the lists that deny. 0: not
	 * found yet.
	 */
	__u32 without;
	/*
	 * 1 if a list denies the source. Then only a runtime allow of a shorter prefix can allow
	 * it.
	 */
	__u32 listed;
};

static __always_inline __u32 access_version(enum sl_access word)
{
	return SL_POLICY_VERSION(word == SL_ACCESS_ALLOW ? SL_POLICY_ALLOW : SL_POLICY_DENY);
}

/*
 * Returns the lists of mask `lists` that are in force. until, timed: expiries of the prefix on two
 * lists (list_ends.h). Lowers lookup->until to the earliest future expiry.
 */
BPF_GLOBAL __u64 lookup_lists(__u64 lists, __u32 until, __u32 timed, const struct sl_gate *gate,
			      struct lookup *lookup)
{
	__u32 now = clock_until();

	if (!gate || !lookup)
		return 0;
	lists = entries_in_force(lists, until, timed, now, &lookup->until);
	return lists_in_force(gate, lists, now, &lookup->until);
}

/*
 * Returns SL_ACCESS_NONE if no list of the prefix is in force. Otherwise returns allow if at least
 * one list allows, and deny if all lists deny.
 */
static __always_inline enum sl_access lookup_list_access(const struct sl_rule_content *content,
							 const struct sl_gate *gate,
							 struct lookup *lookup)
{
	__u64 lists = content->list_mask;

	if (lists & gate->lists_ending || content->list_until)
		lists = lookup_lists(lists, content->list_until, content->timed, gate, lookup);
	if (lists & gate->lists_allow)
		return SL_ACCESS_ALLOW;
	return lists ? SL_ACCESS_DENY : SL_ACCESS_NONE;
}

/*
 * Updates a lookup by the rule of the next shorter prefix. Returns whether the lookup is complete.
 */
static __always_inline bool lookup_add(const struct sl_rule_content *content,
				       const struct sl_gate *gate, struct lookup *lookup)
{
	enum sl_access hand = content->access, listed = SL_ACCESS_NONE;
	__u32 says;

	if (hand && content->until && content->until <= clock_until())
		hand = SL_ACCESS_NONE;
	if (hand)
		lookup->until = end_first(lookup->until, content->until);
	else if (content->list_mask)
		listed = lookup_list_access(content, gate, lookup);
	says = hand			   ? access_version(hand)
	       : listed == SL_ACCESS_ALLOW ? access_version(listed)
					   : content->version;
	if (!lookup->without)
		lookup->without = says;
	if (lookup->listed) {
		if (hand == SL_ACCESS_ALLOW)
			lookup->version = lookup->without;
		return hand;
	}
	if (listed != SL_ACCESS_DENY) {
		lookup->version = says;
		return says;
	}
	lookup->version = access_version(SL_ACCESS_DENY);
	lookup->listed = true;
	return !gate->runtime_allows;
}

#endif
