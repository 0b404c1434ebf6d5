// SPDX-License-Identifier: GPL-2.0
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/sizes.h"

/* --- The reader ----------------------------------------------------------------------------- */

/*
 * The number of duplicates that are reported: a list that is in the file twice could cause a
 * million.
 */
#define TWICE_MAX 10

bool reader_failed(struct reader *reader, int status)
{
	if (status && reader->status != FAILED)
		reader->status = status;
	return status;
}

void reader_place(struct reader *reader, const struct node *node)
{
	document_place(&reader->document, node->at);
}

int reader_truth(struct reader *reader, const struct node *node, bool *ret)
{
	reader_place(reader, node);
	*ret = !strcmp(node->word, "true") || !strcmp(node->word, "yes");
	if (*ret || !strcmp(node->word, "false") || !strcmp(node->word, "no"))
		return OK;
	return misuse("%s '%s': write true or false", node->key, node->word);
}

/* --- Claims --------------------------------------------------------------------------------- */

bool reader_claim(struct reader *reader, const struct rule *rule, struct position at)
{
	struct claims *claims = &reader->claims;

	if (!array_grow(claims->claims, claims->count, claims->room)) {
		struct rule lost = *rule;

		rule_free(&lost);
		reader_failed(reader,
			      failure("cannot keep %u rules: out of memory", claims->count + 1));
		return false;
	}
	claims->claims[claims->count++] = (struct claim){*rule, at};
	return true;
}

static void claims_free(struct claims *claims)
{
	for (unsigned int i = 0; i < claims->count; i++)
		rule_free(&claims->claims[i].rule);
	free(claims->claims);
	*claims = (struct claims){0};
}

/* Orders claims by prefix, then by place in the file. */
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
				     claim->rule.access ? "is listed" : "has a policy",
				     reader->document.name, first->at.line, first->at.column));
}

/* Adds the entry of a list. */
static void list_merge(struct reader *reader, const struct claim *claim, struct rule *rule)
{
	int place = __builtin_ctzll(claim->rule.lists);
	char text[PREFIX_TEXT];

	if (rule_add_list(rule, place, rule_list_end(&claim->rule, place)))
		return;
	document_place(&reader->document, claim->at);
	reader_failed(reader, misuse("%s: has a time on list '%s' already; a prefix can have a "
				     "time on one list only",
				     prefix_format(&rule->prefix, text),
				     reader->rules.lists[rule->timed].name));
}

/* Makes the rule of one prefix from its claims. */
static int prefix_merge(struct reader *reader, struct claim *claims, unsigned int count)
{
	struct claim *policy = NULL, *entry = NULL;
	struct rule rule = {.prefix = claims->rule.prefix};

	for (unsigned int i = 0; i < count; i++) {
		struct claim **slot = claims[i].rule.access ? &entry : &policy;

		if (claims[i].rule.lists) {
			list_merge(reader, &claims[i], &rule);
			continue;
		}
		if (*slot)
			refuse_twice(reader, &claims[i], *slot);
		else
			*slot = &claims[i];
	}
	if (entry) {
		rule.access = entry->rule.access;
		rule.until = entry->rule.until;
	}
	if (policy)
		rule_take_policy(&rule, &policy->rule);
	return ruleset_add(&reader->rules, &rule);
}

/*
 * Makes one rule of all claims to a prefix, in the order of prefixes. Two policies of a prefix, or
 * two entries by hand, are refused with both places.
 */
static void claims_merge(struct reader *reader)
{
	struct claim *claims = reader->claims.claims;
	unsigned int count = reader->claims.count, first = 0;
	int status = OK;

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

/* --- Sizes ---------------------------------------------------------------------------------- */

static void sizes_read(struct reader *reader)
{
	const struct node *gate = node_find(reader->document.root, "gate");

	for (unsigned int i = 0; gate && i < SIZES; i++) {
		const struct node *node = node_find(gate, size_names[i]);

		if (!node)
			continue;
		reader_place(reader, node);
		reader_failed(reader, size_parse(i, node->word, &reader->sizes));
	}
}

/* How much of a size a list takes. */
static uint32_t list_takes(const struct ruleset *rules, int place, enum size size)
{
	struct room room = {0};
	struct gate_sizes sizes;

	for (unsigned int i = 0; i < rules->count; i++)
		if (rules->rules[i].lists & 1ULL << place)
			room_add(&room, NULL, &rules->rules[i]);
	sizes = room_sizes(&room);
	return size_told(&sizes, size);
}

static void list_remove(struct ruleset *rules, int place)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < rules->count; i++) {
		rules->rules[i].lists &= ~(1ULL << place);
		if (!rule_is_empty(&rules->rules[i]))
			rules->rules[kept++] = rules->rules[i];
	}
	rules->count = kept;
	rules->lists[place] = (struct sl_list_info){0};
}

/* Leaves out the list of a file that takes most of a size. False: no list takes any. */
static bool longest_leave_out(struct reader *reader, enum size size)
{
	struct list_path *longest = NULL;
	uint32_t most = 0;

	for (unsigned int i = 0; i < reader->files.count; i++) {
		struct list_path *file = &reader->files.list[i];
		uint32_t takes;

		if (file->is_left_out || !*file->list.name)
			continue;
		takes = list_takes(&reader->rules, lists_find(reader->rules.lists, file->list.name),
				   size);
		if (takes > most) {
			most = takes;
			longest = file;
		}
	}
	if (!longest)
		return false;
	longest->is_left_out = true;
	list_remove(&reader->rules, lists_find(reader->rules.lists, longest->list.name));
	note("%s takes most of them, %u, and is left out", longest->path, most);
	return true;
}

/*
 * Refuses a size that does not hold the rules of the same file. config_parse_most() leaves out
 * lists instead, because list files grow without the administrator.
 */
static void sizes_check(struct reader *reader)
{
	const struct node *gate = node_find(reader->document.root, "gate");
	struct room room = room_needed(&reader->rules);
	struct gate_sizes needed = room_sizes(&room);

	for (unsigned int i = 0; gate && i < SIZES; i++) {
		uint32_t size = size_told(&reader->sizes, i), least = size_told(&needed, i);
		int status;

		if (!size || size >= least)
			continue;
		reader_place(reader, node_find(gate, size_names[i]));
		status = misuse("%s %u %s too few for the rules of this file: they take %u",
				size_names[i], size, plural(size, "is", "are"), least);
		if (reader->leaves_out && longest_leave_out(reader, i)) {
			sizes_check(reader);
			return;
		}
		reader_failed(reader, status);
	}
}

/* --- The file ------------------------------------------------------------------------------- */

/* Refuses a file without any rules: it is more likely an error than meant to delete all rules. */
static void check_says_rules(struct reader *reader)
{
	const struct node *root = reader->document.root;

	if (node_find(root, "policies") || node_find(root, "allow") || node_find(root, "deny"))
		return;
	reader_failed(reader,
		      misuse("%s has neither policies nor lists, and would delete all rules: if "
			     "that is meant, write 'policies: []'",
			     reader->document.name));
}

static int text_parse(const char *path, const char *text, size_t size, bool leaves_out,
		      struct config *ret)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct reader reader = {.path = path, .leaves_out = leaves_out};

	if (reader_failed(&reader, document_parse(name, text, size, &reader.document)))
		return reader.status;
	if (shape_check(&reader)) {
		check_says_rules(&reader);
		sizes_read(&reader);
		places_read(&reader);
		policies_read(&reader);
		lists_read(&reader);
		claims_merge(&reader);
		if (!reader.status)
			sizes_check(&reader);
	}
	log_place(NULL);
	claims_free(&reader.claims);
	document_free(&reader.document);
	if (reader.status) {
		ruleset_free(&reader.rules);
		places_free(&reader.places);
		list_paths_free(&reader.files);
	} else {
		*ret = (struct config){.sizes = reader.sizes,
				       .rules = reader.rules,
				       .places = reader.places,
				       .files = reader.files};
	}
	return reader.status;
}

int config_parse(const char *path, const char *text, size_t size, struct config *ret)
{
	return text_parse(path, text, size, false, ret);
}

int config_parse_most(const char *path, const char *text, size_t size, struct config *ret)
{
	return text_parse(path, text, size, true, ret);
}

int config_read(const char *path, struct config *ret)
{
	struct file file;
	int status = file_read(path, &file);

	if (status)
		return status;
	status = config_parse(path, file.text, file.size, ret);
	file_free(&file);
	return status;
}

void config_free(struct config *config)
{
	ruleset_free(&config->rules);
	places_free(&config->places);
	list_paths_free(&config->files);
}
