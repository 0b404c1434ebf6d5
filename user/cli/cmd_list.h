/* SPDX-License-Identifier: GPL-2.0 */
/* The words of the commands that list, and of those that take it back: allow, deny, unallow, undeny, del -f. */
#ifndef SLUICE_CMD_LIST_H
#define SLUICE_CMD_LIST_H

#include "cli/command.h"
#include "rules/ruleset.h"

struct list_request {
	enum sl_list list; /* SL_LIST_NONE: either */
	const char *file;  /* of -f; NULL: the prefixes */
	const char *name;  /* of the list; NULL: none is said */
	uint64_t ns;	   /* of `for`; 0: for good */
	bool replace;
	bool force;
	struct ruleset entries; /* the prefixes, without a word */
	char file_name[SL_LIST_NAME];
};

/*
 * Reads prefixes, or -f FILE, and those of the keywords for, as, replace and force that the command knows. The caller
 * frees `entries`, also where it fails.
 */
enum status list_request_parse(const struct context *context, int argc, char **argv,
			       const char *const keywords[], size_t count,
			       struct list_request *request);

#endif
