/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: sets of rules and named lists in memory, and the sizes of maps that they require. */
#ifndef SLUICE_RULESET_H
#define SLUICE_RULESET_H

#include <limits.h>
#include <stdint.h>

#include "rules/limit.h"
#include "rules/value.h"

/* Whether a policy also has the limits of the policy of the next shorter prefix. */
enum inherit {
	INHERIT_UNSPECIFIED, /* means INHERIT_NO; in a difference, both rules agree */
	INHERIT_NO,
	INHERIT_YES,
};

/*
 * The rule of one prefix: a runtime entry, the lists that contain the prefix, and a policy. An
 * empty rule means that the prefix has no rule. A policy consists of limits and an optional budget
 * for new sources. Without limits the budget has no effect. The rule owns its policy.
 */
struct rule {
	struct sl_prefix prefix;
	uint64_t lists; /* bit N: the list at place N contains the prefix */
	uint32_t until; /* end of the runtime entry (unit of until_at()); 0 if it does not end */
	uint32_t list_until; /* end of the entry on list `timed`; 0 if it does not end */
	uint8_t access;	     /* enum sl_access of the runtime entry */
	uint8_t limits;	     /* number of elements of `limit`, at most SL_LIMITS_MAX */
	uint8_t inherit;     /* enum inherit */
	uint8_t timed;	     /* place of the list whose entry ends at `list_until` */
	struct limit *limit;
	struct limit *newcomers; /* budget for new sources, or NULL */
};

/* --- Policies ------------------------------------------------------------------------------- */

/* Adds a limit to a rule that has fewer than SL_LIMITS_MAX limits, and no limit of that name. */
int rule_add_limit(struct rule *rule, const struct limit *limit);

struct limit *rule_find_limit(const struct rule *rule, const char *name);

/* Sets the budget of a rule to a copy of `newcomers`, or removes it if `newcomers` is NULL. */
int rule_set_newcomers(struct rule *rule, const struct limit *newcomers);

int rule_copy(const struct rule *rule, struct rule *ret);

/* Moves the policy of `from` to a rule without a policy. */
void rule_take_policy(struct rule *rule, struct rule *from);

/* Frees the policy of a rule. */
void rule_free(struct rule *rule);

/* Returns how many of SL_LIMITS_MAX slots the limits occupy. A limit of two rates occupies two. */
unsigned int rule_slots(const struct rule *rule);

static inline bool rule_inherits(const struct rule *rule)
{
	return rule->limits && rule->inherit == INHERIT_YES;
}

/* Returns whether the budget drops no packet, because all limits only observe (bpf/charge.h). */
bool rule_budget_is_idle(const struct rule *rule);

/* Returns whether the budget is for new destinations: all limits that drop have them as keys. */
bool rule_sees_destinations(const struct rule *rule);

/*
 * Returns a budget to begin with: twice the rate that one source may send by the most generous
 * limit. The best budget is the rate that the protected machines can handle, which is unknown here.
 * rule: NULL if it is unknown.
 */
struct sl_limit_spec rule_advise_budget(const struct rule *rule);

/* --- Entries of lists ----------------------------------------------------------------------- */

/* Returns the end of the entry on the list at a place, or 0. Ignores the end of the whole list. */
static inline uint32_t rule_list_end(const struct rule *rule, int place)
{
	return rule->timed == place && rule->lists >> place & 1 ? rule->list_until : 0;
}

/*
 * Adds the prefix to the list at a place. until: the end of the entry; 0 if it does not end. A
 * prefix may have an entry with an end on only one list. Returns false, and changes nothing, if
 * another list has such an entry.
 */
bool rule_add_list(struct rule *rule, int place, uint32_t until);

/* Removes the prefix from all lists whose bits are set. */
void rule_remove_lists(struct rule *rule, uint64_t bits);

/* Returns whether a rule has neither a runtime entry nor lists nor a policy. */
static inline bool rule_is_empty(const struct rule *rule)
{
	return !rule->access && !rule->lists && !rule->limits;
}

/* --- Differences ---------------------------------------------------------------------------- */

/* Return whether a and b are equal, apart from ids, order of limits, and idle budgets. */
bool limit_equal(const struct limit *a, const struct limit *b);
bool rule_equal(const struct rule *a, const struct rule *b);

/*
 * Returns in *ret the parts of a rule that `other`, of the same prefix, lacks. The caller frees it.
 */
int rule_difference(const struct rule *rule, const struct rule *other, struct rule *ret);

/* --- Named lists ---------------------------------------------------------------------------- */

/*
 * Named lists are in an array of SL_LIST_PLACES elements. The place of a list is its index, and its
 * bit in rules. A place is free if its element has no name.
 */

/* Returns the place of a list by its name, or -1. */
int lists_find(const struct sl_list_info *lists, const char *name);

/*
 * Returns the place of the list that has the default name of a file (list_name_of()), or -1. Stores
 * that name in `path`, or `file` if the name cannot be computed.
 */
int lists_find_file(const struct sl_list_info *lists, const char *file, char path[PATH_MAX]);

/* Stores a list at a free place. Returns 0, or -ENOSPC if SL_LISTS_MAX lists exist. */
int lists_put(struct sl_list_info *lists, const struct sl_list_info *list, int place);

/* Returns the places that have a list, as bits. */
uint64_t lists_bits(const struct sl_list_info *lists);

static inline unsigned int lists_count(const struct sl_list_info *lists)
{
	return __builtin_popcountll(lists_bits(lists));
}

/* Returns whether both lists have the same name, access and end. */
bool list_same(const struct sl_list_info *a, const struct sl_list_info *b);

bool list_ended(const struct sl_list_info *list);

/* Returns whether a command could have written a list: its name, access and time are valid. */
bool list_is_sound(const struct sl_list_info *list);

/* Checks a list name: printable ASCII, no blanks, quotes, $ or backslashes, below SL_LIST_NAME. */
int list_name_check(const char *name);

/* Stores the default name of a list: the absolute path of its file, links unresolved, or "-". */
int list_name_of(const char *file, char name[SL_LIST_NAME]);

/* --- Access, by enum sl_access -------------------------------------------------------------- */

extern const char *const access_words[]; /* "allow" and "deny", also the names of the commands */
extern const char *const access_done[];	 /* "allowed" and "denied" */
extern const char *const access_verbs[]; /* "allows" and "denies" */

/* Returns the access of a prefix that the lists with these bits contain. Allow wins over deny. */
enum sl_access lists_access(const struct sl_list_info *lists, uint64_t bits);

/*
 * Returns whether a prefix is shorter than /8 (IPv4) or /16 (IPv6). Such an entry of a list, or a
 * runtime entry that denies, requires `force`: most are mistakes, and lock out the operator.
 */
bool entry_is_wide(const struct sl_prefix *prefix);

/* Refuses a wide prefix. force: hint of the error; NULL: accept it. */
int entry_check_width(const struct sl_prefix *prefix, const char *force);

/* --- Sets ----------------------------------------------------------------------------------- */

struct ruleset {
	struct rule *rules;
	unsigned int count;
	unsigned int room;
	struct sl_list_info *lists; /* array of SL_LIST_PLACES lists, indexed by place; or NULL */
};

/* Allocates the lists of a set, with all places free. Does nothing if the set has lists. */
int ruleset_make_lists(struct ruleset *set);

/* Appends a rule, whose policy the set owns. If it fails, it frees the policy. */
int ruleset_add(struct ruleset *set, const struct rule *rule);

/* Appends a copy of `entry`, which has no policy, for each prefix of "PREFIX" or "FIRST-LAST". */
int ruleset_add_words(struct ruleset *set, const struct rule *entry, const char *text);

/*
 * Sorts by prefix (prefix_compare()), and rules of one prefix by the end of the entry on a list:
 * first no end, then the latest.
 */
void ruleset_sort(struct ruleset *set);

/* Sorts the rules, and keeps only the first rule of each prefix. */
void ruleset_unique(struct ruleset *set);

/* Returns the rule of a prefix in a sorted set, or NULL. */
const struct rule *ruleset_find(const struct ruleset *set, const struct sl_prefix *prefix);

/* Moves each list to its place in `others`, or to a place that is free there. NULL: do nothing. */
int ruleset_match_lists(struct ruleset *set, const struct sl_list_info *others);
void ruleset_free(struct ruleset *set);

/* A walk over the prefixes of two sets. Each set is sorted, and has one rule for each prefix. */
struct rule_pairs {
	const struct ruleset *from, *to;
	unsigned int i, j;
};

/* Stores both rules of the next prefix, NULL for an absent rule. Returns false at the end. */
bool rule_pairs_next(struct rule_pairs *pairs, const struct rule **ret_from,
		     const struct rule **ret_to);

/* Calls `call` for each prefix whose rules differ, until a call returns an error. */
int ruleset_diff(const struct ruleset *from, const struct ruleset *to,
		 int (*call)(void *data, const struct rule *from, const struct rule *to),
		 void *data);

/* --- Sizes ---------------------------------------------------------------------------------- */

/*
 * Numbers of entries of the maps of a gate, in the order of enum size. 0 means that the user
 * specified none.
 */
struct gate_sizes {
	uint32_t sources;  /* number of states, one for each limit of a source */
	uint32_t buckets;  /* entries of map `buckets4`, and of map `buckets6` */
	uint32_t policies; /* policies, including SL_POLICY_FIRST that the gate reserves */
	uint32_t hosts;	   /* rules of single addresses, for each family */
	uint32_t prefixes; /* rules of other prefixes */
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

/* The names of sizes, which are the keys of `gate` in a rules file. */
extern const char *const size_names[SIZES];

static inline uint32_t *size_of(struct gate_sizes *sizes, enum size size)
{
	return &sizes->sources + size;
}

/* Returns a size as users write it: without the entries that the gate reserves. */
uint32_t size_specified(const struct gate_sizes *sizes, enum size size);

void size_set(struct gate_sizes *sizes, enum size which, uint32_t size);

/* The numbers of entries that rules require, by map. */
struct room {
	uint32_t policies;
	uint32_t prefixes;
	uint32_t hosts[SL_FAMILIES];
};

/* Adds the entries that `to` requires in addition to `from`, a rule of the same prefix or NULL. */
void room_add(struct room *room, const struct rule *from, const struct rule *to);

/* Returns the entries that a set of rules requires. An empty rule requires none. */
struct room room_needed(const struct ruleset *rules);

/* Returns the smallest sizes with room for the rules. A size that does not depend on rules is 0. */
struct gate_sizes room_sizes(const struct room *room);

/* Returns whether each size is at least as large as needed. */
bool sizes_hold(const struct gate_sizes *sizes, const struct gate_sizes *needed);

/*
 * Returns the sizes in `has`, with each size that is smaller than needed at least doubled, to a
 * power of two. fixed: bits (SIZE_BIT) of sizes that must not grow. No size grows beyond
 * SIZE_MAX_ENTRIES. So the result may still be smaller than needed.
 */
struct gate_sizes sizes_grown(const struct gate_sizes *has, const struct gate_sizes *needed,
			      uint32_t fixed);

/* Returns a bit (SIZE_BIT) for each size that is not 0. */
uint32_t sizes_bits(const struct gate_sizes *sizes);

#endif
