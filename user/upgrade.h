/* SPDX-License-Identifier: GPL-2.0 */
/* From an older schema to this version's. */
#ifndef SLUICE_UPGRADE_H
#define SLUICE_UPGRADE_H

#include "switch.h"

/*
 * Carries a gate of an older schema over, opened by gate_open_to_upgrade: rules, levels, lists and counters; every
 * packet is judged. On success it is a gate of this version's schema.
 */
enum status upgrade_schema(struct gate *gate, struct switching *ret);

#endif
