/* SPDX-License-Identifier: GPL-2.0 */
/* Sources that a gate knows. */
#ifndef SLUICE_BENCH_ESTABLISH_H
#define SLUICE_BENCH_ESTABLISH_H

#include "behind.h"
#include "gate/gate.h"

/*
 * Sends a packet from each of them through the program behind those of `object`. Sources are as
 * sources_parse() has them: of IPv4, or by /64.
 */
int sources_walk(const struct bpf_object *object, const char *sources);

/*
 * Makes them known to the gate, as if each had come at leisure. At a benchmark's pace they would
 * look like a flood, and wait: so for this moment the gate lets everybody in.
 */
int establish(struct gate *gate, const struct bpf_object *object, const char *sources);

#endif
