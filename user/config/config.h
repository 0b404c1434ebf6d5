/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: a rules file, in YAML (and so JSON), to and from the rules that `set`, `allow` and `deny`
 * make.
 */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "rules/devices.h"
#include "rules/list_file.h"
#include "rules/ruleset.h"
#include "rules/sizes.h"

struct config {
	struct gate_sizes sizes; /* 0: not given */
	struct ruleset rules;	 /* sorted, one rule a prefix */
	struct places places;	 /* where the gate is to filter */
	struct list_paths files; /* the list files that were read */
};

/*
 * Reads and checks a file, or standard input for "-". Prints every error as "FILE:LINE:COLUMN:
 * ...".
 */
int config_read(const char *path, struct config *ret);

/*
 * config_read() for a text in memory. Lists that it names are files relative to the directory of
 * `path`.
 */
int config_parse(const char *path, const char *text, size_t size, struct config *ret);

/*
 * config_parse() that continues after a bad list file: it reports the error and leaves out the list
 * (`is_left_out`). If the sizes of the rules file do not hold all lists, it leaves out the longest.
 */
int config_parse_most(const char *path, const char *text, size_t size, struct config *ret);

void config_free(struct config *config);

/* Formats a config as JSON that reads to an equal config; NULL: out of memory. */
json_t *config_json(const struct config *config);

/* config_json() as YAML. */
int config_write(FILE *out, const struct config *config);

#endif
