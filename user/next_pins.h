/* SPDX-License-Identifier: GPL-2.0 */
/* The pins of the gate that replaces a running one, in GATE/next/ until it does: see user/resize.c. */
#ifndef SLUICE_NEXT_PINS_H
#define SLUICE_NEXT_PINS_H

#include "gate.h"

/* Each is given the running gate, which is locked. */

/* Pins `gate`, and the maps that are fresh. On failure next_remove() removes what is there. */
enum status next_pin(const struct gate *gate, const struct gate *next, const bool fresh[GATE_MAPS]);
enum status next_remove(const struct gate *gate);

/* Opens their directory. OK and a closed `ret`: there is none, as no resize was cut off. */
enum status next_open(const struct gate *gate, struct pins *ret);

/* Whether the old gate is the one still. */
bool next_is_prepared(const struct pins *pins);

/* Gives the pins their names; with that of `gate` the new gate begins. Goes on where that was cut off. */
enum status next_rename(const struct gate *gate);

#endif
