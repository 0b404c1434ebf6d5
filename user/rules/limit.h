/* SPDX-License-Identifier: GPL-2.0 */
/* From a limit as people write it to a limit as the packet path reads it. */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include "base/host.h"
#include "base/log.h"
#include "sluice.h"

/* The longest frame of Ethernet on most networks, in bytes. */
#define FRAME_USUAL 1514

/* A limit as its author wrote it. */
struct limit {
	struct sl_limit_spec spec;
	struct sl_match match;
};

/*
 * Whether the numbers fit each other: the burst holds what the rate counts, one packet or one byte, and does not
 * take too long to refill. A frame may cost more than the burst: include/credit.h.
 */
enum status limit_check(const struct limit *limit);

/*
 * Computes cost, burst, and how the burst is shared between ledger and purses (include/credit.h).
 * The limit is checked. Its id is the spec's; its slot is left 0.
 */
struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine);

/* --- In words ------------------------------------------------------------------------------- */

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
