/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: limits in words, as `set`, rules files and `show` have them. */
#ifndef SLUICE_LIMIT_WORDS_H
#define SLUICE_LIMIT_WORDS_H

#include "rules/limit_fields.h"

/* The texts of one limit; NULL: not given. */
struct spec {
	const char *text[SPEC_FIELDS];
};

/*
 * Sets the default burst: one second of the rate, at least 64 packets or 256 kB. Honest clients
 * send in bursts, so a shorter burst drops their packets far below the rate. TC passes on merged
 * packets of up to 45 segments or 64 kB, which the least bursts hold.
 */
void burst_default(struct sl_limit_spec *spec);

/* The limits that one set of words makes. */
struct limits {
	struct limit list[SL_LIMITS_MAX];
	unsigned int count;
};

/*
 * Parses all fields and prints every error in them. One of `rate`, `window` and `shape` is
 * required. The defaults are: name_default(), burst_default(), groups 5, horizon 200ms, match any,
 * per 32/64, key src, action drop, start full. The prefix decides what one length after `per`
 * means: on `default`, 33 and more are of IPv6, and the other family keeps its default. place:
 * called before each field is parsed, so that a reader of files can name the field's place in
 * messages; or NULL.
 *
 * Several lengths, `per 32,24,16`, make a limit each, narrow first; rate, burst, window, shape and
 * horizon then have as many values, or one for all. The first has the name, the others the name and
 * their length: all, all-24, all-16. On `default` their IPv6 keys are 32 bits longer.
 */
int spec_parse(const struct spec *spec, const struct sl_prefix *prefix,
	       void (*place)(void *data, enum spec_field field), void *data, struct limits *ret);

/*
 * Parses the budget that all newcomers of a policy share: a limit that has a rate and a burst only.
 * Messages call it "newcomers".
 */
int spec_parse_budget(const char *rate, const char *burst,
		      void (*place)(void *data, enum spec_field field), void *data,
		      struct limit *ret);

#endif
