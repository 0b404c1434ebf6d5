/* SPDX-License-Identifier: GPL-2.0 */
/* Gate: the counters of a gate, summed over CPUs. */
#ifndef SLUICE_COUNTERS_H
#define SLUICE_COUNTERS_H

#include "gate/gate.h"

/* The names of reasons, such as `over-limit`. */
extern const char *const reason_names[SL_REASONS];

/*
 * Reads the counters of policy `number`: packets and bytes by reason and by limit, of all policies
 * that ever had that number.
 */
int counters_read(const struct gate *gate, unsigned int number, struct sl_counters *ret);

/* Reads the counters of policies 0 to count - 1 in one walk. The caller frees `ret`. */
int counters_read_first(const struct gate *gate, unsigned int count, struct sl_counters **ret);

/* The sums over reasons that pass, and over those that drop. */
struct sl_cell counters_passed(const struct sl_counters *counters);
struct sl_cell counters_dropped(const struct sl_counters *counters);

void cell_add_to(struct sl_cell *sum, const struct sl_cell *cell);
void counters_add_to(struct sl_counters *sum, const struct sl_counters *counters);
void counters_take_from(struct sl_counters *sum, const struct sl_counters *counters);

#endif
