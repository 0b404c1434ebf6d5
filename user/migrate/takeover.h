/* SPDX-License-Identifier: GPL-2.0 */
/* Migrate: replaces a running gate by another one with its rules, levels and counters. */
#ifndef SLUICE_TAKEOVER_H
#define SLUICE_TAKEOVER_H

#include "attach/replace.h"
#include "gate/gate.h"
#include "migrate/next_gate.h"
#include "rules/sizes.h"

/*
 * Gives the gate maps of these sizes where they differ, and its devices programs on them. Rules,
 * levels and counters are carried over, and every packet is judged. Reports the sources that did
 * not fit. With another size of `hot` the bucket entries start empty, with the counters of sources
 * in them. Refuses sizes in which the rules in force do not fit. The gate is open for a change;
 * after a failure it is unchanged.
 */
enum status resize(struct gate *gate, const struct gate_sizes *sizes);

/* Completes or undoes an interrupted resize. The gate is open for a change. */
enum status resize_settle(const struct gate *gate);

#endif
