/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of prefixes as people and blocklists write them, one entry a line: an address, a prefix, or a range
 * FIRST-LAST. '#', ';' and '//' begin a comment. Also what `ipset save` and `ipset list` print
 * of one set, and lines of JSON with a "cidr", as Spamhaus DROP has them.
 */
#ifndef SLUICE_LIST_FILE_H
#define SLUICE_LIST_FILE_H

#include "rules/ruleset.h"

/* A prefix shorter than this is rarely meant in a list that others write. */
#define LIST_BITS_LEAST_IPV4 8
#define LIST_BITS_LEAST_IPV6 16

/*
 * Adds a copy of `entry`, which has no policy, to the set for each prefix of the file. Says each bad line by number,
 * "FILE:LINE: ...", the first ten of them, and then fails. Refuses prefixes that
 * are shorter than LIST_BITS_LEAST, with what would take them, `force`: "say 'force'". NULL: they are taken. The same
 * prefix twice in one file is one entry.
 */
enum status list_read(const char *path, const struct rule *entry, const char *force,
		      struct ruleset *set);

/* The same from memory, where `name` stands for the file. Cuts the text to pieces. */
enum status list_parse(const char *name, char *text, const struct rule *entry, const char *force,
		       struct ruleset *set);

#endif
