// SPDX-License-Identifier: GPL-2.0
#include "config/config_text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The keys. All are optional here: what is missing is said together with what is wrong, and libcyaml would
 * end at the first.
 */
#define TEXT(key, type, member)                                                                    \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_OPTIONAL, type, member, 0, CYAML_UNLIMITED)
#define MAP(key, member, fields)                                                                   \
	CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_OPTIONAL, struct text_config, member, fields)
#define LIST(key, type, member, entry)                                                             \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER, type, member, entry,   \
			     0, CYAML_UNLIMITED)

static const cyaml_schema_field_t gate_fields[] = {
	TEXT("sources", struct text_gate, size[SIZE_SOURCES]),
	TEXT("hot", struct text_gate, size[SIZE_HOT]),
	TEXT("policies", struct text_gate, size[SIZE_POLICIES]),
	TEXT("hosts", struct text_gate, size[SIZE_HOSTS]),
	TEXT("prefixes", struct text_gate, size[SIZE_PREFIXES]),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t defaults_fields[] = {
	TEXT("per", struct text_limit, field[SPEC_PER]),
	TEXT("key", struct text_limit, field[SPEC_KEY]),
	TEXT("action", struct text_limit, field[SPEC_ACTION]),
	TEXT("start", struct text_limit, field[SPEC_START]),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limit_fields[] = {
	TEXT("name", struct text_limit, field[SPEC_NAME]),
	TEXT("rate", struct text_limit, field[SPEC_RATE]),
	TEXT("burst", struct text_limit, field[SPEC_BURST]),
	TEXT("match", struct text_limit, field[SPEC_MATCH]),
	TEXT("per", struct text_limit, field[SPEC_PER]),
	TEXT("key", struct text_limit, field[SPEC_KEY]),
	TEXT("action", struct text_limit, field[SPEC_ACTION]),
	TEXT("start", struct text_limit, field[SPEC_START]),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t limit_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct text_limit, limit_fields),
};

const cyaml_schema_field_t newcomers_fields[] = {
	TEXT("rate", struct text_limit, field[SPEC_RATE]),
	TEXT("burst", struct text_limit, field[SPEC_BURST]),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t policy_fields[] = {
	TEXT("prefix", struct text_policy, prefix),
	LIST("limits", struct text_policy, limits, &limit_schema),
	TEXT("inherit", struct text_policy, inherit),
	CYAML_FIELD_IGNORE("newcomers", CYAML_FLAG_OPTIONAL),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t policy_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct text_policy, policy_fields),
};

static const cyaml_schema_value_t prefix_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED),
};

static const cyaml_schema_field_t entry_fields[] = {
	TEXT("prefix", struct text_entry, prefix),
	LIST("prefixes", struct text_entry, prefixes, &prefix_schema),
	TEXT("file", struct text_entry, file),
	TEXT("force", struct text_entry, force),
	TEXT("list", struct text_entry, list),
	TEXT("for", struct text_entry, duration),
	TEXT("until", struct text_entry, until),
	CYAML_FIELD_END,
};

const cyaml_schema_value_t entry_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct text_entry, entry_fields),
};

static const cyaml_schema_field_t config_fields[] = {
	MAP("gate", gate, gate_fields),
	MAP("defaults", defaults, defaults_fields),
	LIST("policies", struct text_config, policies, &policy_schema),
	LIST("allow", struct text_config, allow, &entry_schema),
	LIST("deny", struct text_config, deny, &entry_schema),
	CYAML_FIELD_END,
};

#define CONFIG_FIELDS (sizeof(config_fields) / sizeof(config_fields[0]))

const cyaml_schema_value_t config_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct text_config, config_fields),
};

/* --- Loading -------------------------------------------------------------------------------- */

struct first_line {
	char text[256];
};

/* What libcyaml says first is the cause; the rest is where it stood. */
static void line_keep(cyaml_log_t level, void *data, const char *format, va_list args)
{
	struct first_line *line = data;

	(void)level;
	if (!*line->text)
		vsnprintf(line->text, sizeof(line->text), format, args);
}

/* Unknown keys are said by now: the rest of the file is still worth a look. */
static cyaml_config_t reader_config(struct first_line *line)
{
	return (cyaml_config_t){
		.log_fn = line_keep,
		.log_ctx = line,
		.log_level = CYAML_LOG_ERROR,
		.mem_fn = cyaml_mem,
		.flags = CYAML_CFG_IGNORE_UNKNOWN_KEYS | CYAML_CFG_NO_ALIAS,
	};
}

/* The keys, less the lists of bare prefixes: to libcyaml an entry is either a word or a map. */
static void fields_select(const struct document *document,
			  cyaml_schema_field_t fields[CONFIG_FIELDS])
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < CONFIG_FIELDS; i++)
		if (!config_fields[i].key || !document_has_words(document, config_fields[i].key))
			fields[kept++] = config_fields[i];
}

struct text_config *text_config_load(const struct document *document, const char *text, size_t size)
{
	cyaml_schema_field_t fields[CONFIG_FIELDS];
	const cyaml_schema_value_t schema = {
		CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct text_config, fields),
	};
	struct first_line line = {0};
	cyaml_config_t reader = reader_config(&line);
	struct text_config *config = NULL;
	cyaml_err_t err;

	fields_select(document, fields);
	err = cyaml_load_data((const uint8_t *)text, size, &reader, &schema,
			      (cyaml_data_t **)&config, NULL);
	if (!err)
		return config;
	misuse("%s: %s: %s", document->name, cyaml_strerror(err), line.text);
	return NULL;
}

void text_config_free(struct text_config *config)
{
	struct first_line line = {0};
	cyaml_config_t reader = reader_config(&line);

	cyaml_free(&reader, &config_schema, config, 0);
}
