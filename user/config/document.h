/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: a rules file as a tree of nodes, built from libyaml's events. The file is YAML, and so
 * may be JSON. Each node has its line and column. Anchors, aliases and tags are refused, because
 * they can hide the meaning of a file. document_free() frees all nodes and words together.
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

/* The deepest nesting that is accepted. A valid rules file nests five deep. */
#define DOCUMENT_DEPTH_MAX 8

/* Room for millions of prefixes. Without a limit, a file of brackets could fill the memory. */
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
	const char *key;    /* NULL for an item of a list, and for the root */
	const char *word;   /* NULL unless the kind is NODE_WORD */
	struct node *first; /* first child of the node, or NULL */
	struct node *next;  /* next child of the same parent, or NULL */
};

struct document {
	const char *name; /* name of the file in errors */
	struct node *root;
	uint32_t count;	      /* number of nodes in the document */
	struct chunk *chunks; /* memory of all nodes and words */
};

/*
 * Parses a text of one YAML document, with a NUL after it. The document keeps a pointer to `name`,
 * but not to the text. Returns 0, -EINVAL or -ENOMEM.
 */
int document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/* Returns the value of a key in a map, or NULL. If the key is repeated, returns the first value. */
const struct node *node_find(const struct node *map, const char *key);

/* Prefixes the objects of the errors from index `mark` on with a position in the document. */
void document_place(const struct document *document, unsigned int mark, struct position at);

#endif
