// SPDX-License-Identifier: GPL-2.0
#include "config/document.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Size of a chunk, in bytes. A longer scalar gets a chunk of its own. */
#define CHUNK_BYTES (64 << 10)

/* A block of memory. Nodes and scalars of a document are allocated from its chunks. */
struct chunk {
	struct chunk *next;
	size_t left; /* number of free bytes; the free bytes begin at `bytes` */
	_Alignas(struct node) char bytes[];
};

struct builder {
	struct document document;
	const char *text;
	yaml_parser_t parser;
};

const struct node *node_find(const struct node *map, const char *key)
{
	const struct node *node = map->first;

	while (node && strcmp(node->key, key))
		node = node->next;
	return node;
}

void document_place(const struct document *document, unsigned int mark, struct position at)
{
	char place[PATH_MAX + 32];

	snprintf(place, sizeof(place), "%s:%u:%u", document->name, at.line, at.column);
	error_place(mark, place);
}

void document_free(struct document *document)
{
	struct chunk *chunk;

	while ((chunk = document->chunks)) {
		document->chunks = chunk->next;
		free(chunk);
	}
	*document = (struct document){0};
}

/* --- Errors --------------------------------------------------------------------------------- */

static struct position position_of(const yaml_mark_t *mark)
{
	return (struct position){mark->line + 1, mark->column + 1};
}

/* Adds an error with its position in the rules file. */
#define refuse(builder, at, id, object, ...)                                                       \
	({                                                                                         \
		unsigned int mark_ = error_count();                                                \
		int err_ = error_misuse(id, object, __VA_ARGS__);                                  \
		document_place(&(builder)->document, mark_, at);                                   \
		err_;                                                                              \
	})

/* Returns a likely cause of a syntax error for which libyaml's message is misleading, or "". */
static const char *syntax_hint(const char *line, const yaml_mark_t *mark)
{
	static const char digits[] = ":0123456789abcdefABCDEF";
	size_t begin = mark->column;
	int colons = 0;

	for (size_t i = 0; i < mark->line; i++) {
		line = strchr(line, '\n');
		if (!line)
			return "";
		line++;
	}
	if (line[strspn(line, " ")] == '\t')
		return ": a tab cannot indent, use spaces";
	if (strcspn(line, "\n") <= mark->column || line[mark->column] != ':')
		return "";
	/* a word of hexadecimal digits and several colons is an IPv6 address without quotes */
	while (begin && strchr(digits, line[begin - 1]))
		begin--;
	for (; line[begin] && strchr(digits, line[begin]); begin++)
		colons += line[begin] == ':';
	return colons > 1 ? ": put an IPv6 address into quotes" : "";
}

/* Parses libyaml's next event. The caller frees it by yaml_event_delete(). */
static int event_next(struct builder *builder, yaml_event_t *ret)
{
	const yaml_parser_t *parser = &builder->parser;
	struct position at = {1, 1};

	if (yaml_parser_parse(&builder->parser, ret))
		return 0;
	*ret = (yaml_event_t){0};
	if (parser->error == YAML_MEMORY_ERROR)
		return error_add(ENOMEM, "no-memory", builder->document.name, "out of memory");
	if (parser->error != YAML_READER_ERROR)
		return refuse(builder, position_of(&parser->problem_mark), "bad-yaml", NULL,
			      "not YAML: %s%s%s%s", parser->context ?: "",
			      parser->context ? ": " : "", parser->problem,
			      syntax_hint(builder->text, &parser->problem_mark));
	/*
	 * compute the line and column of a byte that is not UTF-8, because libyaml reports only its
	 * offset
	 */
	for (size_t i = 0; i < parser->problem_offset && builder->text[i]; i++) {
		at.column++;
		if (builder->text[i] == '\n')
			at = (struct position){at.line + 1, 1};
	}
	return refuse(builder, at, "bad-yaml", NULL, "not YAML: %s", parser->problem);
}

/* --- Building ------------------------------------------------------------------------------- */

/* Allocates memory that document_free() frees. On failure, adds an error, and returns NULL. */
static void *document_allocate(struct document *document, size_t size)
{
	struct chunk *chunk = document->chunks;

	size = (size + _Alignof(struct node) - 1) & -_Alignof(struct node);
	if (!chunk || chunk->left < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk) {
			error_add(ENOMEM, "no-memory", document->name, "out of memory");
			return NULL;
		}
		*chunk = (struct chunk){.next = document->chunks, .left = room};
		document->chunks = chunk;
	}
	chunk->left -= size;
	return chunk->bytes + chunk->left;
}

/* Copies the text of a scalar. On failure, adds an error, and returns NULL. */
static const char *scalar_copy(struct builder *builder, const yaml_event_t *event)
{
	size_t size = event->data.scalar.length + 1;
	char *text = document_allocate(&builder->document, size);

	return text ? memcpy(text, event->data.scalar.value, size) : NULL;
}

/* Sets the kind of a node by its event. Refuses aliases, anchors, tags and NUL characters. */
static int event_check(struct builder *builder, const yaml_event_t *event, enum node_kind *ret)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
	struct position at = position_of(&event->start_mark);
	const yaml_char_t *anchor, *tag;
	const char *value;

	if (event->type == YAML_ALIAS_EVENT)
		return refuse(builder, at, "yaml-alias", NULL,
			      "aliases are not accepted; write the value");
	if (event->type == YAML_SCALAR_EVENT) {
		value = (const char *)event->data.scalar.value;
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		if (strlen(value) < event->data.scalar.length)
			return refuse(builder, at, "bad-yaml", NULL,
				      "the text contains a NUL character");
		*ret = NODE_WORD;
		for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
			if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
			    !strcmp(value, nulls[i]))
				*ret = NODE_NULL;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		*ret = NODE_LIST;
	} else {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		*ret = NODE_MAP;
	}
	if (anchor)
		return refuse(builder, at, "yaml-alias", NULL,
			      "anchors are not accepted; remove the anchor");
	if (tag)
		return refuse(builder, at, "yaml-tag", NULL,
			      "tags are not accepted; remove the tag");
	return 0;
}

static int key_read(struct builder *builder, const yaml_event_t *event, const char **ret)
{
	struct position at = position_of(&event->start_mark);
	enum node_kind kind;
	int err = event_check(builder, event, &kind);

	if (err)
		return err;
	if (event->type != YAML_SCALAR_EVENT)
		return refuse(builder, at, "bad-key", NULL, "a key must be one word");
	*ret = scalar_copy(builder, event);
	if (!*ret)
		return -ENOMEM;
	/* the key is probably an IPv6 address that ends in a colon */
	if (strchr(*ret, ':') && !(*ret)[strspn(*ret, "0123456789abcdefABCDEF:.")])
		return refuse(builder, at, "bare-ipv6", *ret,
			      "the colon at its end makes it a key; write an IPv6 address in "
			      "quotes");
	return 0;
}

static int children_read(struct builder *builder, struct node *parent, unsigned int depth);

/* Makes a node from an event, and its children from the events that follow. */
static int node_read(struct builder *builder, const yaml_event_t *event, unsigned int depth,
		     struct node **ret)
{
	struct document *document = &builder->document;
	struct position at = position_of(&event->start_mark);
	enum node_kind kind;
	struct node *node;
	int err = event_check(builder, event, &kind);

	if (err)
		return err;
	if (kind >= NODE_LIST && depth == DOCUMENT_DEPTH_MAX)
		return refuse(builder, at, "too-deep", NULL, "nested too deep for a rules file");
	if (document->count++ == DOCUMENT_NODES_MAX)
		return refuse(builder, at, "too-many-values", NULL,
			      "too many values for one file; put prefixes into list files");
	node = document_allocate(document, sizeof(*node));
	if (!node)
		return -ENOMEM;
	*node = (struct node){.kind = kind, .at = at};
	*ret = node;
	if (kind >= NODE_LIST)
		return children_read(builder, node, depth + 1);
	if (kind == NODE_WORD)
		node->word = scalar_copy(builder, event);
	return kind == NODE_WORD && !node->word ? -ENOMEM : 0;
}

static int children_read(struct builder *builder, struct node *parent, unsigned int depth)
{
	struct node **end = &parent->first;

	for (;; end = &(*end)->next) {
		_cleanup_(yaml_event_delete) yaml_event_t key = {0}, event = {0};
		const char *text = NULL;
		int err;

		if (parent->kind == NODE_MAP) {
			err = event_next(builder, &key);
			if (err || key.type == YAML_MAPPING_END_EVENT)
				return err;
			err = key_read(builder, &key, &text);
			if (err)
				return err;
		}
		err = event_next(builder, &event);
		if (err || event.type == YAML_SEQUENCE_END_EVENT)
			return err;
		err = node_read(builder, &event, depth, end);
		if (err)
			return err;
		(*end)->key = text;
		(*end)->key_at = position_of(&key.start_mark);
	}
}

/* Parses the YAML stream. Refuses a second document in it. */
static int stream_read(struct builder *builder)
{
	for (;;) {
		_cleanup_(yaml_event_delete) yaml_event_t event = {0};
		int err = event_next(builder, &event);

		if (err || event.type == YAML_STREAM_END_EVENT)
			return err;
		if (event.type == YAML_DOCUMENT_START_EVENT && builder->document.root)
			return refuse(builder, position_of(&event.start_mark), "bad-yaml", NULL,
				      "a second document; a rules file has only one");
		if (event.type != YAML_STREAM_START_EVENT &&
		    event.type != YAML_DOCUMENT_START_EVENT &&
		    event.type != YAML_DOCUMENT_END_EVENT)
			err = node_read(builder, &event, 0, &builder->document.root);
		if (err)
			return err;
	}
}

int document_parse(const char *name, const char *text, size_t size, struct document *ret)
{
	struct builder builder = {.document.name = name, .text = text};
	const struct node *root;
	int err;

	if (!yaml_parser_initialize(&builder.parser))
		return error_add(ENOMEM, "no-memory", name, "out of memory");
	yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&builder.parser, (const unsigned char *)text, size);
	err = stream_read(&builder);
	yaml_parser_delete(&builder.parser);
	root = builder.document.root;
	if (!err && (!root || root->kind == NODE_NULL))
		err = error_misuse("empty-file", name,
				   "empty, and would delete all rules; if that is meant, write "
				   "'policies: []'");
	if (err)
		document_free(&builder.document);
	else
		*ret = builder.document;
	return err;
}
