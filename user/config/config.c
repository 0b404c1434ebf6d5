// SPDX-License-Identifier: GPL-2.0
#include "config/config.h"

#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "rules/sizes.h"

/* --- Sizes ---------------------------------------------------------------------------------- */

static void sizes_read(struct reader *reader)
{
	const struct node *gate = node_find(reader->document.root, "gate");

	for (unsigned int i = 0; gate && i < SIZES; i++) {
		const struct node *node = node_find(gate, size_names[i]);

		if (!node)
			continue;
		reader_place(reader, node);
		reader_failed(reader, size_parse(i, node->word, &reader->sizes));
	}
}

/* A size that does not hold the rules of the same file. */
static void sizes_check(struct reader *reader)
{
	const struct node *gate = node_find(reader->document.root, "gate");
	struct room room = room_needed(&reader->rules);
	struct gate_sizes needed = room_sizes(&room);

	for (unsigned int i = 0; gate && i < SIZES; i++) {
		uint32_t size = size_told(&reader->sizes, i), least = size_told(&needed, i);

		if (!size || size >= least)
			continue;
		reader_place(reader, node_find(gate, size_names[i]));
		reader_failed(reader,
			      misuse("%s %u %s too few for the rules of this file: they take %u",
				     size_names[i], size, plural(size, "is", "are"), least));
	}
}

/* --- The file ------------------------------------------------------------------------------- */

/* A file without any rules is more likely a mistake than a wish to delete them all. */
static void check_says_rules(struct reader *reader)
{
	const struct node *root = reader->document.root;

	if (node_find(root, "policies") || node_find(root, "allow") || node_find(root, "deny"))
		return;
	reader_failed(reader,
		      misuse("%s has neither policies nor lists, and would delete all rules: if "
			     "that is meant, write 'policies: []'",
			     reader->document.name));
}

static void values_read(struct reader *reader)
{
	check_says_rules(reader);
	sizes_read(reader);
	policies_read(reader);
	lists_read(reader);
	claims_merge(reader);
	if (!reader->status)
		sizes_check(reader);
}

static void reader_free(struct reader *reader)
{
	claims_free(&reader->claims);
	document_free(&reader->document);
}

enum status config_parse(const char *path, const char *text, size_t size, struct config *ret)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct reader reader = {.path = path};

	if (reader_failed(&reader, document_parse(name, text, size, &reader.document)))
		return reader.status;
	if (shape_check(&reader))
		values_read(&reader);
	log_place(NULL);
	reader_free(&reader);
	if (reader.status)
		ruleset_free(&reader.rules);
	else
		*ret = (struct config){.sizes = reader.sizes, .rules = reader.rules};
	return reader.status;
}

enum status config_read(const char *path, struct config *ret)
{
	struct file file;
	enum status status = file_read(path, &file);

	if (status)
		return status;
	if (file.is_written)
		note("%s is open for writing elsewhere: what it says now is taken", path);
	status = config_parse(path, file.text, file.size, ret);
	file_free(&file);
	return status;
}

void config_free(struct config *config)
{
	ruleset_free(&config->rules);
}
