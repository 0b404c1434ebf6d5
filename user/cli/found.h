/* SPDX-License-Identifier: GPL-2.0 */
/* Cli: prints findings of doctor, for `doctor` and `status`. */
#ifndef SLUICE_FOUND_H
#define SLUICE_FOUND_H

#include "gate/gate.h"

struct finding;

/* Prints a finding in two lines. of_several: also the gate, unless it is the object. */
void print_finding(const struct finding *finding, bool of_several, const char *indent);

/* Prints the most important findings about a gate, as "findings". */
void print_top_findings(const struct gate *gate);

#endif
