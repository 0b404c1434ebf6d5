/* SPDX-License-Identifier: GPL-2.0 */
/* Map `known`, when a resize makes it anew: who was known is. bpf/known.h is what it serves. */
#ifndef SLUICE_KNOWN_FIT_H
#define SLUICE_KNOWN_FIT_H

#include "gate.h"

/*
 * An entry of a map of `count` entries that begins with what one of `old_count` says: both are powers of two, and an
 * entry's index is the low bits of a hash. In a larger map several entries begin alike, and know some whom only another
 * of them need know: that ends with the epochs. In a smaller one several come together.
 */
struct sl_known known_fit(const struct sl_known *old, uint32_t old_count, uint32_t count,
			  uint32_t index);

/*
 * Fills the map of `to`, which no packet uses yet. Who gets his ledger between this and the switch is not copied:
 * he is met once more, as a newcomer, and in a flood shows himself again.
 */
enum status known_copy(const struct gate *from, const struct gate *to);

#endif
