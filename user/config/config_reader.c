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

enum status reader_truth(struct reader *reader, const struct node *node, bool *ret)
{
	reader_place(reader, node);
	*ret = !strcmp(node->word, "true") || !strcmp(node->word, "yes");
	if (*ret || !strcmp(node->word, "false") || !strcmp(node->word, "no"))
		return OK;
	return misuse("%s '%s': write true or false", node->key, node->word);
}
