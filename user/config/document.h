/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rules file as a tree, built from libyaml's events: YAML, and so JSON. Each node has its
 * line and column. Anchors, aliases and tags are refused, as each can hide what a file says.
 *
 *   document_parse   text -> tree, or a message for the first error
 *   node_find        map, key -> value; also node_word, node_items
 *   document_place   messages are about this place from now on
 *
 * Used by: config_reader.h. Nodes and words are freed together, by document_free().
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* A rules file nests five deep. */
#define DOCUMENT_DEPTH_MAX 8

/* Room for millions of prefixes. Without a bound a file of brackets alone would fill the memory. */
#define DOCUMENT_NODES_MAX (1 << 23)

enum node_kind {
	NODE_WORD,
	NODE_NULL, /* nothing, `null` or `~` */
	NODE_LIST,
	NODE_MAP,
};

struct mark {
	uint32_t line;
	uint32_t column; /* both from 1 */
};

struct node {
	enum node_kind kind;
	struct mark at;
	struct mark key_at;
	const char *key;    /* NULL: the node is an item of a list, or the root */
	const char *word;   /* NULL: the node is no NODE_WORD */
	struct node *first; /* its first child; NULL: none */
	struct node *next;  /* of its parent's children; NULL: the last */
};

struct document {
	const char *name; /* of the file, in messages */
	struct node *root;
	uint32_t count;	      /* of nodes */
	struct chunk *chunks; /* what nodes and words lie in */
	char place[PATH_MAX + 32];
};

/*
 * Reads a text that is one document of YAML. The text has a NUL behind it. The document refers to
 * `name`, and keeps nothing of the text.
 */
enum status document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/* The value of a key of a map, the first of several; NULL: there is none. */
const struct node *node_find(const struct node *map, const char *key);

/* The word under a key of a map; NULL: there is no such key, or no word. */
const char *node_word(const struct node *map, const char *key);

/* The first item of the list under a key of a map; NULL: there is none. */
const struct node *node_items(const struct node *map, const char *key);

/* Puts this place before each message, until log_place(NULL). */
void document_place(struct document *document, struct mark mark);

#endif
