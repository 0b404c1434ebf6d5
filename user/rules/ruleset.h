/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: sets of rules and named lists in memory, and the sizes of maps that they require. */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include <limits.h>
#include <stdint.h>

#include "rules/limit.h"
#include "rules/value.h"

/* Whether a policy inherits the limits of the policy of the next shorter prefix. */
enum inherit {
	INHERIT_UNSPECIFIED, /* INHERIT_NO in a rule; no change in a rule_difference() */
	INHERIT_NO,
	INHERIT_YES,
};

/*
 * The rule of a prefix: a runtime entry, the lists that contain the prefix, and a policy. A prefix
 * without these has no rule. A policy has limits, and may have a budget for new sources. A budget
 * has no effect without limits. The rule owns its policy.
 */
struct rule {
	struct sl_prefix prefix;
	uint64_t lists;	     /* bit P is set if the list at place P contains the prefix */
	uint32_t until;	     /* end of the runtime entry, in the unit of until_at(); 0: no end */
	uint32_t list_until; /* ends of the prefix on two lists, as in struct sl_rule_content */
	uint32_t timed;
	uint8_t access;	 /* enum sl_access of the runtime entry */
	uint8_t limits;	 /* number of elements of `limit`, at most SL_LIMITS_MAX */
	uint8_t inherit; /* enum inherit */
	struct limit *limit;
	struct limit *newcomers; /* budget for new sources, or NULL */
};

/* --- Policies ------------------------------------------------------------------------------- */

/*
 * Adds a limit to a rule. The rule must have fewer than SL_LIMITS_MAX limits, and no limit of this
 * name.
 */
int rule_add_limit(struct rule *rule, const struct limit *limit);

struct limit *rule_find_limit(const struct rule *rule, const char *name);

/* Copies `newcomers` to the budget of a rule. Removes the budget if `newcomers` is NULL. */
int rule_set_newcomers(struct rule *rule, const struct limit *newcomers);

int rule_copy(const struct rule *rule, struct rule *ret);

/* Moves the policy of rule `from` to a rule that has no policy. */
void rule_take_policy(struct rule *rule, struct rule *from);

/* Frees the policy of a rule. */
void rule_free(struct rule *rule);

/* Returns how many slots the rule's limits occupy. A limit with two rates occupies two slots. */
unsigned int rule_slots(const struct rule *rule);

static inline bool rule_inherits(const struct rule *rule)
{
	return rule->limits && rule->inherit == INHERIT_YES;
}

/*
 * Returns whether a rule's budget has no effect, because all limits of the rule only observe
 * (bpf/charge.h).
 */
bool rule_budget_is_idle(const struct rule *rule);

/*
 * Returns whether all limits that drop have destinations as keys. If so, the budget is for new
 * destinations.
 */
bool rule_sees_destinations(const struct rule *rule);

/*
 * Recommends a budget: twice the rate that the rule's highest limit allows one source. `rule` may
 * be NULL if the rule is unknown. The rate that the protected machines can handle would be better,
 * but it is unknown here.
 */
struct sl_limit_spec rule_advise_budget(const struct rule *rule);

/* --- Entries of lists ----------------------------------------------------------------------- */

/*
 * Returns the time at which a prefix ends on a list, or 0 if it does not end. The end of the whole
 * list does not count.
 */
uint32_t rule_list_end(const struct rule *rule, int place);

/*
 * Adds a prefix to the list at `place`. until: end of the prefix on this list; 0: no end. A prefix
 * may have ends on only two lists. If it already has ends on two other lists, changes nothing and
 * returns false. The earlier end is rounded up if it is much earlier (list_ends.h).
 */
bool rule_add_list(struct rule *rule, int place, uint32_t until);

/* Removes the prefix from the lists whose bits are set in `bits`. */
void rule_remove_lists(struct rule *rule, uint64_t bits);

/* Returns whether a rule has no runtime entry, no lists and no policy. */
static inline bool rule_is_empty(const struct rule *rule)
{
	return !rule->access && !rule->lists && !rule->limits;
}

/* --- Differences ---------------------------------------------------------------------------- */

/*
 * Return whether a and b are equal. Ignore ids, the order of limits, and a budget without limits.
 */
bool limit_equal(const struct limit *a, const struct limit *b);
bool rule_equal(const struct rule *a, const struct rule *b);

/*
 * Stores the parts of `rule` that `other` does not have. Both rules have the same prefix. The
 * caller frees *ret.
 */
int rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret);

/* --- Named lists ---------------------------------------------------------------------------- */

/*
 * The named lists of a set are an array of SL_LIST_PLACES elements. The place of a list is its
 * index in the array. Bit P of a rule stands for the list at place P. An element without a name is
 * free.
 */

/* Returns the place of the list with this name, or -1. */
int lists_find(const struct sl_list_info *lists, const char *name);

/*
 * Returns the place of the list that has the default name of a file (list_name_of()), or -1. Stores
 * the default name in `path`. If the name cannot be computed, stores `file` instead.
 */
int lists_find_file(const struct sl_list_info *lists, const char *file, char path[PATH_MAX]);

/* Stores a list at a free place. Returns 0, or -ENOSPC if SL_LISTS_MAX lists exist. */
int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place);

/* Returns a bit for each place of the array that has a list. */
uint64_t lists_bits(const struct sl_list_info *lists);

static inline unsigned int lists_count(const struct sl_list_info *lists)
{
	return __builtin_popcountll(lists_bits(lists));
}

/* Returns whether two lists have the same name, access and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

bool list_ended(const struct sl_list_info *list);

/* Returns whether a command could have stored this list: name, access and time are valid. */
bool list_is_sound(const struct sl_list_info *list);

/* Checks a list's name: printable ASCII, below SL_LIST_NAME, no blanks, quotes, $ or backslash. */
int list_name_check(const char *name);

/* Stores a list's default name: the absolute path of its file, or "-". Does not resolve links. */
int list_name_of(const char *file, char name[SL_LIST_NAME]);

/* --- Access, by enum sl_access -------------------------------------------------------------- */

extern const char *const access_words[]; /* "allow" and "deny", also the names of the commands */
extern const char *const access_done[];	 /* "allowed" and "denied" */
extern const char *const access_verbs[]; /* "allows" and "denies" */

/*
 * Returns the access of a prefix on the lists whose bits are set. A list that allows overrides a
 * list that denies.
 */
enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits);

/*
 * Returns whether a prefix is shorter than /8 (IPv4) or /16 (IPv6). List entries and `deny` entries
 * of such a prefix require `force`, because they are probably mistakes that would lock out the
 * operator.
 */
bool entry_is_wide(const struct sl_prefix *prefix);

/*
 * Returns an error for a wide prefix, with the hint `force`. Accepts every prefix if `force` is
 * NULL.
 */
int entry_check_width(const struct sl_prefix *prefix, const char *force);

/* --- Sets ----------------------------------------------------------------------------------- */

struct ruleset {
	struct rule *rules;
	unsigned int count;
	unsigned int room;
	struct sl_list_info *lists; /* array of SL_LIST_PLACES lists, indexed by place; or NULL */
};

/* Allocates the lists of a set, with all places free. Does nothing if the set already has lists. */
int ruleset_make_lists(struct ruleset *set);

/* Appends a rule, and takes ownership of its policy. After an error, frees the policy. */
int ruleset_add(struct ruleset *set, const struct rule *rule);

/* Appends a copy of `entry` for each prefix of "PREFIX" or "FIRST-LAST". `entry` has no policy. */
int ruleset_add_words(struct ruleset *set, const struct rule *entry, const char *text);

/*
 * Sorts the rules by prefix (prefix_compare()). Rules of the same prefix are sorted by list end:
 * first no end, and then the latest end.
 */
void ruleset_sort(struct ruleset *set);

/* Sorts the rules. If a prefix has several rules, keeps only the first. */
void ruleset_unique(struct ruleset *set);

/* Returns the rule of a prefix in a sorted set, or NULL. */
const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix);

/*
 * Gives each list the place that it has in `others`. If `others` does not have the list, gives it a
 * place that is free in `others`. `others` may be NULL.
 */
int ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others);
void ruleset_free(struct ruleset *set);

/*
 * A walk over the prefixes of two sets of rules. Each set must be sorted, and contain a prefix only
 * once.
 */
struct rule_pairs {
	const struct ruleset *from, *to;
	unsigned int i, j;
};

/*
 * Stores the rules of the next prefix in both sets. A rule is NULL if a set does not have it.
 * Returns false at the end.
 */
bool rule_pairs_next(struct rule_pairs *pairs, const struct rule **ret_from,
		     const struct rule **ret_to);

/*
 * Calls `call` for each prefix that has different rules in `from` and `to`. Stops if `call` returns
 * an error.
 */
int ruleset_diff(const struct ruleset *from, const struct ruleset *to,
		 int (*call)(void *data, const struct rule *from, const struct rule *to),
		 void *data);

/* --- Sizes ---------------------------------------------------------------------------------- */

/* Numbers of entries of a gate's maps, in the order of enum size. 0 means unspecified. */
struct gate_sizes {
	uint32_t sources;  /* number of states; each source has a state for each limit */
	uint32_t buckets;  /* number of entries of `buckets4`, and also of `buckets6` */
	uint32_t policies; /* number of policies, including SL_POLICY_FIRST reserved policies */
	uint32_t hosts;	   /* number of single addresses with rules, for each family */
	uint32_t prefixes; /* number of rules of all prefixes other than single addresses */
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

/* Names of the sizes in section `gate` of a rules file. */
extern const char *const size_names[SIZES];

static inline uint32_t *size_of(struct gate_sizes *sizes, enum size size)
{
	return &sizes->sources + size;
}

/*
 * Returns a size as users specify it, which does not include the entries that the gate needs
 * itself.
 */
uint32_t size_specified(const struct gate_sizes *sizes, enum size size);

void size_set(struct gate_sizes *sizes, enum size which, uint32_t size);

/* Numbers of map entries that rules need. */
struct room {
	uint32_t policies;
	uint32_t prefixes;
	uint32_t hosts[SL_FAMILIES];
};

/*
 * Adds to `room` the map entries that a change from rule `from` to rule `to` needs. Both rules have
 * the same prefix. `from` may be NULL.
 */
void room_add(struct room *room, const struct rule *from, const struct rule *to);

/* Returns the number of entries that a set of rules requires. Empty rules require no entry. */
struct room room_needed(const struct ruleset *rules);

/*
 * Returns the smallest sizes with room for the rules. Sizes that do not depend on the rules are 0.
 */
struct gate_sizes room_sizes(const struct room *room);

/* Returns whether each size in `sizes` is at least as large as in `needed`. */
bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed);

/*
 * Returns the sizes in `has`, but enlarges sizes that are smaller than in `needed`. The new size is
 * a power of two, at least twice the old size, and at most SIZE_MAX_ENTRIES. So it can still be too
 * small. Sizes whose bit (SIZE_BIT) is set in `fixed` do not grow.
 */
struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed);

/* Returns which sizes are not 0, as bits (SIZE_BIT). */
uint32_t sizes_bits(const struct gate_sizes *sizes);

#endif
