/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: what commands have allowed and denied, and the state file that carries it over the end of a
 * gate. The file is JSON. An entry that ends has the moment of its end, and the time that was left
 * when the file was written: the lesser of the two counts, so that a clock that was set back
 * lengthens no ban.
 */
#ifndef SLUICE_BANS_H
#define SLUICE_BANS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "rules/ruleset.h"

#define BOOT_TEXT 40 /* room for a number of a boot, as the kernel gives it */

struct bans {
	struct ruleset given; /* entries and lists of commands: rules without limits, sorted */
	struct ruleset file;  /* those that the rules file had then, to be told from commands' */
	bool file_is_known;
	char boot[BOOT_TEXT]; /* the boot in which this was so; "": not known */
};

/*
 * What is left of a ban, in ns; 0: it has ended. end: its moment. left: what was left when that was
 * written. now: of the same clock as `end`, which may have been set since.
 */
uint64_t ban_left_ns(time_t end, uint64_t left_ns, time_t now);

/*
 * Parses the text of a state file. Refuses it with one line, "NAME: PLACE: ...", unless all of it
 * is well formed. Leaves out what has ended by then.
 */
int bans_parse(const char *name, const char *text, size_t size, time_t now,
		       struct bans *ret);

/* Formats them as bans_parse() reads them; NULL: out of memory. */
json_t *bans_json(const struct bans *bans);

/* Whether a text begins as that of a state file, as far as it goes. */
bool bans_begin(const char *text, size_t size);

/*
 * Refuses what is there and is no state file, and so is neither moved aside nor overwritten. A
 * damaged state file is one if it begins as one, or is empty.
 */
int bans_check(const char *path);

/*
 * Refuses a state file that is the file `other`, of that stamp, or beside which a file is made that
 * is.
 */
int bans_check_apart(const char *path, const char *other, const struct stamp *stamp);

/*
 * Reads a state file; one that does not exist is empty. Refuses what bans_check() refuses. A state
 * file that is damaged, or that somebody else could have written, is reported, renamed to PATH.bad,
 * and counts as empty: the rules of the file have to come in force whatever became of the bans.
 */
int bans_read(const char *path, struct bans *ret);

int bans_write(const char *path, const struct bans *bans);

/*
 * The path of the copy of the file's lists, which is beside a state file and of the same format.
 * The caller frees it; NULL: out of memory.
 */
char *bans_lists_path(const char *path);

/* The number of this boot. */
void boot_read(char ret[BOOT_TEXT]);

void bans_free(struct bans *bans);

#endif
