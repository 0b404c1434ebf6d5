/* SPDX-License-Identifier: GPL-2.0 */
/* Base: words of messages: the nearest keyword, plural forms, the option that names a gate. */
#ifndef SLUICE_TEXT_H
#define SLUICE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * The word nearest to what was typed, ignoring case: at most two letters missing, added, wrong or
 * swapped with a neighbour, and at most half of the letters. NULL: no word is that near, or one is
 * equal.
 */
const char *nearly_find(const char *typed, const char *const words[], size_t count);

/* --- Numbers -------------------------------------------------------------------------------- */

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* --- Gates ---------------------------------------------------------------------------------- */

#define GATE_USUAL "main" /* the gate of a command without -g */

/*
 * The option "-g GATE " that a command in a message needs; "" for GATE_USUAL. Lives until the next
 * call.
 */
const char *gate_option(const char *gate);

#endif
