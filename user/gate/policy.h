/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: policy versions, from limits as users write them to what packets read, and back.
 *
 * The maps of policies and lists may belong to an unprivileged user, who can write any bytes there
 * at any moment. So a command reads copies by policy_version() and list_info_read(): each has passed
 * the checks that a typed limit passes, and its limits are compiled again.
 */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <stddef.h>

#include "gate/gate.h"
#include "rules/prefix.h"
#include "rules/ruleset.h"

/* --- Reading -------------------------------------------------------------------------------- */

/*
 * Returns a version, below SL_POLICY_VERSION(policies_max), as it is now. It stays as it is until
 * it is read again after another change. A version that is free, or damaged, has `since` 0 and no
 * limits.
 */
const struct sl_policy *policy_version(const struct gate *gate, uint32_t version);

/* Returns the index of a version that policy_version() has returned. */
uint32_t policy_version_index(const struct gate *gate, const struct sl_policy *policy);

/* Returns the version in force of policy `number`, or NULL if there is none. */
const struct sl_policy *policy_in_force(const struct gate *gate, unsigned int number);

/* Returns the list at an index. A list that is free, or damaged, has `since` 0 and no name. */
struct sl_list_info list_info_read(const struct gate *gate, unsigned int index);

/* Refuses a gate that has a damaged version or list. */
int policies_check(const struct gate *gate);

/*
 * Adds the limits and the budget that a version does not inherit to a rule, and sets whether it
 * inherits. The rule's other fields stay.
 */
int policy_limits(const struct sl_policy *policy, struct rule *ret);

bool policy_has_budget(const struct sl_policy *policy);

/*
 * Whether a flood of new sources would pass a policy whose limits, inherited ones included, drop:
 * it has no budget, no limit that matches every packet starts empty, and it is for more than one
 * address.
 */
bool policy_lacks_budget(const struct sl_policy *policy);

/* --- Writing -------------------------------------------------------------------------------- */

/*
 * Finds a free version, of the same policy as `before`, or of a new policy if that is 0. Returns 0
 * if all policies are used.
 */
uint32_t policy_allocate(struct gate *gate, uint32_t before);

/*
 * Compiles the limits of a rule, and the limits of version `parent` (0: none), into a free version
 * for the next generation. before: the version that the rule has now, or 0. A limit of the same
 * name keeps its slot, and if its key is the same, its id, and so the state of each source. A budget
 * keeps its state. Refuses a policy that would have more than SL_LIMITS_MAX
 * limits. Returns 0, or -ECANCELED with an error.
 */
int policy_write(struct gate *gate, uint32_t version, uint32_t before, uint32_t parent,
		 const struct rule *rule);

/* Writes a free version, in force from that generation on. */
void policy_version_write(struct gate *gate, uint32_t version, const struct sl_policy *policy,
			  uint32_t since);

/* Frees a version. Version 0 belongs to no policy, and is ignored. */
void policy_free(struct gate *gate, uint32_t version);

/* --- Inheritance ---------------------------------------------------------------------------- */

/*
 * Finds the version that a policy of this prefix inherits from in a generation, the version of the
 * next shorter rule with a policy; 0: none. In the next generation, shorter prefixes must be written
 * first. Returns a negative errno without an error, and `ret` is 0.
 */
int policy_parent(const struct gate *gate, const struct sl_prefix *prefix, uint32_t generation,
		  uint32_t *ret);

/*
 * Whether a version is in use and inherits; ret: its prefix. It makes no copy for policy_version().
 */
bool policy_version_inherits(const struct gate *gate, uint32_t version, struct sl_prefix *ret);

/* Returns the prefix of the policy that has an inherited limit. home: SL_ORIGIN(), not 0. */
const struct sl_prefix *limit_origin(const struct gate *gate, uint32_t home);

/* Room for SL_LIMITS_MAX names, each with its policy, and for the budget. */
#define INHERITED_TEXT                                                                             \
	((SL_LIMITS_MAX + 1) * (SL_NAME + PREFIX_TEXT + sizeof("the newcomers' budget of ")))

/*
 * Formats what a policy in force inherits: "syn of default, the newcomers' budget of 10.0.0.0/8".
 * Returns NULL if it inherits nothing.
 */
const char *inherited_format(const struct gate *gate, const struct sl_policy *policy,
			     char text[INHERITED_TEXT]);

/* --- Shadowed limits ------------------------------------------------------------------------ */

/* Why a policy lacks a limit or budget of the policy that covers it. */
enum shadow_reason {
	SHADOW_LIFTED,	 /* it does not inherit */
	SHADOW_REPLACED, /* it has a limit of that name, for other packets */
	SHADOW_OBSERVED, /* it has a limit of that name that only observes */
	SHADOW_KEYED,	 /* it has a limit of that name with key dst */
	SHADOW_BUDGET,	 /* it has a budget of its own */
	SHADOW_REASONS,
};

#define SHADOWS_MAX 4

/* The limits and budgets that policies lack since a change. */
struct shadowed {
	struct shadow {
		struct sl_prefix prefix;
		enum shadow_reason reason;
		unsigned int items_count;   /* 0: this and the following are unused */
		char items[INHERITED_TEXT]; /* as of inherited_format() */
	} list[SHADOWS_MAX];
	unsigned int more; /* limits for which the list has no room */
};

/*
 * Adds what a policy lacks after a change, and did not lack in version `before`, which is not free
 * yet. before: 0 if the policy is new.
 */
void policy_add_shadows(const struct gate *gate, const struct sl_prefix *prefix, uint32_t before,
			uint32_t version, struct shadowed *ret);

#endif
