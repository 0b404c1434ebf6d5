/* SPDX-License-Identifier: GPL-2.0 */
/* The option that names a gate. */
#ifndef SLUICE_GATE_OPTION_H
#define SLUICE_GATE_OPTION_H

#define GATE_USUAL "main" /* the gate of a command that names none */

/* How a message says a gate in a command that is to be typed: "-g GATE ", or "" for the usual one. Lives until the next call. */
const char *gate_option(const char *gate);

#endif
