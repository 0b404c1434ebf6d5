/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading a rules file: its values, as libcyaml gives them, go to the parsers of the command line, while the
 * document tells where they stand. Both are walked side by side: item by item, key by key.
 */
#ifndef SLUICE_CONFIG_READER_H
#define SLUICE_CONFIG_READER_H

#include "config/config_text.h"
#include "config/document.h"
#include "config/merge.h"
#include "rules/ruleset.h"
#include "rules/sizes.h"

struct reader {
	const char *path; /* lists are looked for beside it */
	struct document document;
	struct text_config *text;
	struct claims claims;
	struct gate_sizes sizes; /* 0: not said */
	struct ruleset rules;
	enum status status; /* the worst so far */
};

/* Notes what went wrong, if anything did, and goes on: to say the next error, too. */
bool reader_failed(struct reader *reader, enum status status);

/* Messages are about this node from now on. */
void reader_place(struct reader *reader, const struct node *node);

/* A key that is true or false. */
enum status reader_truth(const char *key, const char *text, bool *ret);

/* `defaults` and `policies`. */
void policies_read(struct reader *reader);

/* `allow` and `deny`. */
void lists_read(struct reader *reader);

#endif
