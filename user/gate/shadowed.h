/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: limits and budgets of shorter policies that no longer apply to a policy after a change. */
#ifndef SLUICE_SHADOWED_H
#define SLUICE_SHADOWED_H

#include "gate/policy.h"
#include "gate/rulemap.h"

/* Why a policy lacks a limit or budget of a shorter one. */
enum shadow_reason {
	SHADOW_LIFTED,	 /* `cause` does not inherit */
	SHADOW_REPLACED, /* `cause` has a limit of that name, for other packets */
	SHADOW_OBSERVED, /* `cause` has a limit of that name that only observes */
	SHADOW_KEYED,	 /* `cause` has a limit of that name with key dst */
	SHADOW_BUDGET,	 /* `cause` has a budget of its own */
	SHADOW_DELETED,	 /* the limit or budget was deleted */
	SHADOW_REASONS,
};

#define SHADOW_NAMED 3 /* prefixes by name; more are counted */

/* The policies that lack the same items by the same cause as the first policy with this reason. */
struct shadow_group {
	struct sl_prefix prefix[SHADOW_NAMED];
	unsigned int count;
	unsigned int others; /* policies that lack other items */
	struct sl_prefix cause;
	bool own;	    /* each policy is its own cause */
	bool cause_is_each; /* and they are several policies */
	unsigned int items_count;
	char items[INHERITED_TEXT]; /* "syn of default, the newcomers' budget of 10.0.0.0/8" */
};

struct shadowed {
	/* [0]: items that they lack; [1]: items that they had before. */
	struct shadow_group group[2][SHADOW_REASONS];
	/* New policies of a whole family, which exist beside that of `default`. */
	struct sl_prefix family[SL_FAMILIES];
	bool family_inherits[SL_FAMILIES];
	unsigned int families;
};

/*
 * Compares the policies before and after a change, which is in force and has cleared nothing yet.
 */
void shadowed_find(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count,
		   struct shadowed *ret);

#endif
