/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rules file as a tree: what libyaml's events tell of YAML, and so of JSON, with the line and the column of
 * each node. The tree has no anchor, alias or tag: each is a way to hide what a file says, and is refused.
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* A rules file nests five deep. */
#define DOCUMENT_DEPTH_MAX 8

/* Room for some millions of prefixes; a file of nothing but brackets would fill the memory. */
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
	const char *key;    /* NULL: it is an item of a list, or the root */
	const char *word;   /* NULL: it is no NODE_WORD */
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
 * Reads a text of just one document. Says what is wrong, and where. `name` lives as long as the document, `text`
 * need not.
 */
enum status document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/* The value of a key of a map; NULL: it is not said. Of a key that is given twice, the first. */
const struct node *node_find(const struct node *map, const char *key);

/* The word under a key of a map; NULL: it is not said, or no word. */
const char *node_word(const struct node *map, const char *key);

/* The first item of the list under a key of a map; NULL: there is none. */
const struct node *node_items(const struct node *map, const char *key);

/* Messages are about this place from now on, until log_place(NULL). */
void document_place(struct document *document, struct mark mark);

#endif
