/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: what keys of shared limits took, from the counters in the entries of the table. Packets
 * change entries and hand them to other keys during a read.
 */
#ifndef SLUICE_SHARE_SAMPLES_H
#define SLUICE_SHARE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/table.h"

/* What the last scan read from an entry. */
struct sample {
	uint64_t word;	  /* `taken` and `refused` */
	uint32_t hash;	  /* of its key; 0: none */
	uint32_t excess;  /* taken and not reported, in units of the limit (unit_shift) */
	uint32_t account; /* the index of the key's account + 1; 0: it has none */
	float demand;	  /* choice_demand() */
};

struct samples {
	struct table table;
	struct sample *list; /* by entry */
	bool is_fresh;	     /* no scan yet: what entries counted before is not reported */
};

int samples_open(const struct gate *gate, struct samples *ret);
void samples_close(struct samples *samples);

/* Returns the first entry in use from `index` on, or the number of entries. */
uint32_t samples_next(const struct samples *samples, uint32_t index);

#define for_each_entry(samples, index)                                                             \
	for (uint32_t index = samples_next(samples, 0); index < (samples)->table.count;            \
	     index = samples_next(samples, (index) + 1))

/* Copies the key of an entry. Returns false if it is free, or handed to another key right now. */
bool sample_key(const struct sl_entry *entry, struct state_key *ret);

/*
 * Returns the sample of the key that an entry has now; it starts at 0 if the key is new there.
 * ret_account: that of the key which had the entry before, or 0.
 */
struct sample *sample_of(struct samples *samples, uint32_t index, const struct state_key *key,
			 uint32_t *ret_account);

/* Lets a sample start at what the entry has counted so far. */
void sample_reset(struct sample *sample, const struct sl_entry *entry);

/* In units of the limit. `taken` falls if a CPU returns a slice, and `asked` with it. */
struct counted {
	int32_t taken;
	int64_t asked;
	bool is_new_entry; /* the key lost the entry and got it again: this is since then */
};

/*
 * Reads what an entry counted since the previous read, `passed` ticks ago. Returns false if the
 * entry was handed to another key meanwhile. The counters have 32 bits, which a full link wraps
 * within COUNT_WRAPS: after a longer time, nothing is counted unless the limit is slow enough.
 */
bool sample_read(struct sample *sample, const struct sl_entry *entry, const struct state_key *key,
		 const struct sl_limit *limit, uint64_t passed, struct counted *ret);

#endif
