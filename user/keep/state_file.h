/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: state files, from which a new gate gets its entries and lists after a reboot. FILE contains
 * the runtime entries. FILE.lists contains the entries and lists of the rules file. The format is
 * JSON. A file contains the remaining time of each entry, and the wall-clock time of the save. If
 * the clock is now before this time, the remaining times stay unchanged.
 */
#ifndef SLUICE_STATE_FILE_H
#define SLUICE_STATE_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/file.h"
#include "rules/ruleset.h"

struct state_file {
	bool is_of_boot; /* the file was saved since the last boot */
	dev_t bpffs;	 /* device number of the bpffs that contained the gate; 0 if unknown */
	struct ruleset entries; /* sorted rules without limits, and the lists of these rules */
};

/* Parses a state file. Omits entries that have ended. If this fails, leaves `ret` unchanged. */
int state_file_parse(const char *name, const char *text, size_t size, struct state_file *ret);

/* Formats a state file as JSON. Returns NULL if there is no memory. */
json_t *state_file_json(const struct state_file *state);

/*
 * Returns an error if the file at `path` is not a state file, because the caller would rename or
 * replace it. Accepts a missing file, an empty file, and a damaged file that begins like a state
 * file.
 */
int state_file_check(const char *path);

/*
 * Returns an error if reading or writing the state files PATH and PATH.lists would replace file
 * `other`, which the caller also reads. `stamp` is the stamp of `other`.
 */
int state_file_check_apart(const char *path, const char *other, const struct stamp *stamp);

/*
 * Reads a state file. A missing file counts as empty. If the file is damaged, or if an untrusted
 * user could have written it, renames it to PATH.bad, prints a warning, and treats it as empty, so
 * that the rules file can be applied.
 */
void state_file_read(const char *path, struct state_file *ret);
int state_file_write(const char *path, const struct state_file *state);
void state_file_free(struct state_file *state);

#endif
