/* SPDX-License-Identifier: GPL-2.0 */
/* Makes gates that have the sizes and rules of the cases. */
#ifndef SLUICE_BENCH_GROUND_H
#define SLUICE_BENCH_GROUND_H

#include "bench.h"
#include "gate/gate.h"
#include "rules/ruleset.h"

/*
 * Makes the gate of a program under test, with the rules of its cases. The caller closes it even
 * after an error.
 */
int ground_make(enum subject which, struct gate *ret);

/* Adds a policy with one limit to `rules`. */
int ground_add(struct ruleset *rules, const char *prefix, const struct bench_limit *limit);

#endif
