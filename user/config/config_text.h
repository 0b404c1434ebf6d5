/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rules file as libcyaml reads it: all values are texts, for the parsers of the command line. Change
 * sluice.schema.json with it.
 */
#ifndef SLUICE_CONFIG_TEXT_H
#define SLUICE_CONFIG_TEXT_H

#include <cyaml/cyaml.h>
#include <stddef.h>

#include "base/log.h"
#include "config/document.h"
#include "rules/sizes.h"
#include "rules/limit.h"

struct text_gate {
	char *size[SIZES];
};

/* A limit; and `defaults`, which has some of the fields. */
struct text_limit {
	char *field[SPEC_FIELDS];
};

struct text_policy {
	char *prefix;
	char *inherit;
	struct text_limit *limits;
	unsigned int limits_count;
};

/* Of `allow` and `deny`. */
struct text_entry {
	char *prefix;
	char **prefixes;
	unsigned int prefixes_count;
	char *file;
	char *force;	/* of the file */
	char *list;	/* its name */
	char *duration; /* `for` */
	char *until;
};

struct text_config {
	struct text_gate *gate;
	struct text_limit *defaults;
	struct text_policy *policies;
	unsigned int policies_count;
	struct text_entry *allow;
	unsigned int allow_count;
	struct text_entry *deny;
	unsigned int deny_count;
};

extern const cyaml_schema_value_t config_schema;

/* Of `allow` and `deny`, whose entries may be bare prefixes instead: all of a list, or none. */
extern const cyaml_schema_value_t entry_schema;

/* `newcomers` of a policy where it is a map, and not a word; its values are the document's. */
extern const cyaml_schema_field_t newcomers_fields[];

/* Reads the text of a document that fits the schema, but lists of bare prefixes. NULL, having said so: it failed. */
struct text_config *text_config_load(const struct document *document, const char *text,
				     size_t size);
void text_config_free(struct text_config *config);

#endif
