/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A limit in words, as `set` takes it, `show` prints it and a rules file holds it: one text a field.
 */
#ifndef SLUICE_SPEC_H
#define SLUICE_SPEC_H

#include "limit.h"
#include "log.h"
#include "sluice.h"

enum spec_field {
	SPEC_NAME,
	SPEC_RATE,
	SPEC_BURST,
	SPEC_MATCH,  /* "udp port 53 vlan 10" */
	SPEC_PER,    /* "24", "24/56" */
	SPEC_KEY,    /* "src", "dst" */
	SPEC_ACTION, /* "drop", "observe", "block 30s" */
	SPEC_START,  /* "full", "empty" */
	SPEC_FIELDS,
};

/* The keywords of `set`, which are the keys of a rules file. */
extern const char *const spec_names[SPEC_FIELDS];

#define SPEC_TEXT 160 /* room for any formatted field */

/* The texts of one limit; NULL: not said. */
struct spec {
	const char *text[SPEC_FIELDS];
};

/*
 * Parses all fields, and says every error in them. `rate` is required; what is not said is the default:
 * name all, burst_default(), match any, per 32/64, key src, action drop, start full. The prefix decides
 * what a length after `per` means: on default, 33 and more are of IPv6, and the other family keeps its
 * default. `place`, if not NULL, is called before each field is parsed: for a reader of files, which
 * says where the field stands.
 */
enum status spec_parse(const struct spec *spec, const struct sl_prefix *prefix,
		       void (*place)(void *data, enum spec_field field), void *data,
		       struct limit *ret);

/*
 * Parses the budget of all newcomers of a policy together: a limit of a rate and a burst, and for any packet. It is
 * called "newcomers" in messages.
 */
enum status spec_parse_budget(const char *rate, const char *burst,
			      void (*place)(void *data, enum spec_field field), void *data,
			      struct limit *ret);

/*
 * One field back to words, which parse to the same; NULL: it is the default, and show says nothing of it
 * (`rate` and `burst` are always said).
 */
const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT]);

/* The same with what is default said, too: never NULL. */
const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT]);

#endif
