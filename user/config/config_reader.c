// SPDX-License-Identifier: GPL-2.0
#include "config/config_reader.h"

#include <string.h>

bool reader_failed(struct reader *reader, enum status status)
{
	if (status > reader->status)
		reader->status = status;
	return status;
}

void reader_place(struct reader *reader, const struct node *node)
{
	document_place(&reader->document, node->at);
}

const struct node *reader_find(const struct reader *reader, const struct node *map, const char *key)
{
	return node_find(&reader->document, map, key);
}

const struct node *reader_items(const struct reader *reader, const struct node *map,
				const char *key)
{
	const struct node *list = reader_find(reader, map, key);

	return list ? node_first(&reader->document, list) : NULL;
}

const struct node *reader_next(const struct reader *reader, const struct node *node)
{
	return node_next(&reader->document, node);
}

enum status reader_truth(const char *key, const char *text, bool *ret)
{
	*ret = !strcmp(text, "true") || !strcmp(text, "yes");
	if (*ret || !strcmp(text, "false") || !strcmp(text, "no"))
		return OK;
	return misuse("%s '%s': write true or false", key, text);
}
