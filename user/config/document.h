/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: a rules file as a tree, built from libyaml's events: YAML, and so JSON. Each node has its
 * line and column. Anchors, aliases and tags are refused, as each can hide what a file says.
 * Nodes and words are freed together, by document_free().
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* The deepest nesting that is read. A rules file nests five deep. */
#define DOCUMENT_DEPTH_MAX 8

/*
 * The most nodes of a document: room for millions of prefixes. Without a limit a file of brackets
 * could fill the memory.
 */
#define DOCUMENT_NODES_MAX (1 << 23)

enum node_kind {
	NODE_WORD,
	NODE_NULL, /* nothing, `null` or `~` */
	NODE_LIST,
	NODE_MAP,
};

struct position {
	uint32_t line;
	uint32_t column; /* both from 1 */
};

struct node {
	enum node_kind kind;
	struct position at;
	struct position key_at;
	const char *key;    /* NULL: the node is an item of a list, or the root */
	const char *word;   /* NULL: the node is no NODE_WORD */
	struct node *first; /* NULL: no child */
	struct node *next;  /* the next child of the same parent; NULL: none */
};

struct document {
	const char *name; /* the file's name in messages */
	struct node *root;
	uint32_t count;	      /* of nodes */
	struct chunk *chunks; /* the memory of nodes and words */
	char place[PATH_MAX + 32];
};

/*
 * Parses a text that is one YAML document, with a NUL behind it. The document refers to `name`,
 * which must live as long, but not to the text.
 */
int document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/* The value of a key of a map; the first one if the key is there twice. NULL: none. */
const struct node *node_find(const struct node *map, const char *key);

/* The word of a key of a map; NULL: there is no such key, or its value is no word. */
const char *node_word(const struct node *map, const char *key);

/* The first item of the list of a key of a map; NULL: none. */
const struct node *node_items(const struct node *map, const char *key);

/* Puts this place before each message, until log_place(NULL). */
void document_place(struct document *document, struct position at);

#endif
