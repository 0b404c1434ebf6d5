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

enum status reader_truth(const char *key, const char *text, bool *ret)
{
	*ret = !strcmp(text, "true") || !strcmp(text, "yes");
	if (*ret || !strcmp(text, "false") || !strcmp(text, "no"))
		return OK;
	return misuse("%s '%s': write true or false", key, text);
}
