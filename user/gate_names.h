/* SPDX-License-Identifier: GPL-2.0 */
/* Which gates there are, for a command that names none, or one that does not exist. */
#ifndef SLUICE_GATE_NAMES_H
#define SLUICE_GATE_NAMES_H

#include "gate.h"

/* The only gate that exists; "": there is none, there are several, or one of them has the usual name. */
enum status gates_only(const char *usual, char name[GATE_NAME + 1]);

/* Says that there is no such gate, and which there are. */
enum status no_such_gate(const char *name);

#endif
