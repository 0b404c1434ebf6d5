/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: a limit in words, a limit as users mean it, and the compiled limit that packets read. */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include "base/host.h"
#include "base/log.h"
#include "sluice.h"

/* The longest Ethernet frame of most networks, in bytes. */
#define FRAME_USUAL 1514

/* A limit in the units in which it was written. */
struct limit {
	struct sl_limit_spec spec;
	struct sl_match match;
};

/*
 * Checks that the burst fits the rate: it holds one packet, or one byte of a bit rate, and takes at
 * most two years to refill. A frame may cost more than the burst: include/credit.h.
 */
enum status limit_check(const struct limit *limit);

/*
 * Computes cost and burst, and splits the burst between ledger and purses (include/credit.h). The
 * limit has passed limit_check(). Its id is the spec's; its slot is 0.
 */
struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine);

/*
 * Whether a limit that is changed can go on with its ledgers: it has the same key and kind, and a
 * window counts in the same units and sub-windows.
 */
bool limit_keeps_ledgers(const struct sl_limit_spec *old, const struct sl_limit_spec *new);

/* --- Parsing and formatting ----------------------------------------------------------------- */

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

/* The keywords of `set`, and the keys of a rules file. */
extern const char *const spec_names[SPEC_FIELDS];

#define SPEC_TEXT 160 /* room for any formatted field */

/* The texts of one limit; NULL: not given. */
struct spec {
	const char *text[SPEC_FIELDS];
};

/*
 * Parses all fields and prints every error in them. `rate` is required. The defaults are: name all,
 * burst_default(), match any, per 32/64, key src, action drop, start full. The prefix decides what
 * one length after `per` means: on `default`, 33 and more are of IPv6, and the other family keeps
 * its default. place: called before each field is parsed, so that a reader of files can name the
 * field's place in messages; or NULL.
 */
enum status spec_parse(const struct spec *spec, const struct sl_prefix *prefix,
		       void (*place)(void *data, enum spec_field field), void *data,
		       struct limit *ret);

/*
 * Parses the budget that all newcomers of a policy share: a limit that has a rate and a burst only.
 * Messages call it "newcomers".
 */
enum status spec_parse_budget(const char *rate, const char *burst,
			      void (*place)(void *data, enum spec_field field), void *data,
			      struct limit *ret);

/*
 * Formats one field in words that parse to the same value. NULL: it is the default, which `show`
 * leaves out; never for `rate` and `burst`.
 */
const char *spec_format(const struct limit *limit, const struct sl_prefix *prefix,
			enum spec_field field, char text[SPEC_TEXT]);

/* spec_format() without that exception: never NULL. */
const char *spec_format_whole(const struct limit *limit, const struct sl_prefix *prefix,
			      enum spec_field field, char text[SPEC_TEXT]);

#endif
