// SPDX-License-Identifier: GPL-2.0
#include "config/config_check.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/config_text.h"

#define TEXT	 160 /* room for a schema's keys, or the name of a node */
#define KEYS_MAX 16  /* no mapping of ours has as many */

/* A bare prefix. */
static const cyaml_schema_value_t word_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED),
};

struct checker {
	struct document *document;
	struct shape shape;
};

static const char *const kind_names[] = {
	[NODE_WORD] = "one value",
	[NODE_NULL] = "nothing",
	[NODE_LIST] = "a list",
	[NODE_MAP] = "keys and values",
};

static void value_check(struct checker *checker, const struct node *node, const char *name,
			const cyaml_schema_value_t *schema);

static enum node_kind kind_wanted(const cyaml_schema_value_t *schema)
{
	switch (schema->type) {
	case CYAML_SEQUENCE:
		return NODE_LIST;
	case CYAML_MAPPING:
		return NODE_MAP;
	default:
		return NODE_WORD;
	}
}

/* "name, rate or burst" */
static const char *keys_join(const cyaml_schema_field_t *fields, char text[TEXT])
{
	size_t length = 0;

	for (const cyaml_schema_field_t *field = fields; field->key; field++)
		length += snprintf(text + length, TEXT - length, "%s%s",
				   field == fields ? ""
				   : field[1].key  ? ", "
						   : " or ",
				   field->key);
	return text;
}

static void refuse_key(struct checker *checker, const struct node *node, const char *name,
		       const cyaml_schema_field_t *fields)
{
	const char *names[KEYS_MAX], *nearly;
	char keys[TEXT];
	size_t count = 0;

	for (; fields[count].key; count++)
		names[count] = fields[count].key;
	nearly = nearly_find(node->key, names, count);
	document_place(checker->document, node->key_at);
	if (nearly)
		misuse("%s has no key '%s': did you mean '%s'?", name, node->key, nearly);
	else
		misuse("%s has no key '%s': it has %s", name, node->key, keys_join(fields, keys));
	checker->shape.errors++;
}

static void refuse_twice(struct checker *checker, const struct node *node, struct mark first)
{
	document_place(checker->document, node->key_at);
	misuse("'%s' is given twice: first in line %u", node->key, first.line);
	checker->shape.errors++;
	checker->shape.loads = false;
}

static void refuse_kind(struct checker *checker, const struct node *node, const char *name,
			enum node_kind wanted)
{
	document_place(checker->document, node->at);
	misuse("%s takes %s, and not %s%s", name, kind_names[wanted], kind_names[node->kind],
	       wanted == NODE_LIST && node->kind == NODE_NULL ? ": write [] for an empty one" : "");
	checker->shape.errors++;
	checker->shape.loads = false;
}

static void map_check(struct checker *checker, const struct node *map, const char *name,
		      const cyaml_schema_field_t *fields)
{
	const struct node *node = map->first;
	struct mark seen[KEYS_MAX] = {0}; /* by field */
	char text[TEXT];

	for (; node; node = node->next) {
		unsigned int i = 0;

		while (fields[i].key && strcmp(fields[i].key, node->key))
			i++;
		if (!fields[i].key) {
			refuse_key(checker, node, name, fields);
			continue;
		}
		if (seen[i].line)
			refuse_twice(checker, node, seen[i]);
		seen[i] = node->key_at;
		snprintf(text, sizeof(text), "'%s'", node->key);
		value_check(checker, node, text, &fields[i].value);
	}
}

/* libcyaml is not shown a list that begins with a bare prefix; in another one it takes no bare ones. */
static void refuse_mixed(struct checker *checker, const struct node *node, const char *name)
{
	document_place(checker->document, node->at);
	misuse("%s takes bare prefixes, or entries with keys, and not both: write 'prefix: ...' in "
	       "each",
	       name);
	checker->shape.errors++;
	checker->shape.loads &= node->kind == NODE_MAP;
}

static void list_check(struct checker *checker, const struct node *list, const char *name,
		       const cyaml_schema_value_t *entry)
{
	const struct node *node = list->first;
	bool mixable = entry == &entry_schema;
	bool bare = mixable && document_has_words(checker->document, list->key);
	char text[TEXT];

	snprintf(text, sizeof(text), "an entry of %s", name);
	for (; node; node = node->next)
		if (mixable && node->kind == (bare ? NODE_MAP : NODE_WORD))
			refuse_mixed(checker, node, name);
		else
			value_check(checker, node, text, bare ? &word_schema : entry);
}

/* What libcyaml leaves to us: `newcomers`, a word or a map. */
static void newcomers_check(struct checker *checker, const struct node *node, const char *name)
{
	if (node->kind == NODE_MAP)
		map_check(checker, node, name, newcomers_fields);
	else if (node->kind != NODE_WORD)
		refuse_kind(checker, node, name, NODE_MAP);
}

static void value_check(struct checker *checker, const struct node *node, const char *name,
			const cyaml_schema_value_t *schema)
{
	enum node_kind wanted = kind_wanted(schema);

	if (schema->type == CYAML_IGNORE)
		newcomers_check(checker, node, name);
	else if (node->kind != wanted)
		refuse_kind(checker, node, name, wanted);
	else if (wanted == NODE_LIST)
		list_check(checker, node, name, schema->sequence.entry);
	else if (wanted == NODE_MAP)
		map_check(checker, node, name, schema->mapping.fields);
}

struct shape config_check(struct document *document, const cyaml_schema_value_t *schema)
{
	struct checker checker = {.document = document, .shape.loads = true};

	value_check(&checker, document->root, "a rules file", schema);
	log_place(NULL);
	return checker.shape;
}
