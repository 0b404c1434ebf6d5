// SPDX-License-Identifier: GPL-2.0
#include "config/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* A list or a map that is not at its end. */
struct level {
	uint32_t node;
	uint32_t last; /* its last child; 0: none yet */
	char *key;     /* of the child that is to come */
	struct mark key_at;
};

struct builder {
	struct document document;
	const char *text;
	yaml_parser_t parser;
	struct level levels[DOCUMENT_DEPTH_MAX];
	unsigned int depth;
};

/* --- The tree ------------------------------------------------------------------------------- */

static const struct node *node_at(const struct document *document, uint32_t index)
{
	return index ? &document->nodes[index] : NULL;
}

const struct node *node_first(const struct document *document, const struct node *node)
{
	return node_at(document, node->first);
}

const struct node *node_next(const struct document *document, const struct node *node)
{
	return node_at(document, node->next);
}

const struct node *node_find(const struct document *document, const struct node *map,
			     const char *key)
{
	const struct node *node = node_first(document, map);

	while (node && strcmp(node->key, key))
		node = node_next(document, node);
	return node;
}

bool document_has_words(const struct document *document, const char *key)
{
	const struct node *list = NULL, *first = NULL;

	if (document->nodes->kind == NODE_MAP)
		list = node_find(document, document->nodes, key);
	if (list && list->kind == NODE_LIST)
		first = node_first(document, list);
	return first && first->kind == NODE_WORD;
}

void document_place(struct document *document, struct mark mark)
{
	snprintf(document->place, sizeof(document->place), "%s:%u:%u", document->name, mark.line,
		 mark.column);
	log_place(document->place);
}

void document_free(struct document *document)
{
	for (uint32_t i = 0; i < document->count; i++) {
		free(document->nodes[i].key);
		free(document->nodes[i].word);
	}
	free(document->nodes);
	document->nodes = NULL;
	document->count = 0;
}

/* --- Errors --------------------------------------------------------------------------------- */

static struct mark mark_of(const yaml_mark_t *mark)
{
	return (struct mark){mark->line + 1, mark->column + 1};
}

static enum status refuse(struct builder *builder, const yaml_mark_t *mark, const char *message)
{
	document_place(&builder->document, mark_of(mark));
	return misuse("%s", message);
}

/* Where the reader stands libyaml tells in bytes. */
static struct mark mark_of_offset(const char *text, size_t offset)
{
	struct mark mark = {1, 1};

	for (size_t i = 0; i < offset && text[i]; i++) {
		mark.column++;
		if (text[i] == '\n')
			mark = (struct mark){mark.line + 1, 1};
	}
	return mark;
}

/* What stands from a line on; NULL: the text ends before. */
static const char *line_find(const char *text, size_t line)
{
	while (line-- && text)
		text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
	return text;
}

/* What libyaml's words do not tell. */
static const char *syntax_hint(const struct builder *builder)
{
	const yaml_mark_t *mark = &builder->parser.problem_mark;
	const char *line = line_find(builder->text, mark->line);

	if (!line)
		return "";
	if (line[strspn(line, " ")] == '\t')
		return ": a tab cannot indent, use spaces";
	if (strcspn(line, "\n") > mark->column && line[mark->column] == ':')
		return ": put an IPv6 address into quotes";
	return "";
}

static enum status refuse_syntax(struct builder *builder)
{
	const yaml_parser_t *parser = &builder->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		return fail("%s: out of memory", builder->document.name);
	if (parser->error == YAML_READER_ERROR) {
		document_place(&builder->document,
			       mark_of_offset(builder->text, parser->problem_offset));
		return misuse("not YAML: %s", parser->problem);
	}
	document_place(&builder->document, mark_of(&parser->problem_mark));
	return misuse("not YAML: %s%s%s%s", parser->context ?: "", parser->context ? ": " : "",
		      parser->problem, syntax_hint(builder));
}

/* --- Building ------------------------------------------------------------------------------- */

static struct level *level_now(struct builder *builder)
{
	return builder->depth ? &builder->levels[builder->depth - 1] : NULL;
}

static enum status document_grow(struct document *document)
{
	uint32_t room = document->room ? 2 * document->room : 64;
	struct node *nodes;

	if (document->count < document->room)
		return OK;
	nodes = realloc(document->nodes, room * sizeof(*nodes));
	if (!nodes)
		return fail("%s: out of memory", document->name);
	document->nodes = nodes;
	document->room = room;
	return OK;
}

static bool is_null(const yaml_event_t *event)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};
	const char *value = (const char *)event->data.scalar.value;

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
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

/* What the value of a key says, or a bare prefix of a list; false: out of memory. */
static bool word_keep(const struct builder *builder, struct node *node, const yaml_event_t *event)
{
	bool is_top_item = builder->depth == 2;

	if ((!node->key && !is_top_item) || node->kind != NODE_WORD)
		return true;
	node->word = strdup((const char *)event->data.scalar.value);
	return node->word;
}

/* A node without children, the last of the level's. */
static enum status node_add(struct builder *builder, const yaml_event_t *event)
{
	struct document *document = &builder->document;
	struct level *level = level_now(builder);
	struct node node = {.kind = event_kind(event), .at = mark_of(&event->start_mark)};
	enum status status;

	if (document->count == DOCUMENT_NODES_MAX)
		return refuse(builder, &event->start_mark,
			      "too many values for one file: put prefixes into list files");
	status = document_grow(document);
	if (status)
		return status;
	if (level) {
		node.key = level->key;
		node.key_at = level->key_at;
		level->key = NULL;
		if (level->last)
			document->nodes[level->last].next = document->count;
		else
			document->nodes[level->node].first = document->count;
		level->last = document->count;
	}
	document->nodes[document->count++] = node;
	if (!word_keep(builder, &document->nodes[document->count - 1], event))
		return fail("%s: out of memory", document->name);
	return OK;
}

/* Whether the next event is to be the key of a pair. */
static bool awaits_key(struct builder *builder)
{
	const struct level *level = level_now(builder);

	return level && builder->document.nodes[level->node].kind == NODE_MAP && !level->key;
}

static enum status key_take(struct builder *builder, const yaml_event_t *event)
{
	struct level *level = level_now(builder);

	if (event->type != YAML_SCALAR_EVENT)
		return refuse(builder, &event->start_mark, "a key is to be one word");
	level->key = strdup((const char *)event->data.scalar.value);
	level->key_at = mark_of(&event->start_mark);
	return level->key ? OK : fail("%s: out of memory", builder->document.name);
}

static enum status value_take(struct builder *builder, const yaml_event_t *event)
{
	enum status status =
		awaits_key(builder) ? key_take(builder, event) : node_add(builder, event);

	if (status || event->type == YAML_SCALAR_EVENT)
		return status;
	if (builder->depth == DOCUMENT_DEPTH_MAX)
		return refuse(builder, &event->start_mark, "nested too deep: no rule is down here");
	builder->levels[builder->depth++] = (struct level){.node = builder->document.count - 1};
	return OK;
}

/* What YAML can say and a rules file does not: each is a way to hide what a file says. */
static enum status scalar_check(struct builder *builder, const yaml_event_t *event)
{
	if (memchr(event->data.scalar.value, 0, event->data.scalar.length))
		return refuse(builder, &event->start_mark, "a NUL character: this is no text");
	if (event->data.scalar.anchor)
		return refuse(builder, &event->start_mark, "an anchor: write it out");
	if (event->data.scalar.tag)
		return refuse(builder, &event->start_mark, "a tag: leave it out");
	return OK;
}

static enum status group_check(struct builder *builder, const yaml_event_t *event)
{
	bool is_list = event->type == YAML_SEQUENCE_START_EVENT;

	if (is_list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor)
		return refuse(builder, &event->start_mark, "an anchor: write it out");
	if (is_list ? event->data.sequence_start.tag : event->data.mapping_start.tag)
		return refuse(builder, &event->start_mark, "a tag: leave it out");
	return OK;
}

static enum status event_take(struct builder *builder, const yaml_event_t *event)
{
	enum status status = OK;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		status = scalar_check(builder, event);
		return status ? status : value_take(builder, event);
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		status = group_check(builder, event);
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

static enum status document_build(struct builder *builder)
{
	enum status status = OK;
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

static bool is_empty(const struct document *document)
{
	return !document->count || document->nodes->kind == NODE_NULL;
}

enum status document_parse(const char *name, const char *text, size_t size, struct document *ret)
{
	struct builder builder = {.document.name = name, .text = text};
	enum status status;

	if (!yaml_parser_initialize(&builder.parser))
		return fail("%s: out of memory", name);
	yaml_parser_set_input_string(&builder.parser, (const unsigned char *)text, size);
	status = document_build(&builder);
	log_place(NULL);
	yaml_parser_delete(&builder.parser);
	for (unsigned int i = 0; i < DOCUMENT_DEPTH_MAX; i++)
		free(builder.levels[i].key);
	if (!status && is_empty(&builder.document))
		status = misuse("%s is empty, and would delete all rules: if that is meant, "
				"write 'policies: []'",
				name);
	if (status)
		document_free(&builder.document);
	else
		*ret = builder.document;
	return status;
}
