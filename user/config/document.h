/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: a rules file as a tree, built from libyaml's events: YAML, and so JSON. Each node has its
 * line and column. Anchors, aliases and tags are refused, because each can hide the meaning of a
 * file. Nodes and words are freed together, by document_free().
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

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
	const char *name; /* the file's name in errors */
	struct node *root;
	uint32_t count;	      /* of nodes */
	struct chunk *chunks; /* the memory of nodes and words */
};

/*
 * Parses a text that is one YAML document, with a NUL after it. The document refers to `name`,
 * which must live as long, but not to the text. Returns 0, -EINVAL or -ENOMEM.
 */
int document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/* The value of a key of a map, the first if there are several; NULL: none. */
const struct node *node_find(const struct node *map, const char *key);

/* Puts a place in the document before the objects of the errors from `mark` on. */
void document_place(const struct document *document, unsigned int mark, struct position at);

#endif
