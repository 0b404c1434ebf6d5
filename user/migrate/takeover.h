/* SPDX-License-Identifier: GPL-2.0 */
/* Another gate takes the place of a running one, with its rules, levels and counters. */
#ifndef SLUICE_TAKEOVER_H
#define SLUICE_TAKEOVER_H

#include "attach/replace.h"
#include "gate/gate.h"
#include "migrate/next_gate.h"
#include "rules/sizes.h"

/*
 * Makes the gate that is planned, and puts its programs under all devices; `gate` is that one then. Says what is lost.
 * The gate is open to change. On failure it is as it was; if it is of an old schema and the failure comes after the
 * switch, next/ stays, and the next upgrade_schema() begins anew.
 */
enum status takeover(struct gate *gate, struct resize_plan *plan, struct replacements *ret);

/* --- Resizing ------------------------------------------------------------------------------- */

/*
 * Gives the gate maps of these sizes where it has others, and its devices programs on them. Rules,
 * levels and counters are carried over, and every packet is judged; says what sources did not fit. What is known of
 * busy sources alone, their counters among it, starts anew with another size of `hot`. Refuses sizes in which the
 * rules in force do not fit. The gate is open to change; on failure it is as it was.
 */
enum status resize(struct gate *gate, const struct gate_sizes *sizes);

/* Ends or undoes a resize that was cut off. The gate is open to change. */
enum status resize_settle(const struct gate *gate);

/* --- Upgrading ------------------------------------------------------------------------------ */

/*
 * Carries a gate of an older schema over, opened by gate_open_to_upgrade: rules, levels, lists and counters; every
 * packet is judged. On success it is a gate of this version's schema.
 */
enum status upgrade_schema(struct gate *gate, struct replacements *ret);

#endif
