/* SPDX-License-Identifier: GPL-2.0 */
/* What the places of a rules file say about prefixes, before it is known that no two say the same. */
#ifndef SLUICE_CLAIMS_H
#define SLUICE_CLAIMS_H

#include "config/document.h"
#include "rules/ruleset.h"

/* A policy, or a word by hand, or membership in a list. */
struct claim {
	struct rule rule;
	struct mark at;
};

struct claims {
	struct claim *claims;
	unsigned int count;
	unsigned int room;
};

/* Takes over the rule's policy, also where it fails. */
enum status claims_add(struct claims *claims, const struct rule *rule, struct mark at);

/*
 * Makes of all claims to a prefix its rule, with a policy at most and a list entry at most, and adds these
 * to the set, in order. Says what is claimed twice, with both places in the document.
 */
enum status claims_merge(struct claims *claims, struct document *document, struct ruleset *set);

void claims_free(struct claims *claims);

#endif
