// SPDX-License-Identifier: GPL-2.0
#include "config/merge.h"

#include <stdlib.h>

#include "rules/prefix.h"

/* A list that is included twice need not be said a million times. */
#define TWICE_MAX 10

struct merger {
	struct document *document;
	struct ruleset *set;
	unsigned int twice; /* how often something was */
};

enum status claims_add(struct claims *claims, const struct rule *rule, struct mark at)
{
	unsigned int room = claims->room ? 2 * claims->room : 64;
	struct claim *more;

	if (claims->count == claims->room) {
		more = realloc(claims->claims, room * sizeof(*more));
		if (!more) {
			struct rule lost = *rule;

			rule_free(&lost);
			return fail("cannot keep %u rules: out of memory", room);
		}
		claims->claims = more;
		claims->room = room;
	}
	claims->claims[claims->count++] = (struct claim){*rule, at};
	return OK;
}

void claims_free(struct claims *claims)
{
	for (unsigned int i = 0; i < claims->count; i++)
		rule_free(&claims->claims[i].rule);
	free(claims->claims);
	*claims = (struct claims){0};
}

/* By prefix, then as they stand in the file. */
static int claim_compare(const void *a, const void *b)
{
	const struct claim *left = a, *right = b;
	int order = prefix_compare(&left->rule.prefix, &right->rule.prefix);

	if (!order)
		order = (left->at.line > right->at.line) - (left->at.line < right->at.line);
	if (!order)
		order = (left->at.column > right->at.column) - (left->at.column < right->at.column);
	return order;
}

static void refuse_twice(struct merger *merger, const struct claim *claim,
			 const struct claim *first)
{
	char text[PREFIX_TEXT];

	document_place(merger->document, claim->at);
	if (++merger->twice == TWICE_MAX)
		note("there is more that is said twice");
	if (merger->twice < TWICE_MAX)
		misuse("%s %s twice: first at %s:%u:%u", prefix_format(&claim->rule.prefix, text),
		       claim->rule.list ? "is listed" : "has a policy", merger->document->name,
		       first->at.line, first->at.column);
}

/* The claims to one prefix become its rule. */
static enum status prefix_merge(struct merger *merger, struct claim *claims, unsigned int count)
{
	struct claim *policy = NULL, *entry = NULL;
	struct rule rule = {.prefix = claims->rule.prefix};

	for (unsigned int i = 0; i < count; i++) {
		struct claim **slot = claims[i].rule.list ? &entry : &policy;

		rule.lists |= claims[i].rule.lists;
		if (claims[i].rule.lists)
			continue;
		if (*slot)
			refuse_twice(merger, &claims[i], *slot);
		else
			*slot = &claims[i];
	}
	if (entry) {
		rule.list = entry->rule.list;
		rule.until = entry->rule.until;
	}
	if (policy)
		rule_take_policy(&rule, &policy->rule);
	return ruleset_add(merger->set, &rule);
}

enum status claims_merge(struct claims *claims, struct document *document, struct ruleset *set)
{
	struct merger merger = {document, set, 0};
	struct claim *claim = claims->claims;
	unsigned int first = 0;
	enum status status = OK;

	if (claims->count)
		qsort(claim, claims->count, sizeof(*claim), claim_compare);
	for (unsigned int i = 1; !status && i <= claims->count; i++) {
		if (i < claims->count &&
		    prefix_equal(&claim[first].rule.prefix, &claim[i].rule.prefix))
			continue;
		status = prefix_merge(&merger, &claim[first], i - first);
		first = i;
	}
	return !status && merger.twice ? MISUSED : status;
}
