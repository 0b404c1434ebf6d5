/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: rules and named lists in memory: of a command, of a rules file, or of a gate; and the
 * sizes of a gate's maps that they require.
 */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include <stdint.h>

#include "rules/limit.h"
#include "rules/value.h"

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

static inline bool rule_inherits(const struct rule *rule)
{
	return rule->limits && rule->inherit == INHERIT_YES;
}

/* Whether the budget drops nothing, because no limit drops or blocks: bpf/charge.h. */
bool rule_budget_is_idle(const struct rule *rule);

/* Whether its newcomers are destinations: the keys of all its limits that drop. */
bool rule_sees_destinations(const struct rule *rule);

/* --- Entries of lists ----------------------------------------------------------------------- */

/* The end of the rule's entry on the list at a place, without the list's own end; 0: none. */
static inline uint32_t rule_list_end(const struct rule *rule, int place)
{
	return rule->timed == place && rule->lists >> place & 1 ? rule->list_until : 0;
}

/*
 * Puts the prefix on the list at a place, with an end of its own; 0: none. A prefix has such an end
 * on one list at a time: returns false, and changes nothing, if it has one on another list.
 */
bool rule_add_list(struct rule *rule, int place, uint32_t until);

/* Removes the prefix from the lists of these bits. */
void rule_remove_lists(struct rule *rule, uint64_t bits);

/* Whether it has no entry, no list and no policy. */
static inline bool rule_is_empty(const struct rule *rule)
{
	return !rule->access && !rule->lists && !rule->limits;
}

/* --- Differences ---------------------------------------------------------------------------- */

/* Whether both are equal. Ids, the order of limits, and a budget without limits are ignored. */
bool limit_equal(const struct limit *a, const struct limit *b);
bool rule_equal(const struct rule *a, const struct rule *b);

/* The parts of a rule that another rule of the same prefix lacks. The caller frees `ret`. */
int rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret);

/* --- Named lists ---------------------------------------------------------------------------- */

/* An array of SL_LIST_PLACES. The place of a list is its bit in rules; without a name it is free. */

/* The place of the list of that name, or of the name that list_name_of() gives a file; -1: none. */
int lists_find(const struct sl_list_info *lists, const char *name);
int lists_find_file(const struct sl_list_info *lists, const char *file);

/* Puts a list into a free place. Returns -ENOSPC if SL_LISTS_MAX lists exist. */
int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place);

/* The places that have a list, as bits, and their number. */
uint64_t lists_bits(const struct sl_list_info *lists);
static inline unsigned int lists_count(const struct sl_list_info *lists)
{
	return __builtin_popcountll(lists_bits(lists));
}

/* Whether both have the same name, access and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

bool list_ended(const struct sl_list_info *list);

/* Whether a command could have written a list: its name and its access are known. */
bool list_is_sound(const struct sl_list_info *list);

/* Checks a name: printable ASCII without blanks, quotes and backslashes, that fits SL_LIST_NAME. */
int list_name_check(const char *name);

/* Names the list of a file by its absolute path, with links unresolved. "-" keeps its name. */
int list_name_of(const char *file, char name[SL_LIST_NAME]);

/* --- Access, by enum sl_access -------------------------------------------------------------- */

extern const char *const access_words[]; /* the commands "allow" and "deny" */
extern const char *const access_done[];	 /* "allowed" and "denied" */
extern const char *const access_verbs[]; /* "allows" and "denies" */

/* The access of a prefix on the lists of these bits. */
enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits);

/*
 * Whether the prefix is shorter than /8 (IPv4) or /16 (IPv6). Entries of lists and denies by hand
 * with such a prefix need `force`: most of them are mistakes, and lock out the operator.
 */
bool entry_is_wide(const struct sl_prefix *prefix);

/* Refuses a wide prefix. force: how to accept it, for the error; NULL: it is accepted. */
int entry_check_width(const struct sl_prefix *prefix, const char *force);

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

/* The rule of this prefix in a sorted set; NULL: none. */
const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix);

/*
 * Moves the lists of a set to the places that they have in `others`; NULL: does nothing. A list
 * that `others` lack moves to a place that is free there.
 */
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

/* --- Sizes ---------------------------------------------------------------------------------- */

/* The entries of a gate's maps, in the order of enum size. 0: not set. */
struct gate_sizes {
	uint32_t sources;  /* states */
	uint32_t buckets;  /* entries of `buckets4`, and of `buckets6` */
	uint32_t policies; /* rules with limits; the gate reserves the first SL_POLICY_FIRST */
	uint32_t hosts;	   /* rules of whole addresses, of each family */
	uint32_t prefixes; /* other rules */
};

enum size {
	SIZE_SOURCES,
	SIZE_BUCKETS,
	SIZE_POLICIES,
	SIZE_HOSTS,
	SIZE_PREFIXES,
	SIZES,
};

#define SIZE_BIT(size) (1U << (size))

/* The keys of `gate` in a rules file. */
extern const char *const size_names[SIZES];

static inline uint32_t *size_of(struct gate_sizes *sizes, enum size size)
{
	return &sizes->sources + size;
}

/* The size as users write it: without what the gate reserves. */
uint32_t size_specified(const struct gate_sizes *sizes, enum size size);
void size_set(struct gate_sizes *sizes, enum size which, uint32_t size);

/* The entries that rules require in each map. */
struct room {
	uint32_t policies;
	uint32_t prefixes;
	uint32_t hosts[SL_FAMILIES];
};

/* Adds what `to` requires beyond `from`, a rule of the same prefix; NULL: none. */
void room_add(struct room *room, const struct rule *from, const struct rule *to);

/* What a set of rules requires. An empty rule requires nothing. */
struct room room_needed(const struct ruleset *rules);

/* The least sizes that hold the rules; 0: a size that rules do not decide. */
struct gate_sizes room_sizes(const struct room *room);

/* Whether each size is at least what is needed. */
bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed);

/*
 * Doubles each size that is too small, or more, to a power of two. fixed: a bit (SIZE_BIT) for each
 * size that stays. The result does not hold what is needed if a fixed size is too small, or if no
 * size is large enough.
 */
struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed);

/* The bits of the sizes that are not 0. */
uint32_t sizes_bits(const struct gate_sizes *sizes);

#endif
