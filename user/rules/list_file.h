/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: files of prefixes. A line has an address, a prefix or a range FIRST-LAST, and "for TIME"
 * or "until MOMENT" if the entry ends. '#', ';' and '//' begin a comment. The output of `ipset
 * save` and `ipset list` of one set is accepted, and lines of JSON as of Spamhaus DROP: an object
 * with one of the keys cidr, prefix, ip, ip_prefix (AWS) and so on, an array of such objects, or an
 * array of entries.
 */
#ifndef SLUICE_LIST_FILE_H
#define SLUICE_LIST_FILE_H

#include "base/file.h"
#include "rules/ruleset.h"

/*
 * Adds a copy of `entry`, which has no policy, to the set for each prefix of the file. Adds an
 * error for each of the first ten bad lines, and then returns -EINVAL. skipped: if not NULL, bad
 * lines are left out and counted there. A second set of ipset and an exception (`nomatch`) are
 * always refused, because without them the other lines would change their meaning. force: see
 * entry_check_width(). The time of an entry begins when the file is written; an entry whose time is
 * over is added with its end in the past.
 */
int list_read(const char *path, const struct rule *entry, const char *force, unsigned int *skipped,
	      struct ruleset *set);

/* list_read() for a text in memory, which it changes. name: of the file, which is so old. */
int list_parse(const char *name, char *text, uint64_t age_ns, const struct rule *entry,
	       const char *force, unsigned int *skipped, struct ruleset *set);

/* Adds the prefixes of "PREFIX" or "PREFIX until MOMENT", with a copy of `entry` each. */
int list_entry_add(const char *text, const struct rule *entry, struct ruleset *set);

#endif
