/* SPDX-License-Identifier: GPL-2.0 */
/* Words that are nearly right: what was probably meant. */
#ifndef SLUICE_NEARLY_H
#define SLUICE_NEARLY_H

#include <stddef.h>

/*
 * The word that is closest to what was typed, ignoring case: at most two letters missing, surplus, wrong or swapped with
 * their neighbour, and at most half of them. NULL: none is that close, or one is just that.
 */
const char *nearly_find(const char *typed, const char *const words[], size_t count);

#endif
