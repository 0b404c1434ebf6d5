/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: from the document of a rules file to rules. The words of the document go to the parsers
 * of the command line. An error is printed with its place, and reading goes on.
 */
#ifndef SLUICE_CONFIG_READER_H
#define SLUICE_CONFIG_READER_H

#include <stdbool.h>

#include "config/document.h"
#include "rules/devices.h"
#include "rules/limit_words.h"
#include "rules/list_file.h"
#include "rules/ruleset.h"
#include "rules/sizes.h"

/*
 * What one place of the file says of a prefix: a policy, an entry by hand, or the entry of a list.
 */
struct claim {
	struct rule rule;
	struct position at;
};

struct claims {
	struct claim *claims;
	unsigned int count;
	unsigned int room;
	unsigned int twice; /* claims refused as duplicates */
};

struct reader {
	const char *path; /* relative names of list files begin at its directory */
	bool leaves_out;  /* lists with a bad file, see config_parse_most() */
	struct document document;
	struct claims claims;
	struct gate_sizes sizes; /* 0: not given */
	struct ruleset rules;
	struct places places;
	struct list_paths files;
	int status; /* the worst so far */
};

/* The first field of a limit that `defaults` may have; it may have those behind it, too. */
#define DEFAULTS_FIRST SPEC_PER

/* Records the worst status. True: this one is an error. */
bool reader_failed(struct reader *reader, int status);

/* Puts the place of this node before each message. */
void reader_place(struct reader *reader, const struct node *node);

/* Reads the value of a key that is true or false, and puts its place before each message. */
int reader_truth(struct reader *reader, const struct node *node, bool *ret);

/*
 * Adds a claim, and owns the rule's policy, also on failure. False: no memory, which is reported.
 */
bool reader_claim(struct reader *reader, const struct rule *rule, struct position at);

/*
 * Reports every unknown key, every key given twice and every node of the wrong kind. False: values
 * are missing or given twice, and must not be read.
 */
bool shape_check(struct reader *reader);

/* `attach` becomes places; `defaults` and `policies`, and `allow` and `deny`, become claims. */
void places_read(struct reader *reader);
void policies_read(struct reader *reader);
void lists_read(struct reader *reader);

#endif
