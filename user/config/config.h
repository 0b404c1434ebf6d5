/* SPDX-License-Identifier: GPL-2.0 */
/* Config: reads rules files, in YAML or JSON, and writes rules as a rules file. */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "rules/devices.h"
#include "rules/list_file.h"
#include "rules/ruleset.h"

/* A list file. `stamp` was read before the file, to detect changes during the reading. */
struct list_path {
	char *path;
	struct stamp stamp;
	struct sl_list_info list; /* the list; its name is "" if its end is past */
	bool is_left_out;	  /* config_parse() has omitted this list */
};

struct list_paths {
	struct list_path *list;
	unsigned int count, room;
};

/*
 * Returns whether config_parse() omitted a list, because its file was bad or the list was too long.
 */
bool list_paths_left_out(const struct list_paths *paths);

struct config {
	struct gate_sizes sizes;
	struct ruleset rules;	 /* sorted by prefix, with one rule for each prefix */
	struct places places;	 /* the entries of `attach` in the rules file */
	struct list_paths files; /* the list files that the rules file names */
};

/*
 * Reads and checks a rules file, or standard input if `path` is "-". Adds each error with its
 * position in the file. Returns 0, -EINVAL if the content is wrong, or another negative errno.
 */
int config_read(const char *path, struct config *ret);

/*
 * Like config_read(), for a NUL-terminated text. List files are relative to the directory of
 * `path`. leaves_out: omit a list whose file is bad, and add an error. If the sizes in the rules
 * file are too small for all lists, omit the longest lists.
 */
int config_parse(const char *path, const char *text, size_t size, bool leaves_out,
		 struct config *ret);

void config_free(struct config *config);

/* Returns JSON that parses to an equal config, or NULL if there is no memory. */
json_t *config_json(const struct config *config);

/* Writes YAML that parses to an equal config. */
int config_write(FILE *out, const struct config *config);

#endif
