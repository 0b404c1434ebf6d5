/* SPDX-License-Identifier: GPL-2.0 */
/* Finds the entries of keys in a copy of the table of states in memory. */
#ifndef SLUICE_TEST_TABLE_FIND_H
#define SLUICE_TEST_TABLE_FIND_H

#include "ways.h"

/* Returns a key's entry in set number `set`, or NULL. `sets` and `entries` are the whole table. */
static inline struct sl_entry *set_find(const struct sl_set *sets, struct sl_entry *entries,
					__u32 set, __u16 tag, const struct state_key *key)
{
	for (__u32 way = 0; way < SL_WAYS; way++) {
		struct sl_entry *entry = &entries[set * SL_WAYS + way];

		if (sets[set].tag[way] == tag && entry_is(entry, key))
			return entry;
	}
	return 0;
}

/* Returns the entry of a key, or NULL if the key has no entry. */
static inline struct sl_entry *
table_find_mapped(const struct sl_params *params, const __u64 secret[SL_SECRETS],
		  const struct sl_set *sets, struct sl_entry *entries, const struct state_key *key)
{
	struct slot_ref ref = slot_ref_of(params, state_digest(secret, key));
	struct sl_entry *entry = set_find(sets, entries, ref.primary, ref.tag, key);

	return entry ? entry
		     : set_find(sets, entries, set_alternate(params, ref.primary, ref.tag),
				ref.tag | TAG_DISPLACED, key);
}

#endif
