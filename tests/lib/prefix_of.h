/* SPDX-License-Identifier: GPL-2.0 */
/* Parses prefixes in tests. */
#ifndef SLUICE_TEST_PREFIX_OF_H
#define SLUICE_TEST_PREFIX_OF_H

#include "rules/prefix.h"
#include "test.h"

/* Parses a prefix or an address. Fails the test if the text is invalid. */
static inline struct sl_prefix prefix_of(const char *text)
{
	struct sl_prefix prefix;

	/* prefix_parse() must set every byte, because a prefix is a key of maps */
	memset(&prefix, 0xa5, sizeof(prefix));
	assert_int_equal(prefix_parse(text, &prefix), 0);
	return prefix;
}

#endif
