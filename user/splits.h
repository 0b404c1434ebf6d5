/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules longer than /64 divide the /64 that a bucket is kept for: map `splits` counts them. Rules longer than a
 * block divide it: map `blocks` (include/block.h). A mark is set before its rule is seen, and removed after it
 * is gone: in between it costs a lookup and changes no verdict.
 */
#ifndef SLUICE_SPLITS_H
#define SLUICE_SPLITS_H

#include "rulemap.h"

/* Adds `change` to the counts of what the prefix divides. 0, or a negative errno and nothing is added. */
int split_add(struct gate *gate, const struct sl_prefix *prefix, int change);

/* Makes both maps say just what these rules ask for. Sorts the entries. */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count);

#endif
