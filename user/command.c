// SPDX-License-Identifier: GPL-2.0
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gate_names.h"
#include "nearly.h"

/* The name of the gate to look at; only: room for it. */
static enum status gate_choose(const struct context *context, char only[GATE_NAME + 1],
			       const char **ret)
{
	enum status status = OK;

	*only = '\0';
	if (!context->gate_given)
		status = gates_only(context->gate, only);
	*ret = *only ? only : context->gate;
	return status;
}

enum status gate_open_to_look(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1];
	const char *name;
	enum status status = gate_choose(context, only, &name);

	return status ? status : gate_open(gate, name);
}

enum status gate_open_for_rules(struct gate *gate, const struct context *context)
{
	char only[GATE_NAME + 1];
	const char *name;
	enum status status = gate_choose(context, only, &name);

	return status ? status : gate_open_any(gate, name);
}

enum status unexpected(const char *command, const char *word)
{
	return misuse("%s: '%s' is unexpected: see 'sluice help %s'", command, word, command);
}

enum status unexpected_for(const char *command, const char *word, const char *const keywords[],
			   size_t count)
{
	const char *nearly = nearly_find(word, keywords, count);

	if (!nearly)
		return unexpected(command, word);
	return misuse("%s: '%s' is unexpected: did you mean '%s'? See 'sluice help %s'", command,
		      word, nearly, command);
}

bool keyword_is_meant(const char *word, const char *const keywords[], size_t count)
{
	return !word[strcspn(word, ".:/")] && nearly_find(word, keywords, count);
}

const char *keyword_value(int argc, char **argv, int *index)
{
	if (*index + 1 < argc)
		return argv[++*index];
	misuse("%s: '%s' needs a value: see 'sluice help %s'", argv[0], argv[*index], argv[0]);
	return NULL;
}

json_t *json_name(const char *name)
{
	json_t *text = json_string(name);
	char clean[256];
	size_t i;

	if (text)
		return text;
	for (i = 0; name[i] && i < sizeof(clean) - 1; i++)
		clean[i] = (unsigned char)name[i] < 0x80 ? name[i] : '?';
	clean[i] = '\0';
	return json_string(clean);
}

json_t *json_cell(const struct sl_cell *cell)
{
	return json_pack("{s:I, s:I}", "packets", (json_int_t)cell->packets, "bytes",
			 (json_int_t)cell->bytes);
}

enum status json_print(json_t *document)
{
	int err = document ? json_dumpf(document, stdout, JSON_INDENT(2)) : -1;

	json_decref(document);
	if (err)
		return fail("cannot write JSON: %s", why(document ? errno : ENOMEM));
	putchar('\n');
	return OK;
}
