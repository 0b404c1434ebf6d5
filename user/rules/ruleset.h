/* SPDX-License-Identifier: GPL-2.0 */
/* Rules in memory: what `set`, `allow` and `deny` build, what a rules file says, what a gate holds. */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include <stdint.h>

#include "base/log.h"
#include "rules/limit.h"
#include "sluice.h"

/* Whether a policy also has the limits of the next shorter one. Of a difference, unsaid: they do not differ. */
enum inherit {
	INHERIT_UNSAID, /* it does not */
	INHERIT_NO,
	INHERIT_YES,
};

/*
 * The rule of one prefix: a word by hand, lists that name it, a policy; none of these: there is to be no rule. A
 * policy is limits, and perhaps a budget for newcomers, which is nothing without limits.
 */
struct rule {
	struct sl_prefix prefix;
	uint64_t lists;		 /* a bit for each list that names the prefix: its place */
	uint32_t until;		 /* of the word by hand, as in struct sl_face; 0: for good */
	uint8_t list;		 /* enum sl_list: the word by hand */
	uint8_t limits;		 /* how many of `limit`, at most SL_LIMITS_MAX */
	uint8_t inherit;	 /* enum inherit, of the policy */
	struct limit *limit;	 /* the rule's own; freed with it */
	struct limit *newcomers; /* so is this; NULL: no budget */
};

struct ruleset {
	struct rule *rules;
	unsigned int count;
	unsigned int room;
	struct sl_list_info *lists; /* SL_LIST_PLACES: what the bits of the rules mean; or NULL */
};

/* Makes room for lists, all places free, if there is none. */
enum status ruleset_make_lists(struct ruleset *set);

/* Appends a rule, and takes over its policy, also where it fails. */
enum status ruleset_add(struct ruleset *set, const struct rule *rule);

/* Orders by prefix (prefix_compare). */
void ruleset_sort(struct ruleset *set);

/* The same, and keeps the first of several rules of one prefix. */
void ruleset_unique(struct ruleset *set);

/* Adds a limit to a rule; the rule has less than SL_LIMITS_MAX, and none of that name. */
enum status rule_add_limit(struct rule *rule, const struct limit *limit);
struct limit *rule_find_limit(const struct rule *rule, const char *name);
enum status rule_copy(const struct rule *rule, struct rule *ret);

/* Whether its policy has limits that are written in a shorter one. */
bool rule_inherits(const struct rule *rule);

/* Gives the rule this budget; NULL: none. */
enum status rule_set_newcomers(struct rule *rule, const struct limit *newcomers);

/* Takes the policy of another rule, which then has none. The rule has none before. */
void rule_take_policy(struct rule *rule, struct rule *from);

/* Whether both say the same; their ids do not count. */
bool limit_equal(const struct limit *a, const struct limit *b);

/* Whether both say the same; ids and order of limits do not count, nor a budget without limits. */
bool rule_equal(const struct rule *a, const struct rule *b);

/*
 * Puts the lists of a set at the places that they have in `others` (NULL: none), so that the bits of the rules of both
 * mean the same.
 */
enum status ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others);

/* What a rule says and another of the same prefix does not. The caller frees `ret`. */
enum status rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret);

/* Frees its policy: the rule has none then. */
void rule_free(struct rule *rule);
void ruleset_free(struct ruleset *set);

/*
 * Calls `call` for each prefix whose rule differs, in order; `from` or `to` is NULL where there is none.
 * Both are sorted, and have one rule a prefix. Ends at the first status that is not OK.
 */
enum status ruleset_diff(const struct ruleset *from, const struct ruleset *to,
			 enum status (*call)(void *data, const struct rule *from,
					     const struct rule *to),
			 void *data);

/*
 * Prints a rule as the commands that make it, one a line, each behind `lead`:
 *   sluice -g edge set 203.0.113.0/24 name dns rate 200pps burst 50 match udp port 53 inherit yes
 *   sluice -g edge newcomers 203.0.113.0/24 rate 10kpps burst 20000
 *   sluice -g edge deny 203.0.113.9 for 3540s
 *   sluice -g edge deny 203.0.113.9 as /etc/drop.txt
 * lists: what its bits mean; NULL: it has none. ends: the bits of the lists whose ends the lines before have said, and
 * to which it adds its own: an entry that follows on the same list says no end, as it takes the list's. NULL: each
 * line says it.
 */
void rule_print(const struct rule *rule, const struct sl_list_info *lists, uint64_t *ends,
		const char *gate, const char *lead);

#endif
