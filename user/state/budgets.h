/* SPDX-License-Identifier: GPL-2.0 */
/* State: how much of the newcomers' budgets is used, for `status`. */
#ifndef SLUICE_BUDGETS_H
#define SLUICE_BUDGETS_H

#include <stdint.h>

#include "gate/gate.h"

/* The budget of a policy, with the policies that inherit it. */
struct budget_use {
	const struct sl_policy *policy; /* in the gate's memory */
	uint64_t left;			/* of its burst, in packets, or bytes of a bit rate */
	uint64_t passed;		/* packets that it paid for */
	uint64_t dropped;
};

/* Reads all budgets of a gate, by prefix. The caller frees `ret`. */
int budgets_read(const struct gate *gate, struct budget_use **ret, unsigned int *ret_count);

#endif
