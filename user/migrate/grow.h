/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Migrate: gives a gate larger maps when its rules need them. A session sets it as `grow` of the
 * gate it opens, and a change of rules that finds no room calls it.
 */
#ifndef SLUICE_GROW_H
#define SLUICE_GROW_H

#include "gate/gate.h"
#include "rules/sizes.h"

/*
 * Resizes the gate (migrate/takeover.h), and reports which sizes grew. Refuses where the process
 * lacks a capability for that. After a failure the gate is unchanged.
 */
enum status gate_grow(struct gate *gate, const struct gate_sizes *sizes);

#endif
