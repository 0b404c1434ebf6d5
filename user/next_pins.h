/* SPDX-License-Identifier: GPL-2.0 */
/* The pins of the gate that replaces a running one, in GATE/next/ until it does: see user/resize.c. */
#ifndef SLUICE_NEXT_PINS_H
#define SLUICE_NEXT_PINS_H

#include "gate.h"
#include "pins.h"

const char *next_path(const char *gate, enum gate_map map, char path[PINS_PATH]);

/* Pins `gate`, and the maps that are fresh. On failure next_remove() removes what is there. */
enum status next_pin(const struct gate *next, const bool fresh[GATE_MAPS]);
void next_remove(const char *gate);

/* Whether a resize was cut off. The gate is locked. */
bool next_exists(const char *gate);

/* Whether the old gate is the one still. */
bool next_is_prepared(const char *gate);

/* Gives the pins their names; with that of `gate` the new gate begins. Goes on where that was cut off. */
enum status next_rename(const char *gate);

#endif
