/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State: all sources that a gate remembers, found in one walk over its memory: those with a bucket,
 * and those without a bucket that have a state. A full state contains no more than none, so a
 * source with nothing but full states is not listed.
 */
#ifndef SLUICE_SOURCES_H
#define SLUICE_SOURCES_H

#include "state/source.h"

struct listed_source {
	struct sl_prefix prefix; /* prefix_source() of its address */
	bool is_counted;	 /* it has a bucket; otherwise the cells are 0 */
	struct sl_cell passed;
	struct sl_cell dropped;
	struct sl_cell observed;
};

struct source_list {
	struct listed_source *items; /* by prefix */
	unsigned int count;
	unsigned int room;
};

/*
 * Lists the sources within a prefix. The caller frees `items`. Sources that come or go meanwhile
 * may be missed.
 */
int sources_list(const struct gate *gate, const struct table *table, const struct sl_prefix *within,
		 struct source_list *ret);

#endif
