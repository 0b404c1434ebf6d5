/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A YAML document as a tree that knows where each node stands: libcyaml reads the values, and says of
 * what is wrong with them neither line nor column. What may be a word or a map, which libcyaml cannot tell,
 * is read from here.
 */
#ifndef SLUICE_DOCUMENT_H
#define SLUICE_DOCUMENT_H

#include <limits.h>
#include <stdbool.h>
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
	char *key; /* NULL: it is an item of a list, or the root */
	/* Of a NODE_WORD that has a key, or is an item of a list at the top. Other items have none: they are millions. */
	char *word;
	struct mark key_at;
	uint32_t first; /* its first child; 0: none */
	uint32_t next;	/* of its parent's children; 0: the last */
};

struct document {
	const char *name; /* of the file, in messages */
	struct node *nodes;
	uint32_t count;
	uint32_t room;
	char place[PATH_MAX + 32];
};

/*
 * Reads a text of just one document, without anchors, aliases and tags. Says what is wrong, and where. `name`
 * lives as long as the document.
 */
enum status document_parse(const char *name, const char *text, size_t size, struct document *ret);
void document_free(struct document *document);

/* The root is the first node; NULL: no child, no next one, no such key. */
const struct node *node_first(const struct document *document, const struct node *node);
const struct node *node_next(const struct document *document, const struct node *node);
const struct node *node_find(const struct document *document, const struct node *map,
			     const char *key);

/* Whether the document has a list of bare words under that key, at the top: it begins with one. */
bool document_has_words(const struct document *document, const char *key);

/* Messages are about this place from now on, until log_place(NULL). */
void document_place(struct document *document, struct mark mark);

#endif
