/* SPDX-License-Identifier: GPL-2.0 */
/* State: the state of one limit for an address: read, or filled. */
#ifndef SLUICE_STATES_H
#define SLUICE_STATES_H

#include <stdint.h>

#include "gate/table.h"
#include "ways.h"

/*
 * Reads the state of a limit for an address, which is cut to the key's length. table: NULL: by
 * calls of the kernel. ret_found false: there is none, and `ret` is the state that a packet at
 * `now` would create. ret_age: the age of its entry if a packet at `now` finds its key established
 * (entry_is_due()), otherwise 0.
 */
int state_read(const struct gate *gate, const struct table *table, const struct sl_limit *limit,
	       const struct sl_prefix *address, uint64_t now, struct sl_state *ret, bool *ret_found,
	       uint32_t *ret_age);

/* A key without a state, as its next packet finds it (bpf/flood.h). */
struct newcomer {
	uint32_t shown;	 /* hits, with that packet */
	bool has_room;	 /* a way is free or can be evicted, unless the key waits in a flood */
	bool is_refused; /* its state would be empty: all states in its sets lack more than half */
};

/*
 * flood: whether new sources wait. A reader can find neither the key in the sketch nor its sets, so
 * it gets a newcomer that was not seen before and finds room.
 */
int newcomer_read(const struct gate *gate, const struct sl_limit *limit,
		  const struct sl_prefix *address, uint64_t now, bool flood, struct newcomer *ret);

/*
 * Fills the state of a limit for an address, which is cut to the key's length: what is charged to
 * it is forgiven, and a block ends. Without a state there is nothing to forgive.
 */
int state_fill(const struct gate *gate, const struct sl_limit *limit,
	       const struct sl_prefix *address);

/*
 * Tries that on an entry of the table, while packets charge it. Returns false if a packet was
 * charged meanwhile, and true for an entry of another key, which stays as it is.
 */
bool state_try_fill(const struct sl_limit *limit, struct sl_entry *entry,
		    const struct state_key *key, uint64_t now);

#endif
