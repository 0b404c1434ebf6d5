/* SPDX-License-Identifier: GPL-2.0 */
/* A rules file, YAML (and so JSON), becomes the rules that `set`, `allow` and `deny` make. */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "rules/ruleset.h"
#include "rules/sizes.h"

struct config {
	struct gate_sizes sizes; /* 0: not said */
	struct ruleset rules;	 /* sorted, one a prefix */
};

/* Reads and validates. Says every error, "FILE:LINE:COLUMN: ...". "-": standard input. */
enum status config_read(const char *path, struct config *ret);

/* The same from memory; lists that it names are looked for beside `path`. */
enum status config_parse(const char *path, const char *text, size_t size, struct config *ret);

void config_free(struct config *config);

/* A file that reads to the same, as JSON; NULL: out of memory. */
json_t *config_json(const struct config *config);

/* The same as YAML. */
enum status config_write(FILE *out, const struct config *config);

#endif
