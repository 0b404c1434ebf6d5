/* SPDX-License-Identifier: GPL-2.0 */
/* Parses words that make one limit. */
#ifndef SLUICE_TEST_SPEC_FIRST_H
#define SLUICE_TEST_SPEC_FIRST_H

#include "rules/limit_words.h"

/* spec_parse() of one limit. Several lengths of a key leave all but the first. */
static inline int spec_parse_first(const struct spec *spec, const struct sl_prefix *prefix,
					   void (*place)(void *data, enum spec_field field),
					   void *data, struct limit *ret)
{
	struct limits limits;
	int status = spec_parse(spec, prefix, place, data, &limits);

	if (!status)
		*ret = limits.list[0];
	return status;
}

#endif
