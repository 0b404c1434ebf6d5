// SPDX-License-Identifier: GPL-2.0
#include "config/config_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "rules/limit_words.h"
#include "rules/sizes.h"

#define TEXT	 160 /* room for a shape's keys, or the name of a node */
#define KEYS_MAX 16  /* no map of a rules file has as many */

/* --- Shapes of the nodes -------------------------------------------------------------------- */

/*
 * The expected form of a node. All keys are optional here: the readers of values report missing
 * ones. docs/sluice.schema.json describes the same shapes, and changes with them.
 */
struct shape {
	enum node_kind kind;
	bool or_word;			   /* of a map: a word is accepted, too */
	const struct shape *item;	   /* of a list: the shape of its items */
	const char *const *keys;	   /* of a map */
	unsigned int count;		   /* of keys */
	const struct shape *const *values; /* of keys; NULL, also for one key: a word */
};

static const struct shape word_shape = {.kind = NODE_WORD};
static const struct shape words_shape = {.kind = NODE_LIST, .item = &word_shape};

static const struct shape gate_shape = {.kind = NODE_MAP, .keys = size_names, .count = SIZES};

static const struct shape limit_shape = {
	.kind = NODE_MAP, .keys = spec_names, .count = SPEC_FIELDS};
static const struct shape limits_shape = {.kind = NODE_LIST, .item = &limit_shape};

static const struct shape defaults_shape = {
	.kind = NODE_MAP,
	.keys = &spec_names[DEFAULTS_FIRST],
	.count = SPEC_FIELDS - DEFAULTS_FIRST,
};

/* The budget has the fields rate and burst of a limit, which are neighbours. */
static const struct shape newcomers_shape = {
	.kind = NODE_MAP,
	.or_word = true,
	.keys = &spec_names[SPEC_RATE],
	.count = 2,
};

static const char *const policy_keys[] = {"prefix", "limits", "inherit", "newcomers"};
static const struct shape *const policy_values[ARRAY_SIZE(policy_keys)] = {NULL, &limits_shape,
									   NULL, &newcomers_shape};
static const struct shape policy_shape = {
	.kind = NODE_MAP,
	.keys = policy_keys,
	.count = ARRAY_SIZE(policy_keys),
	.values = policy_values,
};
static const struct shape policies_shape = {.kind = NODE_LIST, .item = &policy_shape};

/* An entry of `allow` or `deny`, or a bare prefix. */
static const char *const entry_keys[] = {"prefix", "prefixes", "file", "force",
					 "skip",   "list",     "for",  "until"};
static const struct shape *const entry_values[ARRAY_SIZE(entry_keys)] = {NULL, &words_shape};
static const struct shape entry_shape = {
	.kind = NODE_MAP,
	.or_word = true,
	.keys = entry_keys,
	.count = ARRAY_SIZE(entry_keys),
	.values = entry_values,
};
static const struct shape entries_shape = {.kind = NODE_LIST, .item = &entry_shape};

static const char *const place_keys[] = {"device", "hook", "mode", "netns", "optional"};
static const struct shape place_shape = {
	.kind = NODE_MAP,
	.or_word = true,
	.keys = place_keys,
	.count = ARRAY_SIZE(place_keys),
};
static const struct shape places_shape = {.kind = NODE_LIST, .item = &place_shape};

static const char *const file_keys[] = {"gate", "attach", "defaults", "policies", "allow", "deny"};
static const struct shape *const file_values[ARRAY_SIZE(file_keys)] = {
	&gate_shape,	 &places_shape,	 &defaults_shape,
	&policies_shape, &entries_shape, &entries_shape};
static const struct shape file_shape = {
	.kind = NODE_MAP,
	.keys = file_keys,
	.count = ARRAY_SIZE(file_keys),
	.values = file_values,
};

_Static_assert(SIZES <= KEYS_MAX && SPEC_FIELDS <= KEYS_MAX && ARRAY_SIZE(entry_keys) <= KEYS_MAX,
	       "KEYS_MAX");

/* --- Errors --------------------------------------------------------------------------------- */

struct checker {
	struct reader *reader;
	bool is_readable;
};

static const char *const node_names[] = {
	[NODE_WORD] = "one value",
	[NODE_NULL] = "nothing",
	[NODE_LIST] = "a list",
	[NODE_MAP] = "keys and values",
};

/* Joins the keys of a map: "name, rate or burst". */
static const char *keys_join(const struct shape *map, char text[TEXT])
{
	size_t length = 0;

	for (unsigned int i = 0; i < map->count; i++)
		length += snprintf(text + length, TEXT - length, "%s%s",
				   !i			 ? ""
				   : i + 1 == map->count ? " or "
							 : ", ",
				   map->keys[i]);
	return text;
}

static void refuse_key(struct checker *checker, const struct node *node, const char *name,
		       const struct shape *map)
{
	const char *nearly = nearly_find(node->key, map->keys, map->count);
	char keys[TEXT];

	document_place(&checker->reader->document, node->key_at);
	reader_failed(checker->reader, nearly ? misuse("%s has no key '%s': did you mean '%s'?",
						       name, node->key, nearly)
					      : misuse("%s has no key '%s': it has %s", name,
						       node->key, keys_join(map, keys)));
}

static void refuse_kind(struct checker *checker, const struct node *node, const char *name,
			enum node_kind wanted)
{
	reader_place(checker->reader, node);
	reader_failed(checker->reader, misuse("%s takes %s, and not %s%s", name, node_names[wanted],
					      node_names[node->kind],
					      wanted == NODE_LIST && node->kind == NODE_NULL
						      ? ": write [] for an empty one"
						      : ""));
	checker->is_readable = false;
}

static void refuse_mixed(struct checker *checker, const struct node *node, const char *name,
			 const struct shape *item)
{
	reader_place(checker->reader, node);
	reader_failed(checker->reader,
		      misuse("%s takes bare %s, or entries with keys, and not "
			     "both: write '%s: ...' in each",
			     name, item == &place_shape ? "devices" : "prefixes", item->keys[0]));
}

/* --- Checking nodes ------------------------------------------------------------------------- */

static void value_check(struct checker *checker, const struct node *node, const char *name,
			const struct shape *shape);

static void map_check(struct checker *checker, const struct node *map, const char *name,
		      const struct shape *shape)
{
	struct position seen[KEYS_MAX] = {0}; /* the first place of each key */
	const struct shape *value;
	char text[TEXT];

	for (const struct node *node = map->first; node; node = node->next) {
		unsigned int i = 0;

		while (i < shape->count && strcmp(shape->keys[i], node->key))
			i++;
		if (i == shape->count) {
			refuse_key(checker, node, name, shape);
			continue;
		}
		if (seen[i].line) {
			document_place(&checker->reader->document, node->key_at);
			reader_failed(checker->reader,
				      misuse("'%s' is given twice: first in line %u", node->key,
					     seen[i].line));
			checker->is_readable = false;
		} else {
			seen[i] = node->key_at;
		}
		snprintf(text, sizeof(text), "'%s'", node->key);
		value = shape->values ? shape->values[i] : NULL;
		value_check(checker, node, text, value ? value : &word_shape);
	}
}

/*
 * Checks the items of a list. The first item decides whether they are words or maps; an item of the
 * other kind is refused, and its keys are not checked.
 */
static void list_check(struct checker *checker, const struct node *list, const char *name,
		       const struct shape *item)
{
	const struct node *node = list->first;
	bool bare = item->or_word && node && node->kind == NODE_WORD;
	char text[TEXT];

	snprintf(text, sizeof(text), "an entry of %s", name);
	for (; node; node = node->next)
		if (item->or_word && node->kind == (bare ? NODE_MAP : NODE_WORD))
			refuse_mixed(checker, node, name, item);
		else
			value_check(checker, node, text, bare ? &word_shape : item);
}

static void value_check(struct checker *checker, const struct node *node, const char *name,
			const struct shape *shape)
{
	if (shape->or_word && node->kind == NODE_WORD)
		return;
	if (node->kind != shape->kind)
		refuse_kind(checker, node, name, shape->kind);
	else if (node->kind == NODE_LIST)
		list_check(checker, node, name, shape->item);
	else if (node->kind == NODE_MAP)
		map_check(checker, node, name, shape);
}

bool shape_check(struct reader *reader)
{
	struct checker checker = {.reader = reader, .is_readable = true};

	value_check(&checker, reader->document.root, "a rules file", &file_shape);
	log_place(NULL);
	return checker.is_readable;
}
