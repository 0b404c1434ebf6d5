/* SPDX-License-Identifier: GPL-2.0 */
/* Migrate: replaces a running gate by another one with its rules, levels and counters. */
#ifndef SLUICE_TAKEOVER_H
#define SLUICE_TAKEOVER_H

#include "attach/replace.h"
#include "gate/gate.h"
#include "migrate/next_gate.h"
#include "rules/sizes.h"

/*
 * Makes the planned gate, puts its programs on all devices, and replaces `gate` by it. Reports what
 * is lost. The gate is open for a change. After a failure it is unchanged, with one exception: a
 * failed upgrade from an old schema may leave next/ if the switch was done, and the next
 * upgrade_schema() begins again.
 */
enum status takeover(struct gate *gate, struct resize_plan *plan, struct replacements *ret);

/* --- Resizing ------------------------------------------------------------------------------- */

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

/* --- Upgrading ------------------------------------------------------------------------------ */

/*
 * Replaces a gate of an older schema, opened by gate_open_to_upgrade(), by one of this version's
 * schema. Rules, levels, lists and counters are carried over, and every packet is judged.
 */
enum status upgrade_schema(struct gate *gate, struct replacements *ret);

#endif
