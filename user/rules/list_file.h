/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: files of prefixes. A line has an address, a prefix or a range FIRST-LAST, and "for TIME"
 * or "until MOMENT" if the entry ends. '#', ';' and '//' begin a comment. Also read are the output
 * of `ipset save` and `ipset list` for one set, and lines of JSON as of Spamhaus DROP: an object
 * with one of the keys cidr, prefix, ip, ip_prefix (AWS) and so on, an array of such objects, or an
 * array of entries.
 */
#ifndef SLUICE_LIST_FILE_H
#define SLUICE_LIST_FILE_H

#include "base/file.h"
#include "rules/ruleset.h"

/*
 * Adds a copy of `entry`, which has no policy, to the set for each prefix of the file; a prefix
 * that is in the file twice is added once. Reports the first ten bad lines as "FILE:LINE: ..." and
 * then fails. skipped: if not NULL, bad lines are left out and counted there. A second set of ipset
 * and an exception (`nomatch`) are always refused, because without them the other lines would
 * change their meaning. force: see entry_check_width(). The time of an entry begins when the file
 * is written; an entry whose time is over is added with its end in the past.
 */
int list_read(const char *path, const struct rule *entry, const char *force, unsigned int *skipped,
	      struct ruleset *set);

/* list_read() for a text in memory; `name` stands for the file in messages. Changes the text. */
int list_parse(const char *name, char *text, const struct rule *entry, const char *force,
	       unsigned int *skipped, struct ruleset *set);

/* Adds the prefixes of "PREFIX" or "PREFIX until MOMENT", with a copy of `entry` each. */
int list_entry_add(const char *text, const struct rule *entry, struct ruleset *set);

/* --- Paths of such files -------------------------------------------------------------------- */

/* A list file, and what it was before it was read: a change meanwhile is seen, too. */
struct list_path {
	char *path;
	struct stamp stamp;
	struct sl_list_info list; /* without a name: the entry of the rules file has ended */
	bool is_left_out;	  /* see config_parse_most() */
};

struct list_paths {
	struct list_path *list;
	unsigned int count, room;
};

/* Adds a path, which is owned from then on, also when it fails. */
int list_paths_add(struct list_paths *paths, char *path, struct stamp stamp);

/* Whether a list of these was left out. */
bool list_paths_left_out(const struct list_paths *paths);
void list_paths_free(struct list_paths *paths);

#endif
