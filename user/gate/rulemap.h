/* SPDX-License-Identifier: GPL-2.0 */
/* The maps of rules as they are: `hosts4` and `hosts6` for whole addresses, `prefixes` for the rest. */
#ifndef SLUICE_RULEMAP_H
#define SLUICE_RULEMAP_H

#include <stddef.h>

#include "gate/gate.h"

/* The generation of the rules that packets see. */
uint32_t rulemap_generation(const struct gate *gate);

/* What packets see of a rule in that generation. */
const struct sl_face *rulemap_face(const struct sl_rule *rule, uint32_t generation);

/* The word by hand of a face, while it lasts. */
enum sl_list face_access(const struct sl_face *face);

/* Whether a face says nothing, and never will. */
bool face_is_empty(const struct sl_face *face);

/* One rule of a map. */
struct rulemap_entry {
	struct sl_prefix prefix;
	struct sl_rule rule;
};

/* The rule of just this prefix; false: there is none. */
bool rulemap_get(const struct gate *gate, const struct sl_prefix *prefix, struct sl_rule *ret);

/*
 * The rule for an address or prefix with the longest prefix, in force or not, of at most `bits` bits; false:
 * there is none.
 */
bool rulemap_cover(const struct gate *gate, const struct sl_prefix *prefix, uint32_t bits,
		   struct sl_rule *ret);

/* Calls for each, in no order, until that returns a negative errno, which is returned. */
typedef int rulemap_call(void *data, const struct rulemap_entry *entry);
int rulemap_walk(const struct gate *gate, rulemap_call *call, void *data);

/* All of them, in no order; the caller frees `ret`. 0, or a negative errno. */
int rulemap_read(const struct gate *gate, struct rulemap_entry **ret, unsigned int *ret_count);

/* Writes, or removes, many. 0, or a negative errno: then any part is done. */
int rulemap_write(const struct gate *gate, const struct rulemap_entry *entries, unsigned int count);
int rulemap_remove(const struct gate *gate, const struct rulemap_entry *entries,
		   unsigned int count);

/* --- Split /64s ----------------------------------------------------------------------------- */

/* Adds `change` to the counts of what the prefix divides. 0, or a negative errno and nothing is added. */
int split_add(struct gate *gate, const struct sl_prefix *prefix, int change);

/* Makes both maps say just what these rules ask for. Sorts the entries. */
int splits_set(struct gate *gate, struct rulemap_entry *entries, unsigned int count);

#endif
