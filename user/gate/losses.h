/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: the limits and budgets of shorter policies that a change of rules takes from policies. */
#ifndef SLUICE_LOSSES_H
#define SLUICE_LOSSES_H

#include "gate/policy.h"
#include "gate/rulemap.h"

/* Why a policy lacks what a shorter one has. */
enum loss {
	LOSS_LIFTED,   /* `cause` does not inherit */
	LOSS_REPLACED, /* `cause` has a limit of that name, for other packets */
	LOSS_OBSERVED, /* `cause` has a limit of that name that only observes */
	LOSS_KEYED,    /* `cause` has a limit of that name with key dst */
	LOSS_BUDGET,   /* `cause` has a budget of its own */
	LOSS_DELETED,  /* the limit or budget was deleted */
	LOSSES,
};

#define LOSS_NAMED 3 /* prefixes by name; more are counted */

/* The policies that lose the same items by the same cause as the first policy with this loss. */
struct loss_told {
	struct sl_prefix prefix[LOSS_NAMED];
	unsigned int count;
	unsigned int others; /* policies that lose other items */
	struct sl_prefix cause;
	bool own;	    /* each policy is its own cause */
	bool cause_is_each; /* and they are several policies */
	unsigned int items_count;
	char items[INHERITED_TEXT]; /* "syn of default, the newcomers' budget of 10.0.0.0/8" */
};

struct losses {
	/* [0]: items that they lack; [1]: items that they had before. */
	struct loss_told told[2][LOSSES];
	/* New policies of a whole family, which exist beside that of `default`. */
	struct sl_prefix family[SL_FAMILIES];
	bool family_inherits[SL_FAMILIES];
	unsigned int families;
};

/*
 * Compares the policies before and after a change. The change is in force, and nothing is cleared
 * yet.
 */
void losses_find(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count,
		 struct losses *ret);

#endif
