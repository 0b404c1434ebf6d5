// SPDX-License-Identifier: GPL-2.0
#include "config/config_reader.h"

#include <stdlib.h>
#include <string.h>

#include "rules/prefix.h"

/* A list that the file has twice is refused with so many messages, and not with a million. */
#define TWICE_MAX 10

bool reader_failed(struct reader *reader, enum status status)
{
	if (status > reader->status)
		reader->status = status;
	return status;
}

void reader_place(struct reader *reader, const struct node *node)
{
	document_place(&reader->document, node->at);
}

enum status reader_truth(struct reader *reader, const struct node *node, bool *ret)
{
	reader_place(reader, node);
	*ret = !strcmp(node->word, "true") || !strcmp(node->word, "yes");
	if (*ret || !strcmp(node->word, "false") || !strcmp(node->word, "no"))
		return OK;
	return misuse("%s '%s': write true or false", node->key, node->word);
}

/* --- Claims --------------------------------------------------------------------------------- */

bool reader_claim(struct reader *reader, const struct rule *rule, struct mark at)
{
	struct claims *claims = &reader->claims;
	unsigned int room = claims->room ? 2 * claims->room : 64;
	struct claim *more;

	if (claims->count == claims->room) {
		more = realloc(claims->claims, room * sizeof(*more));
		if (!more) {
			struct rule lost = *rule;

			rule_free(&lost);
			reader_failed(reader, fail("cannot keep %u rules: out of memory", room));
			return false;
		}
		claims->claims = more;
		claims->room = room;
	}
	claims->claims[claims->count++] = (struct claim){*rule, at};
	return true;
}

void claims_free(struct claims *claims)
{
	for (unsigned int i = 0; i < claims->count; i++)
		rule_free(&claims->claims[i].rule);
	free(claims->claims);
	*claims = (struct claims){0};
}

/* The order of claims: by prefix, then by place in the file. */
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

static void refuse_twice(struct reader *reader, const struct claim *claim,
			 const struct claim *first)
{
	char text[PREFIX_TEXT];

	document_place(&reader->document, claim->at);
	if (++reader->claims.twice == TWICE_MAX)
		note("there is more that is said twice");
	if (reader->claims.twice >= TWICE_MAX)
		return;
	reader_failed(reader, misuse("%s %s twice: first at %s:%u:%u",
				     prefix_format(&claim->rule.prefix, text),
				     claim->rule.list ? "is listed" : "has a policy",
				     reader->document.name, first->at.line, first->at.column));
}

/* The claims to one prefix become its rule. */
static enum status prefix_merge(struct reader *reader, struct claim *claims, unsigned int count)
{
	struct claim *policy = NULL, *entry = NULL;
	struct rule rule = {.prefix = claims->rule.prefix};

	for (unsigned int i = 0; i < count; i++) {
		struct claim **slot = claims[i].rule.list ? &entry : &policy;

		rule.lists |= claims[i].rule.lists;
		if (claims[i].rule.lists)
			continue;
		if (*slot)
			refuse_twice(reader, &claims[i], *slot);
		else
			*slot = &claims[i];
	}
	if (entry) {
		rule.list = entry->rule.list;
		rule.until = entry->rule.until;
	}
	if (policy)
		rule_take_policy(&rule, &policy->rule);
	return ruleset_add(&reader->rules, &rule);
}

void claims_merge(struct reader *reader)
{
	struct claim *claims = reader->claims.claims;
	unsigned int count = reader->claims.count, first = 0;
	enum status status = OK;

	if (count)
		qsort(claims, count, sizeof(*claims), claim_compare);
	for (unsigned int i = 1; !status && i <= count; i++) {
		if (i < count && prefix_equal(&claims[first].rule.prefix, &claims[i].rule.prefix))
			continue;
		status = prefix_merge(reader, &claims[first], i - first);
		first = i;
	}
	reader_failed(reader, status);
}
