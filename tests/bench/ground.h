/* SPDX-License-Identifier: GPL-2.0 */
/* Gates as the cases need them: sizes and rules. */
#ifndef SLUICE_BENCH_GROUND_H
#define SLUICE_BENCH_GROUND_H

#include "bench.h"
#include "gate/gate.h"
#include "rules/ruleset.h"

/* A gate with the rules of its cases. The caller closes it, also on failure. */
int ground_make(enum subject which, struct gate *ret);

/* Adds a rule of one prefix and one limit. */
int ground_add(struct ruleset *rules, const char *prefix, const struct bench_limit *limit);

#endif
