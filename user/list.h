/* SPDX-License-Identifier: GPL-2.0 */
/* Files of prefixes, one a line; '#' begins a comment; blank lines are skipped. */
#ifndef SLUICE_LIST_H
#define SLUICE_LIST_H

#include "ruleset.h"

/*
 * Adds each prefix of the file to the set as an entry of `list` that ends at `until`. Says each bad line by
 * number, "FILE:LINE: ...", the first ten of them, and then fails. The same prefix twice in one file is
 * one entry.
 */
enum status list_read(const char *path, enum sl_list list, uint32_t until, struct ruleset *set);

/* The same from memory, where `name` stands for the file. Cuts the text to pieces. */
enum status list_parse(const char *name, char *text, enum sl_list list, uint32_t until,
		       struct ruleset *set);

#endif
