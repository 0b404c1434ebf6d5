/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: parses a rules file in YAML or JSON to a tree of nodes, using libyaml's events. Each node
 * has its line and column. Anchors, aliases and tags are refused, because they can hide the meaning
 * of a file. document_free() frees the whole tree.
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

/* Largest accepted depth of nested nodes; a valid rules file has 5 levels. */
#define DOCUMENT_DEPTH_MAX 8

/* Largest number of nodes, to bound memory. Millions of prefixes fit. */
#define DOCUMENT_NODES_MAX (1 << 23)

enum node_kind {
	NODE_WORD,
	NODE_NULL, /* the value is missing, `null` or `~` */
	NODE_LIST,
	NODE_MAP,
};

struct position {
	uint32_t line;	 /* from 1 */
	uint32_t column; /* from 1 */
};

struct node {
	enum node_kind kind;
	struct position at;
	struct position key_at;
	const char *key;    /* key in its YAML map; NULL for an item of a list and for the root */
	const char *word;   /* text of a scalar; NULL for other kinds */
	struct node *first; /* first child of the node, or NULL */
	struct node *next;  /* next child of the same parent, or NULL */
};

struct document {
	const char *name; /* name of the file in errors */
	struct node *root;
	uint32_t count;	      /* number of nodes in the document */
	struct chunk *chunks; /* memory that contains all nodes and scalars */
};

/*
 * Parses one YAML document in a text that ends in a NUL. The document keeps a pointer to `name`,
 * but not to the text. Returns 0, -EINVAL or -ENOMEM.
 */
int document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/*
 * Returns the value of a key in a YAML map, or NULL. If the key is repeated, returns its first
 * value.
 */
const struct node *node_find(const struct node *map, const char *key);

/* Puts the position `at` before the object of each error whose index is at least `mark`. */
void document_place(const struct document *document, unsigned int mark, struct position at);

#endif
