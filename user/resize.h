/* SPDX-License-Identifier: GPL-2.0 */
/* Other sizes for the maps of a running gate. */
#ifndef SLUICE_RESIZE_H
#define SLUICE_RESIZE_H

#include "gate.h"

/*
 * Gives the gate maps of these sizes where it has others, and its devices programs on them. Rules,
 * levels and counters are carried over, and every packet is judged; says what sources did not fit. What is known of
 * busy sources alone, their counters among it, starts anew with another size of `hot`. Refuses sizes in which the
 * rules in force do not fit. The gate is open to change; on failure it is as it was.
 */
enum status resize(struct gate *gate, const struct gate_sizes *sizes);

/* Ends or undoes a resize that was cut off. The gate is open to change. */
enum status resize_settle(const struct gate *gate);

#endif
