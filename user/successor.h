/* SPDX-License-Identifier: GPL-2.0 */
/* The gate that a resize makes beside the running one, with its rules, and with those whom it knows. */
#ifndef SLUICE_SUCCESSOR_H
#define SLUICE_SUCCESSOR_H

#include "resize_plan.h"

/* Renumbers the rules of the plan. `next` begins closed, and is to be closed in any case. */
enum status successor_make(const struct gate *gate, struct resize_plan *plan, struct gate *next);

#endif
