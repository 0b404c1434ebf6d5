/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: files that save entries and lists, so a new gate gets them after a reboot. FILE has the
 * runtime entries, FILE.lists the entries and lists of the rules file. Both are JSON with the time
 * left of each entry and the wall-clock time of the save. If the clock was set back since the save,
 * no time counts as passed, so no entry lasts longer.
 */
#ifndef SLUICE_STATE_FILE_H
#define SLUICE_STATE_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/file.h"
#include "rules/ruleset.h"

struct state_file {
	bool is_of_boot; /* the file was saved after the last boot */
	dev_t bpffs;	 /* device number of the bpffs that contained the gate; 0 if unknown */
	struct ruleset entries; /* sorted rules without limits, and their lists */
};

/* Parses a state file, and drops entries that have ended. A failure leaves `ret` unchanged. */
int state_file_parse(const char *name, const char *text, size_t size, struct state_file *ret);

/* Returns the JSON of a state file, or NULL if memory is short. */
json_t *state_file_json(const struct state_file *state);

/*
 * Fails if the path is a file of another kind, which must not be renamed or replaced. Accepts a
 * missing file, an empty file, and a damaged file that begins like a state file.
 */
int state_file_check(const char *path);

/*
 * Fails if another file, which the caller reads, has one of the names that a write or a read of
 * PATH and PATH.lists replaces. `stamp` is of the other file.
 */
int state_file_check_apart(const char *path, const char *other, const struct stamp *stamp);

/*
 * Reads a state file. A missing file counts as empty. If the file is damaged, or if an untrusted
 * user could have written it, warns, renames it to PATH.bad and counts it as empty, because the
 * rules file must be applied in any case.
 */
void state_file_read(const char *path, struct state_file *ret);
int state_file_write(const char *path, const struct state_file *state);
void state_file_free(struct state_file *state);

#endif
