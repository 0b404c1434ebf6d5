/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: rules in memory: of a command, of a rules file, or of a gate. */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include <stdint.h>

#include "rules/limit.h"
#include "sluice.h"

/* Whether a policy also has the limits of the next shorter policy. */
enum inherit {
	INHERIT_UNSPECIFIED, /* no; in a difference: both rules agree */
	INHERIT_NO,
	INHERIT_YES,
};

/*
 * The rule of one prefix: an entry by hand, lists that name the prefix, a policy. A rule that has
 * none of these means that the prefix has no rule. A policy is limits, and perhaps a budget for
 * newcomers, which has no effect without limits. The rule owns its policy.
 */
struct rule {
	struct sl_prefix prefix;
	uint64_t lists;	     /* a bit for each list that names the prefix, at its place */
	uint32_t until;	     /* end of the entry by hand, as in struct sl_rule_content; 0: no end */
	uint32_t list_until; /* end of the entry on the list at place `timed`; 0: no end */
	uint8_t access;	     /* enum sl_access: of the entry by hand */
	uint8_t limits;	     /* elements of `limit`, at most SL_LIMITS_MAX */
	uint8_t inherit;     /* enum inherit */
	uint8_t timed;
	struct limit *limit;
	struct limit *newcomers; /* NULL: no budget */
};

/* --- Policies ------------------------------------------------------------------------------- */

/* Adds a limit to a rule that has fewer than SL_LIMITS_MAX and none of that name. */
int rule_add_limit(struct rule *rule, const struct limit *limit);
struct limit *rule_find_limit(const struct rule *rule, const char *name);

/* Sets the budget of a rule to a copy; NULL: none. */
int rule_set_newcomers(struct rule *rule, const struct limit *newcomers);

/* Copies a rule with its policy; moves the policy to a rule without one; frees the policy. */
int rule_copy(const struct rule *rule, struct rule *ret);
void rule_take_policy(struct rule *rule, struct rule *from);
void rule_free(struct rule *rule);

/* How many of SL_LIMITS_MAX slots the limits of a rule occupy: two rates occupy two. */
unsigned int rule_slots(const struct rule *rule);

bool rule_inherits(const struct rule *rule);

/* Whether the budget drops nothing, because no limit drops or blocks: bpf/charge.h. */
bool rule_budget_is_idle(const struct rule *rule);

/* Whether its newcomers are destinations: the keys of all its limits that drop. */
bool rule_sees_destinations(const struct rule *rule);

/* --- Entries of lists ----------------------------------------------------------------------- */

/* The end of the rule's entry on the list at a place, without the list's own end; 0: none. */
uint32_t rule_list_end(const struct rule *rule, int place);

/*
 * Puts the prefix on the list at a place, with an end of its own; 0: none. A prefix has such an end
 * on one list at a time: returns false, and changes nothing, if it has one on another list.
 */
bool rule_add_list(struct rule *rule, int place, uint32_t until);

/* Removes the prefix from the lists of these bits. */
void rule_remove_lists(struct rule *rule, uint64_t bits);

/* Whether it has no entry, no list and no policy. */
bool rule_is_empty(const struct rule *rule);

/* --- Differences ---------------------------------------------------------------------------- */

/* Whether both are equal. Ids, the order of limits, and a budget without limits are ignored. */
bool limit_equal(const struct limit *a, const struct limit *b);
bool rule_equal(const struct rule *a, const struct rule *b);

/* The parts of a rule that another rule of the same prefix lacks. The caller frees `ret`. */
int rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret);

/* --- Sets ----------------------------------------------------------------------------------- */

struct ruleset {
	struct rule *rules;
	unsigned int count;
	unsigned int room;
	struct sl_list_info *lists; /* SL_LIST_PLACES of them, one for each bit; or NULL */
};

/* Allocates the lists, with all places free, unless the set has lists. */
int ruleset_make_lists(struct ruleset *set);

/* Appends a rule, and owns its policy, also on failure. */
int ruleset_add(struct ruleset *set, const struct rule *rule);

/* Appends a copy of `entry`, which has no policy, for each prefix of "PREFIX" or "FIRST-LAST". */
int ruleset_add_words(struct ruleset *set, const struct rule *entry, const char *text);

/* Sorts by prefix (prefix_compare), then by the end of the entry on a list, the last first. */
void ruleset_sort(struct ruleset *set);

/* Sorts, and keeps the first rule of each prefix. */
void ruleset_unique(struct ruleset *set);

/* The rule of exactly this prefix in a sorted set; NULL: none. */
const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix);

/* Moves the lists of a set to the places that they have in `others`. NULL: does nothing. */
int ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others);
void ruleset_free(struct ruleset *set);

/* A walk over the prefixes of two sets, which are sorted and have one rule a prefix. */
struct rule_pairs {
	const struct ruleset *from, *to;
	unsigned int i, j;
};

/* Returns the next prefix: its rule in each set, or NULL. Returns false at the end. */
bool rule_pairs_next(struct rule_pairs *pairs, const struct rule **ret_from,
		     const struct rule **ret_to);

/* Calls `call` for each prefix whose rule differs, until a call returns an error. */
int ruleset_diff(const struct ruleset *from, const struct ruleset *to,
		 int (*call)(void *data, const struct rule *from, const struct rule *to),
		 void *data);

#endif
