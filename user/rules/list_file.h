/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: files of prefixes, one entry a line: an address, a prefix, or a range FIRST-LAST. '#', ';'
 * and '//' begin a comment. The output of `ipset save` and `ipset list` for one set is read, too,
 * and lines of JSON with a "cidr", as Spamhaus DROP has them.
 */
#ifndef SLUICE_LIST_FILE_H
#define SLUICE_LIST_FILE_H

#include "rules/ruleset.h"

/* A shorter prefix in a published list is most likely a mistake. */
#define LIST_BITS_LEAST_IPV4 8
#define LIST_BITS_LEAST_IPV6 16

/*
 * Adds a copy of `entry`, which has no policy, to the set for each prefix of the file; a prefix
 * that is in the file twice is added once. Reports the first ten bad lines as "FILE:LINE: ..." and
 * then fails. force: the words that accept prefixes shorter than LIST_BITS_LEAST, which are refused
 * with "say FORCE"; NULL: they are accepted.
 */
enum status list_read(const char *path, const struct rule *entry, const char *force,
		      struct ruleset *set);

/* list_read() for a text in memory; `name` stands for the file in messages. Changes the text. */
enum status list_parse(const char *name, char *text, const struct rule *entry, const char *force,
		       struct ruleset *set);

#endif
