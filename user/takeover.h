/* SPDX-License-Identifier: GPL-2.0 */
/* Another gate takes the place of a running one, with its rules, levels and counters. */
#ifndef SLUICE_TAKEOVER_H
#define SLUICE_TAKEOVER_H

#include "resize_plan.h"
#include "switch.h"

/*
 * Makes the gate that is planned, and puts its programs under all devices; `gate` is that one then. Says what is lost.
 * The gate is open to change. On failure it is as it was; if it is of an old schema and the failure comes after the
 * switch, next/ stays, for user/upgrade.c to begin anew.
 */
enum status takeover(struct gate *gate, struct resize_plan *plan, struct switching *ret);

#endif
