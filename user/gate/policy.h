/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: compiles limits into policy versions, which packets read, and reads limits from policy
 * versions. An unprivileged user may own the maps of policies and lists, and can write any bytes to
 * them at any time. So commands use only the copies that policy_version() and list_info_read()
 * return. These functions check each copy like limits in a file, and compile its limits again.
 */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <stddef.h>

#include "gate/gate.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

/* --- Reading -------------------------------------------------------------------------------- */

/*
 * Returns a checked copy of a policy version, whose number is below
 * SL_POLICY_VERSION(policies_max). The next call for this version may overwrite the copy. If the
 * version is free or damaged, the copy has `since` 0 and no limits.
 */
const struct sl_policy *policy_version(const struct gate *gate, uint32_t version);

/* Returns the index of a version that policy_version() has returned. */
static inline uint32_t policy_version_index(const struct gate *gate, const struct sl_policy *policy)
{
	return policy - gate->checked;
}

/* Returns the version in force of policy `number`. Returns NULL if no version is in force. */
const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number);

/*
 * Copies the list at an index. Returns 0, or -EUCLEAN if the list is damaged. The copy of a free or
 * damaged list has no name, and its `since` is 0. Does not call error_add().
 */
int list_info_read(const struct gate *gate, unsigned int index, struct sl_list_info *ret);

/* Returns an error if any policy version or list of the gate is damaged. */
int policies_check(const struct gate *gate);

/*
 * Adds the limits and the budget of a policy version to a rule. Omits inherited limits, and sets
 * whether the rule inherits limits. Does not change other fields of the rule.
 */
int policy_limits(const struct sl_policy *policy, struct rule *ret);

static inline bool policy_has_budget(const struct sl_policy *policy)
{
	return policy->newcomers.burst;
}

/*
 * Returns whether a flood of new sources would pass a policy that drops packets. Returns false if
 * the policy is for one address, or has a budget. Also returns false if a limit of the policy, even
 * an inherited limit, matches all packets and has `start empty`.
 */
bool policy_lacks_budget(const struct sl_policy *policy);

/* --- Writing -------------------------------------------------------------------------------- */

/*
 * Returns a free policy version. If `before` is a version, returns the other version of its policy.
 * If `before` is 0, returns a version of an unused policy, or 0 if all policies are in use.
 */
uint32_t policy_allocate(struct gate *gate, uint32_t before);

/*
 * Writes the limits of a rule into a free policy version for the next generation. parent: version
 * whose limits are inherited, or 0. before: the rule's version in force, or 0. A limit keeps its
 * slot if `before` has a limit of the same name. It keeps its id and its states if their keys are
 * equal, too. A budget keeps its state. Returns 0, or -ECANCELED after error_add(), for example if
 * the policy would have more than SL_LIMITS_MAX limits.
 */
int policy_write(struct gate *gate, uint32_t version, uint32_t before, uint32_t parent,
		 const struct rule *rule);

/* Writes a policy into a free version. The version is in force from generation `since` on. */
void policy_version_write(struct gate *gate, uint32_t version, const struct sl_policy *policy,
			  uint32_t since);

/* Frees a version. Does nothing for version 0, which belongs to no policy. */
void policy_free(struct gate *gate, uint32_t version);

/* --- Inheritance ---------------------------------------------------------------------------- */

/*
 * Stores the version of a policy's parent in a generation, or 0 if it has no parent. The parent is
 * the policy of the next shorter prefix that has a policy. For the next generation, rules of
 * shorter prefixes must already be written. Returns 0, or stores 0 and returns -errno. Does not
 * call error_add().
 */
int policy_parent(const struct gate *gate, const struct sl_prefix *prefix, uint32_t generation,
		  uint32_t *ret);

/*
 * Returns whether a version is in use and inherits limits. If so, stores its prefix. Keeps no copy
 * for policy_version(), because each change calls this function for all versions.
 */
bool policy_version_inherits(const struct gate *gate, uint32_t version, struct sl_prefix *ret);

/*
 * Returns the prefix of the policy that defines an inherited limit. home: SL_ORIGIN() of this
 * limit.
 */
const struct sl_prefix *limit_origin(const struct gate *gate, uint32_t home);

/* Length of a text with SL_LIMITS_MAX limits and a budget, each written as "NAME of PREFIX". */
#define INHERITED_TEXT                                                                             \
	((SL_LIMITS_MAX + 1) * (SL_NAME + PREFIX_TEXT + sizeof("the newcomers' budget of ")))

/*
 * Formats the limits and the budget that a policy in force inherits, such as "syn of default, the
 * newcomers' budget of 10.0.0.0/8". Returns NULL if the policy inherits nothing.
 */
const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT]);

/* --- Shadowed limits ------------------------------------------------------------------------ */

/* Reasons why a policy does not inherit a limit or the budget of its parent. */
enum shadow_reason {
	SHADOW_LIFTED,	 /* the policy does not inherit limits */
	SHADOW_REPLACED, /* the policy has a limit of the same name that matches other packets */
	SHADOW_OBSERVED, /* the policy has a limit of the same name that only observes */
	SHADOW_KEYED,	 /* the policy has a limit of the same name whose key is the destination */
	SHADOW_BUDGET,	 /* the policy has its own budget, which replaces the parent's */
	SHADOW_REASONS,
};

#define SHADOWS_MAX 4

/* Limits and budgets of parents that policies no longer inherit after a change. */
struct shadowed {
	struct shadow {
		struct sl_prefix prefix;
		enum shadow_reason reason;
		unsigned int items_count;   /* number of names in `items`; 0: unused */
		char items[INHERITED_TEXT]; /* names, as inherited_format() writes them */
	} list[SHADOWS_MAX];
	unsigned int more; /* number of limits that did not fit into `list` */
};

/*
 * Adds to `ret` the limits and the budget of the parent that a policy had in version `before`, but
 * lacks in `version`. `before` must not be freed yet. If the policy is new, `before` is 0, and all
 * that `version` lacks is added.
 */
void policy_add_shadows(const struct gate *gate, const struct sl_prefix *prefix, uint32_t before,
			uint32_t version, struct shadowed *ret);

#endif
