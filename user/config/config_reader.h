/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the document of a rules file to rules. The words of the document go to the parsers of the
 * command line. An error is said with its place, and does not keep the rest from being read.
 *
 *   shape_check     refuses keys that a rules file has not, and values of the wrong kind
 *   policies_read   `defaults` and `policies` become claims
 *   lists_read      `allow` and `deny` become claims
 *   claims_merge    claims become rules, one a prefix
 *
 * Used by: config.c, which also has the reader's own functions and the last step. The others are in
 * config_check.c, config_policies.c and config_lists.c.
 */
#ifndef SLUICE_CONFIG_READER_H
#define SLUICE_CONFIG_READER_H

#include <stdbool.h>

#include "config/document.h"
#include "rules/limit.h"
#include "rules/ruleset.h"
#include "rules/sizes.h"

/* What one place of the file says of a prefix: a policy, a word by hand, or a list it is on. */
struct claim {
	struct rule rule;
	struct mark at;
};

struct claims {
	struct claim *claims;
	unsigned int count;
	unsigned int room;
	unsigned int twice; /* claims that were refused, as an earlier one is of the same kind */
};

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

/* Keeps the worst status. True: this one is an error. */
bool reader_failed(struct reader *reader, enum status status);

/* Messages are about this node from now on. */
void reader_place(struct reader *reader, const struct node *node);

/* The value of a key that is true or false; messages are about it from now on. */
enum status reader_truth(struct reader *reader, const struct node *node, bool *ret);

/* Adds a claim. Takes over the rule's policy, also on failure. False, having said so: no memory. */
bool reader_claim(struct reader *reader, const struct rule *rule, struct mark at);

/*
 * Says every unknown key, every key given twice and every node of the wrong kind, with its place.
 * False: the values are not to be read, as some of them are missing or given twice.
 */
bool shape_check(struct reader *reader);

void policies_read(struct reader *reader);
void lists_read(struct reader *reader);

/*
 * Makes one rule of all claims to a prefix, in the order of prefixes. Two policies of a prefix, or
 * two words by hand, are refused with both places.
 */
void claims_merge(struct reader *reader);
void claims_free(struct claims *claims);

#endif
