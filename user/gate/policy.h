/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: compiles limits as users write them into policy versions, which packets read, and reads
 * limits from policy versions.
 *
 * The maps of policies and lists may belong to an unprivileged user, and that user can write any
 * bytes there at any time. So a command reads only copies, by policy_version() and
 * list_info_read(). Each copy has passed the checks of a limit in words, and its limits are
 * compiled again.
 */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <stddef.h>

#include "gate/gate.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

/* --- Reading -------------------------------------------------------------------------------- */

/*
 * Returns a checked copy of a version, which is below SL_POLICY_VERSION(policies_max). The next
 * call for this version may overwrite the copy. A free or damaged version has `since` 0 and no
 * limits.
 */
const struct sl_policy *policy_version(const struct gate *gate, uint32_t version);

/* Returns the index of a version that policy_version() has returned. */
static inline uint32_t policy_version_index(const struct gate *gate, const struct sl_policy *policy)
{
	return policy - gate->checked;
}

/* Returns the version in force of policy `number`, or NULL if it has no version in force. */
const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number);

/*
 * Copies the list at an index. A free or damaged list has `since` 0 and no name. Returns -EUCLEAN,
 * without an error, if the list is damaged.
 */
int list_info_read(const struct gate *gate, unsigned int index, struct sl_list_info *ret);

/* Returns an error if the gate has a damaged policy version or list. */
int policies_check(const struct gate *gate);

/*
 * Adds to a rule the limits and the budget of a version, except inherited ones, and sets whether
 * the rule inherits. The other fields of the rule stay.
 */
int policy_limits(const struct sl_policy *policy, struct rule *ret);

static inline bool policy_has_budget(const struct sl_policy *policy)
{
	return policy->newcomers.burst;
}

/*
 * Returns whether a flood of new sources would pass a policy that drops packets: the policy is for
 * more than one address, has no budget, and has no limit for all packets that starts empty.
 * Inherited limits count as well.
 */
bool policy_lacks_budget(const struct sl_policy *policy);

/* --- Writing -------------------------------------------------------------------------------- */

/*
 * Returns the free version of the policy of version `before`. If `before` is 0, returns a version
 * of an unused policy, or 0 if all policies are used.
 */
uint32_t policy_allocate(struct gate *gate, uint32_t before);

/*
 * Compiles the limits of a rule, and of version `parent` unless that is 0, into a free version for
 * the next generation. `before` is the version of the rule in force, 0 if it has none. If `before`
 * has a limit of the same name, the limit keeps its slot; if the key is also the same, the limit
 * keeps its id, and so the state of each source. A budget keeps its state. Returns 0, or -ECANCELED
 * with an error, for example if the policy would have more than SL_LIMITS_MAX limits.
 */
int policy_write(struct gate *gate, uint32_t version, uint32_t before, uint32_t parent,
		 const struct rule *rule);

/* Writes a free version that is in force from generation `since` on. */
void policy_version_write(struct gate *gate, uint32_t version, const struct sl_policy *policy,
			  uint32_t since);

/* Frees a version. Does nothing for version 0, which belongs to no policy. */
void policy_free(struct gate *gate, uint32_t version);

/* --- Inheritance ---------------------------------------------------------------------------- */

/*
 * Stores the version from which a policy of this prefix inherits in a generation: the version of
 * the next shorter prefix that has a policy, otherwise 0. For the next generation, rules of shorter
 * prefixes must have been written. If it fails, returns a negative errno without an error, and
 * stores 0.
 */
int policy_parent(const struct gate *gate, const struct sl_prefix *prefix, uint32_t generation,
		  uint32_t *ret);

/*
 * Returns whether a version is in use and inherits, and stores its prefix. Does not store a copy
 * for policy_version(), because a change calls this for all versions.
 */
bool policy_version_inherits(const struct gate *gate, uint32_t version, struct sl_prefix *ret);

/* Returns the prefix of the origin of an inherited limit. `home` is an SL_ORIGIN(), not 0. */
const struct sl_prefix *limit_origin(const struct gate *gate, uint32_t home);

/* Room for SL_LIMITS_MAX limits and a budget, each as "NAME of PREFIX". */
#define INHERITED_TEXT                                                                             \
	((SL_LIMITS_MAX + 1) * (SL_NAME + PREFIX_TEXT + sizeof("the newcomers' budget of ")))

/*
 * Formats the limits and the budget that a policy in force inherits, such as "syn of default, the
 * newcomers' budget of 10.0.0.0/8". Returns NULL if the policy inherits nothing.
 */
const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT]);

/* --- Shadowed limits ------------------------------------------------------------------------ */

/* The reason why a policy lacks a limit or the budget of its parent. */
enum shadow_reason {
	SHADOW_LIFTED,	 /* the policy does not inherit limits */
	SHADOW_REPLACED, /* the policy's limit of the same name matches other packets */
	SHADOW_OBSERVED, /* the policy's limit of the same name only observes */
	SHADOW_KEYED,	 /* the policy's limit of the same name has key dst */
	SHADOW_BUDGET,	 /* the policy has its own budget */
	SHADOW_REASONS,
};

#define SHADOWS_MAX 4

/* The limits and budgets of parents that policies lack since a change. */
struct shadowed {
	struct shadow {
		struct sl_prefix prefix;
		enum shadow_reason reason;
		unsigned int items_count;   /* 0 if this entry and the next entries are unused */
		char items[INHERITED_TEXT]; /* in the format of inherited_format() */
	} list[SHADOWS_MAX];
	unsigned int more; /* number of limits that do not fit into `list` */
};

/*
 * Adds the limits and the budget of its parent that a policy lacks in `version`, and had in version
 * `before`. `before` is not freed yet, and is 0 if the policy is new.
 */
void policy_add_shadows(const struct gate *gate, const struct sl_prefix *prefix, uint32_t before,
			uint32_t version, struct shadowed *ret);

#endif
