/* SPDX-License-Identifier: GPL-2.0 */
/* Bursts against the frames of the devices that they are for. */
#ifndef SLUICE_FRAMES_H
#define SLUICE_FRAMES_H

#include "gate.h"
#include "ruleset.h"

/* Refuses a burst of a bit rate that holds no whole frame of an attached device: it would stop it dead. */
enum status frames_check(const struct gate *gate, const struct rule *rules, unsigned int count);

#endif
