/* SPDX-License-Identifier: GPL-2.0 */
/* Which limits, and budgets, of shorter policies a change of rules takes from policies. */
#ifndef SLUICE_LOSSES_H
#define SLUICE_LOSSES_H

#include "gate/policy.h"
#include "gate/rulemap.h"

/* Why a policy has not what a shorter one has. */
enum loss {
	LOSS_LIFTED,   /* `cause` does not inherit */
	LOSS_REPLACED, /* `cause` has a limit of the same name, which is not for all of its packets */
	LOSS_OBSERVED, /* `cause` has one of the same name, which drops nothing: it only observes */
	LOSS_KEYED,   /* `cause` has one of the same name, which counts destinations, not sources */
	LOSS_BUDGET,  /* `cause` has a budget of its own */
	LOSS_DELETED, /* it is no more */
	LOSSES,
};

#define LOSS_NAMED 3 /* prefixes; the others are counted */

/* Those policies that lose the same, by the same cause, as the first that loses anything so. */
struct loss_told {
	struct sl_prefix prefix[LOSS_NAMED];
	unsigned int count;
	unsigned int others; /* lose something else */
	struct sl_prefix cause;
	bool own;	    /* all that are counted are their own cause */
	bool cause_is_each; /* and they are several */
	unsigned int items_count;
	char items[INHERITED_TEXT]; /* "syn of default, the newcomers' budget of 10.0.0.0/8" */
};

struct losses {
	/* What they do not have, and what they had. */
	struct loss_told told[2][LOSSES];
	/* Policies of a whole family that now stand beside that of `default`; how many. */
	struct sl_prefix family[SL_FAMILIES];
	bool family_inherits[SL_FAMILIES];
	unsigned int families;
};

/* Compares what policies have before a change and after it. To be called when it is in force, and nothing is cleared. */
void losses_find(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count,
		 struct losses *ret);

#endif
