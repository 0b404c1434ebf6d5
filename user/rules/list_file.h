/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: list files. A line is an address, a prefix or a range FIRST-LAST. It may end with "for
 * TIME" or "until MOMENT", which sets the end of the entry. '#', ';' and '//' begin a comment. The
 * parser also accepts the output of `ipset save` and `ipset list` for one ipset, and JSON lines, as
 * in Spamhaus DROP. A JSON line is an object with one of the keys cidr, prefix, ip, ip_prefix (AWS)
 * and so on, or an array of objects or entries.
 */
#ifndef SLUICE_LIST_FILE_H
#define SLUICE_LIST_FILE_H

#include "base/file.h"
#include "rules/ruleset.h"

/*
 * Reads a list file. For each prefix of the file, adds a copy of `entry` to the set. `entry` must
 * have no policy. Times in the file count from the file's last change. If an entry has expired,
 * adds it with an end in the past. If `skipped` is not NULL, skips bad lines and adds their number
 * to *skipped. A second ipset or `nomatch` is always an error, because skipping it would change the
 * meaning of other lines. force: see entry_check_width(). Returns 0 or a negative errno. If lines
 * are bad, adds an error for each of the first ten, and returns -EINVAL.
 */
int list_read(const char *path, const struct rule *entry, const char *force, unsigned int *skipped,
	      struct ruleset *set);

/*
 * Parses a text in memory like list_read(). Overwrites the text. name, age_ns: name and age of the
 * file that contained the text.
 */
int list_parse(const char *name, char *text, uint64_t age_ns, const struct rule *entry,
	       const char *force, unsigned int *skipped, struct ruleset *set);

/* Adds a copy of `entry` for each prefix of "PREFIX" or "PREFIX until MOMENT" in a rules file. */
int list_entry_add(const char *text, const struct rule *entry, struct ruleset *set);

#endif
