// SPDX-License-Identifier: GPL-2.0
#include "config/config_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define NAME_TEXT 160 /* room for the name of a node */
#define KEYS_MAX  16  /* no map has as many keys */

/* The largest struct of a map. */
#define DATA_MAX sizeof(struct spec)
_Static_assert(DATA_MAX >= sizeof(struct place) && DATA_MAX >= sizeof(struct config_entry),
	       "DATA_MAX");

/* --- Errors --------------------------------------------------------------------------------- */

int config_fail(struct config_reader *reader, int err)
{
	if (err && (!reader->err || err != -EINVAL))
		reader->err = err;
	return err;
}

int config_fail_at(struct config_reader *reader, unsigned int mark, struct position at, int err)
{
	if (err)
		document_place(&reader->document, mark, at);
	return config_fail(reader, err);
}

static int refuse_kind(struct config_reader *reader, const struct node *node, const char *name,
		       enum node_kind wanted)
{
	static const char *const kinds[] = {
		[NODE_WORD] = "one value",
		[NODE_NULL] = "nothing",
		[NODE_LIST] = "a list",
		[NODE_MAP] = "keys and values",
	};

	if (wanted == NODE_LIST && node->kind == NODE_NULL)
		return config_refuse(reader, node->at, "wrong-kind", name,
				     "it requires a list instead of nothing; write [] for an empty "
				     "list");
	return config_refuse(reader, node->at, "wrong-kind", name, "it requires %s instead of %s",
			     kinds[wanted], kinds[node->kind]);
}

static int refuse_key(struct config_reader *reader, const struct node *node, const char *name,
		      const struct config_map *map)
{
	const char *words[KEYS_MAX], *nearly;
	char text[WORDS_TEXT];

	for (unsigned int i = 0; i < map->count; i++)
		words[i] = map->keys[i].name;
	nearly = nearly_find(node->key, words, map->count);
	if (nearly)
		return config_refuse(reader, node->key_at, "no-such-key", name,
				     "no key '%s'; did you mean '%s'?", node->key, nearly);
	return config_refuse(reader, node->key_at, "no-such-key", name, "no key '%s'; write %s",
			     node->key, words_join(words, map->count, text));
}

/* --- Reading -------------------------------------------------------------------------------- */

static int word_read(struct config_reader *reader, const struct node *node,
		     const struct config_key *key, void *data)
{
	unsigned int mark = error_count();
	int err = value_parse(key->type, key->name, node->word, (char *)data + key->offset);

	return config_fail_at(reader, mark, node->at, err);
}

/*
 * Reads the items of a list. The first item decides whether they are words or maps. The words of a
 * list without maps are read by the map around it.
 */
static int items_read(struct config_reader *reader, const struct node *list,
		      const struct config_key *key, void *parent)
{
	const struct config_map *map = key->map;
	const struct node *node = list->first;
	bool is_bare = !map || (map->or_word && node && node->kind == NODE_WORD);
	char name[NAME_TEXT];
	int first = 0;

	snprintf(name, sizeof(name), "an entry of '%s'", key->name);
	for (; node; node = node->next) {
		_Alignas(max_align_t) char data[DATA_MAX];
		struct config_item item = {map, node, data, parent, 0};
		int err = 0;

		if (map) /* a file has millions of words, which are not to cost DATA_MAX each */
			memset(data, 0, map->size);
		if (map && map->or_word && node->kind == (is_bare ? NODE_MAP : NODE_WORD))
			err = config_refuse(reader, node->at, "mixed-list", name,
					    "bare %s, or entries with keys, but not both; write "
					    "'%s: ...' in each",
					    map->many, map->keys->name);
		else if (!is_bare)
			err = config_map_read(reader, node, name, map, parent);
		else if (node->kind != NODE_WORD)
			err = refuse_kind(reader, node, name, NODE_WORD);
		else if (map && !(err = word_read(reader, node, map->keys, data)))
			err = config_fail(reader, map->finish(reader, &item));
		first = first ?: err;
	}
	return first;
}

static int key_read(struct config_reader *reader, const struct node *node,
		    const struct config_key *key, void *data)
{
	char name[NAME_TEXT];

	snprintf(name, sizeof(name), "'%s'", key->name);
	if (key->is_list)
		return node->kind == NODE_LIST ? items_read(reader, node, key, data)
					       : refuse_kind(reader, node, name, NODE_LIST);
	if (node->kind == NODE_WORD && key->type)
		return word_read(reader, node, key, data);
	if (!key->map)
		return refuse_kind(reader, node, name, NODE_WORD);
	return config_map_read(reader, node, name, key->map, data);
}

/* Reports unknown keys and keys that are given twice. */
static int keys_check(struct config_reader *reader, const struct node *map_node, const char *name,
		      const struct config_map *map)
{
	struct position seen[KEYS_MAX] = {0}; /* the first place of each key */
	int first = 0, err;

	for (const struct node *node = map_node->first; node; node = node->next) {
		unsigned int i = 0;

		while (i < map->count && strcmp(map->keys[i].name, node->key))
			i++;
		if (i == map->count)
			err = refuse_key(reader, node, name, map);
		else if (seen[i].line)
			err = config_refuse(reader, node->key_at, "key-twice",
					    object_of(NULL, node->key),
					    "given twice, first in line %u", seen[i].line);
		else
			err = 0;
		if (!err)
			seen[i] = node->key_at;
		first = first ?: err;
	}
	return first;
}

int config_map_read(struct config_reader *reader, const struct node *node, const char *name,
		    const struct config_map *map, void *parent)
{
	_Alignas(max_align_t) char data[DATA_MAX];
	struct config_item item = {map, node, data, parent, 0};

	if (node->kind != NODE_MAP)
		return refuse_kind(reader, node, name, NODE_MAP);
	memset(data, 0, map->size);
	keys_check(reader, node, name, map);
	if (map->begin)
		map->begin(reader, &item);
	for (unsigned int i = 0; i < map->count; i++) {
		const struct node *value = node_find(node, map->keys[i].name);
		int err = value ? key_read(reader, value, &map->keys[i], data) : 0;

		item.err = item.err ?: err;
	}
	return config_fail(reader, map->finish ? map->finish(reader, &item) : 0) ?: item.err;
}
