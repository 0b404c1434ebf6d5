/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: the fields of a limit in words, one by one; limit_words.h puts them together. */
#ifndef SLUICE_LIMIT_FIELDS_H
#define SLUICE_LIMIT_FIELDS_H

#include "rules/limit.h"

enum spec_field {
	SPEC_NAME,    /* "dns" */
	SPEC_RATE,    /* "10kpps", "10kpps 100mbit" */
	SPEC_BURST,   /* "2500", "2500 64kB" */
	SPEC_WINDOW,  /* "1000 per 1min", "10MB per 1h" */
	SPEC_GROUPS,  /* "5" */
	SPEC_SHAPE,   /* "10mbit" */
	SPEC_HORIZON, /* "200ms" */
	SPEC_MATCH,   /* "udp port 53 vlan 10" */
	SPEC_PER,     /* "24", "24/56", "32,24,16" */
	SPEC_KEY,     /* "src", "dst" */
	SPEC_ACTION,  /* "drop", "observe", "block 30s escalate 2 max 1h" */
	SPEC_START,   /* "full", "empty", "share" */
	SPEC_SHARED,  /* "yes", "no", "block" */
	SPEC_FIELDS,
};

/* The keywords of `set`, and the keys of a rules file. */
extern const char *const spec_names[SPEC_FIELDS];

/* The names of enum sl_kind. */
extern const char *const kind_names[SL_KINDS];

/* The field that tells each kind. */
extern const enum spec_field kind_fields[SL_KINDS];

/* The only kind that has a field; -1: it is not of one kind alone. */
int field_kind(enum spec_field field);

bool kind_has_field(enum sl_kind kind, enum spec_field field);

/* The defaults of any limit; its name is that of a limit that matches any packet. */
extern const struct limit limit_defaults;

/*
 * Computes the default name of a limit: the words of its match, joined by '-', without "port", with
 * '_' for ','; "all" if it matches any packet. Then the suffix, "-24" or "". If that is too long,
 * it is cut and ends in a hash, so that limits with different matches have different names.
 */
void name_default(const struct sl_match *match, const char *suffix, char name[SL_NAME]);

#define SPEC_TEXT 160 /* room for any formatted field */

/*
 * Parses one field into a limit. prefix: what one length after `per` is a length of. The first
 * error is printed.
 */
int field_parse(enum spec_field field, const char *text, const struct sl_prefix *prefix,
		struct limit *limit);

/*
 * Formats one field in words that parse to the same value. NULL: it is the default, which `show`
 * leaves out, or the limit's kind does not have it; never for the field that tells the kind, and
 * for `burst` of a bucket. Of default names only "all" is left out, as `del` needs the others.
 */
const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT]);

/* spec_format() that formats defaults, too. */
const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT]);

#endif
