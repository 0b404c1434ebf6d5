/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: list files. A line is an address, a prefix or a range FIRST-LAST, with "for TIME" or
 * "until MOMENT" if the entry ends. '#', ';' and '//' begin a comment. The output of `ipset save`
 * and `ipset list` for one set is also accepted. So are lines of JSON, as Spamhaus DROP has them:
 * an object with one of the keys cidr, prefix, ip, ip_prefix (AWS) and so on, an array of such
 * objects, or an array of entries.
 */
#ifndef SLUICE_LIST_FILE_H
#define SLUICE_LIST_FILE_H

#include "base/file.h"
#include "rules/ruleset.h"

/*
 * Adds a copy of `entry`, which has no policy, to the set for each prefix of the file. The time of
 * an entry begins when the file is written. An entry that has ended is added, with its end in the
 * past.
 *
 * skipped: if it is not NULL, bad lines are skipped and counted there. A second ipset and an
 * exception (`nomatch`) are always refused, because without them other lines would change
 * their meaning. force: see entry_check_width().
 *
 * Returns 0; or -EINVAL, and adds an error for each of the first ten bad lines; or another negative
 * errno.
 */
int list_read(const char *path, const struct rule *entry, const char *force, unsigned int *skipped,
	      struct ruleset *set);

/*
 * Does the same as list_read() for a text in memory, and changes the text. name, age_ns: name and
 * age of the file that the text is from.
 */
int list_parse(const char *name, char *text, uint64_t age_ns, const struct rule *entry,
	       const char *force, unsigned int *skipped, struct ruleset *set);

/* Adds a copy of `entry` for each prefix of "PREFIX" or "PREFIX until MOMENT" in a rules file. */
int list_entry_add(const char *text, const struct rule *entry, struct ruleset *set);

#endif
