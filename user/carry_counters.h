/* SPDX-License-Identifier: GPL-2.0 */
/* Adding what one gate counted to the counters of another, which packets use. */
#ifndef SLUICE_CARRY_COUNTERS_H
#define SLUICE_CARRY_COUNTERS_H

#include "carrier.h"

/*
 * sums: of the policies 0 to count - 1 of the other gate; number: what each of them is called in `to`, as carry_begin
 * has it. 0, or a negative errno.
 */
int counters_carry(const struct gate *to, const struct carriers *carriers,
		   const struct sl_counters *sums, const uint32_t *number, uint32_t count);

#endif
