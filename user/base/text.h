/* SPDX-License-Identifier: GPL-2.0 */
/* Words of messages: what was probably meant, what goes with a number, how a gate is named. */
#ifndef SLUICE_TEXT_H
#define SLUICE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * The word that is closest to what was typed, ignoring case: at most two letters missing, surplus, wrong or swapped with
 * their neighbour, and at most half of them. NULL: none is that close, or one is just that.
 */
const char *nearly_find(const char *typed, const char *const words[], size_t count);

/* --- Numbers -------------------------------------------------------------------------------- */

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* --- Gates ---------------------------------------------------------------------------------- */

#define GATE_USUAL "main" /* the gate of a command that names none */

/* How a message says a gate in a command that is to be typed: "-g GATE ", or "" for the usual one. Lives until the next call. */
const char *gate_option(const char *gate);

#endif
