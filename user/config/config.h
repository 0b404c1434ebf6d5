/* SPDX-License-Identifier: GPL-2.0 */
/* Config: a rules file, in YAML (and so JSON), to rules and from rules. */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "rules/devices.h"
#include "rules/list_file.h"
#include "rules/ruleset.h"

/* A list file. Its stamp is older than its contents, so that a change while it is read is seen. */
struct list_path {
	char *path;
	struct stamp stamp;
	struct sl_list_info list; /* without a name: the entry of the rules file has ended */
	bool is_left_out;	  /* see config_parse() */
};

struct list_paths {
	struct list_path *list;
	unsigned int count, room;
};

/* Whether a list was left out. */
bool list_paths_left_out(const struct list_paths *paths);

struct config {
	struct gate_sizes sizes;
	struct ruleset rules;	 /* sorted, one rule a prefix */
	struct places places;	 /* where the gate is to filter */
	struct list_paths files; /* the list files that were read */
};

/*
 * Reads and checks a file, or standard input for "-". Adds every error, with its place. Returns 0;
 * -EINVAL if all errors are misuse; or another negative errno.
 */
int config_read(const char *path, struct config *ret);

/*
 * config_read() for a text in memory, with a NUL after it. Lists that it names are files relative
 * to the directory of `path`. leaves_out: a bad list file adds its error and leaves out the list
 * (`is_left_out`); if the sizes of the rules file do not hold all lists, the longest is left out.
 */
int config_parse(const char *path, const char *text, size_t size, bool leaves_out,
		 struct config *ret);

void config_free(struct config *config);

/* Formats a config as JSON that reads to an equal config; NULL: out of memory. */
json_t *config_json(const struct config *config);

/* Writes config_json() as YAML. */
int config_write(FILE *out, const struct config *config);

#endif
