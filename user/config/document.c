// SPDX-License-Identifier: GPL-2.0
#include "config/document.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"

/* The bytes allocated at once, or more for one longer word. */
#define CHUNK_BYTES (64 << 10)

/* A block of memory for nodes and words, which are freed together. */
struct chunk {
	struct chunk *next;
	size_t left; /* free bytes, which are used from the end */
	_Alignas(struct node) char bytes[];
};

/* A list or a map whose end is not parsed yet. */
struct level {
	struct node *node;
	struct node *last; /* NULL: no child yet */
	const char *key;   /* of the next child */
	struct position key_at;
};

struct builder {
	struct document document;
	const char *text;
	yaml_parser_t parser;
	struct level levels[DOCUMENT_DEPTH_MAX];
	unsigned int depth;
};

/* --- The tree ------------------------------------------------------------------------------- */

const struct node *node_find(const struct node *map, const char *key)
{
	const struct node *node = map->first;

	while (node && strcmp(node->key, key))
		node = node->next;
	return node;
}

const char *node_word(const struct node *map, const char *key)
{
	const struct node *node = node_find(map, key);

	return node ? node->word : NULL;
}

const struct node *node_items(const struct node *map, const char *key)
{
	const struct node *list = node_find(map, key);

	return list && list->kind == NODE_LIST ? list->first : NULL;
}

void document_place(struct document *document, struct position at)
{
	snprintf(document->place, sizeof(document->place), "%s:%u:%u", document->name, at.line,
		 at.column);
	log_place(document->place);
}

void document_free(struct document *document)
{
	struct chunk *chunk;

	while ((chunk = document->chunks)) {
		document->chunks = chunk->next;
		free(chunk);
	}
	document->root = NULL;
	document->count = 0;
}

/* --- Errors --------------------------------------------------------------------------------- */

static struct position position_of(const yaml_mark_t *mark)
{
	return (struct position){mark->line + 1, mark->column + 1};
}

static int refuse(struct builder *builder, const yaml_mark_t *mark, const char *message)
{
	document_place(&builder->document, position_of(mark));
	return misuse("%s", message);
}

/*
 * The position of a byte. libyaml's reader refuses bytes that are no characters, and reports an
 * offset in bytes.
 */
static struct position position_of_offset(const char *text, size_t offset)
{
	struct position at = {1, 1};

	for (size_t i = 0; i < offset && text[i]; i++) {
		at.column++;
		if (text[i] == '\n')
			at = (struct position){at.line + 1, 1};
	}
	return at;
}

/* Returns whether the character is in a word of hexadecimal digits and at least two colons. */
static bool is_in_address(const char *line, size_t column)
{
	static const char digits[] = ":0123456789abcdefABCDEF";
	size_t end = column + strspn(line + column, digits);
	int colons = 0;

	while (column && strchr(digits, line[column - 1]))
		column--;
	for (size_t i = column; i < end; i++)
		colons += line[i] == ':';
	return colons > 1;
}

/* The likely cause of an error that libyaml's message does not explain. */
static const char *syntax_hint(const struct builder *builder)
{
	const yaml_mark_t *mark = &builder->parser.problem_mark;
	const char *line = builder->text;

	for (size_t i = 0; i < mark->line; i++) {
		line = strchr(line, '\n');
		if (!line)
			return "";
		line++;
	}
	if (line[strspn(line, " ")] == '\t')
		return ": a tab cannot indent, use spaces";
	if (strcspn(line, "\n") > mark->column && line[mark->column] == ':' &&
	    is_in_address(line, mark->column))
		return ": put an IPv6 address into quotes";
	return "";
}

static int refuse_syntax(struct builder *builder)
{
	const yaml_parser_t *parser = &builder->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		return failure("%s: out of memory", builder->document.name);
	if (parser->error == YAML_READER_ERROR) {
		document_place(&builder->document,
			       position_of_offset(builder->text, parser->problem_offset));
		return misuse("not YAML: %s", parser->problem);
	}
	document_place(&builder->document, position_of(&parser->problem_mark));
	return misuse("not YAML: %s%s%s%s", parser->context ?: "", parser->context ? ": " : "",
		      parser->problem, syntax_hint(builder));
}

/* --- Building ------------------------------------------------------------------------------- */

static struct level *level_now(struct builder *builder)
{
	return builder->depth ? &builder->levels[builder->depth - 1] : NULL;
}

/* Allocates memory that lives as long as the document. NULL: no memory, which is reported. */
static void *document_take(struct document *document, size_t size)
{
	struct chunk *chunk = document->chunks;

	size = (size + _Alignof(struct node) - 1) & -_Alignof(struct node);
	if (!chunk || chunk->left < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk) {
			failure("%s: out of memory", document->name);
			return NULL;
		}
		*chunk = (struct chunk){.next = document->chunks, .left = room};
		document->chunks = chunk;
	}
	chunk->left -= size;
	return chunk->bytes + chunk->left;
}

/* Copies the text of a scalar. NULL: no memory, which is reported. */
static const char *scalar_keep(struct builder *builder, const yaml_event_t *event)
{
	size_t size = event->data.scalar.length + 1;
	char *text = document_take(&builder->document, size);

	return text ? memcpy(text, event->data.scalar.value, size) : NULL;
}

static bool is_null(const yaml_event_t *event)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};
	const char *value = (const char *)event->data.scalar.value;

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(value, words[i]))
			return true;
	return false;
}

static enum node_kind event_kind(const yaml_event_t *event)
{
	if (event->type == YAML_SEQUENCE_START_EVENT)
		return NODE_LIST;
	if (event->type == YAML_MAPPING_START_EVENT)
		return NODE_MAP;
	return is_null(event) ? NODE_NULL : NODE_WORD;
}

/* Appends a node to the current level, and opens a level below it for a list or a map. */
static int node_add(struct builder *builder, const yaml_event_t *event)
{
	struct document *document = &builder->document;
	struct level *level = level_now(builder);
	struct node *node;

	if (document->count == DOCUMENT_NODES_MAX)
		return refuse(builder, &event->start_mark,
			      "too many values for one file: put prefixes into list files");
	node = document_take(document, sizeof(*node));
	if (!node)
		return FAILED;
	*node = (struct node){.kind = event_kind(event), .at = position_of(&event->start_mark)};
	document->count++;
	if (level) {
		node->key = level->key;
		node->key_at = level->key_at;
		level->key = NULL;
		*(level->last ? &level->last->next : &level->node->first) = node;
		level->last = node;
	} else {
		document->root = node;
	}
	if (node->kind == NODE_WORD) {
		node->word = scalar_keep(builder, event);
		return node->word ? OK : FAILED;
	}
	if (node->kind != NODE_NULL)
		builder->levels[builder->depth++] = (struct level){.node = node};
	return OK;
}

/* Whether a key is an IPv6 address, all of it or without the colon at its end. */
static bool is_address(const char *key)
{
	return strchr(key, ':') && !key[strspn(key, "0123456789abcdefABCDEF:.")];
}

static int refuse_address(struct builder *builder, const yaml_event_t *event, const char *key)
{
	document_place(&builder->document, position_of(&event->start_mark));
	return misuse(
		"'%s:' is read as a key, because a colon ends it: put an IPv6 address into quotes",
		key);
}

/* Takes a scalar or the begin of a list or map: a key where a map has none yet, else a node. */
static int value_take(struct builder *builder, const yaml_event_t *event)
{
	struct level *level = level_now(builder);

	if (level && level->node->kind == NODE_MAP && !level->key) {
		if (event->type != YAML_SCALAR_EVENT)
			return refuse(builder, &event->start_mark, "a key is to be one word");
		level->key = scalar_keep(builder, event);
		level->key_at = position_of(&event->start_mark);
		if (!level->key)
			return FAILED;
		return is_address(level->key) ? refuse_address(builder, event, level->key) : OK;
	}
	if (event->type != YAML_SCALAR_EVENT && builder->depth == DOCUMENT_DEPTH_MAX)
		return refuse(builder, &event->start_mark, "nested too deep: no rule is down here");
	return node_add(builder, event);
}

/* Refuses anchors, tags and NUL characters of a scalar, a list or a map. */
static int value_check(struct builder *builder, const yaml_event_t *event)
{
	const yaml_char_t *anchor, *tag;

	if (event->type == YAML_SCALAR_EVENT) {
		if (memchr(event->data.scalar.value, 0, event->data.scalar.length))
			return refuse(builder, &event->start_mark,
				      "a NUL character: this is no text");
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	} else {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	}
	if (anchor)
		return refuse(builder, &event->start_mark, "an anchor: write it out");
	if (tag)
		return refuse(builder, &event->start_mark, "a tag: leave it out");
	return OK;
}

static int event_take(struct builder *builder, const yaml_event_t *event)
{
	int status = OK;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		status = value_check(builder, event);
		return status ? status : value_take(builder, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		builder->depth--;
		return OK;
	case YAML_ALIAS_EVENT:
		return refuse(builder, &event->start_mark, "an alias: write it out");
	case YAML_DOCUMENT_START_EVENT:
		if (builder->document.count)
			return refuse(builder, &event->start_mark,
				      "a second document: a rules file is one");
		return OK;
	default:
		return OK;
	}
}

static int document_build(struct builder *builder)
{
	int status = OK;
	yaml_event_t event;
	bool more = true;

	while (!status && more) {
		if (!yaml_parser_parse(&builder->parser, &event))
			return refuse_syntax(builder);
		more = event.type != YAML_STREAM_END_EVENT;
		status = event_take(builder, &event);
		yaml_event_delete(&event);
	}
	return status;
}

int document_parse(const char *name, const char *text, size_t size, struct document *ret)
{
	struct builder builder = {.document.name = name, .text = text};
	int status;

	if (!yaml_parser_initialize(&builder.parser))
		return failure("%s: out of memory", name);
	yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&builder.parser, (const unsigned char *)text, size);
	status = document_build(&builder);
	log_place(NULL);
	yaml_parser_delete(&builder.parser);
	if (!status && (!builder.document.root || builder.document.root->kind == NODE_NULL))
		status = misuse("%s is empty, and would delete all rules: if that is meant, "
				"write 'policies: []'",
				name);
	if (status)
		document_free(&builder.document);
	else
		*ret = builder.document;
	return status;
}
