/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the files that save entries and lists of a gate over its end. FILE has the runtime entries,
 * which commands made; FILE.lists has the entries and lists of the rules file. Both are JSON of one
 * format. It has the time left of each entry and the moment when that was so. If the clock was set
 * back since, no time has passed, so no entry lasts longer.
 */
#ifndef SLUICE_STATE_FILE_H
#define SLUICE_STATE_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/file.h"
#include "rules/ruleset.h"

struct state_file {
	bool is_of_boot;	/* it was saved since this machine has booted */
	dev_t bpffs;		/* the file system that the gate was in; 0: not known */
	struct ruleset entries; /* sorted rules without limits, and their lists */
};

/*
 * Parses the text of a state file, and leaves out entries that have ended. If anything is damaged,
 * it fails and `ret` stays as it was.
 */
int state_file_parse(const char *name, const char *text, size_t size, struct state_file *ret);

/* Formats what state_file_parse() reads; NULL: out of memory. */
json_t *state_file_json(const struct state_file *state);

/*
 * Refuses a path with something other than a state file, so that it is neither moved nor replaced.
 * A damaged state file is accepted if it is empty or begins as a state file.
 */
int state_file_check(const char *path);

/*
 * Reads a state file; a missing one is empty. A file that is damaged or that an untrusted user
 * could have written is reported, renamed to PATH.bad, and counts as empty, because the rules of
 * the rules file must come into force in any case.
 */
void state_file_read(const char *path, struct state_file *ret);
int state_file_write(const char *path, const struct state_file *state);
void state_file_free(struct state_file *state);

#endif
