/* SPDX-License-Identifier: GPL-2.0 */
/* Reading a rules file: the words of its document go to the parsers of the command line. */
#ifndef SLUICE_CONFIG_READER_H
#define SLUICE_CONFIG_READER_H

#include "config/document.h"
#include "config/merge.h"
#include "rules/limit.h"
#include "rules/ruleset.h"
#include "rules/sizes.h"

struct reader {
	const char *path; /* lists are looked for beside it */
	struct document document;
	struct claims claims;
	struct gate_sizes sizes; /* 0: not said */
	struct ruleset rules;
	enum status status; /* the worst so far */
};

/* `defaults` has this field of a limit, and those behind it. */
#define DEFAULTS_FIRST SPEC_PER

/* Notes what went wrong, if anything did, and goes on: to say the next error, too. */
bool reader_failed(struct reader *reader, enum status status);

/* Messages are about this node from now on. */
void reader_place(struct reader *reader, const struct node *node);

/* The value of a key that is true or false; messages are about it from now on. */
enum status reader_truth(struct reader *reader, const struct node *node, bool *ret);

/* `defaults` and `policies`. */
void policies_read(struct reader *reader);

/* `allow` and `deny`. */
void lists_read(struct reader *reader);

#endif
