/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: rules in memory, as `set`, `allow` and `deny` build them, a rules file has them, or a
 * gate.
 */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include <stdint.h>
#include <stdio.h>

#include "rules/limit.h"
#include "sluice.h"

/*
 * Whether a policy also has the limits of the next shorter one. In a difference of two rules,
 * UNSAID means that they agree.
 */
enum inherit {
	INHERIT_UNSPECIFIED, /* it does not inherit */
	INHERIT_NO,
	INHERIT_YES,
};

/*
 * The rule of one prefix: an entry by hand, lists that name the prefix, a policy. A rule that has
 * none of these means that the prefix has no rule. A policy is limits, and perhaps a budget for
 * newcomers, which has no effect without limits.
 */
struct rule {
	struct sl_prefix prefix;
	uint64_t lists;	     /* a bit for each list that names the prefix, at its place */
	uint32_t until;	     /* end of the entry by hand, as in struct sl_rule_content; 0: no end */
	uint32_t list_until; /* end of the entry on the list at place `timed`; 0: no end */
	uint8_t access;	     /* enum sl_access: of the entry by hand */
	uint8_t limits;	     /* elements of `limit`, at most SL_LIMITS_MAX */
	uint8_t inherit;     /* enum inherit, of the policy */
	uint8_t timed;
	struct limit *limit;	 /* owned by the rule */
	struct limit *newcomers; /* owned by the rule; NULL: no budget */
};

struct ruleset {
	struct rule *rules;
	unsigned int count;
	unsigned int room;
	struct sl_list_info *lists; /* SL_LIST_PLACES of them, one for each bit; or NULL */
};

/* Allocates the lists, with all places free, unless there are some. */
int ruleset_make_lists(struct ruleset *set);

/*
 * Appends a copy of `entry`, which has no policy, for a prefix, or for each prefix of a range
 * FIRST-LAST. Blanks may surround the dash.
 */
int ruleset_add_words(struct ruleset *set, const struct rule *entry, const char *text);

/* Appends a rule, and owns its policy from then on, also when it fails. */
int ruleset_add(struct ruleset *set, const struct rule *rule);

/* Sorts by prefix (prefix_compare), then by the end of the entry on a list, the last first. */
void ruleset_sort(struct ruleset *set);

/* The rule of exactly this prefix in a sorted set; NULL: none. */
const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix);

/*
 * Sorts by prefix, and keeps one rule of each prefix: the one whose entry on a list ends last, or
 * does not end.
 */
void ruleset_unique(struct ruleset *set);

/* Adds a limit to a rule, which has fewer than SL_LIMITS_MAX and none of that name. */
int rule_add_limit(struct rule *rule, const struct limit *limit);
struct limit *rule_find_limit(const struct rule *rule, const char *name);
int rule_copy(const struct rule *rule, struct rule *ret);

/*
 * How many of the SL_LIMITS_MAX limits of a policy a rule has: one that was told two rates is two.
 */
unsigned int rule_slots(const struct rule *rule);

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

/* Whether its policy also has the limits of a shorter one. */
bool rule_inherits(const struct rule *rule);

/*
 * Whether its budget for newcomers drops nothing: policy_charge() of bpf/charge.h asks the budget
 * only in place of a limit that drops or blocks, and all of these observe.
 */
bool rule_budget_is_idle(const struct rule *rule);

/* Whether newcomers are destinations to it: so are the keys of all its limits that drop. */
bool rule_sees_destinations(const struct rule *rule);

/* Sets the budget of a rule to a copy of this one; NULL: none. */
int rule_set_newcomers(struct rule *rule, const struct limit *newcomers);

/* Moves the policy of `from` to a rule that has none. */
void rule_take_policy(struct rule *rule, struct rule *from);

/* Whether both are equal except for their ids. */
bool limit_equal(const struct limit *a, const struct limit *b);

/*
 * Whether both are equal. Ids and the order of limits are ignored, as is a budget without limits.
 */
bool rule_equal(const struct rule *a, const struct rule *b);

/*
 * Moves the lists of a set to the places that they have in `others` (NULL: nothing to do), so that
 * the bits of the rules of both mean the same lists.
 */
int ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others);

/* The parts of a rule that another rule of the same prefix lacks. The caller frees `ret`. */
int rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret);

/* Frees the policy of a rule, which then has none. */
void rule_free(struct rule *rule);
void ruleset_free(struct ruleset *set);

/* A walk over the prefixes of two sets, which are sorted and have one rule a prefix. */
struct rule_pairs {
	const struct ruleset *from, *to;
	unsigned int i, j;
};

/*
 * The next prefix of the walk, in order: its rule in each set, or NULL where that set has none.
 * False: there are no more.
 */
bool rule_pairs_next(struct rule_pairs *pairs, const struct rule **ret_from,
		     const struct rule **ret_to);

/*
 * Calls `call` for each prefix whose rule differs, in order; `from` or `to` is NULL where that set
 * has no rule. Both sets are sorted and have one rule a prefix. Stops at the first result that is
 * not 0.
 */
int ruleset_diff(const struct ruleset *from, const struct ruleset *to,
		 int (*call)(void *data, const struct rule *from, const struct rule *to),
		 void *data);

/* Formats the words of `set` that make a limit, after the prefix: " name dns rate 200pps ...". */
#define LIMIT_TEXT 1024
const char *limit_format(const struct limit *limit, const struct sl_prefix *prefix,
			 char text[LIMIT_TEXT]);

#endif
